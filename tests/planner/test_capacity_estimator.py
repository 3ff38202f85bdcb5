"""Both estimators against a simulator whose capacity is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial
from rheostat.lab.jobs import job
from rheostat.planner.capacity_estimator import COMPLEX, SIMPLE, Phases, Search, dichotomic, estimate
from rheostat.planner.rig import UNLIMITED_PER_S, Feed, pool_windows
from rheostat.planner.sequential_estimator import Belief, sequential

SIZE = Allocation({"calc": 12, "sink": 4}, 4096)
FEED = Feed.of(("events",))
BOTH = pytest.mark.parametrize("search", [dichotomic, sequential])


def plant(noise: float = 0.0) -> Plant:
    quiet = job("streambed-q1")
    operators = tuple(replace(o, noise=noise if o.noise else 0.0) for o in quiet.operators)
    return replace(quiet, noise_period_s=5, operators=operators)


def capacity(what: Plant, size: Allocation = SIZE) -> float:
    rig = SimulatedTestbed(what, 99).start(size)
    rig.play([FEED.phase(60.0, UNLIMITED_PER_S, True)])
    window = rig.play([FEED.phase(1800.0, UNLIMITED_PER_S, True)]).observation
    assert window is not None
    assert window.throughput_per_s is not None
    return window.throughput_per_s


class TestAnswers:
    @BOTH
    def test_without_noise_they_find_the_capacity(self, search: Search) -> None:
        result = estimate(SimulatedTestbed(plant()), SIZE, FEED, search=search)
        assert result.rate_per_s is not None
        assert result.rate_per_s.middle == pytest.approx(capacity(plant()), rel=0.02)
        assert result.problem is None
        assert result.observation is not None
        calc = result.observation.operator("calc")
        assert calc.true_rate_per_s == pytest.approx(1.623e6 * 12**0.934 / 12, rel=0.01)
        assert calc.useful_share is not None
        assert calc.useful_share > 0.9

    def test_ours_takes_less_time_and_its_interval_covers(self) -> None:
        noisy, truth = plant(0.1), capacity(plant(0.1))
        ours = [estimate(SimulatedTestbed(noisy, k), SIZE, FEED, search=sequential) for k in range(6)]
        theirs = [estimate(SimulatedTestbed(noisy, k), SIZE, FEED, search=dichotomic) for k in range(6)]
        assert np.mean([e.seconds for e in ours]) < 0.7 * np.mean([e.seconds for e in theirs])
        assert np.mean([abs(e.middle_per_s / truth - 1) for e in ours]) < 0.05
        assert sum(e.rate_per_s.holds(truth) for e in ours if e.rate_per_s) >= 4

    def test_the_papers_phases_take_the_papers_time(self) -> None:
        for seed in range(4):
            assert estimate(SimulatedTestbed(plant(0.05), seed), SIZE, FEED).seconds == 645.0
        result = estimate(SimulatedTestbed(plant()), SIZE, FEED)
        assert result.seconds == 645.0
        assert result.slot_seconds == 645.0 * 16
        assert result.rates_tried == 8
        assert COMPLEX.warm_up_s + (COMPLEX.iterations - 1) * 75.0 == 900.0

    def test_an_injector_limit_is_reported(self) -> None:
        for search in (dichotomic, sequential):
            result = estimate(SimulatedTestbed(plant(), injector_per_s=1e6), SIZE, FEED, search=search)
            assert result.limited_by == "injector"
            assert not result.usable
            assert result.rate_per_s is not None
            assert result.rate_per_s.low == pytest.approx(1e6, rel=1e-3)
            assert math.isinf(result.rate_per_s.high)

    @BOTH
    def test_a_testbed_that_only_runs_trials_is_bracketed_by_doubling(self, search: Search) -> None:
        bed = OnlyTrials(plant())
        result = estimate(bed, SIZE, FEED, replace(SIMPLE, warm_up_s=30.0), search, expected_per_s=4e6)
        assert result.rate_per_s is not None
        assert result.rate_per_s.middle == pytest.approx(capacity(plant()), rel=0.06)


class OnlyTrials:
    """A testbed without `start`."""

    def __init__(self, what: Plant) -> None:
        self.inner = SimulatedTestbed(what)

    def measure(self, trial: Trial) -> Measurement:
        return self.inner.measure(trial)


class TestFailures:
    @BOTH
    def test_a_job_that_processes_nothing_is_recorded(self, search: Search) -> None:
        result = estimate(Dead(), SIZE, FEED, Phases(warm_up_s=30.0), search)
        assert result.rate_per_s is None
        assert result.problem is not None
        assert "cannot sustain" in result.problem

    @BOTH
    def test_a_testbed_that_breaks_is_recorded(self, search: Search) -> None:
        result = estimate(Broken(), SIZE, FEED, search=search)
        assert result.problem == "EngineError: the node is gone"
        assert not result.usable

    def test_an_allocation_that_cannot_run_is_recorded(self) -> None:
        result = estimate(SimulatedTestbed(plant()), Allocation({"calc": 1}), FEED)
        assert result.problem is not None
        assert "the job has" in result.problem
        assert result.seconds == 0.0


class Broken:
    def measure(self, trial: Trial) -> Measurement:
        raise EngineError("the node is gone")


class Dead:
    """Processes nothing at any rate."""

    holds_back = True

    def start(self, allocation: Allocation) -> Dead:
        self.inner = SimulatedTestbed(plant(), injector_per_s=0.0).start(allocation)
        return self

    def measure(self, trial: Trial) -> Measurement:
        raise AssertionError("it has a rig")

    def play(self, phases: Sequence[Phase]) -> Measurement:
        measured = self.inner.play(phases)
        assert measured.observation is not None
        # Its operators are busy nevertheless.
        busy = tuple(replace(o, useful_share=1.0) for o in measured.observation.operators)
        return replace(measured, observation=replace(measured.observation, operators=busy))

    def stop(self) -> None:
        pass


class TestBelief:
    def test_samples_below_the_target_measure_and_full_ones_bound(self) -> None:
        measured, bounded = Belief(100.0), Belief(100.0)
        measured.add_samples(np.array([98.0, 102.0, 100.0, 101.0]), 200.0)
        bounded.add_samples(np.array([150.0, 150.0, 150.0]), 150.0)
        assert math.exp(measured.capacity()[0]) == pytest.approx(100.0, rel=0.02)
        assert math.exp(bounded.capacity()[0]) > 150.0
        assert bounded.capacity()[1] > measured.capacity()[1]

    def test_more_samples_narrow_the_posterior_and_correlated_ones_less(self) -> None:
        rng = np.random.default_rng(0)
        few, many, correlated = Belief(100.0), Belief(100.0), Belief(100.0)
        values = 100.0 * np.exp(0.1 * rng.standard_normal(24))
        few.add_samples(values[:6], 500.0)
        many.add_samples(values, 500.0)
        correlated.add_samples(np.sort(values), 500.0)
        assert many.capacity()[1] < few.capacity()[1]
        assert many.capacity()[1] < correlated.capacity()[1]


def test_windows_are_pooled_by_records_and_useful_time() -> None:
    rig = SimulatedTestbed(plant()).start(SIZE)
    windows = []
    for rate in (2e6, 4e6):
        window = rig.play([FEED.phase(20.0, rate), FEED.phase(10.0, rate, True)]).observation
        assert window is not None
        windows.append(window)
    both = pool_windows(windows)
    assert both.throughput_per_s == pytest.approx(3e6, rel=0.01)
    assert both.operator("calc").true_rate_per_s == pytest.approx(windows[0].operator("calc").true_rate_per_s, rel=0.01)
