"""A late real-time batch differs from one that catches up, and has a stage that causes it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.engine.batches.lateness import (
    Chain,
    Span,
    blocking_shares,
    late_stages,
    required_busy_shares,
    worth_waiting_s,
)
from rheostat.job.observation import OperatorReading

CHAIN = Chain(("in", "map", "count"), {"in": 1, "map": 2, "count": 3}, 5.0)


@given(st.floats(0.0, 500.0), st.floats(0.2, 5.0))
def test_a_batch_is_late_exactly_when_the_capacity_is_below_the_load(waited_s: float, load_by_capacity: float) -> None:
    seconds = max(5.0, (waited_s + 5.0) * load_by_capacity)
    span = Span(100.0, (105.0, 105.0, 100.0 + seconds), 100.0 - waited_s)
    if abs(seconds - waited_s - 5.0) > 0.6:
        assert late_stages(CHAIN, span) == (("count",) if load_by_capacity > 1 else ())
    share = blocking_shares(CHAIN, [span])
    assert share["count"] == pytest.approx(max(0.0, 1 - 1 / load_by_capacity) if seconds > 5.0 else 0.0, abs=1e-9)
    assert share["map"] == 0.0


def test_each_stage_blocks_for_its_own_part() -> None:
    # The batch is due at 105 s: `map` takes 5 s more, `count` another 10 s.
    span = Span(100.0, (105.0, 110.0, 120.0), 100.0)
    assert late_stages(CHAIN, span) == ("map", "count")
    assert blocking_shares(CHAIN, [span]) == pytest.approx({"in": 0.0, "map": 0.25, "count": 0.5})
    assert blocking_shares(CHAIN, []) == {"in": 0.0, "map": 0.0, "count": 0.0}


def test_required_busy_shares_are_those_of_the_present_load_and_size() -> None:
    readings = [
        OperatorReading("in", 1, 100.0),
        OperatorReading("map", 1, 100.0, 0.5, 200.0),
        OperatorReading("count", 3, 300.0, 0.5, 200.0),
    ]
    # Twice the load of the window: 200 lines at 200/s on two tasks, 600 words at 200/s on three.
    assert required_busy_shares(CHAIN, readings, 200.0, CHAIN.tasks) == pytest.approx({"map": 0.5, "count": 1.0})
    assert required_busy_shares(CHAIN, readings, None, CHAIN.tasks) == {}
    assert required_busy_shares(CHAIN, [OperatorReading("in", 1)], 200.0, CHAIN.tasks) == {}


def test_a_restart_waits_for_the_batch_while_interrupting_it_does_not_pay() -> None:
    was = {"split": 3, "count": 4}
    assert worth_waiting_s(30.0, 10.0, was, {"split": 6, "count": 4}) == pytest.approx(30.0)
    assert worth_waiting_s(30.0, 10.0, was, {"split": 4, "count": 2}) == pytest.approx(90.0)
    assert worth_waiting_s(1.0, 10.0, was, {"split": 6, "count": 8}) == pytest.approx(10.0)
    for smaller in ({"split": 3, "count": 1}, was, {}):
        assert worth_waiting_s(30.0, 10.0, was, smaller) == math.inf


def test_a_batch_whose_rest_is_known_is_interrupted_at_once_if_that_pays() -> None:
    was, twice = {"split": 3, "count": 4}, {"split": 6, "count": 4}
    assert worth_waiting_s(8.0, 10.0, was, twice, left_s=9.0) == 0.0
    assert worth_waiting_s(8.0, 10.0, was, twice, left_s=7.0) == 10.0
    assert worth_waiting_s(30.0, 10.0, was, was, left_s=1000.0) == math.inf
