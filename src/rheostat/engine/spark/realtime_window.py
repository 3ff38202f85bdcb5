"""From the batches of real-time mode to one window of the job. Pure.

All stages of a batch run at once, each with its own tasks, and there is no back pressure between them: the source
reads for the length of a batch, then the batch lasts until the slowest stage has drained. So a batch that ends late is
the symptom of overload, the first stage that ends late is its cause, and what such a batch did in its time is what
that stage can do. Nothing is reported while a batch runs; that it is overdue is then all there is to see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rheostat.engine.spark.probe import RECORDS, read_probe
from rheostat.engine.spark.progress import Batch
from rheostat.engine.spark.staged import LATENCY, border
from rheostat.engine.spark.stages import Stage
from rheostat.job.observation import EdgeReading, Latency, OperatorReading

LATE = 0.1
LATE_S = 0.5
"""A batch is late when it lasts longer than its length by this share, and by this many seconds."""
BEHIND = 0.98
"""A late batch that did at least this share of what came in its time works off what had piled up: no overload."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """How many records had ever been written to the source at a moment."""

    at_s: float
    records: float


@dataclass(frozen=True, slots=True)
class Chain:
    """What a window is read against: operators in the order of the records, their tasks, the length of a batch."""

    names: tuple[str, ...]
    """The source first."""
    tasks: Mapping[str, int]
    batch_s: float

    @property
    def late_s(self) -> float:
        """Seconds after its start from which on a batch is late."""
        return self.batch_s + max(LATE_S, LATE * self.batch_s)


@dataclass(frozen=True, slots=True)
class Running:
    """The batch that runs: since when, and which of its stages are still at work."""

    start_s: float
    at_work: tuple[str, ...]


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
) -> RealTimeWindow | str:
    """Describe the batches that began after `since_s`, oldest first; or say why there is nothing to describe.

    `done` counts the source's records whose batch is finished.
    """
    inside = [batch for batch in batches if batch.start_s >= since_s]
    overdue_s = 0.0 if running is None else max(0.0, now_s - running.start_s - chain.late_s)
    if not inside:
        if running is not None and overdue_s:
            return f"no batch has finished since the change, and the running one is {overdue_s:.0f} s overdue"
        return "no batch has finished since the change"
    start_s = inside[0].start_s
    seconds = max(sum(batch.seconds for batch in inside), 1e-3)
    rate = arrival_rate(arrived, since_s)
    backlog = _backlog(arrived, done, rate, running, chain, now_s)
    works = {(stage.run_id, stage.batch): [] for stage in stages}  # type: dict[tuple[str, int], list[Stage]]
    for stage in stages:
        works[stage.run_id, stage.batch].append(stage)
    operators, edges = _readings(chain, inside, works, seconds)
    return RealTimeWindow(
        start_s=start_s,
        end_s=inside[-1].end_s,
        operators=operators,
        edges=edges,
        overloaded=_overloaded(chain, inside, works, rate, overdue_s, running),
        overdue_s=overdue_s,
        latency=_latency(inside),
        rate_per_s=rate,
        backlog=backlog,
        lag_s=None if backlog is None or not rate else backlog / rate,
    )


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
            records = float(sum(_count(batch, border(name)) for batch in inside))
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


def _overloaded(
    chain: Chain,
    inside: Sequence[Batch],
    works: Mapping[tuple[str, int], Sequence[Stage]],
    rate: float | None,
    overdue_s: float,
    running: Running | None,
) -> tuple[str, ...]:
    """Name the first stage that is late, unless the job catches up all the same."""
    last = inside[-1]
    if overdue_s and running is not None and overdue_s > max(0.0, last.work_s - chain.late_s):
        return _tunable(chain, running.at_work)[:1]
    if last.work_s <= chain.late_s or rate is None or last.rows >= BEHIND * rate * last.seconds:
        return ()
    members = sorted(works.get((last.run_id, last.number), ()), key=lambda stage: stage.number)
    if len(members) == len(chain.names):
        ends = [(s.start_s or last.start_s) + s.wall_s - last.start_s for s in members]
        # What stands behind a late stage waits for it to the end, so it is late too.
        late = tuple(name for name, end_s in zip(chain.names, ends, strict=True) if end_s > chain.late_s)
        if found := _tunable(chain, late):
            return found[:1]
    return _busiest(chain, inside)


def _tunable(chain: Chain, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in chain.names[1:])


def _busiest(chain: Chain, inside: Sequence[Batch]) -> tuple[str, ...]:
    """Return the stage with the most useful time per task, where stages were not seen."""
    spent = {
        name: (_useful(inside, name, sum(_count(batch, border(name)) for batch in inside)) or 0.0) / chain.tasks[name]
        for name in chain.names[1:]
    }
    return (max(spent, key=lambda name: spent[name]),) if any(spent.values()) else ()


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


def _latency(inside: Sequence[Batch]) -> Latency | None:
    """Return the worst quantiles of any batch: an overloaded one is not hidden by those on time."""
    found = [ms for batch in inside if (ms := batch.observed.get(LATENCY, {}).get("ms"))]
    if not found:
        return None
    worst = [max(0.0, max(float(values[place]) for values in found) / 1e3) for place in range(3)]
    return Latency(*worst, *worst)


def _count(batch: Batch, name: str) -> int:
    counted: Mapping[str, Any] = batch.observed.get(name, {})
    return int(counted.get(RECORDS) or 0)
