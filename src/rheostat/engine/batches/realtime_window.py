"""Reads one window of a real-time query from its batches. Pure.

All stages of a batch run at once, each with its own tasks, and there is no back pressure between them: the source
reads for the length of a batch, then the batch lasts until the slowest stage has drained. So the symptom of overload
is a batch that takes longer than the backlog before it explains (`lateness.py`), or, while it runs, more rows in front
of a stage than that (`flow.py`). Load, backlog and lag are those of this moment: by the topic, and by the rows that
the running batch has read and written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rheostat.engine.batches.arrivals import FRESH_S, ArrivalCount, arrival_moment_s, present_rate, records_at
from rheostat.engine.batches.flow import Flow, queues, records_inside, total_flow
from rheostat.engine.batches.lateness import (
    LATE,
    LATE_S,
    Chain,
    Span,
    blocking_shares,
    late_stages,
    required_busy_shares,
)
from rheostat.engine.batches.probe import EVENT_LATENCY, LATENCY, read_probe
from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.stage import Stage, by_batch
from rheostat.job.observation import EdgeReading, Latency, OperatorReading


@dataclass(frozen=True, slots=True)
class RealTimeBatch:
    """The running batch: its start, its unfinished stages, and its tasks."""

    start_s: float
    active_stages: tuple[str, ...]
    tasks: Mapping[str, int] | None = None
    """Tasks per stage, if they differ from those of the finished batches."""
    flow: Flow | None = None
    """Its rows so far; None before the first report."""
    flow_age_s: float = 0.0
    """Largest age of these rows in seconds: executors report them with heartbeats."""


@dataclass(frozen=True, slots=True)
class SourceNow:
    """The source at this moment."""

    rate_per_s: float | None = None
    backlog: float | None = None
    """Records without a result."""
    lag_s: float | None = None
    """Age of the oldest of them."""
    measured_s: float | None = None
    """The moment of backlog and lag: when the topic was asked, or when executors last reported rows."""


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
    source: SourceNow
    catching_up: bool
    """Whether the backlog exceeds the input of one batch."""
    waits: tuple[str, ...] = ()
    """Overloaded stages whose measured time does not explain it: they wait for something that nothing measures."""


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
    usual = total_flow(batch.flow for batch in inside if batch.flow is not None)
    source = read_source(chain, arrived, done, running, usual, now_s)
    rate, backlog = source.rate_per_s, source.backlog
    works = by_batch(stages)
    operators, edges = _readings(chain, inside, works)
    spans = _spans(chain, batches, works, last_read_s)
    finished = [span for batch, span in zip(batches, spans, strict=True) if batch in inside]
    now = _running_span(chain, running, batches, now_s)
    before, queued = late_stages(chain, finished[-1]), _queued(chain, running, now, usual, rate)
    late = queued or (late_stages(chain, now) if now else ())
    twice = set(late) & set(before)
    late = late or before
    shares = blocking_shares(chain, [*finished, *([now] if now else [])])
    tasks = (running.tasks if running else None) or chain.tasks
    required = required_busy_shares(chain, operators, rate, tasks)
    catching_up = backlog is not None and rate is not None and backlog > rate * chain.batch_s
    if not late and catching_up:
        # If the time per record shows that the backlog cannot shrink, this is overload even without a late batch.
        late = tuple(name for name in chain.names if required.get(name, 0.0) > 1.0 + LATE)
    # The source never causes overload. Of the others, the stage that needs most time per task does; later ones wait.
    candidates = (name for name in late if name in chain.names[1:])
    root = max(candidates, key=lambda name: required.get(name, 0.0), default=None)
    waits = root in twice and required.get(root or "", 0.0) < 1.0 - LATE
    if root is not None and waits:
        per_s = _saturated_per_s(chain, root, running, usual, inside[-1], finished[-1], now_s)
        operators = tuple(_at_most(reading, per_s) if reading.name == root else reading for reading in operators)
        required = required_busy_shares(chain, operators, rate, tasks)
    if root is not None:
        # How long a running batch will block the source is still unknown.
        shares[root] = max(shares[root], 1.0 - 1.0 / max(required.get(root, 1.0), 1.0))
    pending = dict(zip(chain.names, _waiting(running, usual), strict=False))
    return RealTimeWindow(
        start_s=inside[0].start_s,
        end_s=inside[-1].end_s,
        operators=tuple(
            replace(reading, blocking_share=shares[reading.name], pending=pending.get(reading.name))
            for reading in operators
        ),
        edges=edges,
        overloaded=() if root is None else (root,),
        overdue_s=overdue_s,
        latency=_latency(inside, chain.names[-1]),
        source=source,
        catching_up=catching_up,
        waits=(root,) if root is not None and waits else (),
    )


def read_source(
    chain: Chain,
    arrived: Sequence[ArrivalCount],
    done: float | None,
    running: RealTimeBatch | None,
    usual: Flow | None,
    now_s: float,
) -> SourceNow:
    """Return load, backlog and lag of this moment. `usual` are the rows of finished batches."""
    if not arrived or now_s - arrived[-1].at_s > FRESH_S:
        return SourceNow()
    rate, at_s = present_rate(arrived, math.inf), _rows_s(chain, arrived, done, running, now_s)
    records = records_at(arrived, at_s)
    backlog = _backlog(records, done, rate, running, usual, chain, at_s)
    lag_s = None
    if backlog is not None and rate is not None:
        moment_s = arrival_moment_s(arrived, records - backlog)
        by_rate_s = backlog / rate if rate else None
        lag_s = 0.0 if not backlog else by_rate_s if moment_s is None else max(0.0, at_s - moment_s)
    return SourceNow(rate, backlog, lag_s, at_s)


def _rows_s(
    chain: Chain, arrived: Sequence[ArrivalCount], done: float | None, running: RealTimeBatch | None, now_s: float
) -> float:
    """Return the moment at which the running batch had its rows: that of the executors' last heartbeat.

    While the source reads, it reads everything: its rows are those that had arrived by then. Later the moment is
    unknown, and the middle between two heartbeats stands for it.
    """
    newest_s = min(arrived[-1].at_s, now_s)
    if done is None or running is None or running.flow is None or not running.flow.entered[0]:
        return newest_s
    if now_s - running.start_s >= chain.batch_s:
        return newest_s - running.flow_age_s / 2
    read = done + running.flow.entered[0]
    if read >= arrived[-1].records:
        return newest_s
    # The report takes its time on a busy machine. What is missing after two heartbeats has not been read.
    oldest_s = newest_s - 2 * running.flow_age_s
    return min(max(arrival_moment_s(arrived, read) or oldest_s, oldest_s), newest_s)


def _spans(
    chain: Chain,
    batches: Sequence[Batch],
    works: Mapping[tuple[str, int], Sequence[Stage]],
    last_read_s: float | None,
) -> list[Span]:
    """Return each batch's start, the ends of its stages, and the last read of the source before it."""
    spans, read_s = [], last_read_s
    for batch in batches:
        members = _members(chain, works.get((batch.run_id, batch.number), ()))
        ends = tuple((stage.start_s or batch.start_s) + stage.wall_s for stage in members)
        if not ends:
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


def _waiting(running: RealTimeBatch | None, usual: Flow | None) -> tuple[float, ...]:
    """Return the rows in front of every stage of the running batch; () where they are unknown."""
    return () if running is None or running.flow is None or usual is None else queues(running.flow, usual)


def _queued(
    chain: Chain, running: RealTimeBatch | None, now: Span | None, usual: Flow | None, rate: float | None
) -> tuple[str, ...]:
    """Return the stages with more rows in front of them than have arrived before the batch began to read.

    Where the capacity is above the load, the rows of the time before the batch are the most that ever wait. Two
    executors may have reported at different moments: the age of the rows is the margin.
    """
    if running is None or now is None or not rate or usual is None or not usual.entered[0]:
        return ()
    most_s = max(0.0, now.start_s - now.last_read_s) + LATE_S + running.flow_age_s
    per_record = (rows / usual.entered[0] for rows in usual.entered)
    waiting = zip(chain.names, _waiting(running, usual), per_record, strict=False)
    return tuple(name for name, rows, each in waiting if each > 0 and rows > most_s * rate * each)


def _saturated_per_s(
    chain: Chain,
    name: str,
    running: RealTimeBatch | None,
    usual: Flow | None,
    last: Batch,
    span: Span,
    now_s: float,
) -> float | None:
    """Return the rows per second of one task of a stage that has been late for two batches: its tasks can do no more.

    This is the rate of a stage that waits for something else than the CPU, if nothing measures its time.
    """
    place, tasks, rows, seconds = chain.names.index(name), chain.tasks[name], 0.0, 0.0
    if running is not None and running.flow is not None and usual is not None and _waiting(running, usual)[place]:
        rows = running.flow.entered[place] - _waiting(running, usual)[place]
        seconds = now_s - running.start_s - running.flow_age_s / 2
        tasks = (running.tasks or chain.tasks)[name]
    elif last.flow is not None:
        rows, seconds = last.flow.entered[place], span.ends_s[place] - span.start_s
    return rows / (seconds * tasks) if rows > 0 and seconds > 0 else None


def _at_most(reading: OperatorReading, per_s: float | None) -> OperatorReading:
    if per_s is None or (reading.true_rate_per_s is not None and reading.true_rate_per_s < per_s):
        return reading
    return replace(reading, true_rate_per_s=per_s, useful_share=1.0)


def _readings(
    chain: Chain, inside: Sequence[Batch], works: Mapping[tuple[str, int], Sequence[Stage]]
) -> tuple[tuple[OperatorReading, ...], tuple[EdgeReading, ...]]:
    """Return the records and the useful time of every operator, from the batches whose rows are known."""
    known = [batch for batch in inside if batch.flow is not None]
    flow = total_flow(batch.flow for batch in known if batch.flow is not None)
    seconds = max(sum(batch.seconds for batch in known or inside), 1e-3)
    source = float(sum(batch.rows for batch in known or inside))
    if flow is None:
        return (OperatorReading(chain.names[0], chain.tasks[chain.names[0]], source / seconds),), ()
    operators, edges = [], []
    cpu_s = _cpu(chain, known, works)
    for place, name in enumerate(chain.names):
        tasks, records, useful_s = chain.tasks[name], source, None
        if place:
            records = flow.entered[place]
            useful_s = _useful(known, name, records)
            edges.append(EdgeReading(chain.names[place - 1], name, records / seconds))
        spent_s = max((value for value in (useful_s, cpu_s.get(name)) if value is not None), default=None)
        operators.append(
            OperatorReading(
                name,
                tasks,
                records_in_per_s=records / seconds,
                useful_share=None if spent_s is None else min(spent_s / (tasks * seconds), 1.0),
                true_rate_per_s=records / spent_s if spent_s and records > 0 else None,
                cpu_share=None if name not in cpu_s else min(cpu_s[name] / (tasks * seconds), 1.0),
                state_bytes=float(inside[-1].state_bytes) if place == len(chain.names) - 1 else None,
            )
        )
    return tuple(operators), tuple(edges)


def _useful(known: Sequence[Batch], name: str, records: float) -> float | None:
    """Return the useful seconds of all tasks: the mean of the timed rows times the input records."""
    probes = [probe for batch in known if (probe := read_probe(batch.observed.get(name, {}))) is not None]
    rows = sum(probe.records for probe in probes if probe.useful_s is not None)
    useful_s = sum(probe.useful_s for probe in probes if probe.useful_s is not None)
    return useful_s / rows * records if rows else None


def _cpu(chain: Chain, known: Sequence[Batch], works: Mapping[tuple[str, int], Sequence[Stage]]) -> dict[str, float]:
    """Return the CPU seconds of every operator; {} unless all stages of all batches are known."""
    cpu_s = dict.fromkeys(chain.names, 0.0)
    for batch in known:
        members = _members(chain, works.get((batch.run_id, batch.number), ()))
        if not members:
            return {}
        for name, stage in zip(chain.names, members, strict=True):
            cpu_s[name] += stage.cpu_s
    return cpu_s


def _members(chain: Chain, work: Sequence[Stage]) -> list[Stage]:
    """Return the stage of every operator; [] unless all are known.

    A keyed stage of one task runs together with the stage before it, if that has one task, too: then both have the
    time of both, which is too much rather than too little.
    """
    members = sorted(work, key=lambda stage: stage.number)
    before, last = chain.names[-2:]
    if len(members) == len(chain.names) - 1 and chain.tasks[before] == chain.tasks[last] == 1:
        members.append(members[-1])
    return members if len(members) == len(chain.names) else []


def _backlog(
    arrived: float,
    done: float | None,
    rate: float | None,
    running: RealTimeBatch | None,
    usual: Flow | None,
    chain: Chain,
    at_s: float,
) -> float | None:
    """Return the records without a result; without rows of the running batch, those that a batch on time leaves."""
    if done is None or rate is None:
        return None
    waiting, running_s = arrived - done, 0.0
    if running is not None:
        running_s = min(chain.batch_s, max(0.0, at_s - running.start_s))
    if running is None or running.flow is None or not running.flow.entered[0]:
        return max(0.0, waiting - rate * running_s)
    if usual is None or not usual.entered[0]:
        return None  # rows are on their way, and nothing shows yet how many of them come out
    return max(0.0, waiting - running.flow.entered[0]) + records_inside(running.flow, usual)


def _latency(inside: Sequence[Batch], last: str) -> Latency | None:
    """Return the worst quantiles of any batch, so that batches on time do not hide an overloaded one."""
    quantiles = [_worst_s(inside, last, kind) for kind in (LATENCY, EVENT_LATENCY)]
    return Latency(*quantiles[0], *quantiles[1]) if all(quantiles) else None


def _worst_s(inside: Sequence[Batch], last: str, kind: str) -> tuple[float, ...]:
    quantiles_ms = [ms for batch in inside if (ms := batch.observed.get(last, {}).get(kind))]
    return tuple(max(0.0, max(map(float, ms)) / 1e3) for ms in zip(*quantiles_ms, strict=True))
