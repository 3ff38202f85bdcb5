"""The expected downtime of a change: nominal at first, then corrected by past changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rheostat.engine.spark.lifecycle.downtime import Downtime, expected_downtime_s, nominal_downtime_s


def test_more_keys_take_more_time_to_repartition() -> None:
    assert nominal_downtime_s(False, 0) == nominal_downtime_s(False, 1_000_000)
    assert nominal_downtime_s(False, 0) < nominal_downtime_s(True, 100) < nominal_downtime_s(True, 1_000_000) < 10


def test_past_changes_correct_changes_of_the_same_kind_at_any_size() -> None:
    slow = [Downtime(True, 100, 3 * nominal_downtime_s(True, 100))] * 3
    assert expected_downtime_s(slow, True, 1_000_000) == pytest.approx(3 * nominal_downtime_s(True, 1_000_000))
    assert expected_downtime_s(slow, False, 100) == nominal_downtime_s(False, 100)


@given(some.lists(some.tuples(some.booleans(), some.integers(0, 10**9), some.floats(0, 1e4)), max_size=30))
def test_the_expected_downtime_is_finite_and_not_negative(past: list[tuple[bool, int, float]]) -> None:
    for moved in (False, True):
        assert 0 <= expected_downtime_s([Downtime(*one) for one in past], moved, 1000) < float("inf")
