"""From the batches of real-time mode to one window of the job. Pure.

All stages of a batch run at once, each with its own tasks, and there is no back pressure between them: the source
reads for the length of a batch, then the batch lasts until the slowest stage has drained. So a batch that
takes longer than what had piled up before it explains is the symptom of overload (`stretch.py`). Nothing is reported
while a batch runs; that it is overdue is then all there is to see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rheostat.engine.batches.lateness import LATE, Chain, Span, held_up, late_stages, needs
from rheostat.engine.batches.probe import LATENCY, RECORDS, read_probe
from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.stage import Stage
from rheostat.job.observation import EdgeReading, Latency, OperatorReading


@dataclass(frozen=True, slots=True)
class Arrived:
    """How many records had ever been written to the source at a moment."""

    at_s: float
    records: float


@dataclass(frozen=True, slots=True)
class Running:
    """The batch that runs: since when, which of its stages are still at work, and with which tasks."""

    start_s: float
    at_work: tuple[str, ...]
    tasks: Mapping[str, int] | None = None
    """Where they are others than those of the batches that are shown."""


@dataclass(frozen=True, slots=True)
class RealTimeWindow:
    """What the batches of a window show."""

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
    """Whether more waits than a batch brings."""


def arrival_rate(arrived: Sequence[Arrived], since_s: float) -> float | None:
    """Return records per second that were written since a moment; None when it was asked fewer than two times."""
    inside = [point for point in arrived if point.at_s >= since_s]
    before = [point for point in arrived if point.at_s < since_s]
    points = before[-1:] + inside
    if len(points) < 2 or points[-1].at_s <= points[0].at_s:
        return None
    return max(0.0, points[-1].records - points[0].records) / (points[-1].at_s - points[0].at_s)


def realtime_window(
    chain: Chain,
    batches: Sequence[Batch],
    stages: Sequence[Stage],
    since_s: float,
    now_s: float,
    arrived: Sequence[Arrived],
    done: float | None,
    running: Running | None,
    unread_s: float | None = None,
) -> RealTimeWindow | str:
    """Describe the batches that began after `since_s`, oldest first; or say why there is nothing to describe.

    `done` counts the source's records whose batch is finished. `unread_s` is when the source was last read before the
    first of all these batches; None where nobody knows, and a long first batch is then no sign of anything.
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
    spans = _spans(chain, batches, works, unread_s)
    finished = [span for batch, span in zip(batches, spans, strict=True) if batch in inside]
    now = _running_span(chain, running, batches, now_s)
    late = (late_stages(chain, now) if now else ()) or late_stages(chain, finished[-1])
    shares = held_up(chain, [*finished, *([now] if now else [])])
    need = needs(chain, operators, rate, (running.tasks if running else None) or chain.tasks)
    catching_up = backlog is not None and rate is not None and backlog > rate * chain.batch_s
    if not late and catching_up:
        # Where time per record says that the backlog cannot become less, no batch has to be late.
        late = tuple(name for name in chain.names if need.get(name, 0.0) > 1.0 + LATE)
    # The source only waits; among the others the one that needs the most time per task, those behind it wait for it.
    root = max((name for name in late if name in chain.names[1:]), key=lambda name: need.get(name, 0.0), default=None)
    if root is not None:
        # While a batch runs it is not known yet how long it will hold up the source.
        shares[root] = max(shares[root], 1.0 - 1.0 / max(need.get(root, 1.0), 1.0))
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
    unread_s: float | None,
) -> list[Span]:
    """Return when each batch started, when its stages ended, and since when nothing had been read before it."""
    found, read_s = [], unread_s
    for batch in batches:
        members = sorted(works.get((batch.run_id, batch.number), ()), key=lambda stage: stage.number)
        ends = tuple((stage.start_s or batch.start_s) + stage.wall_s for stage in members)
        if len(ends) != len(chain.names):
            # Where stages were not seen, the source read as long as it should and the others ended with the batch.
            end_s = batch.start_s + batch.work_s
            ends = (min(batch.start_s + chain.batch_s, end_s), *(end_s for _ in chain.names[1:]))
        found.append(Span(batch.start_s, ends, -math.inf if read_s is None else read_s))
        read_s = batch.start_s + chain.batch_s
    return found


def _running_span(chain: Chain, running: Running | None, batches: Sequence[Batch], now_s: float) -> Span | None:
    if running is None:
        return None
    read_s = min(running.start_s + chain.batch_s, now_s)
    ends = tuple(now_s if name in running.at_work else read_s for name in chain.names)
    return Span(running.start_s, ends, batches[-1].start_s + chain.batch_s)


def _readings(
    chain: Chain, inside: Sequence[Batch], works: Mapping[tuple[str, int], Sequence[Stage]], seconds: float
) -> tuple[tuple[OperatorReading, ...], tuple[EdgeReading, ...]]:
    """Add up records and useful time of every operator."""
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
        known = spent_s is not None and spent_s > 0 and records > 0
        operators.append(
            OperatorReading(
                name,
                tasks,
                records_in_per_s=records / seconds,
                useful_share=None if spent_s is None else min(spent_s / (tasks * seconds), 1.0),
                true_rate_per_s=records / spent_s if known and spent_s else None,
                cpu_share=None if name not in cpu_s else min(cpu_s[name] / (tasks * seconds), 1.0),
                state_bytes=float(inside[-1].state_bytes) if place == len(chain.names) - 1 else None,
            )
        )
    return tuple(operators), tuple(edges)


def _useful(inside: Sequence[Batch], name: str, records: float) -> float | None:
    """Return useful seconds of all tasks: the mean of the timed rows, for every record that came in."""
    probes = [probe for batch in inside if (probe := read_probe(batch.observed.get(name, {}))) is not None]
    rows = sum(probe.records for probe in probes if probe.useful_s is not None)
    useful_s = sum(probe.useful_s for probe in probes if probe.useful_s is not None)
    return useful_s / rows * records if rows else None


def _cpu(chain: Chain, inside: Sequence[Batch], works: Mapping[tuple[str, int], Sequence[Stage]]) -> dict[str, float]:
    """Return CPU seconds of every operator; {} unless all stages of all batches were seen."""
    found = dict.fromkeys(chain.names, 0.0)
    for batch in inside:
        members = sorted(works.get((batch.run_id, batch.number), ()), key=lambda stage: stage.number)
        if len(members) != len(chain.names):
            return {}
        for name, stage in zip(chain.names, members, strict=True):
            found[name] += stage.cpu_s
    return found


def _backlog(
    arrived: Sequence[Arrived],
    done: float | None,
    rate: float | None,
    running: Running | None,
    chain: Chain,
    now_s: float,
) -> float | None:
    """Return what has come and is in no finished batch, less what a batch on time holds by design."""
    if not arrived or done is None or rate is None:
        return None
    held_s = 0.0 if running is None else min(chain.batch_s, max(0.0, now_s - running.start_s))
    return max(0.0, arrived[-1].records - done - rate * held_s)


def _latency(inside: Sequence[Batch], last: str) -> Latency | None:
    """Return the worst quantiles of any batch: an overloaded one is not hidden by those on time."""
    found = [ms for batch in inside if (ms := batch.observed.get(last, {}).get(LATENCY))]
    if not found:
        return None
    worst = [max(0.0, max(float(values[place]) for values in found) / 1e3) for place in range(3)]
    return Latency(*worst, *worst)


def _count(batch: Batch, name: str) -> int:
    counted: Mapping[str, Any] = batch.observed.get(name, {})
    return int(counted.get(RECORDS) or 0)
