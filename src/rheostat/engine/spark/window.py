"""From finished batches and their stages to one window of the job. Pure.

Micro-batch stages share the slots one after another, so the job is one operator. Its useful time is the busy time
of its tasks; what a slot can do is records per busy second. Planning, commits and waiting for the next trigger are
time in which slots idle: they are in a batch's `seconds`, not in its useful time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rheostat.engine.spark.hindrance import hindrances
from rheostat.engine.spark.offsets import OffsetCounter
from rheostat.engine.spark.probe import Probe, read_probe
from rheostat.engine.spark.progress import Batch, SourceProgress
from rheostat.engine.spark.stages import Stage
from rheostat.job.observation import Latency

BACK_TO_BACK = 0.9
"""Share of the time in which triggers are active from which on there is no idle gap."""
BEHIND = 1.02
"""Arrivals beyond this multiple of what was processed are overload, not the jitter of batch borders."""
SAMPLES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Records of a batch arrived evenly since the batch before: latency is sampled at these shares of that span."""

Counters = Callable[[str, int, str], OffsetCounter]
"""(query, index of the source, its description) -> its counter."""


@dataclass(frozen=True, slots=True)
class QueryWindow:
    """One query's part of a window."""

    start_s: float
    end_s: float
    batches: int
    records: float
    """Records processed by the window's batches."""
    rate_per_s: float | None
    """Records that arrived per second: how far the latest offset moved."""
    backlog: float | None
    """Records that wait, those of a running batch included."""
    lag_s: float
    """Age of the oldest record without a result."""
    overdue_s: float
    """How much longer than usual a running batch takes already."""
    overloaded: bool
    latency: Latency
    busy_s: float
    cpu_s: float
    gc_s: float
    spilled_bytes: int
    most_tasks: int
    """Tasks of the widest stage: more slots than that cannot be used."""
    state_bytes: int
    probes: Mapping[str, Probe]
    """Named operators, by what their probes counted."""
    hindrances: tuple[str, ...]
    """What slows it down and is not a matter of size."""


def query_window(
    batches: Sequence[Batch],
    stages: Sequence[Stage],
    counters: Counters,
    now_s: float,
    since_s: float,
    active: bool,
    slots: int = 1,
    window_s: float = 30.0,
) -> QueryWindow | str:
    """Describe the batches that began after `since_s`, oldest first; or say why they cannot be described."""
    inside = [batch for batch in batches if batch.start_s >= since_s]
    if not inside:
        return "no batch has finished in this window"
    first, last = inside[0], inside[-1]
    before = next((batch for batch in reversed(batches) if batch.start_s < first.start_s), None)
    numbers = {(batch.run_id, batch.number) for batch in inside}
    work = [stage for stage in stages if (stage.run_id, stage.batch) in numbers]
    records = _processed(inside, counters)
    span_s = max(last.end_s - first.start_s, 1e-3)
    since_last_s = max(0.0, now_s - last.start_s)
    rate = _rate_by_clock(last, counters, since_last_s, window_s)
    if rate is None:
        rate = _rate_by_reports(before or first, last, inside, counters)
    waiting = _waiting(last, counters, since_last_s, rate)
    typical_s = sorted(batch.seconds for batch in inside)[len(inside) // 2]
    overdue_s = max(0.0, now_s - last.end_s - max(typical_s, 1.0)) if active else 0.0
    busy_share = sum(batch.seconds for batch in inside) / span_s
    late = rate is not None and busy_share > BACK_TO_BACK and rate > BEHIND * records / span_s
    behind = _behind(last, counters)
    lag_s = since_last_s + (behind / rate if behind and rate else 0.0)
    return QueryWindow(
        start_s=first.start_s,
        end_s=last.end_s,
        batches=len(inside),
        records=records,
        rate_per_s=rate,
        backlog=waiting,
        lag_s=lag_s,
        overdue_s=overdue_s,
        overloaded=late or overdue_s > typical_s,
        latency=_latency(inside, before, lag_s - since_last_s),
        busy_s=sum(stage.busy_s for stage in work),
        cpu_s=sum(stage.cpu_s for stage in work),
        gc_s=sum(stage.gc_s for stage in work),
        spilled_bytes=sum(stage.spilled_bytes for stage in work),
        most_tasks=max((stage.tasks for stage in work), default=0),
        state_bytes=last.state_bytes,
        probes=_probes(inside),
        hindrances=hindrances(inside, work, slots),
    )


def _probes(inside: Sequence[Batch]) -> dict[str, Probe]:
    """Add up what the probes of all batches counted."""
    found: dict[str, Probe] = {}
    for batch in inside:
        for name, counted in batch.observed.items():
            probe = read_probe(counted)
            if probe is None:
                continue
            so_far = found.get(name, Probe(0, 0.0))
            known = so_far.useful_s is not None and probe.useful_s is not None
            useful_s = (so_far.useful_s or 0.0) + (probe.useful_s or 0.0) if known else None
            found[name] = Probe(so_far.records + probe.records, useful_s)
    return found


def _summed(
    batch: Batch, count: Callable[[OffsetCounter, SourceProgress], float | None], counters: Counters
) -> float | None:
    """Add up a count over all sources of a batch; None when one cannot be told."""
    total = 0.0
    for index, source in enumerate(batch.sources):
        records = count(counters(batch.query, index, source.description), source)
        if records is None:
            return None
        total += records
    return total


def _counted(batch: Batch, which: str, counters: Counters) -> float | None:
    """Count the records before one kind of offset."""
    return _summed(batch, lambda counter, source: counter.records(getattr(source, which)), counters)


def _arrived(last: Batch, counters: Counters, seconds: float) -> float | None:
    """Count what had come so long after the last trigger, by sources that go by the clock."""
    return _summed(last, lambda counter, source: counter.ahead(source.latest_offset, seconds), counters)


def _processed(inside: Sequence[Batch], counters: Counters) -> float:
    start, end = _counted(inside[0], "start_offset", counters), _counted(inside[-1], "end_offset", counters)
    rows = float(sum(batch.rows for batch in inside))
    return rows if start is None or end is None or end <= start else end - start


def _rate_by_clock(last: Batch, counters: Counters, since_last_s: float, window_s: float) -> float | None:
    """What came during the window that ends now, where the sources can tell without a report."""
    now, then = (_arrived(last, counters, since_last_s - ago) for ago in (0.0, window_s))
    return None if now is None or then is None else max(0.0, now - then) / window_s


def _waiting(last: Batch, counters: Counters, since_last_s: float, rate: float | None) -> float | None:
    """Records that have come and have no result: by the clock, or what was left and what the rate has added since."""
    arrived, done = _arrived(last, counters, since_last_s), _counted(last, "end_offset", counters)
    if arrived is not None and done is not None:
        return max(0.0, arrived - done)
    return None if rate is None else (_behind(last, counters) or 0.0) + rate * since_last_s


def _rate_by_reports(before: Batch, last: Batch, inside: Sequence[Batch], counters: Counters) -> float | None:
    """How far the latest offset moved between two triggers; for sources that take all there is, what they took."""
    seconds = last.start_s - before.start_s
    if seconds <= 0:
        return None
    start, end = _counted(before, "latest_offset", counters), _counted(last, "latest_offset", counters)
    if start is not None and end is not None:
        return max(0.0, end - start) / seconds
    later = [batch for batch in inside if batch.start_s > before.start_s]
    takes_all = all(s.end_offset == s.latest_offset for batch in later for s in batch.sources)
    return sum(batch.rows for batch in later) / seconds if takes_all else None


def _behind(last: Batch, counters: Counters) -> float | None:
    """Records that the last batch left at the source because it was not allowed to take them."""
    latest, end = _counted(last, "latest_offset", counters), _counted(last, "end_offset", counters)
    return None if latest is None or end is None else max(0.0, latest - end)


def _latency(inside: Sequence[Batch], before: Batch | None, waiting_s: float) -> Latency:
    through = sorted(batch.seconds for batch in inside)
    event = []
    earlier = before
    for batch in inside:
        gap_s = batch.start_s - earlier.start_s if earlier else batch.seconds
        event += [batch.seconds + share * gap_s + waiting_s for share in SAMPLES]
        earlier = batch
    event.sort()

    def at(ranked: list[float], share: float) -> float:
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))]

    return Latency(*(at(through, q) for q in (0.5, 0.95, 0.99)), *(at(event, q) for q in (0.5, 0.95, 0.99)))
