"""What policies that look ahead know: the load so far, failures so far, the profile, and what the job is able to do.

A fold over the journal, shared by Phoebe, TWRES and ours. A job has one scale-out here: every tunable operator gets as
many tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import Values
from rheostat.forecast.registry import make_forecaster
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Trial
from rheostat.job.forecast import LAST_VALUE
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.record import Record
from rheostat.model.profile import Point, find_limits, point_of
from rheostat.model.recovery import Course
from rheostat.planner.profiling import Profiling, is_profile_measurement, next_round, round_trials
from rheostat.policy.phoebe import load_series, outage
from rheostat.policy.phoebe.capacity import Capacity, Sample, fitted
from rheostat.policy.phoebe.latency_surface import LatencySurface
from rheostat.policy.phoebe.load_series import LoadSeries
from rheostat.policy.phoebe.outage import Outages
from rheostat.ports import Situation

KEPT = 40
"""Newest live samples and latencies that are kept."""
FULL = 0.98
"""Useful time from which on a job does all it can."""
BUSY = 0.1
"""Useful time from which on records per useful second are worth something."""
CALM_S = 300.0
"""Seconds after a start from which on a latency is a steady one."""
MOST = 256
"""Scale-outs that are looked at where nothing bounds them."""
CHOSEN = "chosen"
"""The forecast that the loop makes with the model that its back-test has chosen."""
RECENT = 480
"""Newest steps that a forecast is made from: four hours."""


@dataclass(frozen=True)
class Known:
    """Everything that was seen."""

    load: LoadSeries = LoadSeries()
    outages: Outages = field(default_factory=Outages)
    profile: tuple[Point, ...] = ()
    profile_problem: str = ""
    """Why there is no profile, or no more of it."""
    full: tuple[Sample, ...] = ()
    """What the running job did while it did all it could: after failures and changes."""
    busy: tuple[Sample, ...] = ()
    """What it is able to do by its useful time, from every window."""
    latencies: tuple[Point, ...] = ()

    def capacity(self, refresh: str) -> Capacity | None:
        """Return T_max over scale-outs: the profile's line, corrected by full windows, by all of them, or not."""
        found = find_limits(self.profile)
        if refresh == "busy":
            return fitted([Sample(p.scale_out, p.capacity_per_s) for p in found], self.busy[-12:])
        profile = [Sample(p.scale_out, p.throughput_per_s) for p in found]
        live = self.full[-6:] if refresh == "full" or not profile else ()
        return fitted(profile, live or (self.busy[-12:] if not profile else ()))

    def latency(self, refresh: str) -> LatencySurface | None:
        """Return M_L."""
        return LatencySurface.fitted((*self.profile, *(self.latencies if refresh != "never" else ())))


def fold(seen: Known, record: Record) -> Known:
    """Fold one record in."""
    outages = outage.fold(seen.outages, record)
    if outages is not seen.outages:
        seen = replace(seen, outages=outages)
    match record:
        case Measurement() if is_profile_measurement(record):
            point = point_of(record)
            if point is None:
                return replace(seen, profile_problem=record.problem or "a trial measured nothing")
            return replace(seen, profile=(*seen.profile, point))
        case Observation():
            return _window(replace(seen, load=load_series.fold(seen.load, record)), record)
    return seen


def _window(seen: Known, window: Observation) -> Known:
    if not window.usable or window.running is None or window.change is not Change.NONE:
        return seen
    done, load = window.throughput_per_s, window.load_per_s
    shares = [window.operator(name).useful_share for name in window.running.tasks]
    busiest = max((share for share in shares if share is not None), default=None)
    size = scale_out(window.running)
    if done is None or not 0 < done < math.inf or busiest is None or not BUSY <= busiest <= 1.05:
        return seen
    sample = Sample(size, done / min(busiest, 1.0))
    seen = replace(seen, busy=(*seen.busy, sample)[-KEPT:])
    if busiest >= FULL:
        seen = replace(seen, full=(*seen.full, Sample(size, done))[-KEPT:])
    calm = window.status is Status.RUNNING and window.uptime_s >= CALM_S and busiest < FULL
    if calm and window.latency is not None and load is not None and not seen.outages.under_way:
        point = Point(size, load, done, window.latency.event_p95_s, busiest)
        seen = replace(seen, latencies=(*seen.latencies, point)[-KEPT:])
    return seen


def scale_out(allocation: Allocation) -> int:
    """Return the scale-out of an allocation: the most tasks that an operator has."""
    return max(allocation.tasks.values())


def sizes(situation: Situation[Any], smallest: int, largest: int) -> list[tuple[int, Allocation]]:
    """Return every scale-out that the policy and the limits allow, with its allocation, smallest first."""
    bounds = situation.limits.operators.values()
    top = max((b.max for b in bounds if b.max is not None), default=largest)
    least = max(smallest, min(b.min for b in bounds))
    names = situation.spec.tunable_names
    fitting = (
        situation.fit(dict.fromkeys(names, float(size))) for size in range(min(least, top), min(top, least + MOST) + 1)
    )
    found = {scale_out(allocation): allocation for allocation in fitting}
    return sorted(found.items())


def forecast(situation: Situation[Known], name: str, ahead_s: float) -> Values:
    """Return the load of the coming steps; never more than twice what was seen, so that nothing explodes."""
    seen = situation.knowledge
    steps = max(1, math.ceil(ahead_s / seen.load.step_s))
    values = seen.load.values()[-RECENT:]
    known = values[~np.isnan(values)]
    if name == CHOSEN and situation.forecast is not None and situation.forecast.rates_per_s:
        told = situation.forecast.path(0.5)
        # Beyond its horizon the last rate stays.
        middles = (np.arange(steps) + 0.5) * seen.load.step_s / situation.forecast.step_s
        path = np.array(told)[np.minimum(middles.astype(int), len(told) - 1)]
    else:
        path = _predicted(LAST_VALUE if name == CHOSEN else name, [float(v) for v in values], steps)
    bounded: Values = np.clip(path, 0.0, 2.0 * float(known.max()))
    return bounded


def _predicted(name: str, values: list[float], steps: int) -> Values:
    """Return a forecaster's median; where it refuses a history (too short for it) the last value must do."""
    model = make_forecaster(name)
    try:
        model.fit(values)
        return model.predict(steps, (0.5,))[:, 0]
    except InvalidValue:
        return np.full(steps, next(value for value in reversed(values) if not math.isnan(value)))


def course(seen: Known, path: Sequence[float] | Values) -> Course:
    """Return the load around now: what came, and what is expected."""
    return Course.of(seen.load.values()[-8:], path, seen.load.step_s)


def next_trials(plan: Profiling, situation: Situation[Any], points: Sequence[Point]) -> tuple[Trial, ...]:
    """Return the next round for the job at hand, within its limits; () when the profile is done."""
    rate, sizes = next_round(plan, points)
    fits = [situation.fit(dict.fromkeys(situation.spec.tunable_names, float(size))) for size in sizes]
    # Sizes that the limits do not allow come back as others: they are not this profile's.
    exact = [a for size, a in zip(sizes, fits, strict=True) if max(a.tasks.values()) == size]
    return round_trials(plan, rate, exact, situation.spec)
