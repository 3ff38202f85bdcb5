"""The profiles that forecasting policies measure on a testbed, for all seeds of a comparison at once.

A profile has hundreds of trials of several minutes. One by one they take longer than the run itself; those of a round
run in one fleet here, for all seeds, and every policy with the same plan gets the same results as from its own testbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rheostat.control.limits import limits
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.simulated import find_problem, measure_together, trial_seed
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Trial
from rheostat.job.guards import Guards
from rheostat.job.slo import SLO
from rheostat.model.profile import point_of
from rheostat.planner.profiling import Profiling, clip_to_limits, next_round, round_trials
from rheostat.policy.phoebe.forecasting import ForecastingPolicy
from rheostat.ports import Journal, Policy

LEASE_S = 60.0
"""Seconds of the lease under which a profile is journaled."""
Profile = tuple[Measurement, ...]
"""The measurements of one seed, in the order of its testbed's trials."""


@dataclass(frozen=True)
class Profiles:
    """The profiles of all seeds of a comparison, measured when the first policy asks for its plan."""

    plant: Plant
    seeds: Sequence[int]
    _measured: dict[Profiling, dict[int, Profile]] = field(default_factory=dict)

    def read(self, policy: Policy[Any], seed: int, slo: SLO, guards: Guards, rounds: int | None = None) -> Profile:
        """Return the first rounds of a policy's profile, or all; () if it makes none."""
        if not isinstance(policy, ForecastingPolicy) or not policy.profile or guards.explore == "never":
            return ()
        plan = clip_to_limits(policy.plan, limits(self.plant.spec(), slo))
        if rounds is not None:
            plan = replace(plan, most_rounds=max(1, min(plan.most_rounds, rounds)))
        if plan not in self._measured:
            self._measured[plan] = measure_profiles(plan, self.plant, self.seeds)
        return self._measured[plan][seed]


def write_profile(journal: Journal, job: str, profile: Profile) -> None:
    """Journal a profile from before the deployment: a controller that starts on this journal knows it."""
    lease = journal.acquire(job, "profiling", LEASE_S)
    journal.append(lease, 0, list(profile))
    journal.release(lease)


def measure_profiles(plan: Profiling, plant: Plant, seeds: Iterable[int]) -> dict[int, Profile]:
    """Return the profile of every seed."""
    found: dict[int, list[Measurement]] = {seed: [] for seed in seeds}
    open_seeds = list(found)
    while open_seeds:
        asked = [(seed, trial) for seed in open_seeds for trial in _next_trials(plan, plant, found[seed])]
        open_seeds = list(dict.fromkeys(seed for seed, _ in asked))
        # Seeds that are at the same rate share a fleet.
        for phases in dict.fromkeys(trial.phases for _, trial in asked):
            _measure(plant, [(seed, trial) for seed, trial in asked if trial.phases == phases], found)
    return {seed: tuple(measurements) for seed, measurements in found.items()}


def _next_trials(plan: Profiling, plant: Plant, measured: Sequence[Measurement]) -> tuple[Trial, ...]:
    """Return the next round of one seed; () if its profile is complete, or a trial measures nothing."""
    points = [point_of(measurement) for measurement in measured]
    known = [point for point in points if point is not None]
    if len(known) < len(points):
        return ()
    rate_per_s, sizes = next_round(plan, known)
    spec = plant.spec()
    deployments = [Allocation(dict.fromkeys(spec.tunable_names, size)) for size in sizes]
    trials = round_trials(plan, rate_per_s, deployments, spec) if deployments else ()
    return () if any(find_problem(plant, trial) for trial in trials) else trials


def _measure(plant: Plant, asked: Sequence[tuple[int, Trial]], found: dict[int, list[Measurement]]) -> None:
    """Measure trials with the same phases, and add them to the profiles of their seeds."""
    numbers = {seed: len(measurements) for seed, measurements in found.items()}
    seeds = []
    for seed, _ in asked:
        numbers[seed] += 1
        seeds.append(trial_seed(seed, numbers[seed]))
    measured = measure_together(plant, [trial for _, trial in asked], seeds)
    for (seed, _), measurement in zip(asked, measured, strict=True):
        found[seed].append(measurement)
