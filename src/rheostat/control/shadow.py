"""Scores a dry run: what the sizes that it would have had cost, and how late the job would have been with them.

What really ran is measured. What would have run is computed: records wait in a queue that is served at the capacity of
the shadow's size, which is the measured true rates times its tasks. The same queue at the real size shows how much of
the measured lag it explains; the rest of the lag is taken over. So the score is as sure as the true rates are
(`low` and `high` are their 10 % and 90 % quantiles), and as the sizes are known (`seen_share`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Interval
from rheostat.job.observation import Observation
from rheostat.job.record import Record, Run
from rheostat.job.slo import SLO

Floats = npt.NDArray[np.float64]

GAP = 5.0
"""A window stands for at most this many usual intervals: longer ones mean that no controller ran."""
QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class ShadowScore:
    """A dry run against what really ran."""

    seconds: float
    """The time that is scored: from the first decision about a size on, without gaps."""
    unit: str
    """What is counted: executor, or slot where tasks are chosen one by one."""
    real_unit_s: float
    shadow_unit_s: float
    changes: int
    """Changes of size that the dry run would have made."""
    over_s: float | None
    """Seconds over the SLO that were measured; None without a limit on latency or lag."""
    shadow_over_s: Interval | None
    """Seconds over the SLO that the shadow would have had; `low` with fast tasks, `high` with slow ones."""
    model_over_s: float | None
    """Seconds over the SLO by the queue alone, at the real size: near `over_s` where the queue explains the lag."""
    seen_share: float
    """Share of the time in which the shadow's size was one that really ran at some time."""
    usable_share: float
    """Share of the windows from which could be decided."""
    rate_spread: float
    """Half of the range between the 10 % and 90 % quantiles of the true rates, relative to the median."""

    @property
    def saved_unit_h(self) -> float:
        """Executor-hours saved; negative where the shadow would have used more."""
        return (self.real_unit_s - self.shadow_unit_s) / 3600.0

    @property
    def avoided_s(self) -> Interval | None:
        """SLO seconds avoided; negative where the shadow would have caused them."""
        if self.over_s is None or self.shadow_over_s is None:
            return None
        low, middle, high = (
            self.over_s - seconds
            for seconds in (self.shadow_over_s.high, self.shadow_over_s.middle, self.shadow_over_s.low)
        )
        return Interval(low, middle, high)


@dataclass(frozen=True, eq=False, slots=True)
class ShadowSeries:
    """A dry run over time beside what really ran; one entry per window, NaN where not measured."""

    at_s: Floats
    load_per_s: Floats
    real: Floats
    """Executors, or slots where tasks are chosen one by one."""
    shadow: Floats
    backlog: Floats
    lag_s: Floats
    """Both as measured."""
    shadow_backlog: Floats
    shadow_lag_s: tuple[Floats, Floats, Floats]
    """With fast tasks, with tasks as measured, with slow ones."""
    max_lag_s: float | None


@dataclass
class _Windows:
    """One entry per window, from the first decision about a size on."""

    at_s: list[float] = field(default_factory=list)
    real: list[Allocation] = field(default_factory=list)
    shadow: list[Allocation] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    backlogs: list[float] = field(default_factory=list)
    lag_s: list[float] = field(default_factory=list)
    """Both as measured; NaN where not."""
    late_s: list[float] = field(default_factory=list)
    """By how much the SLO was exceeded; NaN where not measured."""
    per_task: list[Mapping[str, float]] = field(default_factory=list)
    """Operator -> records/s of the whole job that one of its tasks can take; the last known ones."""
    rates: list[float] = field(default_factory=list)
    """The slowest operator's true rate relative to one task, of usable windows."""
    usable: int = 0
    backlog: float = 0.0


def score_shadow(records: Iterable[Record]) -> ShadowScore:
    """Score the dry runs among one job's records."""
    return trace_shadow(records)[0]


def trace_shadow(records: Iterable[Record]) -> tuple[ShadowScore, ShadowSeries]:
    """Score the dry runs among one job's records, and return them over time."""
    windows, run, seen = _Windows(), None, None
    shadow: Allocation | None = None
    for record in records:
        match record:
            case Run():
                run, seen = record, None
                shadow = shadow if record.guards.dry_run else None
            case Observation():
                seen = record
            case Decision() if run is not None and run.guards.dry_run and seen is not None:
                shadow = record.shadow or shadow
                if shadow is not None and seen.running is not None:
                    _add(windows, seen, shadow, run.slo)
    if run is None or len(windows.at_s) < 2:
        raise InvalidValue(
            "the journal has no dry run with at least two decisions about a size: attach with dry_run=True, and let "
            "it watch for a while"
        )
    return _score(windows, run)


def _add(windows: _Windows, seen: Observation, shadow: Allocation, slo: SLO) -> None:
    if not windows.at_s:
        windows.backlog = seen.backlog or 0.0
    load = seen.load_per_s
    windows.at_s.append(seen.at_s)
    windows.real.append(seen.running or shadow)
    windows.shadow.append(shadow)
    windows.load.append(load if load is not None else windows.load[-1] if windows.load else 0.0)
    windows.backlogs.append(np.nan if seen.backlog is None else seen.backlog)
    windows.lag_s.append(np.nan if seen.lag_s is None else seen.lag_s)
    windows.late_s.append(_late_s(seen, slo))
    windows.usable += seen.usable
    known = dict(windows.per_task[-1]) if windows.per_task else {}
    if seen.usable and (fresh := _per_task(seen)):
        known |= fresh
        windows.rates.append(min(fresh.values()))
    windows.per_task.append(known)


def _per_task(seen: Observation) -> dict[str, float]:
    """Return the records/s at the sources that one task of each operator can take."""
    through = seen.throughput_per_s
    if not through:
        return {}
    return {
        reading.name: reading.true_rate_per_s * through / reading.records_in_per_s
        for reading in seen.operators
        if reading.true_rate_per_s and reading.records_in_per_s
    }


def _late_s(seen: Observation, slo: SLO) -> float:
    """Return the largest excess over an objective, negative below it; NaN where none is measured."""
    latency_s = seen.latency.event_p99_s if seen.latency else None
    pairs = ((latency_s, slo.max_latency_s), (seen.lag_s, slo.max_lag_s))
    return max((value - most for value, most in pairs if value is not None and most is not None), default=np.nan)


def _score(windows: _Windows, run: Run) -> tuple[ShadowScore, ShadowSeries]:
    at_s = np.array(windows.at_s)
    steps = np.diff(at_s)
    held_s = np.append(np.clip(steps, 0.0, GAP * float(np.median(steps))), 0.0)
    units = {tunable.operator: tunable.quantum for tunable in run.spec.tunable}

    def counted(allocations: list[Allocation]) -> Floats:
        return np.array([sum(count / units.get(name, 1) for name, count in one.tasks.items()) for one in allocations])

    low, middle, high = np.quantile(windows.rates, QUANTILES) if windows.rates else (1.0, 1.0, 1.0)
    over_s = shadow_over_s = model_over_s = None
    late_s = np.array(windows.late_s)
    real_lag_s, real_backlog = _queue(windows, windows.real, held_s, 1.0)
    queues = [_queue(windows, windows.shadow, held_s, pace) for pace in (high / middle, 1.0, low / middle)]
    # What the queue does not explain of the measured lag and backlog stays.
    fast_s, as_measured_s, slow_s = (lag_s - real_lag_s for lag_s, _ in queues)
    if not np.isnan(late_s).all():
        over_s = _over(late_s, held_s)
        limit_s = min(most for most in (run.slo.max_latency_s, run.slo.max_lag_s) if most is not None)
        model_over_s = _over(real_lag_s - limit_s, held_s)
        fast, as_measured, slow = (_over(late_s + more_s, held_s) for more_s in (fast_s, as_measured_s, slow_s))
        shadow_over_s = Interval(min(fast, as_measured), as_measured, max(slow, as_measured))
    ran = set(windows.real)
    known = np.array([one in ran for one in windows.shadow])
    total_s = float(held_s.sum())
    lag_s, backlog = np.array(windows.lag_s), np.array(windows.backlogs)
    series = ShadowSeries(
        at_s=at_s,
        load_per_s=np.array(windows.load),
        real=counted(windows.real),
        shadow=counted(windows.shadow),
        backlog=backlog,
        lag_s=lag_s,
        shadow_backlog=np.maximum(backlog + queues[1][1] - real_backlog, 0.0),
        shadow_lag_s=(
            np.maximum(lag_s + fast_s, 0.0),
            np.maximum(lag_s + as_measured_s, 0.0),
            np.maximum(lag_s + slow_s, 0.0),
        ),
        max_lag_s=run.slo.max_lag_s,
    )
    score = ShadowScore(
        seconds=total_s,
        unit="executor" if run.settings.get("mode") == "micro-batch" else "slot",
        real_unit_s=float(series.real @ held_s),
        shadow_unit_s=float(series.shadow @ held_s),
        changes=sum(one != after for one, after in zip(windows.shadow, windows.shadow[1:], strict=False)),
        over_s=over_s,
        shadow_over_s=shadow_over_s,
        model_over_s=model_over_s,
        seen_share=float(known @ held_s) / total_s if total_s else 0.0,
        usable_share=windows.usable / len(at_s),
        rate_spread=float(high - low) / (2.0 * float(middle)) if middle else 0.0,
    )
    return score, series


def _over(late_s: Floats, held_s: Floats) -> float:
    return float(held_s[np.nan_to_num(late_s, nan=-1.0) > 0].sum())


def _queue(windows: _Windows, sizes: list[Allocation], held_s: Floats, pace: float) -> tuple[Floats, Floats]:
    """Return the age of the oldest waiting record, and the waiting records, at every window if these sizes ran."""
    arrived = np.concatenate(([0.0], np.cumsum(np.array(windows.load) * held_s)[:-1])) + windows.backlog
    served = np.zeros(len(held_s))
    for k in range(len(held_s) - 1):
        rates = [rate * sizes[k].tasks[name] for name, rate in windows.per_task[k].items() if name in sizes[k].tasks]
        capacity = pace * min(rates) if rates else np.inf
        served[k + 1] = min(arrived[k + 1], served[k] + capacity * held_s[k])
    moments = np.concatenate(([0.0], np.cumsum(held_s)[:-1]))
    # Where nothing arrives several moments have the same count: the last of them is when its record came.
    counts, first = np.unique(arrived[::-1], return_index=True)
    came = moments[::-1][first]
    lag_s = moments - np.interp(served, counts, came)
    return np.where(served >= arrived - 1e-9, 0.0, np.maximum(lag_s, 0.0)), arrived - served
