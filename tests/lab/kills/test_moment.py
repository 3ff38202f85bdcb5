"""The moments of kills are spread over the repartition, and repeat with the seed."""

from __future__ import annotations

import numpy as np

from rheostat.lab.kills.evidence import Stage
from rheostat.lab.kills.moment import LATEST, NARROW, Moment, draw_moments


def test_every_format_is_first_killed_with_state_to_undo() -> None:
    moments = draw_moments(20, 8, np.random.default_rng(1))
    assert len(moments) == 20
    assert {moment.stage for moment in moments[:8]} == {Stage.STATE}
    assert {moment.stage for moment in moments[8:]} == {None, *NARROW}
    shares = sorted(moment.share for moment in moments if moment.stage is None)
    assert shares[0] < LATEST / 8
    assert shares[-1] > LATEST * 7 / 8


def test_fewer_kills_than_formats_all_leave_state() -> None:
    assert [moment.stage for moment in draw_moments(2, 8, np.random.default_rng(1))] == [Stage.STATE, Stage.STATE]


def test_moments_repeat_with_the_seed() -> None:
    one, same, other = (draw_moments(20, 8, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == same != other


def test_a_moment_describes_itself() -> None:
    assert str(Moment(share=0.5)) == "at 50% of the usual duration"
    assert str(Moment(Stage.COMMITTED)) == "at the sight of: committed"
