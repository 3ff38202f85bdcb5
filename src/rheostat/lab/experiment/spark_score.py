"""What a trial on Spark is worth: executors held, latency of every record, promises broken, changes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.curves import Linear
from rheostat.lab.experiment.spark_trial import TrialRun

Floats = NDArray[np.float64]

SAME_CHANGE_S = 10.0
"""Executors that come or go within so long of each other are one change: Spark brings them one by one."""


@dataclass(frozen=True)
class Score:
    """One way's line in a comparison on Spark."""

    policy: str
    reconfigurations: int
    slot_seconds: float
    """Executors have one core here, so these are executor-seconds."""
    slot_seconds_over_clairvoyant: float | None
    """Against what the load needs in every second, where a slot's pace is known."""
    slot_seconds_over_maximum: float
    """Against holding the largest size all the time."""
    slo_seconds_over: float
    """Seconds of arrivals whose results came later than promised."""
    latency_p95_s: float
    latency_p99_s: float
    backlog_max: float
    decision_ms: float
    rows_checked: int
    rows_lost: int
    rows_repeated: int
    failed: str

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a JSON file."""
        return asdict(self)


def score(run: TrialRun) -> Score:
    """Add a trial up."""
    _, latency, records = latencies(run)
    limit_s = run.trial.slo.max_latency_s
    over = float(np.sum((latency > limit_s) & (records > 0))) if limit_s is not None else 0.0
    held = executor_seconds(run.sizes, run.end_s)
    p95, p99 = weighted_quantiles(latency, records, (0.95, 0.99))
    best = needed(run)
    return Score(
        policy=run.trial.way,
        reconfigurations=changes(run.sizes),
        slot_seconds=held,
        slot_seconds_over_clairvoyant=held / best if best else None,
        slot_seconds_over_maximum=held / (run.trial.executors[1] * run.end_s),
        slo_seconds_over=over,
        latency_p95_s=p95,
        latency_p99_s=p99,
        backlog_max=float(backlog(run).max(initial=0.0)),
        decision_ms=float(np.mean([step.decision_ms for step in run.steps])) if run.steps else 0.0,
        rows_checked=run.rows_checked,
        rows_lost=run.rows_lost,
        rows_repeated=run.rows_repeated,
        failed=run.failed,
    )


def needed(run: TrialRun) -> float | None:
    """Return the slot-seconds of whoever always holds just enough; None where a slot's pace is not known."""
    curve = run.trial.curve or (None if run.trial.slot_per_s is None else Linear(run.trial.slot_per_s))
    if curve is None:
        return None
    least, most = run.trial.executors
    ability = [curve.ability_per_s(count) for count in range(least, most + 1)]
    wanted = latencies(run)[2] * (1 + (run.trial.slo.headroom or 0.0))
    # The first size that is enough, else the largest.
    enough = [np.argmax(np.append(np.array(ability) >= rate, True)) for rate in wanted]
    return float(np.minimum(least + np.array(enough), most).sum())


def executor_seconds(sizes: Sequence[tuple[float, int]], end_s: float) -> float:
    """Add up how long every executor was there, from the source's first second to the end."""
    ends = [moment for moment, _ in sizes[1:]] + [end_s]
    return sum(size * max(0.0, min(to, end_s) - max(at, 0.0)) for (at, size), to in zip(sizes, ends, strict=True))


def changes(sizes: Sequence[tuple[float, int]]) -> int:
    """Count changes of size: steps in one direction that follow each other closely are one."""
    count, last_s, last_up = 0, -np.inf, None
    for (_, before), (moment, after) in pairwise(sizes):
        if moment - last_s > SAME_CHANGE_S or (after > before) is not last_up:
            count += 1
        last_s, last_up = moment, after > before
    return count


def latencies(run: TrialRun) -> tuple[Floats, Floats, Floats]:
    """Return for every second of the run: its number, how late its results came, how many records it brought.

    A second's records arrive in its middle, on the mean. What has no result at the end is as late as it then is old.
    """
    seconds = np.arange(int(run.end_s))
    finished = np.full(len(seconds), run.end_s)
    for batch in run.batches:
        start, end = (int(batch.sources[0].start_offset or 0), int(batch.sources[0].end_offset))
        finished[start:end] = batch.end_s - run.start_s
    due = np.array([run.trial.schedule.due(second) for second in range(len(seconds) + 1)], dtype=float)
    return seconds.astype(float), finished - (seconds + 0.5), np.diff(due)


def backlog(run: TrialRun) -> Floats:
    """Return the records that have come and have no result, at the end of every second."""
    due = np.array([run.trial.schedule.due(second) for second in range(int(run.end_s) + 1)], dtype=float)
    done = np.zeros(int(run.end_s))
    for batch in run.batches:
        done[max(0, int(np.ceil(batch.end_s - run.start_s)) - 1) :] = due[
            min(len(due) - 1, int(batch.sources[0].end_offset))
        ]
    return np.maximum(due[1:] - done, 0.0)


def throughput(run: TrialRun) -> Floats:
    """Return the records of every second that were being worked on: a batch's, spread over its time."""
    rate = np.zeros(int(run.end_s))
    for batch in run.batches:
        source = batch.sources[0]
        records = run.trial.schedule.due(int(source.end_offset)) - run.trial.schedule.due(int(source.start_offset or 0))
        rate += records * overlap(batch.start_s - run.start_s, batch.end_s - run.start_s, len(rate))
    return rate


def overlap(start_s: float, end_s: float, seconds: int) -> Floats:
    """Return which share of a span lies in each second."""
    edges = np.clip(np.arange(seconds + 1, dtype=float), start_s, end_s)
    shares: Floats = np.diff(edges) / max(end_s - start_s, 1e-9)
    return shares


def size_by_second(run: TrialRun) -> Floats:
    """Return the executors in the middle of every second."""
    moments = np.array([moment for moment, _ in run.sizes])
    counts = np.array([size for _, size in run.sizes], dtype=float)
    at = np.searchsorted(moments, np.arange(int(run.end_s)) + 0.5, side="right") - 1
    return counts[np.clip(at, 0, None)]


def weighted_quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> tuple[float, ...]:
    """Return the values below which these shares of the weight lie."""
    order = np.argsort(values)
    running = np.cumsum(weights[order])
    if not len(running) or running[-1] <= 0:
        return tuple(0.0 for _ in shares)
    places = np.searchsorted(running, np.array(shares) * running[-1])
    return tuple(float(values[order][min(place, len(order) - 1)]) for place in places)
