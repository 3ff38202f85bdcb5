"""Extrapolation: the paper's families, our posterior, and runs that failed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rheostat.errors import InvalidValue
from rheostat.job.plan import Estimate
from rheostat.lab.jobs import job
from rheostat.lab.papers.streambed.truth import Drawn, Truth, varied
from rheostat.planner import extrapolation
from rheostat.planner.extrapolation import Points, fit_family, loocv, select_fit
from rheostat.planner.failures import drop_doubtful, find_doubtful, run_to_repeat
from rheostat.planner.plan import next_measurement, slots_for_rate
from rheostat.planner.resource_explorer import Ask
from rheostat.planner.scaling import Scaling

TRUTH = Truth(job("streambed-q1"))
SIZES = (2, 3, 5, 7, 11, 16, 16, 16)


def measure(sizes: tuple[int, ...] = SIZES, noise: float = 0.05, seed: int = 1, truth: Truth = TRUTH) -> list[Estimate]:
    drawn = Drawn(truth, noise, np.random.default_rng(seed), failed=0.0)
    return [drawn.measure(Ask(size, 4096, ""), ()) for size in sizes]


def points(slots: list[float], rates: list[float]) -> Points:
    return Points(np.array(slots), np.ones(len(slots)), np.array(rates))


class TestPaper:
    @pytest.mark.parametrize(
        ("family", "curve"),
        [("linear", lambda p: p), ("log", math.log), ("sqrt", math.sqrt)],
        ids=["linear", "log", "sqrt"],
    )
    def test_each_family_is_selected_on_its_own_curve(self, family: str, curve: object) -> None:
        assert callable(curve)
        slots = [2.0, 4.0, 6.0, 9.0, 12.0, 16.0, 24.0]
        exact = points(slots, [100.0 * curve(s) + 7.0 for s in slots])
        fit = select_fit(exact)
        assert fit.family == family
        assert fit.rate_per_s(100.0, 1.0) == pytest.approx(100.0 * curve(100.0) + 7.0)
        assert loocv(exact, family) == pytest.approx(0.0, abs=1e-6)

    def test_the_inverse_is_the_fewest_slots(self) -> None:
        fit = fit_family(points([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), "linear")
        slots = fit.slots_for(1000.0, 1.0)
        assert slots == 110
        assert fit.rate_per_s(slots, 1.0) >= 1099.999 > fit.rate_per_s(slots - 1, 1.0)

    def test_a_falling_fit_is_never_enough(self) -> None:
        assert fit_family(points([1.0, 2.0, 3.0], [30.0, 20.0, 10.0]), "linear").slots_for(100.0, 1.0) is None

    def test_nothing_measured_is_an_error(self) -> None:
        with pytest.raises(InvalidValue, match="at least one"):
            fit_family(points([], []), "linear")
        assert extrapolation.upper_half_errors(points([1.0], [1.0]))["log"] == math.inf


class TestOurs:
    def test_it_extrapolates_where_the_paper_does_not(self) -> None:
        needed = 178
        rate = TRUTH.capacity_per_s(needed)
        ours, theirs = [], []
        for seed in range(24):
            runs = measure(seed=seed)
            ours.append(abs(slots_for_rate(Scaling.fit(runs), rate, 4096, 2).middle / needed - 1))
            theirs.append(abs((select_fit(Points.of(runs)).slots_for(rate, 4096, 1.0) or math.inf) / needed - 1))
        assert np.median(ours) < 0.1
        assert np.median(ours) < np.median(theirs)

    def test_the_interval_widens_with_distance_and_holds_the_truth(self) -> None:
        scaling = Scaling.fit(measure())
        widths = []
        for slots in (16, 64, 256):
            interval = scaling.rate_per_s(slots, 4096)
            widths.append(interval.high / interval.low)
            assert interval.holds(TRUTH.capacity_per_s(slots))
        assert widths == sorted(widths)

    def test_interference_is_distinguished_from_its_absence(self) -> None:
        steady = Scaling.fit(measure(noise=0.01)).weights()
        hurt = replace(TRUTH.plant, interference=replace(TRUTH.plant.interference, exponent=-0.5))
        falling = Scaling.fit(measure(noise=0.01, truth=Truth(hurt))).weights()
        assert steady["steady"] > 0.4 > falling["steady"]
        assert sum(falling.values()) == pytest.approx(1.0)

    def test_without_operators_rates_the_split_is_used(self) -> None:
        blind = []
        for e in measure(noise=0.02):
            assert e.observation is not None
            bare = tuple(replace(o, true_rate_per_s=None) for o in e.observation.operators)
            blind.append(replace(e, observation=replace(e.observation, operators=bare)))
        rate = Scaling.fit(blind).rate_per_s(100, 4096)
        assert rate.middle == pytest.approx(TRUTH.capacity_per_s(100), rel=0.25)

    def test_the_next_measurement_narrows_the_answer(self) -> None:
        worth = next_measurement(Scaling.fit(measure()), 178.0, 4096, 16)
        assert worth is not None
        assert worth.width_then < worth.width_now
        assert worth.slots in (16, 32, 64)
        assert next_measurement(Scaling.fit(measure()), 16.0, 4096, 16) is None

    def test_same_measurements_same_answer(self) -> None:
        one, other = (Scaling.fit(measure(), 3).rate_per_s(99, 4096) for _ in range(2))
        assert one == other

    def test_nothing_usable_is_an_error(self) -> None:
        with pytest.raises(InvalidValue, match="no usable"):
            Scaling.fit([])


class TestFailures:
    def failed(self, runs: list[Estimate], place: int) -> list[Estimate]:
        drawn = Drawn(TRUTH, 0.05, np.random.default_rng(5), failed=1.0)
        broken = drawn.measure(Ask(runs[place].slots, 4096, ""), ())
        return [*runs[:place], broken, *runs[place + 1 :]]

    def test_a_run_at_a_floor_is_doubtful_and_repeated(self) -> None:
        runs = self.failed(measure(SIZES[:6]), 3)
        assert find_doubtful(runs) == [runs[3]]
        assert runs[3] not in drop_doubtful(runs)
        again = run_to_repeat(runs)
        assert again is not None
        assert again[0] is runs[3]
        assert run_to_repeat([*runs, measure((7,), seed=9)[0]]) is None

    def test_noise_is_not_doubtful(self) -> None:
        for seed in range(10):
            assert find_doubtful(measure(seed=seed, noise=0.1)) == []

    def test_a_confirmed_low_rate_is_not_doubtful(self) -> None:
        runs = self.failed(measure(SIZES[:6]), 3)
        assert find_doubtful([*runs, replace(runs[3], at_s=1.0)]) == []

    def test_a_problem_is_repeated_once(self) -> None:
        runs = measure((2, 16))
        gone = replace(runs[1], rate_per_s=None, problem="crashed")
        assert run_to_repeat([runs[0], gone]) is not None
        assert run_to_repeat([runs[0], gone, gone]) is None


def test_varied_truths_differ_but_not_much() -> None:
    other = Truth(varied(TRUTH.plant, np.random.default_rng(3)))
    assert other.capacity_per_s(16) != TRUTH.capacity_per_s(16)
    assert other.capacity_per_s(16) == pytest.approx(TRUTH.capacity_per_s(16), rel=0.4)
    assert TRUTH.slots_for(TRUTH.capacity_per_s(100)) == 100
