"""The downtime of a change: SPARK.md's shape at first, then this machine's level."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rheostat.engine.spark.lifecycle.downtime import Downtime, expected_downtime_s, usual_s


def test_state_costs_more_the_more_keys_it_has() -> None:
    assert usual_s(False, 0) == usual_s(False, 1_000_000)
    assert usual_s(False, 0) < usual_s(True, 100) < usual_s(True, 1_000_000) < 10


def test_what_was_seen_corrects_changes_of_the_same_kind_at_any_size() -> None:
    slow = [Downtime(True, 100, 3 * usual_s(True, 100))] * 3
    assert expected_downtime_s(slow, True, 1_000_000) == pytest.approx(3 * usual_s(True, 1_000_000))
    assert expected_downtime_s(slow, False, 100) == usual_s(False, 100)


@given(some.lists(some.tuples(some.booleans(), some.integers(0, 10**9), some.floats(0, 1e4)), max_size=30))
def test_it_is_never_negative(seen: list[tuple[bool, int, float]]) -> None:
    for moved in (False, True):
        assert 0 <= expected_downtime_s([Downtime(*one) for one in seen], moved, 1000) < float("inf")
