"""What whole allocations were seen to do: a fold that forgets nothing that counts and does not grow for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Phase, Reason, Trial
from rheostat.job.observation import Latency, Observation
from rheostat.model.experience import KEPT, Experience, fold, keeps_up, rows, settled
from rheostat.testing.situations import window, word_count

WORDS = word_count()


def seen(load: float, tasks: int, latency_s: float = 0.1, rate: float = 1e4) -> Observation:
    return replace(window(WORDS, load, tasks, rate), latency=Latency(*(latency_s,) * 6))


def test_a_window_adds_one_sample_and_a_repeat_is_averaged() -> None:
    known = fold(Experience(), seen(100.0, 3, 0.1))
    known = fold(known, seen(101.0, 3, 0.2))
    assert len(known.seen) == 1
    assert known.seen[0].latency_s == pytest.approx(0.15)
    assert known.seen[0].count == 2
    assert len(fold(known, seen(150.0, 3)).seen) == 2  # another rate
    assert known.capacities.samples("split")


def test_a_trial_counts_like_a_window_and_one_that_failed_says_why() -> None:
    trial = Trial("t", Allocation({"split": 3, "count": 3}), (Phase(60, {"lines": 100.0}, observed=True),))
    known = fold(Experience(), Measurement(trial, seen(100.0, 3, 0.3), 60.0, 360.0))
    assert known.seen[0].latency_s == 0.3
    failed = fold(known, Measurement(trial, None, 0.0, 0.0, "not run: there is no testbed"))
    assert failed.untested == "not run: there is no testbed"
    assert failed.seen == known.seen


def test_catching_up_is_not_taken_for_the_latency_of_the_load() -> None:
    at_load = seen(100.0, 3, 0.1)
    sources = (replace(at_load.sources[0], backlog=1e6),)
    assert settled(at_load)
    assert not settled(replace(at_load, sources=sources))
    assert fold(Experience(), replace(at_load, sources=sources)).seen[0].latency_s is None
    slow = seen(100.0, 1, 0.9, rate=50.0)
    assert not keeps_up(slow)
    assert fold(Experience(), slow).seen[0].latency_s == 0.9  # falling behind is what this size does
    assert not fold(Experience(), slow).seen[0].keeps_up


def test_the_fewest_tasks_of_a_rate_are_remembered_from_decisions() -> None:
    solved = {"solved": {"load_per_s": 100.0, "tasks": {"split": 2, "count": 3}}}
    known = fold(Experience(), Decision.hold(Reason.STEADY, "done", memo=solved))
    assert known.base(102.0) is not None
    assert known.base(150.0) is None
    assert known.nearest(150.0, 0) is not None
    assert known.nearest(150.0, 1) is None  # no samples to learn from
    assert fold(known, Decision.hold(Reason.STEADY, "again", memo=solved)) == known


def test_it_does_not_grow_with_the_age_of_the_job() -> None:
    known = Experience()
    for step in range(3 * KEPT):
        known = fold(known, seen(100.0 * 1.2 ** (step % 40), 1 + step % 20))
    assert len(known.seen) <= KEPT
    assert rows(known.seen, WORDS.tunable_names).shape == (len(known.seen), 2)


def test_nothing_is_learned_from_nothing() -> None:
    assert fold(Experience(), Observation.blind(1.0, "no answer")) == Experience()
    assert not fold(Experience(), seen(0.0, 3)).seen
