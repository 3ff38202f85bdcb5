"""The data-backlog model, Eq 9 to 12."""

from __future__ import annotations

import pytest

from rheostat.policy.catch_up import catch_up_per_s, excess, steady_backlog


def test_the_steady_backlog_follows_littles_law() -> None:
    assert steady_backlog(1000.0, 0.5, 0.2) == pytest.approx(300.0)
    assert steady_backlog(1000.0, 0.1, 0.2) == 0.0  # processing alone takes longer than the objective


def test_the_catch_up_rate_clears_the_excess_within_the_limit() -> None:
    over = excess(6e6, 30e3, 0.5, 0.2)
    assert over == pytest.approx(6e6 - 9000)
    rate = catch_up_per_s(30e3, over, 360.0)
    assert (rate - 30e3) * 360.0 == pytest.approx(over)
    assert excess(100.0, 30e3, 0.5, 0.2) == 0.0
    assert catch_up_per_s(30e3, 0.0, 360.0) == 30e3
