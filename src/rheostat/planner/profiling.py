"""Phoebe's profiling as trials: equally spaced scale-outs under rising rates until each has reached its T_max.

Section III-C and IV-B. One round is one rate for all deployments that still keep up; a deployment that has left the
group is released and costs no more. The results are journal records, so the next round follows from the points alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial
from rheostat.job.frozen import check_number, check_whole
from rheostat.job.graph import JobSpec
from rheostat.job.slo import Limits
from rheostat.model.profile import Point, find_limits, point_of
from rheostat.ports import Testbed

NAME = "profile"
"""First word of the names of a profile's trials, which identifies their measurements."""


def is_profile_measurement(measurement: Measurement) -> bool:
    """Whether a measurement belongs to a profile."""
    return measurement.trial.name.startswith(f"{NAME} ")


@dataclass(frozen=True, slots=True)
class Profiling:
    """Scale-outs, rates and durations of a profile. The defaults are the paper's."""

    smallest: int = 2
    largest: int = 24
    deployments: int = 8
    step_per_s: float = 20_000.0
    """The first rate, and the increase from round to round."""
    settle_s: float = 300.0
    observe_s: float = 120.0
    most_rounds: int = 40

    def __post_init__(self) -> None:
        check_whole("smallest of a profile", self.smallest, 1)
        check_whole("largest of a profile", self.largest, self.smallest)
        check_whole("deployments of a profile", self.deployments, 1)
        check_whole("most_rounds of a profile", self.most_rounds, 1)
        check_number("step_per_s of a profile", self.step_per_s, least=1e-9)
        check_number("settle_s of a profile", self.settle_s)
        check_number("observe_s of a profile", self.observe_s, least=1.0)

    def scale_outs(self) -> list[int]:
        """Return equally spaced scale-outs; the step is a whole number, so the last may lie below `largest`."""
        if self.deployments == 1:
            return [self.largest]
        step = (self.largest - self.smallest) / (self.deployments - 1)
        if step >= 1:
            step = float(int(step))
        return sorted({round(v) for v in self.smallest + step * np.arange(self.deployments)})


def next_round(plan: Profiling, points: Sequence[Point]) -> tuple[float, list[int]]:
    """Return the next rate and the deployments to run at it; no deployments if the profile is complete."""
    measured = {(point.scale_out, point.rate_per_s) for point in points}
    full = {limit.scale_out for limit in find_limits(tuple(points))}
    good = [size for size in plan.scale_outs() if size not in full]
    for k in range(1, plan.most_rounds + 1):
        rate = k * plan.step_per_s
        left = [size for size in good if (size, rate) not in measured]
        if left:
            return rate, left
    return 0.0, []


def round_trials(
    plan: Profiling, rate_per_s: float, allocations: Sequence[Allocation], spec: JobSpec
) -> tuple[Trial, ...]:
    """Return the trials of one round; several sources share the rate evenly."""
    sources = spec.graph.sources
    rates = dict.fromkeys(sources, rate_per_s / len(sources))
    phases: tuple[Phase, ...] = (Phase(plan.observe_s, rates, observed=True),)
    if plan.settle_s:
        phases = (Phase(plan.settle_s, rates), *phases)
    return tuple(
        Trial(f"{NAME} {max(a.tasks.values())} at {rate_per_s:g}/s", a, phases) for a in dict.fromkeys(allocations)
    )


def clip_to_limits(plan: Profiling, limits: Limits) -> Profiling:
    """Return the plan with its scale-outs within the limits of every operator."""
    least = max(bounds.min for bounds in limits.operators.values())
    tops = [bounds.max for bounds in limits.operators.values() if bounds.max is not None]
    if limits.slots.max is not None:
        tops.append(max(limits.slots.max // len(limits.operators), 1))
    most = max(min([plan.largest, *tops]), 1)
    small = min(max(plan.smallest, least), most)
    return Profiling(small, most, plan.deployments, plan.step_per_s, plan.settle_s, plan.observe_s, plan.most_rounds)


def run_profile(
    plan: Profiling, testbed: Testbed, spec: JobSpec, saved: Iterable[Measurement] = ()
) -> Iterator[Measurement]:
    """Profile a job on a testbed outside of any control loop, and yield every new measurement as a journal record."""
    points = [point for measurement in saved if (point := point_of(measurement)) is not None]
    while True:
        rate, sizes = next_round(plan, points)
        if not sizes:
            return
        deployments = [Allocation(dict.fromkeys(spec.tunable_names, size)) for size in sizes]
        for trial in round_trials(plan, rate, deployments, spec):
            measurement = testbed.measure(trial)
            yield measurement
            point = point_of(measurement)
            if point is None:
                return
            points.append(point)
