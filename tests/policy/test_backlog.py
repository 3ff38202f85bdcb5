"""The data-backlog model, Eq 9 to 12."""

from __future__ import annotations

import pytest

from rheostat.policy.catch_up import catch_up_per_s, excess, steady_backlog


def test_little_s_law_says_what_may_wait() -> None:
    assert steady_backlog(1000.0, 0.5, 0.2) == pytest.approx(300.0)
    assert steady_backlog(1000.0, 0.1, 0.2) == 0.0  # the job alone takes longer than is promised


def test_the_excess_goes_within_the_limit_beside_what_arrives() -> None:
    over = excess(6e6, 30e3, 0.5, 0.2)
    assert over == pytest.approx(6e6 - 9000)
    rate = catch_up_per_s(30e3, over, 360.0)
    assert (rate - 30e3) * 360.0 == pytest.approx(over)
    assert excess(100.0, 30e3, 0.5, 0.2) == 0.0
    assert catch_up_per_s(30e3, 0.0, 360.0) == 30e3
