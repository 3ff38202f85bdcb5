"""Reads one window of a real-time query from its batches. Pure.

All stages of a batch run at once, each with its own tasks, and there is no back pressure between them: the source
reads for the length of a batch, then the batch lasts until the slowest stage has drained. So the symptom of overload
is a batch that takes longer than the backlog before it explains (`lateness.py`). Spark reports nothing while a batch
runs, except that it is overdue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rheostat.engine.batches.arrivals import ArrivalCount, arrival_rate
from rheostat.engine.batches.lateness import LATE, Chain, Span, blocking_shares, late_stages, required_busy_shares
from rheostat.engine.batches.probe import LATENCY, RECORDS, read_probe
from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.stage import Stage
from rheostat.job.observation import EdgeReading, Latency, OperatorReading


@dataclass(frozen=True, slots=True)
class RealTimeBatch:
    """The running batch: its start, its unfinished stages, and its tasks."""

    start_s: float
    active_stages: tuple[str, ...]
    tasks: Mapping[str, int] | None = None
    """Tasks per stage, if they differ from those of the finished batches."""


@dataclass(frozen=True, slots=True)
class RealTimeWindow:
    """The readings of one window."""

    start_s: float
    end_s: float
    operators: tuple[OperatorReading, ...]
    edges: tuple[EdgeReading, ...]
    overloaded: tuple[str, ...]
    overdue_s: float
    latency: Latency | None
    rate_per_s: float | None
    backlog: float | None
    lag_s: float | None
    catching_up: bool
    """Whether the backlog exceeds the input of one batch."""


def realtime_window(
    chain: Chain,
    batches: Sequence[Batch],
    stages: Sequence[Stage],
    since_s: float,
    now_s: float,
    arrived: Sequence[ArrivalCount],
    done: float | None,
    running: RealTimeBatch | None,
    last_read_s: float | None = None,
) -> RealTimeWindow | str:
    """Return the window of the batches that began at `since_s` or later, or the reason why there is none.

    `done` counts the source's records in finished batches. `last_read_s` is the last read of the source before the
    first batch; if it is None (unknown), a long first batch proves nothing.
    """
    inside = [batch for batch in batches if batch.start_s >= since_s]
    overdue_s = 0.0 if running is None else max(0.0, now_s - running.start_s - chain.late_s)
    if not inside:
        if running is not None and overdue_s:
            return f"no batch has finished since the change, and the running one is {overdue_s:.0f} s overdue"
        return "no batch has finished since the change"
    seconds = max(sum(batch.seconds for batch in inside), 1e-3)
    rate = arrival_rate(arrived, since_s)
    backlog = _backlog(arrived, done, rate, running, chain, now_s)
    works: dict[tuple[str, int], list[Stage]] = {}
    for stage in stages:
        works.setdefault((stage.run_id, stage.batch), []).append(stage)
    operators, edges = _readings(chain, inside, works, seconds)
    spans = _spans(chain, batches, works, last_read_s)
    finished = [span for batch, span in zip(batches, spans, strict=True) if batch in inside]
    now = _running_span(chain, running, batches, now_s)
    late = (late_stages(chain, now) if now else ()) or late_stages(chain, finished[-1])
    shares = blocking_shares(chain, [*finished, *([now] if now else [])])
    required = required_busy_shares(chain, operators, rate, (running.tasks if running else None) or chain.tasks)
    catching_up = backlog is not None and rate is not None and backlog > rate * chain.batch_s
    if not late and catching_up:
        # If the time per record shows that the backlog cannot shrink, this is overload even without a late batch.
        late = tuple(name for name in chain.names if required.get(name, 0.0) > 1.0 + LATE)
    # The source never causes overload. Of the others, the stage that needs most time per task does; later ones wait.
    candidates = (name for name in late if name in chain.names[1:])
    root = max(candidates, key=lambda name: required.get(name, 0.0), default=None)
    if root is not None:
        # How long a running batch will block the source is still unknown.
        shares[root] = max(shares[root], 1.0 - 1.0 / max(required.get(root, 1.0), 1.0))
    return RealTimeWindow(
        start_s=inside[0].start_s,
        end_s=inside[-1].end_s,
        operators=tuple(replace(reading, blocking_share=shares[reading.name]) for reading in operators),
        edges=edges,
        overloaded=() if root is None else (root,),
        overdue_s=overdue_s,
        latency=_latency(inside, chain.names[-1]),
        rate_per_s=rate,
        backlog=backlog,
        lag_s=None if backlog is None or not rate else backlog / rate,
        catching_up=catching_up,
    )


def _spans(
    chain: Chain,
    batches: Sequence[Batch],
    works: Mapping[tuple[str, int], Sequence[Stage]],
    last_read_s: float | None,
) -> list[Span]:
    """Return each batch's start, the ends of its stages, and the last read of the source before it."""
    spans, read_s = [], last_read_s
    for batch in batches:
        members = sorted(works.get((batch.run_id, batch.number), ()), key=lambda stage: stage.number)
        ends = tuple((stage.start_s or batch.start_s) + stage.wall_s for stage in members)
        if len(ends) != len(chain.names):
            # Without stages, assume that the source read for the length of a batch and the others ended with it.
            end_s = batch.start_s + batch.work_s
            ends = (min(batch.start_s + chain.batch_s, end_s), *(end_s for _ in chain.names[1:]))
        spans.append(Span(batch.start_s, ends, -math.inf if read_s is None else read_s))
        read_s = batch.start_s + chain.batch_s
    return spans


def _running_span(chain: Chain, running: RealTimeBatch | None, batches: Sequence[Batch], now_s: float) -> Span | None:
    if running is None:
        return None
    read_s = min(running.start_s + chain.batch_s, now_s)
    ends = tuple(now_s if name in running.active_stages else read_s for name in chain.names)
    return Span(running.start_s, ends, batches[-1].start_s + chain.batch_s)


def _readings(
    chain: Chain, inside: Sequence[Batch], works: Mapping[tuple[str, int], Sequence[Stage]], seconds: float
) -> tuple[tuple[OperatorReading, ...], tuple[EdgeReading, ...]]:
    """Return the records and the useful time of every operator."""
    operators, edges = [], []
    cpu_s = _cpu(chain, inside, works)
    for place, name in enumerate(chain.names):
        tasks = chain.tasks[name]
        if place == 0:
            records, useful_s = float(sum(batch.rows for batch in inside)), None
        else:
            records = float(sum(_count(batch, chain.names[place - 1]) for batch in inside))
            useful_s = _useful(inside, name, records)
            edges.append(EdgeReading(chain.names[place - 1], name, records / seconds))
        spent_s = max((value for value in (useful_s, cpu_s.get(name)) if value is not None), default=None)
        measured = spent_s is not None and spent_s > 0 and records > 0
        operators.append(
            OperatorReading(
                name,
                tasks,
                records_in_per_s=records / seconds,
                useful_share=None if spent_s is None else min(spent_s / (tasks * seconds), 1.0),
                true_rate_per_s=records / spent_s if measured and spent_s else None,
                cpu_share=None if name not in cpu_s else min(cpu_s[name] / (tasks * seconds), 1.0),
                state_bytes=float(inside[-1].state_bytes) if place == len(chain.names) - 1 else None,
            )
        )
    return tuple(operators), tuple(edges)


def _useful(inside: Sequence[Batch], name: str, records: float) -> float | None:
    """Return the useful seconds of all tasks: the mean of the timed rows times the input records."""
    probes = [probe for batch in inside if (probe := read_probe(batch.observed.get(name, {}))) is not None]
    rows = sum(probe.records for probe in probes if probe.useful_s is not None)
    useful_s = sum(probe.useful_s for probe in probes if probe.useful_s is not None)
    return useful_s / rows * records if rows else None


def _cpu(chain: Chain, inside: Sequence[Batch], works: Mapping[tuple[str, int], Sequence[Stage]]) -> dict[str, float]:
    """Return the CPU seconds of every operator; {} unless all stages of all batches are known."""
    cpu_s = dict.fromkeys(chain.names, 0.0)
    for batch in inside:
        members = sorted(works.get((batch.run_id, batch.number), ()), key=lambda stage: stage.number)
        if len(members) != len(chain.names):
            return {}
        for name, stage in zip(chain.names, members, strict=True):
            cpu_s[name] += stage.cpu_s
    return cpu_s


def _backlog(
    arrived: Sequence[ArrivalCount],
    done: float | None,
    rate: float | None,
    running: RealTimeBatch | None,
    chain: Chain,
    now_s: float,
) -> float | None:
    """Return the records in no finished batch, without those that a batch on time holds by design."""
    if not arrived or done is None or rate is None:
        return None
    running_s = 0.0 if running is None else min(chain.batch_s, max(0.0, now_s - running.start_s))
    return max(0.0, arrived[-1].records - done - rate * running_s)


def _latency(inside: Sequence[Batch], last: str) -> Latency | None:
    """Return the worst quantiles of any batch, so that batches on time do not hide an overloaded one."""
    quantiles_ms = [ms for batch in inside if (ms := batch.observed.get(last, {}).get(LATENCY))]
    if not quantiles_ms:
        return None
    worst = [max(0.0, max(float(values[place]) for values in quantiles_ms) / 1e3) for place in range(3)]
    return Latency(*worst, *worst)


def _count(batch: Batch, name: str) -> int:
    counted: Mapping[str, Any] = batch.observed.get(name, {})
    return int(counted.get(RECORDS) or 0)
