"""Profiles: the limits of deployments, the capacity line and the latency surface fitted to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial
from rheostat.lab.jobs.phoebe import BASE_PER_S, WORKER_PER_S, top_speed, ysb
from rheostat.model.clusters import two_groups
from rheostat.model.profile import Limit, Point, find_limits, point_of
from rheostat.planner.profiling import Profiling, next_round, run_profile
from rheostat.policy.phoebe.capacity import CapacityLine, CapacitySample, fit_line
from rheostat.policy.phoebe.latency_surface import LatencySurface


def test_two_groups_are_the_split_with_the_least_scatter() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        values = rng.normal(0, 1, 12)
        line = np.sort(values)
        scatter = [line[:k].var() * k + line[k:].var() * (12 - k) for k in range(1, 12)]
        k = int(np.argmin(scatter)) + 1
        groups = two_groups(values.tolist())
        assert line[k - 1] <= groups.border <= line[k]
        assert groups.low == pytest.approx(line[:k].mean())
        assert groups.high == pytest.approx(line[k:].mean())


def test_equal_numbers_are_one_group() -> None:
    assert two_groups([3.0, 3.0]).gap == 0.0
    with pytest.raises(ValueError, match="at least one"):
        two_groups([])


def rounds(most_per_s: dict[int, float], rates: list[float], useful: bool = False) -> tuple[Point, ...]:
    """Deployments that keep up at a second of latency until they are full, and fall behind after it."""
    points = []
    for rate in rates:
        for size, most in most_per_s.items():
            full = rate > most
            latency = 40.0 if full else 1.0 + 0.05 * rate / most
            points.append(Point(size, rate, min(rate, most), latency, min(rate / most, 1.0) if useful else None))
    return tuple(points)


def test_a_deployment_that_leaves_the_group_has_shown_its_limit() -> None:
    points = rounds({2: 25.0, 4: 45.0, 6: 65.0, 8: 85.0}, [20.0, 40.0, 60.0, 80.0])
    assert find_limits(points) == (Limit(2, 25.0, 25.0), Limit(4, 45.0, 45.0), Limit(6, 65.0, 65.0))


def test_two_deployments_are_compared_with_their_own_past() -> None:
    slow = rounds({2: 1e9, 4: 1e9}, [20.0, 40.0])
    # Both keep up by their rates, but one's latency has left its line.
    limits = find_limits((*slow, Point(2, 60.0, 60.0, 30.0), Point(4, 60.0, 60.0, 1.1)))
    assert [limit.scale_out for limit in limits] == [2]


def test_all_deployments_may_be_full_in_one_round() -> None:
    points = rounds({2: 50.0, 3: 51.0, 4: 52.0}, [20.0, 40.0, 60.0])
    assert [limit.scale_out for limit in find_limits(points)] == [2, 3, 4]


def test_without_latencies_falling_behind_is_enough() -> None:
    points = (Point(2, 20.0, 20.0), Point(2, 40.0, 26.0))
    assert find_limits(points) == (Limit(2, 26.0, 26.0),)


def test_useful_time_shows_the_capacity_of_a_deployment() -> None:
    assert Point(2, 20.0, 20.0, 3.0, 0.8).capacity_per_s == pytest.approx(25.0)
    assert Point(2, 20.0, 20.0, 3.0, 0.01).capacity_per_s == 20.0


def test_a_trial_without_an_answer_is_no_point() -> None:
    trial = Trial("profile 2 at 20/s", Allocation({"job": 2}), (Phase(10.0, {"job": 20.0}, observed=True),))
    assert point_of(Measurement(trial, None, 0.0, 0.0, "no testbed")) is None


def test_the_papers_scale_outs() -> None:
    assert Profiling().scale_outs() == [2, 5, 8, 11, 14, 17, 20, 23]
    assert Profiling(1, 3, 8).scale_outs() == [1, 2, 3]
    assert Profiling(deployments=1).scale_outs() == [24]


@pytest.mark.parametrize("wrong", [{"smallest": 0}, {"largest": 1}, {"step_per_s": 0.0}, {"deployments": 0}])
def test_impossible_profiles_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        Profiling(**wrong)  # type: ignore[arg-type]


def test_a_profile_of_the_simulator_finds_its_capacity_and_releases_full_deployments() -> None:
    plan = Profiling(2, 8, 3, step_per_s=20_000.0, settle_s=60.0, observe_s=30.0)
    plant = ysb()
    measured = list(run_profile(plan, SimulatedTestbed(plant), plant.spec()))
    points = tuple(point for point in map(point_of, measured) if point is not None)
    assert len(points) == len(measured)
    limits = find_limits(points)
    assert [limit.scale_out for limit in limits] == [2, 5, 8]
    for limit in limits:
        true = BASE_PER_S + WORKER_PER_S * limit.scale_out
        assert limit.capacity_per_s == pytest.approx(true, rel=0.01)
        assert limit.throughput_per_s == pytest.approx(true, rel=0.1)
    # A deployment that has shown its limit does not run again, and the cost is that of the runs.
    per_size = {size: [p.rate_per_s for p in points if p.scale_out == size] for size in (2, 5, 8)}
    assert [len(rates) for rates in per_size.values()] == sorted(len(rates) for rates in per_size.values())
    assert sum(m.slot_seconds for m in measured) == sum(p.scale_out for p in points) * (plan.settle_s + plan.observe_s)
    assert next_round(plan, points) == (0.0, [])


def test_the_capacity_line_is_corrected_by_the_live_job() -> None:
    profile = [CapacitySample(n, 6.9e3 + 15.9e3 * n) for n in (2, 5, 8, 11)]
    plain, live = fit_line(profile), fit_line(profile, [CapacitySample(6, 0.8 * (6.9e3 + 15.9e3 * 6))] * 3)
    assert plain is not None
    assert live is not None
    assert plain.per_s(20) == pytest.approx(6.9e3 + 15.9e3 * 20)
    assert live.per_s(20) == pytest.approx(0.8 * plain.per_s(20))
    assert not plain.is_far(12)
    assert plain.is_far(20)


def test_a_capacity_line_needs_a_sample() -> None:
    assert fit_line([]) is None
    assert fit_line([CapacitySample(3, 0.0), CapacitySample(4, math.nan)]) is None
    single = fit_line([], [CapacitySample(4, 400.0)])
    assert single is not None
    assert single.per_s(8) == pytest.approx(800.0)


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(1e-3, 1e9)), min_size=1, max_size=8), st.integers(1, 200))
def test_capacity_is_always_a_positive_number(samples: list[tuple[int, float]], size: int) -> None:
    line = fit_line([CapacitySample(n, capacity) for n, capacity in samples])
    assert isinstance(line, CapacityLine)
    assert math.isfinite(line.per_s(size))
    assert line.per_s(size) > 0


def test_the_latency_surface_tells_normal_from_falling_behind() -> None:
    most = {n: 7e3 + 16e3 * n for n in (2, 5, 8, 11, 14)}
    points = [p for p in rounds(most, [2e4 * k for k in range(1, 13)]) if p.rate_per_s <= most[p.scale_out] + 2e4]
    surface = LatencySurface.fit(points)
    assert surface is not None
    for n in (4, 7, 10):
        calm, full = surface.answer(n, 0.5 * most.get(n, 7e3 + 16e3 * n)), surface.answer(n, 1.4 * (7e3 + 16e3 * n))
        assert calm is not None
        assert full is not None
        assert calm.normal
        assert not full.normal
        assert full.latency_s > calm.latency_s


def test_the_latency_surface_refuses_to_answer_far_outside() -> None:
    surface = LatencySurface.fit(rounds({2: 50.0, 4: 90.0, 6: 130.0}, [20.0, 40.0, 60.0]))
    assert surface is not None
    assert surface.answer(4, 50.0) is not None
    assert surface.answer(4, 100.0) is None
    assert surface.answer(10, 50.0) is None
    assert surface.answer(1, 50.0) is None
    assert surface.answer(4, 0.0) is not None


def test_one_cluster_is_all_normal() -> None:
    surface = LatencySurface.fit([Point(n, r, r, 1.0) for n in (2, 4) for r in (10.0, 20.0)])
    assert surface is not None
    answer = surface.answer(2, 25.0)
    assert answer is not None
    assert answer.normal
    assert LatencySurface.fit([Point(2, 10.0, 10.0, 1.0)]) is None


def test_the_recorded_profile_overstates_the_capacity_of_the_runs() -> None:
    """The plant of the runs has four fifths of the capacity that its profile shows."""
    here = Allocation({"job": 12})
    assert top_speed().capacity_per_s("job", 12, here) == pytest.approx(
        0.8 * top_speed(1.0).capacity_per_s("job", 12, here)
    )
