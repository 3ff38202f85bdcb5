"""The knowledge of policies that forecast: the past load, past failures, the profile, and the job's capacity.

A fold over the journal, shared by Phoebe, TWRES and ours. A job has one scale-out here: every tunable operator gets the
same number of tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import Values
from rheostat.forecast.registry import make_forecaster
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Trial
from rheostat.job.fit import fit_suggestions
from rheostat.job.forecast import LAST_VALUE
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.record import Record
from rheostat.job.slo import Limits
from rheostat.model.profile import Point, find_limits, point_of
from rheostat.model.recovery import Course
from rheostat.planner.profiling import Profiling, is_profile_measurement, next_round, round_trials
from rheostat.policy.phoebe import load_series, outage
from rheostat.policy.phoebe.capacity import CapacityLine, CapacitySample, fit_line
from rheostat.policy.phoebe.latency_surface import LatencySurface
from rheostat.policy.phoebe.load_series import LoadSeries
from rheostat.policy.phoebe.outage import Outages
from rheostat.ports import Situation

MAX_SAMPLES = 40
"""Newest live samples and latencies that are retained."""
FULL = 0.98
"""Useful time from which on a job runs at its capacity."""
BUSY = 0.1
"""Useful time from which on records per useful second show a capacity."""
CALM_S = 300.0
"""Seconds after a start from which on a latency is a steady one."""
MOST = 256
"""Most considered scale-outs where nothing bounds them."""
CHOSEN = "chosen"
"""Name of the control loop's own forecast, whose model its back-test selects."""
RECENT = 480
"""Newest steps in a forecast: four hours."""


@dataclass(frozen=True)
class Knowledge:
    """Load, failures, profile and live samples of a job."""

    load: LoadSeries = LoadSeries()
    outages: Outages = field(default_factory=Outages)
    profile: tuple[Point, ...] = ()
    profile_problem: str = ""
    """Why there is no profile, or no more of it."""
    full: tuple[CapacitySample, ...] = ()
    """Throughputs of the running job at its capacity: after failures and changes."""
    busy: tuple[CapacitySample, ...] = ()
    """Capacities by useful time, from every busy window."""
    latencies: tuple[Point, ...] = ()

    def capacity(self, refresh: str) -> CapacityLine | None:
        """Return T_max over scale-outs: the profile's line, corrected by full windows, by busy ones, or by none."""
        limits = find_limits(self.profile)
        if refresh == "busy":
            return fit_line([CapacitySample(p.scale_out, p.capacity_per_s) for p in limits], self.busy[-12:])
        profile = [CapacitySample(p.scale_out, p.throughput_per_s) for p in limits]
        live = self.full[-6:] if refresh == "full" or not profile else ()
        return fit_line(profile, live or (self.busy[-12:] if not profile else ()))

    def latency(self, refresh: str) -> LatencySurface | None:
        """Return M_L."""
        return LatencySurface.fit((*self.profile, *(self.latencies if refresh != "never" else ())))


def fold(knowledge: Knowledge, record: Record) -> Knowledge:
    """Return the knowledge after one more record."""
    outages = outage.fold(knowledge.outages, record, lambda window: _served_share(knowledge, window))
    if outages is not knowledge.outages:
        knowledge = replace(knowledge, outages=outages)
    match record:
        case Measurement() if is_profile_measurement(record):
            point = point_of(record)
            if point is None:
                return replace(knowledge, profile_problem=record.problem or "a trial measured nothing")
            return replace(knowledge, profile=(*knowledge.profile, point))
        case Observation():
            return _add_window(replace(knowledge, load=load_series.fold(knowledge.load, record)), record)
    return knowledge


def _served_share(knowledge: Knowledge, window: Observation) -> float | None:
    """Return the capacity of the running size over the load; None where it is not known."""
    capacity, load = knowledge.capacity("busy"), window.load_per_s
    if capacity is None or window.running is None or not load:
        return None
    return capacity.per_s(scale_out(window.running)) / load


def _add_window(knowledge: Knowledge, window: Observation) -> Knowledge:
    if not window.usable or window.running is None or window.change is not Change.NONE:
        return knowledge
    done, load = window.throughput_per_s, window.load_per_s
    shares = [window.operator(name).useful_share for name in window.running.tasks]
    busiest = max((share for share in shares if share is not None), default=None)
    size = scale_out(window.running)
    if done is None or not 0 < done < math.inf or busiest is None or not BUSY <= busiest <= 1.05:
        return knowledge
    sample = CapacitySample(size, done / min(busiest, 1.0))
    knowledge = replace(knowledge, busy=(*knowledge.busy, sample)[-MAX_SAMPLES:])
    if busiest >= FULL:
        knowledge = replace(knowledge, full=(*knowledge.full, CapacitySample(size, done))[-MAX_SAMPLES:])
    calm = window.status is Status.RUNNING and window.uptime_s >= CALM_S and busiest < FULL
    if calm and window.latency is not None and load is not None and not knowledge.outages.under_way:
        point = Point(size, load, done, window.latency.event_p95_s, busiest)
        knowledge = replace(knowledge, latencies=(*knowledge.latencies, point)[-MAX_SAMPLES:])
    return knowledge


def scale_out(allocation: Allocation) -> int:
    """Return the scale-out of an allocation: the most tasks of any operator."""
    return max(allocation.tasks.values())


def allowed_sizes(situation: Situation[Any], smallest: int, largest: int) -> tuple[tuple[int, Allocation], ...]:
    """Return every scale-out that the policy and the limits allow, with its allocation, smallest first."""
    return _allowed_sizes(situation.limits, situation.running, situation.spec.tunable_names, smallest, largest)


@lru_cache(maxsize=64)
def _allowed_sizes(
    limits: Limits, running: Allocation, names: tuple[str, ...], smallest: int, largest: int
) -> tuple[tuple[int, Allocation], ...]:
    bounds = limits.operators.values()
    top = max((b.max for b in bounds if b.max is not None), default=largest)
    least = max(smallest, min(b.min for b in bounds))
    sizes = range(min(least, top), min(top, least + MOST) + 1)
    fitting = (running.with_tasks(fit_suggestions(limits, dict.fromkeys(names, float(size)))) for size in sizes)
    return tuple(sorted({scale_out(allocation): allocation for allocation in fitting}.items()))


def forecast_rates(situation: Situation[Knowledge], name: str, ahead_s: float) -> Values:
    """Return the load of the coming steps, at most twice the highest past load, so that no forecast explodes."""
    load = situation.knowledge.load
    steps = max(1, math.ceil(ahead_s / load.step_s))
    values = load.values()[-RECENT:]
    present = values[~np.isnan(values)]
    if name == CHOSEN and situation.forecast is not None and situation.forecast.rates_per_s:
        rates = situation.forecast.path(0.5)
        # Beyond its horizon the last rate continues.
        middles = (np.arange(steps) + 0.5) * load.step_s / situation.forecast.step_s
        path = np.array(rates)[np.minimum(middles.astype(int), len(rates) - 1)]
    else:
        path = _predict_median(LAST_VALUE if name == CHOSEN else name, [float(v) for v in values], steps)
    bounded: Values = np.clip(path, 0.0, 2.0 * float(present.max()))
    return bounded


def _predict_median(name: str, values: list[float], steps: int) -> Values:
    """Return a forecaster's median, or the last value if it refuses a history that is too short."""
    model = make_forecaster(name)
    try:
        model.fit(values)
        return model.predict(steps, (0.5,))[:, 0]
    except InvalidValue:
        return np.full(steps, next(value for value in reversed(values) if not math.isnan(value)))


def load_course(knowledge: Knowledge, path: Sequence[float] | Values) -> Course:
    """Return the load around now: the past rates, and the expected ones."""
    return Course.of(knowledge.load.values()[-8:], path, knowledge.load.step_s)


def next_trials(plan: Profiling, situation: Situation[Any], points: Sequence[Point]) -> tuple[Trial, ...]:
    """Return the next round of trials within the job's limits; () if the profile is complete."""
    rate, sizes = next_round(plan, points)
    fits = [situation.fit(dict.fromkeys(situation.spec.tunable_names, float(size))) for size in sizes]
    # A size beyond the limits is fitted to another size, which is not part of this profile.
    exact = [a for size, a in zip(sizes, fits, strict=True) if max(a.tasks.values()) == size]
    return round_trials(plan, rate, exact, situation.spec)
