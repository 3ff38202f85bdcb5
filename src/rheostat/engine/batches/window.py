"""From finished batches and their stages to one window of the job. Pure.

Micro-batch stages share the slots one after another, so the job is one operator. Its useful time is the busy time
of its tasks; what a slot can do is records per busy second. Planning, commits and waiting for the next trigger are
time in which slots idle: they are in a batch's `seconds`, not in its useful time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from rheostat.engine.batches.batch_time import Sample, fit_batches
from rheostat.engine.batches.bottleneck import bottlenecks, gc_share
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.batches.probe import Probe, read_probe
from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.batches.selection import window_start_s
from rheostat.engine.batches.stage import Stage, widest
from rheostat.job.observation import BatchTime, Latency

GAPS = 12
"""Of so many batches the rest between them is taken."""
BACK_TO_BACK = 0.9
"""Share of the time in which triggers are active from which on there is no idle gap."""
BEHIND = 1.02
"""Arrivals beyond this multiple of what was processed are overload, not the jitter of batch borders."""
CALM = Latency(0, 0, 0, 0, 0, 0)
SAMPLES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Records of a batch arrived evenly since the batch before: latency is sampled at these shares of that span."""

Counters = Callable[[str, int, str], OffsetCounter]
"""(query, index of the source, its description) -> its counter."""
SlotsDuring = Callable[[float, float], int | None]
"""(start, end) -> the slots that there were all the while; None when they changed."""


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
    latency: Latency | None
    busy_s: float
    """Where no stage was seen (`seen`), what the fitted line makes of the records; 0 where there is no line either."""
    cpu_s: float
    gc_s: float
    spilled_bytes: int
    most_tasks: int
    """Tasks that there were at a time: more slots than that cannot be used."""
    state_bytes: int
    probes: Mapping[str, Probe]
    """Named operators, by what their probes counted."""
    bottlenecks: tuple[str, ...]
    """What slows it down and is not a matter of size."""
    seen: bool = True
    """Whether stages were seen: without them CPU, garbage and tasks are not known."""
    gc_share: float | None = None
    batch_time: BatchTime | None = None
    settled: bool = True
    """False when only what came and what waits is told: its batches ran at another size."""


@dataclass(frozen=True, slots=True)
class QueryView:
    """What is known of one query at a moment: its finished batches, oldest first, and what it does now."""

    batches: Sequence[Batch]
    stages: Sequence[Stage]
    counters: Counters
    now_s: float
    window_s: float
    changed_s: float
    """End of the last change of size: batches that began earlier ran at another size."""
    quiet_s: float
    """Last moment at which the query is known to have rested."""
    active: bool
    """Whether a trigger is active."""
    slots: int
    slots_during: SlotsDuring

    @property
    def resting(self) -> bool:
        """Whether the last trigger found nothing new, and the query waits for the next."""
        return self.quiet_s >= self.now_s


def read_query(view: QueryView) -> tuple[QueryWindow | None, str | None]:
    """Return one query's part of the window, and why nothing can be decided from it, where that is so."""
    calm_s = view.now_s - max(view.changed_s, view.quiet_s)
    since_s = window_start_s(
        view.batches,
        view.now_s,
        view.window_s,
        view.changed_s,
        rested_s=view.quiet_s,
        overdue=calm_s > view.window_s,
    )
    found = query_window(
        view.batches,
        view.stages,
        view.counters,
        view.now_s,
        since_s,
        view.active,
        view.slots,
        view.window_s,
        view.quiet_s,
        view.slots_during,
    )
    if isinstance(found, QueryWindow):
        return found, None
    if view.resting and view.now_s - view.changed_s >= view.window_s:
        # Nothing to do for a whole window is a window too.
        return idle_window(view.now_s, view.window_s), None
    return unsettled(view.batches, view.counters, view.now_s, view.active, view.window_s, view.quiet_s), found


def idle_window(now_s: float, window_s: float) -> QueryWindow:
    """Return the window of a query that has had nothing to do for all of it."""
    return QueryWindow(now_s - window_s, now_s, 0, 0.0, 0.0, 0.0, 0.0, 0.0, False, CALM, 0.0, 0.0, 0.0, 0, 0, 0, {}, ())


def query_window(
    batches: Sequence[Batch],
    stages: Sequence[Stage],
    counters: Counters,
    now_s: float,
    since_s: float,
    active: bool,
    slots: int = 1,
    window_s: float = 30.0,
    quiet_s: float = -math.inf,
    slots_during: SlotsDuring | None = None,
) -> QueryWindow | str:
    """Describe the batches that began after `since_s`, oldest first; or say why they cannot be described.

    `quiet_s` is the last moment at which the query is known to have rested: until then nothing new had come.
    """
    inside = [batch for batch in batches if batch.start_s >= since_s]
    if not inside:
        return "no batch has finished in this window"
    first, last = inside[0], inside[-1]
    before = next((batch for batch in reversed(batches) if batch.start_s < first.start_s), None)
    numbers = {(batch.run_id, batch.number) for batch in inside}
    work = [stage for stage in stages if (stage.run_id, stage.batch) in numbers]
    records = _processed(inside, counters)
    fitted = _fitted(batches, counters, slots_during)
    seen = _seen(inside, work)
    busy_s = sum(stage.busy_s for stage in work)
    if not seen:
        busy_s = fitted.slot_s_per_record * records if fitted is not None else 0.0
    span_s = max(last.end_s - first.start_s, 1e-3)
    since_last_s = max(0.0, now_s - last.start_s)
    rate = _rate_by_clock(last, counters, since_last_s, window_s)
    if rate is None:
        rate = _rate_by_reports(before or first, inside, counters, quiet_s)
    untold_s = max(0.0, now_s - max(last.start_s, quiet_s))
    waiting = _waiting(last, counters, since_last_s, untold_s, rate) if untold_s else 0.0
    typical_s = sorted(batch.seconds for batch in inside)[len(inside) // 2]
    # The next batch began when its trigger came, which is when the others' did: not at the end of the last one.
    begun_s = max(last.end_s + _gap_s(batches), quiet_s)
    overdue_s = max(0.0, now_s - begun_s - max(typical_s, 1.0)) if active else 0.0
    busy_share = sum(batch.seconds for batch in inside) / span_s
    late = rate is not None and busy_share > BACK_TO_BACK and rate > BEHIND * records / span_s
    behind = _behind(last, counters)
    left_s = behind / rate if behind and rate else 0.0
    scale = 1 / seen if seen else 0.0
    return QueryWindow(
        start_s=first.start_s,
        end_s=last.end_s,
        batches=len(inside),
        records=records,
        rate_per_s=rate,
        backlog=waiting,
        lag_s=untold_s + left_s if untold_s else 0.0,
        overdue_s=overdue_s,
        overloaded=late or overdue_s > typical_s,
        latency=_latency(inside, before, left_s),
        busy_s=busy_s * (scale or 1.0),
        cpu_s=sum(stage.cpu_s for stage in work) * scale,
        gc_s=sum(stage.gc_s for stage in work) * scale,
        spilled_bytes=sum(stage.spilled_bytes for stage in work),
        most_tasks=max(widest(work).values(), default=0),
        state_bytes=last.state_bytes,
        probes=_probes(inside),
        bottlenecks=bottlenecks(inside, work, slots, fitted),
        seen=bool(seen),
        gc_share=gc_share(work),
        batch_time=fitted,
    )


def unsettled(
    batches: Sequence[Batch],
    counters: Counters,
    now_s: float,
    active: bool,
    window_s: float,
    quiet_s: float = -math.inf,
) -> QueryWindow | None:
    """Describe what is certain while no batch of the present size has ended: what came, what waits, how late it is.

    Arrivals do not depend on the size. What a slot does and how busy it is are left out, the batches ran at another.
    """
    ended = [batch for batch in batches if batch.end_s > now_s - window_s]
    shown = ended or list(batches[-1:])
    if not shown:
        return None
    found = query_window(batches, (), counters, now_s, shown[0].start_s, active, window_s=window_s, quiet_s=quiet_s)
    if isinstance(found, str):
        return None
    rate, backlog = found.rate_per_s, found.backlog
    if _arrived(shown[-1], counters, 0.0) is None and now_s - max(shown[-1].start_s, quiet_s) > window_s:
        # What was reported a window ago says nothing about now.
        rate = backlog = None
    return replace(
        found,
        records=0.0,
        rate_per_s=rate,
        backlog=backlog,
        overloaded=False,
        latency=found.latency if ended else None,
        busy_s=0.0,
        probes={},
        bottlenecks=(),
        batch_time=None,
        settled=False,
    )


def _seen(inside: Sequence[Batch], work: Sequence[Stage]) -> float:
    """Return the share of the records whose stages were seen; where nothing was to do, all of it."""
    have = {(stage.run_id, stage.batch) for stage in work}
    rows = sum(batch.rows for batch in inside)
    return sum(batch.rows for batch in inside if (batch.run_id, batch.number) in have) / rows if rows else 1.0


def _fitted(batches: Sequence[Batch], counters: Counters, slots_during: SlotsDuring | None) -> BatchTime | None:
    """Fit the times of the batches during which the slots did not change."""
    if slots_during is None:
        return None
    sized = ((batch, slots_during(batch.start_s, batch.end_s)) for batch in batches)
    return fit_batches(Sample(_processed([batch], counters), slots, batch.seconds) for batch, slots in sized if slots)


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


def _latest(batch: Batch, counters: Counters) -> float | None:
    """Count the records that there were when the batch began: by the latest offset, or else by what was left."""

    def count(counter: OffsetCounter, source: SourceProgress) -> float | None:
        known = counter.records(source.latest_offset)
        if known is not None:
            return known
        done = counter.records(source.end_offset)
        left = 0.0 if source.took_all else source.offsets_left
        return None if done is None or left is None else done + left

    return _summed(batch, count, counters)


def _arrived(last: Batch, counters: Counters, seconds: float) -> float | None:
    """Count what had come so long after the last trigger, by sources that go by the clock."""
    return _summed(last, lambda counter, source: counter.ahead(source.latest_offset, seconds), counters)


def _processed(inside: Sequence[Batch], counters: Counters) -> float:
    start, end = _counted(inside[0], "start_offset", counters), _counted(inside[-1], "end_offset", counters)
    rows = float(sum(batch.rows for batch in inside))
    return rows if start is None or end is None or end < start else end - start


def _rate_by_clock(last: Batch, counters: Counters, since_last_s: float, window_s: float) -> float | None:
    """What came during the window that ends now, where the sources can tell without a report."""
    now, then = (_arrived(last, counters, since_last_s - ago) for ago in (0.0, window_s))
    return None if now is None or then is None else max(0.0, now - then) / window_s


def _waiting(last: Batch, counters: Counters, since_last_s: float, untold_s: float, rate: float | None) -> float | None:
    """Records that have come and have no result: by the clock, or what was left and what the rate has added since."""
    arrived, done = _arrived(last, counters, since_last_s), _counted(last, "end_offset", counters)
    if arrived is not None and done is not None:
        return max(0.0, arrived - done)
    return None if rate is None else (_behind(last, counters) or 0.0) + rate * untold_s


def _rate_by_reports(before: Batch, inside: Sequence[Batch], counters: Counters, quiet_s: float) -> float | None:
    """How far the latest offset moved from a trigger on; for sources that take all there is, what they took."""
    last = inside[-1]
    if last.start_s <= before.start_s:
        return None
    # A rest before the first of these batches: what they brought has come since. One after the last: nothing has.
    rested = before.start_s < quiet_s < inside[0].start_s
    seconds = max(last.start_s, quiet_s) - (quiet_s if rested else before.start_s)
    start, end = _latest(before, counters), _latest(last, counters)
    if start is not None and end is not None:
        return max(0.0, end - start) / seconds
    later = [batch for batch in inside if batch.start_s > before.start_s]
    takes_all = all(source.took_all for batch in later for source in batch.sources)
    return sum(batch.rows for batch in later) / seconds if takes_all else None


def _gap_s(batches: Sequence[Batch]) -> float:
    """Return how long a query usually rests between two batches."""
    gaps = [max(0.0, later.start_s - sooner.end_s) for sooner, later in pairwise(batches[-GAPS:])]
    return median(gaps) if gaps else 0.0


def _behind(last: Batch, counters: Counters) -> float | None:
    """Records that the last batch left at the source because it was not allowed to take them."""
    latest, end = _latest(last, counters), _counted(last, "end_offset", counters)
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
