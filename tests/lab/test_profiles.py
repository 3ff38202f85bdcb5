"""Profiles of all seeds in one fleet: the measurements that each testbed makes by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rheostat.control.limits import limits
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.job.decision import Reason
from rheostat.job.guards import UNGUARDED
from rheostat.job.slo import SLO
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Trial
from rheostat.lab.jobs import job
from rheostat.lab.profiles import Profiles, measure_profiles
from rheostat.planner.profiling import Profiling, clip_to_limits, run_profile
from rheostat.policy.ds2 import DS2
from rheostat.policy.phoebe.policy import Phoebe

PLAN = Profiling(2, 8, 3, step_per_s=100_000.0, settle_s=20.0, observe_s=30.0, most_rounds=6)


@pytest.mark.parametrize("name", ["skewed", "two-sources", "spark-ysb"])
def test_each_seed_has_the_measurements_of_its_own_testbed(name: str) -> None:
    plant = job(name)
    plan = clip_to_limits(PLAN, limits(plant.spec(), SLO()))
    together = measure_profiles(plan, plant, (0, 1, 2))
    for seed in (0, 1, 2):
        assert together[seed] == tuple(run_profile(plan, SimulatedTestbed(plant, seed), plant.spec()))
    assert (together[0] != together[1]) == any(operator.noise for operator in plant.operators)


def test_a_size_that_the_testbed_refuses_ends_a_profile() -> None:
    assert measure_profiles(replace(PLAN, largest=10_000), job("skewed"), (0,)) == {0: ()}


def test_a_testbed_returns_what_was_measured_as_long_as_the_trials_match() -> None:
    plant = job("skewed")
    first, second, *_ = measure_profiles(PLAN, plant, (5,))[5]
    marked = [replace(each, slot_seconds=-1.0) for each in (first, second)]
    bed = SimulatedTestbed(plant, 5, measured=marked)
    assert bed.measure(first.trial) == marked[0]
    assert bed.measure(second.trial) == marked[1]
    bed = SimulatedTestbed(plant, 5, measured=marked)
    assert bed.measure(second.trial).slot_seconds > 0
    # From the first trial that differs on, everything is measured.
    assert bed.measure(second.trial) == second


def test_a_plan_is_measured_once_and_only_for_policies_that_profile() -> None:
    profiles = Profiles(job("skewed"), (0, 1))
    policy = Phoebe(settle_s=5.0, observe_s=10.0, deployments=2)
    found = profiles.read(policy, 1, SLO(), UNGUARDED, rounds=2)
    assert len(found) == 4
    assert profiles.read(policy, 1, SLO(), UNGUARDED, rounds=2) is found
    assert profiles.read(policy, 0, SLO(), UNGUARDED, rounds=2) != found
    assert profiles.read(replace(policy, profile=False), 1, SLO(), UNGUARDED) == ()
    assert profiles.read(policy, 1, SLO(), replace(UNGUARDED, explore="never")) == ()
    assert profiles.read(DS2(), 1, SLO(), UNGUARDED) == ()


@pytest.mark.parametrize("profiled", [False, True])
def test_a_profile_is_measured_in_the_first_steps_or_known_before_them(profiled: bool) -> None:
    way = "phoebe:settle_s=5:observe_s=10:deployments=2:evaluation_s=60"
    trial = Trial(job("skewed"), Constant(2.0), 180.0, 60.0, way=way)
    (run,) = Simulated(profiled=profiled).run([trial], lambda _: None)
    assert all((step.decision.reason is Reason.TRIAL) != profiled for step in run.steps)
    assert any(step.measurements for step in run.steps) != profiled
    # With its profile it evaluates as soon as the job has been up for an interval.
    assert any("t_max_per_s" in step.decision.evidence for step in run.steps) == profiled
