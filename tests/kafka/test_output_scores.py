"""Scores of an output topic: latency, last values, repetitions, silences. No broker needed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.kafka.output import (
    Latency,
    Output,
    Silence,
    between,
    downtimes_s,
    largest_silence,
    last_values,
    latency,
    repetitions,
)


def at(*times_ms: int) -> list[Output]:
    return [Output("a", number, 0, at_ms) for number, at_ms in enumerate(times_ms)]


def test_latency_is_from_the_event_to_the_broker() -> None:
    outputs = [Output("a", n, event_ms=1000, at_ms=1000 + n) for n in range(101)]
    assert latency(outputs) == Latency(101, 50.0, 95.0, 99.0, 100.0)
    within = latency(between(outputs, 1010, 1020))
    assert within is not None
    assert (within.count, within.p50_ms, within.worst_ms) == (10, 14.5, 19.0)
    assert latency([]) is None


def test_the_last_value_is_that_of_the_highest_offset_whatever_the_order() -> None:
    outputs = [Output("a", 3, 0, 50, 0, 9), Output("a", 2, 0, 50, 0, 8), Output("b", 7, 0, 40, 1, 1)]
    assert last_values(outputs) == last_values(reversed(outputs)) == {"a": 3, "b": 7}


def test_the_same_number_of_the_same_key_again_is_a_repetition() -> None:
    said = [("a", 1), ("a", 2), ("b", 1), ("a", 1), ("a", 1)]
    assert repetitions(Output(key, number, 0, n) for n, (key, number) in enumerate(said)) == 2


@pytest.mark.parametrize(
    ("times_ms", "first_ms", "last_ms", "silence"),
    [
        ((0, 100, 900, 1000), 0, 1000, Silence(100, 900, over=True)),
        # A change at 500: the silence began before it and ended after all that was looked at.
        ((0, 100, 900, 1000), 500, 600, Silence(100, 900, over=True)),
        # A longer one elsewhere is not this one's business.
        ((0, 1000, 1100, 1300, 1400), 1150, 1350, Silence(1100, 1300, over=True)),
        # Nothing came any more: it lasted at least as long as was looked.
        ((0, 100), 0, 5000, Silence(100, 5000, over=False)),
        ((), 10, 20, Silence(10, 20, over=False)),
        # What was before the first output is not known.
        ((700, 800), 0, 800, Silence(0, 700, over=True)),
        ((5,), 5, 5, Silence(5, 5, over=True)),
    ],
)
def test_the_largest_silence(times_ms: tuple[int, ...], first_ms: int, last_ms: int, silence: Silence) -> None:
    assert largest_silence(at(*times_ms), first_ms, last_ms) == silence


def test_a_change_is_not_blamed_for_the_silence_of_the_next_one_or_of_the_end() -> None:
    outputs = at(0, 1000, 2500, 3000, 7000, 8000)  # a change at 1.2 s, another one at 2.8 s; the load ends at 8 s
    assert downtimes_s(outputs, [1.2, 2.8], 8.0) == (1.5, 4.0)
    assert downtimes_s(outputs, [1.2], 8.0) == (4.0,)
    assert downtimes_s(outputs, [], 8.0) == ()
    assert downtimes_s(outputs, [7.5], 7.0) == (1.0,)  # seen a moment after the load's end


@given(st.lists(st.integers(0, 1000), min_size=2), st.integers(0, 1000), st.integers(0, 1000))
def test_no_output_lies_within_a_silence_and_none_is_longer(times_ms: list[int], one_ms: int, other_ms: int) -> None:
    first_ms, last_ms = sorted((one_ms, other_ms))
    silence = largest_silence(at(*times_ms), first_ms, last_ms)
    assert not any(silence.start_ms < time_ms < silence.end_ms for time_ms in times_ms)
    edges = sorted({first_ms, last_ms, *(time_ms for time_ms in times_ms if first_ms <= time_ms <= last_ms)})
    assert silence.length_ms >= max((later - sooner for sooner, later in pairwise(edges)), default=0)


def test_a_time_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidValue, match="at least first_ms=5, not 4"):
        largest_silence([], 5, 4)
