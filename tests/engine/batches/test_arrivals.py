"""The input rate of the load that arrives now, and when a record arrived."""

from collections import deque
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.engine.batches.arrivals import (
    LEAST_S,
    ArrivalCount,
    arrival_moment_s,
    present_load,
    present_rate,
    records_at,
)


def counts(rate_at: Callable[[float], float], until_s: int, every_s: int = 5) -> list[ArrivalCount]:
    total, listed = 0.0, [ArrivalCount(0.0, 0.0)]
    for second in range(until_s):
        total += rate_at(second)
        if (second + 1) % every_s == 0:
            listed.append(ArrivalCount(second + 1.0, total))
    return listed


def test_a_jump_shows_within_one_interval() -> None:
    load = counts(lambda second: 500.0 if second < 100 else 6000.0, 110)
    assert present_rate(load[:-2], 30.0) == 500.0
    assert present_rate(load[:-1], 30.0) == 6000.0
    assert present_rate(load, 30.0) == 6000.0


def test_a_jump_between_two_steps_shows_with_its_whole_rate_where_the_source_is_asked_every_second() -> None:
    load = counts(lambda second: 500.0 if second < 100 else 6000.0, 104, every_s=1)
    assert present_rate(load[:-4], 30.0) == 500.0
    assert present_rate(load[:-1], 30.0) == 6000.0
    assert present_rate(load, 30.0) == 6000.0
    back = counts(lambda second: 6000.0 if 90 <= second < 100 else 500.0, 104, every_s=1)
    assert present_rate(back, 30.0) == 500.0


def test_a_source_that_counts_from_0_again_shows_its_rate_since_then() -> None:
    """Engines hold their counts in a deque, which has no slices."""
    before, after = counts(lambda _: 500.0, 100), counts(lambda _: 300.0, 20)
    again = deque([*before, *(ArrivalCount(100.5 + count.at_s, count.records) for count in after)])
    assert present_rate(again, 60.0) == 300.0
    assert arrival_moment_s(again, 3000.0) == pytest.approx(110.5)
    assert records_at(again, 110.5) == pytest.approx(3000.0)


def test_a_count_that_is_corrected_downwards_is_no_new_source() -> None:
    """Files are counted by their bytes until their batch has ended."""
    estimated = [ArrivalCount(5.0 * k, 500.0 * k + (60.0 if k % 2 else 0.0)) for k in range(40)]
    silence = [ArrivalCount(200.0 + 5.0 * k, 19_800.0 - k) for k in range(1, 9)]
    assert present_rate(deque(estimated), 60.0) == pytest.approx(100.0, rel=0.05)
    assert present_rate(deque([*estimated, *silence]), 30.0) == 0.0
    assert arrival_moment_s(deque(estimated), 10_000.0) == pytest.approx(100.0, abs=1.0)


@pytest.mark.parametrize("period", [2, 5, 10])
def test_a_load_in_bursts_is_averaged(period: int) -> None:
    """Another streaming job writes the topic, once per batch."""
    load = counts(lambda second: 0.0 if second % period else 1000.0 * period, 121, every_s=1)
    for last in range(-2 * period, 0):
        assert present_rate(load[:last], 60.0) == pytest.approx(1000.0, rel=period / 60 + 0.01)


@pytest.mark.parametrize(("seen_s", "left_s"), [(0, 0.0), (1, 1.5), (2, 0.5), (3, 0.0), (10, 0.0)])
def test_a_load_that_has_just_jumped_settles_when_it_was_seen_for_long_enough(seen_s: int, left_s: float) -> None:
    load = counts(lambda second: 500.0 if second < 100 else 6000.0, 100 + seen_s, every_s=1)
    assert present_load(load, 30.0).settles_in_s == pytest.approx(left_s)
    steady = counts(lambda _: 500.0, 100 + seen_s, every_s=1)
    assert present_load(steady, 30.0).settles_in_s == 0.0


@given(st.lists(st.integers(0, 10_000), min_size=4, max_size=60))
def test_a_load_that_never_settles_is_not_waited_for(per_s: list[int]) -> None:
    """Of two looks that are `LEAST_S` apart, one at least finds a load to decide from."""
    load = counts(lambda second: float(per_s[int(second) % len(per_s)]), 120, every_s=1)
    waits = [present_load(load[:last], 30.0).settles_in_s for last in range(60, 121)]
    assert all(0.0 <= wait_s <= LEAST_S for wait_s in waits)
    apart = 3
    assert all(not (waits[at] and waits[at + apart]) for at in range(len(waits) - apart))


def test_silence_shows_within_one_interval() -> None:
    load = counts(lambda second: 6000.0 if second < 100 else 0.0, 105)
    assert present_rate(load, 30.0) == 0.0


def test_a_steady_load_is_averaged_over_the_window() -> None:
    load = counts(lambda second: 1000.0 + (100.0 if second // 5 % 2 else -100.0), 100)
    assert present_rate(load, 30.0) == pytest.approx(1000.0)
    assert present_rate(load, 10.0) == pytest.approx(1000.0)
    assert present_rate(load, 5.0) == pytest.approx(1100.0)


def test_a_few_records_more_or_less_are_no_change_of_load() -> None:
    load = [ArrivalCount(0.0, 0.0), ArrivalCount(10.0, 3.0), ArrivalCount(20.0, 9.0), ArrivalCount(30.0, 12.0)]
    assert present_rate(load, 30.0) == pytest.approx(0.4)


def test_counts_of_less_than_a_few_seconds_are_put_together() -> None:
    load = [ArrivalCount(at_s / 10, 1000.0 * (at_s // 10)) for at_s in range(0, 101)]
    assert present_rate(load, 30.0) == pytest.approx(1000.0)


def test_a_topic_that_was_created_again_counts_from_its_creation() -> None:
    load = [*counts(lambda _: 1000.0, 60), ArrivalCount(65.0, 0.0), ArrivalCount(70.0, 500.0)]
    assert present_rate(load, 30.0) == 100.0
    assert arrival_moment_s(load, 250.0) == 67.5


def test_one_count_has_no_rate() -> None:
    assert present_rate([], 30.0) is None
    assert present_rate([ArrivalCount(1.0, 5.0)], 30.0) is None


def test_the_arrival_of_a_record_is_found_between_two_counts() -> None:
    load = counts(lambda second: 100.0 if second < 10 else 10.0, 20)
    assert arrival_moment_s(load, 0.0) == 0.0
    assert arrival_moment_s(load, 750.0) == 7.5
    assert arrival_moment_s(load, 1025.0) == 12.5
    assert arrival_moment_s(load, 1100.0) is None  # it has not arrived
    assert arrival_moment_s(load[2:], 750.0) is None  # it arrived before the first count


@given(st.lists(st.tuples(st.floats(0.1, 20.0), st.floats(0, 1e6)), min_size=2, max_size=40), st.floats(1.0, 120.0))
def test_a_rate_is_one_that_some_stretch_up_to_now_had(steps: list[tuple[float, float]], window_s: float) -> None:
    load = [ArrivalCount(0.0, 0.0)]
    for seconds, records in steps:
        load.append(ArrivalCount(load[-1].at_s + seconds, load[-1].records + records))
    rate = present_rate(load, window_s)
    rates = [(b.records - a.records) / (b.at_s - a.at_s) for a, b in pairwise(load)]
    assert rate is not None
    assert min(rates) * (1 - 1e-6) - 1e-6 <= rate <= max(rates) * (1 + 1e-6) + 1e-6


def test_the_stretch_in_which_the_load_jumped_belongs_to_neither_load() -> None:
    # 80/s until 49 s, then 320/s; counted every five seconds.
    counts = [ArrivalCount(at_s, 80.0 * min(at_s, 49.0) + 320.0 * max(0.0, at_s - 49.0)) for at_s in range(5, 61, 5)]
    seen = {int(counts[place].at_s): present_rate(counts[: place + 1], 30.0) for place in range(3, len(counts))}
    assert seen[45] == pytest.approx(80.0)
    assert seen[50] == pytest.approx(128.0)  # a second of the new load
    assert seen[55] == seen[60] == pytest.approx(320.0)


def test_the_records_at_a_moment_lie_between_its_counts() -> None:
    load = [ArrivalCount(0.0, 900.0), ArrivalCount(10.0, 0.0), ArrivalCount(20.0, 100.0), ArrivalCount(21.0, 300.0)]
    # The topic was created again at 10 s.
    assert [records_at(load, at_s) for at_s in (5.0, 10.0, 15.0, 20.5, 21.0, 30.0)] == [
        0.0,
        0.0,
        50.0,
        200.0,
        300.0,
        300.0,
    ]
    assert all(arrival_moment_s(load, records_at(load, at_s)) == pytest.approx(at_s) for at_s in (10.0, 15.0, 20.5))
