"""The row of a policy: slot-seconds, latency, seconds over the SLO, changes. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from rheostat.engine.simulated.plant import Plant
from rheostat.errors import first_line
from rheostat.lab.experiment.by_second import BatchRun, backlog, latencies
from rheostat.lab.experiment.oracle.cost import Cost, peak_size, read_cost
from rheostat.lab.experiment.run import Floats, Run

SAME_CHANGE_S = 10.0
"""Seconds within which executors that start or stop count as one change: Spark starts them one by one."""
STEP_S = 5
"""Seconds before and after a moment over which a rise of the load is measured."""
SHARES = (0.5, 0.95, 0.99)
"""Quantiles of the latency."""
DAY_S = 86_400.0
ENOUGH = 0.99
"""Share of a window's records below which the job was short of the demand."""
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles of Student's t with one to ten degrees of freedom."""


@dataclass(frozen=True)
class Score:
    """One policy's row: means over its seeds, the maximum for the backlog. A ground fills in what it measures."""

    policy: str
    engine: str
    seeds: int = 1
    reconfigurations: float = 0
    changes_per_day: float = 0.0
    tunings: int = 0
    """Number of levels of the load."""
    reconfigurations_per_tuning: float = 0.0
    slot_seconds: float = 0.0
    """Slots in use, summed over seconds; executor-seconds on micro-batches, where an executor has one core."""
    slot_seconds_over_oracle: float | None = None
    """Ratio to those of the oracle's cheapest course, which also pays for its seconds over the SLO; on Spark, to the
    fewest that the load needs in every second. None if unknown."""
    slot_seconds_over_maximum: float = 0.0
    """Ratio to the largest size held all the time."""
    slo_seconds_over: float = 0.0
    """Seconds in which latency or lag missed its objective; on Spark, by the second of arrival."""
    slot_seconds_lost: float = 0.0
    """Slot-seconds without output because of changes."""
    peak_slots: float = 0.0
    """Slots that price a second over the SLO: see `cost.py`."""
    cost: float | None = None
    """Slot-seconds + 10 x peak slots x seconds over the SLO + slot-seconds lost; None where a part is unknown."""
    cost_over_oracle: float | None = None
    """Ratio to the least cost of any course of sizes; None if unknown."""
    cost_over_oracle_low: float | None = None
    """Lower end of the 95 % interval of the mean ratio over seeds; None with one seed."""
    cost_over_oracle_high: float | None = None
    """Upper end of it."""
    windows_short: float = 0.0
    """Decision intervals in which fewer than 99 % of the arrived records were taken."""
    downtime_s: float = 0.0
    """Median downtime of a change; in real-time mode, the longest silence of the output after it."""
    latency_p50_s: float = 0.0
    latency_p95_s: float = 0.0
    latency_p99_s: float = 0.0
    backlog_max: float = 0.0
    reaction_s: float | None = None
    """Seconds from the largest rise of the load until as many executors ran as it needs; None if that is unknown, or if
    there were never enough."""
    decision_ms: float = 0.0
    throughput_per_s: float = 0.0
    """Records/s from the load's first second to its end."""
    rows_checked: int = 0
    rows_lost: int = 0
    rows_repeated: int = 0
    records: int = 0
    keys_wrong: int = 0
    repeated: int = 0
    policy_failures: int = 0
    """Decisions that the policy failed to make, in all seeds."""
    failed: str = ""
    """Why the row does not count: the first failure of the policy, or the error with which the query ended."""

    def as_dict(self, keys: Sequence[str] = ()) -> dict[str, Any]:
        """Return these columns, or all of them, for a JSON file."""
        return {key: getattr(self, key) for key in keys or [column.name for column in fields(self)]}


@dataclass(frozen=True)
class Column:
    """A column of tables: a short form for the terminal, a long one for the page. Less is better in every column."""

    key: str
    heading: str
    form: str
    title: str
    write: Callable[[float], str]
    divisor: float = 1.0

    def text(self, row: Score) -> str:
        """Return the number for the terminal; "-" if there is none."""
        value = getattr(row, self.key)
        return "-" if value is None else format(value / self.divisor, self.form)

    def margin(self, row: Score) -> str:
        """Return half of the number's 95 % interval, "" if it has none."""
        low, high = (getattr(row, f"{self.key}_{end}", None) for end in ("low", "high"))
        return "" if low is None or high is None else f"±{format((high - low) / 2 / self.divisor, self.form)}"


def failure_text(runs: Sequence[Run[Any]]) -> str:
    """Return why a policy's row does not count: its first failure, where, and how many there were; "" if it does."""
    for run in runs:
        if run.failed:
            return run.failed
        of_seed = f" of seed {run.seed}" if len(runs) > 1 else ""
        if run.policy_failure is None:
            continue
        if failed := [step for step in run.steps if step.policy_failure]:
            count, decisions = sum(each.policy_failures for each in runs), sum(len(each.steps) for each in runs)
            where = f"{count} of {decisions} decisions, first in step {failed[0].number}"
        else:
            where = f"after step {run.steps[-1].number}" if run.steps else "before the first step"
        return f"{first_line(run.policy_failure)} ({where}{of_seed})"
    return ""


def run_cost(run: Run[Plant]) -> Cost:
    """Return the cost of a simulated run, by its parts."""
    return read_cost(run.trace, run.trial.slo, float(peak_size(run.trial).slots))


def windows_short(run: Run[Any]) -> int:
    """Count the decision intervals in which the job took in less than arrived."""
    starts = np.arange(0, len(run.trace["load_per_s"]), max(1, round(run.trial.interval_s)))
    arrived = np.add.reduceat(run.trace["load_per_s"], starts)
    taken = np.add.reduceat(run.trace["throughput_per_s"], starts)
    return int((taken < ENOUGH * arrived).sum())


def mean_interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return both ends of the 95 % interval of a mean by Student's t; None with fewer than two values."""
    count = len(values)
    if count < 2:
        return None, None
    mean, half = float(np.mean(values)), student(count - 1) * float(np.std(values, ddof=1)) / math.sqrt(count)
    return mean - half, mean + half


def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t: a table, and beyond it the expansion around the normal quantile."""
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def score_simulated(runs: Sequence[Run[Plant]]) -> Score:
    """Score one policy's simulated runs."""
    costs = [run_cost(run) for run in runs]
    bounds = [run.bound for run in runs if run.bound is not None]
    over = [cost.total / bound.total for cost, bound in zip(costs, bounds, strict=False)] if bounds else []
    low, high = mean_interval(over)
    late = np.mean([np.quantile(run.trace["latency_s"], SHARES) for run in runs], axis=0)
    downtimes = [s.observation.downtime_s for run in runs for s in run.steps if s.observation.downtime_s]
    return Score(
        runs[0].policy,
        runs[0].engine,
        seeds=len(runs),
        reconfigurations=float(np.mean([run.reconfigurations for run in runs])),
        changes_per_day=float(np.mean([run.reconfigurations * DAY_S / run.end_s for run in runs])),
        slot_seconds=float(np.mean([cost.slot_seconds for cost in costs])),
        slot_seconds_over_oracle=float(
            np.mean([c.slot_seconds / b.cost.slot_seconds for c, b in zip(costs, bounds, strict=True)])
        )
        if bounds
        else None,
        slo_seconds_over=float(np.mean([cost.over_s for cost in costs])),
        slot_seconds_lost=float(np.mean([cost.lost for cost in costs])),
        peak_slots=float(np.mean([cost.peak_slots for cost in costs])),
        cost=float(np.mean([cost.total for cost in costs])),
        cost_over_oracle=float(np.mean(over)) if over else None,
        cost_over_oracle_low=low,
        cost_over_oracle_high=high,
        windows_short=float(np.mean([windows_short(run) for run in runs])),
        downtime_s=median(downtimes) if downtimes else 0.0,
        latency_p50_s=float(late[0]),
        latency_p95_s=float(late[1]),
        latency_p99_s=float(late[2]),
        backlog_max=float(max(run.trace["backlog"].max() for run in runs)),
        decision_ms=float(np.mean([step.decision_ms for run in runs for step in run.steps] or [0.0])),
        throughput_per_s=float(np.mean([run.trace["throughput_per_s"].mean() for run in runs])),
        policy_failures=sum(run.policy_failures for run in runs),
        failed=failure_text(runs),
    )


def score_batches(run: BatchRun) -> Score:
    """Score a run on micro-batches."""
    _, latency, records = latencies(run)
    limit_s = run.trial.slo.max_latency_s
    held, best = executor_seconds(run.sizes, run.end_s), fewest_slot_seconds(run)
    over_s = 0.0 if limit_s is None else float(np.sum((latency > limit_s) & (records > 0)))
    peak = peak_executors(run)
    late = weighted_quantiles(latency, records, SHARES)
    return Score(
        run.policy,
        run.engine,
        reconfigurations=changes(run.sizes),
        slot_seconds=held,
        slot_seconds_over_oracle=held / best if best else None,
        slot_seconds_over_maximum=held / (run.trial.job.executors[1] * run.end_s) if run.end_s else 0.0,
        slo_seconds_over=over_s,
        peak_slots=peak or 0.0,
        cost=None if peak is None else Cost(held, over_s, 0.0, peak).total,
        changes_per_day=changes(run.sizes) * DAY_S / run.end_s if run.end_s else 0.0,
        latency_p50_s=late[0],
        latency_p95_s=late[1],
        latency_p99_s=late[2],
        backlog_max=float(backlog(run).max(initial=0.0)),
        reaction_s=reaction_s(run),
        decision_ms=run.decision_ms,
        rows_checked=run.checked,
        rows_lost=run.wrong,
        rows_repeated=run.repeated,
        policy_failures=run.policy_failures,
        failed=failure_text([run]),
    )


def score_realtime(run: Run[Plant]) -> Score:
    """Score a run in real-time mode."""
    windows = [step.observation for step in run.steps]
    ends_s = [window.at_s for window in windows[1:]] + [run.start_s + run.end_s]
    held = 0.0
    for number, (window, end_s) in enumerate(zip(windows, ends_s, strict=False)):
        since_s = run.start_s if number == 0 else window.at_s
        held += (window.running.slots if window.running else 0) * max(0.0, end_s - since_s)
    latency = run.latency
    return Score(
        run.policy,
        run.engine,
        reconfigurations=sum(step.intent is not None for step in run.steps),
        slot_seconds=held,
        downtime_s=median(run.silences_s) if run.silences_s else 0.0,
        latency_p50_s=latency.p50_ms / 1e3 if latency else 0.0,
        latency_p95_s=latency.p95_ms / 1e3 if latency else 0.0,
        latency_p99_s=latency.p99_ms / 1e3 if latency else 0.0,
        backlog_max=max((window.backlog for window in windows if window.backlog is not None), default=0.0),
        decision_ms=run.decision_ms,
        throughput_per_s=run.records / (run.drained_s or run.end_s or 1.0),
        records=run.records,
        keys_wrong=run.wrong,
        repeated=run.repeated,
        policy_failures=run.policy_failures,
        failed=failure_text([run]),
    )


def fewest_slot_seconds(run: BatchRun) -> float | None:
    """Return the slot-seconds of the smallest sufficient size in every second; None if a slot's pace is unknown."""
    job = run.trial.job
    if job.capacity is None:
        return None
    least, most = job.executors
    capacity = [job.capacity.capacity_per_s(count) for count in range(least, most + 1)]
    demand = latencies(run)[2] * (1 + (run.trial.slo.headroom or 0.0))
    # The first sufficient size, else the largest.
    enough = [np.argmax(np.append(np.array(capacity) >= rate, True)) for rate in demand]
    return float(np.minimum(least + np.array(enough), most).sum())


def peak_executors(run: BatchRun) -> float | None:
    """Return the executors for the highest second of the load, without headroom; None if a slot's pace is unknown."""
    job = run.trial.job
    if job.capacity is None:
        return None
    least, most = job.executors
    highest = float(latencies(run)[2].max(initial=0.0))
    return float(next((n for n in range(least, most) if job.capacity.capacity_per_s(n) >= highest), most))


def reaction_s(run: BatchRun) -> float | None:
    """Return the seconds from the largest rise of the load until it had the executors that it needs, headroom apart."""
    job, demand = run.trial.job, latencies(run)[2]
    if job.capacity is None or len(demand) < 2 * STEP_S:
        return None
    means = np.convolve(demand, np.ones(STEP_S) / STEP_S, "valid")
    rise_s = int(np.argmax(means[STEP_S:] - means[:-STEP_S])) + STEP_S
    least, most = job.executors
    enough = (count for count in range(least, most) if job.capacity.capacity_per_s(count) >= means[rise_s])
    needed = next(enough, most)
    ends = [moment for moment, _ in run.sizes[1:]] + [run.end_s]
    reached = (
        max(at - rise_s, 0.0) for (at, size), to in zip(run.sizes, ends, strict=True) if size >= needed and to > rise_s
    )
    return next(reached, None)


def executor_seconds(sizes: Sequence[tuple[float, int]], end_s: float) -> float:
    """Return the seconds of all executors, from the source's first second to the end."""
    ends = [moment for moment, _ in sizes[1:]] + [end_s]
    return sum(size * max(0.0, min(to, end_s) - max(at, 0.0)) for (at, size), to in zip(sizes, ends, strict=True))


def changes(sizes: Sequence[tuple[float, int]]) -> int:
    """Count changes of size; steps in one direction that follow closely count once."""
    count, last_s, last_up = 0, -np.inf, None
    for (_, before), (moment, after) in pairwise(sizes):
        if moment - last_s > SAME_CHANGE_S or (after > before) is not last_up:
            count += 1
        last_s, last_up = moment, after > before
    return count


def weighted_quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> tuple[float, ...]:
    """Return the quantiles of weighted values."""
    order = np.argsort(values)
    running = np.cumsum(weights[order])
    if not len(running) or running[-1] <= 0:
        return tuple(0.0 for _ in shares)
    places = np.searchsorted(running, np.array(shares) * running[-1])
    return tuple(float(values[order][min(place, len(order) - 1)]) for place in places)
