"""Samples of whole allocations: merged, forgotten oldest first, and bounded in number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Phase, Reason, Trial
from rheostat.job.observation import Latency, Observation
from rheostat.model.experience import MAX_SAMPLES, Experience, fold, is_catching_up, is_settled, keeps_up, task_rows
from rheostat.testing.situations import read, window, word_count

WORDS = word_count()


def look(load: float, tasks: int, latency_s: float = 0.1, rate: float = 1e4) -> Observation:
    return replace(window(WORDS, load, tasks, rate), latency=Latency(*(latency_s,) * 6))


def test_a_window_adds_one_sample_and_a_repeat_is_averaged() -> None:
    experience = fold(Experience(), look(100.0, 3, 0.1))
    experience = fold(experience, look(101.0, 3, 0.2))
    assert len(experience.samples) == 1
    assert experience.samples[0].latency_s == pytest.approx(0.15)
    assert experience.samples[0].count == 2
    assert len(fold(experience, look(150.0, 3)).samples) == 2  # another rate
    assert experience.capacities.samples("split")


def test_a_trial_counts_like_a_window_and_one_that_failed_says_why() -> None:
    trial = Trial("t", Allocation({"split": 3, "count": 3}), (Phase(60, {"lines": 100.0}, observed=True),))
    experience = fold(Experience(), Measurement(trial, look(100.0, 3, 0.3), 60.0, 360.0))
    assert experience.samples[0].latency_s == 0.3
    failed = fold(experience, Measurement(trial, None, 0.0, 0.0, "not run: there is no testbed"))
    assert failed.trial_problem == "not run: there is no testbed"
    assert failed.samples == experience.samples


def test_the_latency_of_a_catch_up_is_not_that_of_the_load() -> None:
    at_load = look(100.0, 3, 0.1)
    sources = (replace(at_load.sources[0], backlog=1e6),)
    assert is_settled(at_load)
    assert not is_settled(replace(at_load, sources=sources))
    assert fold(Experience(), replace(at_load, sources=sources)).samples[0].latency_s is None


def test_a_size_that_falls_behind_has_no_latency() -> None:
    """Its latency is that of its backlog, and says nothing about a steady state (Eq 9)."""
    slow = look(100.0, 1, 0.9, rate=50.0)
    assert not keeps_up(slow)
    assert not is_settled(slow)
    experience = fold(fold(Experience(), look(100.0, 1, 0.1)), slow)
    assert experience.samples[0].latency_s == 0.1
    assert experience.samples[0].count == 1, "windows without a latency do not count for its mean"
    assert not fold(Experience(), slow).samples[0].keeps_up


def test_a_full_operator_behind_a_backlog_of_seconds_is_catching_up() -> None:
    """It processes 1 % more than its load: for half an hour its latency is that of a full job."""
    at_load = look(100.0, 3, 0.3)
    waits = (replace(at_load.sources[0], backlog=20 * 100.0),)
    full = read(replace(at_load, sources=waits), "split", useful_share=1.0)
    assert is_catching_up(full)
    idle = read(full, "split", useful_share=0.8)
    assert not is_catching_up(read(idle, "count", useful_share=0.8)), "what waits then waits for a trigger"


def test_the_fewest_tasks_of_a_rate_are_remembered_from_decisions() -> None:
    solved = {"solved": {"load_per_s": 100.0, "tasks": {"split": 2, "count": 3}}}
    experience = fold(Experience(), Decision.hold(Reason.STEADY, "done", memo=solved))
    assert experience.base(102.0) is not None
    assert experience.base(150.0) is None
    assert experience.nearest(150.0, 0) is not None
    assert experience.nearest(150.0, 1) is None  # no samples to learn from
    assert fold(experience, Decision.hold(Reason.STEADY, "again", memo=solved)) == experience


def test_it_does_not_grow_with_the_age_of_the_job() -> None:
    experience = Experience()
    for step in range(3 * MAX_SAMPLES):
        experience = fold(experience, look(100.0 * 1.2 ** (step % 40), 1 + step % 20))
    assert len(experience.samples) <= MAX_SAMPLES
    assert task_rows(experience.samples, WORDS.tunable_names).shape == (len(experience.samples), 2)


def test_a_window_without_load_adds_no_sample() -> None:
    assert fold(Experience(), Observation.blind(1.0, "no answer")) == Experience()
    assert not fold(Experience(), look(0.0, 3)).samples
