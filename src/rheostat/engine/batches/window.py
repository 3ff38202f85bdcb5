"""Reads one window of a micro-batch query from its finished batches and their stages. Pure.

The stages of a micro-batch use the same slots one after another, so the job is one operator. Its useful time is the
busy time of its tasks; the true rate of a slot is records per busy second. Slots are idle during planning, commits and
the wait for the next trigger: that time counts in a batch's `seconds`, not in its useful time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from operator import attrgetter
from statistics import median, mode

from rheostat.engine.batches.arrivals import ArrivalCount, present_load
from rheostat.engine.batches.batch_time import Sample, fit_batches
from rheostat.engine.batches.bottleneck import bottlenecks, gc_share
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.batches.present import Waiting
from rheostat.engine.batches.probe import Probe, read_probe
from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.batches.selection import window_start_s
from rheostat.engine.batches.stage import Stage, by_batch, max_concurrent_tasks
from rheostat.job.observation import BatchTime, Latency

GAP_BATCHES = 12
"""Batches in the median idle gap."""
BACK_TO_BACK = 0.9
"""Share of the time with an active trigger above which batches count as back to back."""
BEHIND = 1.02
"""Ratio of arrived to processed records above which the query is overloaded; less is jitter at batch borders."""
RECENT_S = 60.0
"""Seconds back from now in which a jump of a load is looked for, where the clock knows the records."""
NO_LATENCY = Latency(0, 0, 0, 0, 0, 0)
ARRIVAL_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares of the gap between two batch starts at which latency is sampled, as if records arrived evenly."""

Counters = Callable[[str, int, str], OffsetCounter]
"""(query, index of the source, its description) -> its counter."""
SlotsDuring = Callable[[float, float], int | None]
"""(start, end) -> the number of slots in between; None when it changed."""


@dataclass(frozen=True, slots=True)
class StageTotal:
    """One stage of a query over the batches of a window."""

    query: str
    records: float
    """Rows that its tasks have read."""
    busy_s: float


@dataclass(frozen=True, slots=True)
class QueryWindow:
    """One query's part of a window."""

    start_s: float
    end_s: float
    batches: int
    records: float
    """Records processed by the window's batches."""
    rate_per_s: float | None
    """Input rate: the distance that the latest offset moved per second."""
    backlog: float | None
    """Records without a result, those of a running batch included."""
    lag_s: float
    """Age of the oldest record without a result."""
    overdue_s: float
    """Seconds by which the running batch exceeds the usual batch time."""
    overloaded: bool
    latency: Latency | None
    busy_s: float
    """Busy time of all tasks. Without stages (`has_stages`) it comes from the fitted line, or is 0."""
    cpu_s: float
    gc_s: float
    spilled_bytes: int
    most_tasks: int
    """Most concurrent tasks: more slots than that stay idle."""
    state_bytes: int
    probes: Mapping[str, Probe]
    """Named operator -> the counts of its probe."""
    stages: tuple[StageTotal, ...]
    """Its stages, in their order."""
    bottlenecks: tuple[str, ...]
    """Causes of slow batches that more executors do not cure."""
    has_stages: bool = True
    """Whether stages were read: without them CPU time, garbage collection and tasks are unknown."""
    gc_share: float | None = None
    batch_time: BatchTime | None = None
    settled: bool = True
    """False when the batches ran at another size: then only input rate, backlog and lag are of the present."""
    former_slots: int | None = None
    """That other size, if all of these batches ran at it; None where their busy time is unknown, or if `settled`."""
    measured_s: float | None = None
    """When input rate and backlog were measured; None for the end of the window."""
    settles_in_s: float = 0.0
    """Seconds until a load that has just jumped has been seen for long enough; 0 if it is steady."""
    waiting: Waiting | None = None
    """Files, bytes and versions that no batch has taken; None where no source has files."""


@dataclass(frozen=True, slots=True)
class QueryView:
    """One query at one moment: its finished batches, sorted by start, and its present state."""

    batches: Sequence[Batch]
    stages: Sequence[Stage]
    counters: Counters
    now_s: float
    window_s: float
    changed_s: float
    """End of the last change of size: batches that began earlier ran at another size."""
    last_idle_s: float
    """Last moment at which the query was idle for certain."""
    active: bool
    """Whether a trigger is active."""
    slots: int
    slots_during: SlotsDuring

    @property
    def idle(self) -> bool:
        """Whether the last trigger had no input and the query waits for the next one."""
        return self.last_idle_s >= self.now_s


def read_query(view: QueryView) -> tuple[QueryWindow | None, str | None]:
    """Return one query's part of the window, and the reason if no decision may rest on it."""
    since_change_s = view.now_s - max(view.changed_s, view.last_idle_s)
    since_s = window_start_s(
        view.batches,
        view.now_s,
        view.window_s,
        view.changed_s,
        last_idle_s=view.last_idle_s,
        overdue=since_change_s > view.window_s,
    )
    window = query_window(
        view.batches,
        view.stages,
        view.counters,
        view.now_s,
        since_s,
        view.active,
        view.slots,
        view.window_s,
        view.last_idle_s,
        view.slots_during,
    )
    if isinstance(window, QueryWindow):
        return window, None
    problem = window
    if view.idle and view.now_s - view.changed_s >= view.window_s:
        # A query without input for a whole window is a valid window, too.
        return idle_window(view.now_s, view.window_s), None
    return unsettled_window(view), problem


def idle_window(now_s: float, window_s: float) -> QueryWindow:
    """Return the window of a query that had no input."""
    return QueryWindow(
        now_s - window_s, now_s, 0, 0.0, 0.0, 0.0, 0.0, 0.0, False, NO_LATENCY, 0.0, 0.0, 0.0, 0, 0, 0, {}, (), ()
    )


def query_window(
    batches: Sequence[Batch],
    stages: Sequence[Stage],
    counters: Counters,
    now_s: float,
    since_s: float,
    active: bool,
    slots: int = 1,
    window_s: float = 30.0,
    last_idle_s: float = -math.inf,
    slots_during: SlotsDuring | None = None,
) -> QueryWindow | str:
    """Return the window of the batches that began at `since_s` or later, or the reason why there is none.

    `last_idle_s` is the last moment at which the query was idle: no input was waiting then.
    """
    inside = [batch for batch in batches if batch.start_s >= since_s]
    if not inside:
        return "no batch has finished in this window"
    first, last = inside[0], inside[-1]
    before = next((batch for batch in reversed(batches) if batch.start_s < first.start_s), None)
    numbers = {(batch.run_id, batch.number) for batch in inside}
    work = [stage for stage in stages if (stage.run_id, stage.batch) in numbers]
    records = _processed_records(inside, counters)
    fitted = _fit_batch_time(batches, counters, slots_during)
    share_with_stages = _share_with_stages(inside, work)
    busy_s = sum(stage.busy_s for stage in work)
    if not share_with_stages:
        busy_s = fitted.slot_s_per_record * records if fitted is not None else 0.0
    span_s = max(last.end_s - first.start_s, 1e-3)
    since_last_s = max(0.0, now_s - last.start_s)
    counts, measured_s = _counts_by_clock(last, counters, since_last_s, window_s), now_s
    load = present_load(counts, window_s)
    rate = load.rate_per_s
    if rate is None:
        rate = _rate_by_reports(before or first, inside, counters, last_idle_s)
        measured_s = max(last.start_s, last_idle_s)
    unreported_s = max(0.0, now_s - max(last.start_s, last_idle_s))
    waiting: float | None = 0.0
    if unreported_s:
        waiting = _waiting_records(last, counters, since_last_s, unreported_s, rate, window_s)
    typical_s = sorted(batch.seconds for batch in inside)[len(inside) // 2]
    # The running batch began with its trigger, after the usual idle gap, not at the end of the last batch.
    begun_s = max(last.end_s + _gap_s(batches), last_idle_s)
    overdue_s = max(0.0, now_s - begun_s - max(typical_s, 1.0)) if active else 0.0
    busy_share = sum(batch.seconds for batch in inside) / span_s
    late = rate is not None and busy_share > BACK_TO_BACK and rate > BEHIND * records / span_s
    left = _records_left(last, counters)
    left_s = left / rate if left and rate else 0.0
    scale = 1 / share_with_stages if share_with_stages else 0.0
    return QueryWindow(
        start_s=first.start_s,
        end_s=last.end_s,
        batches=len(inside),
        records=records,
        rate_per_s=rate,
        backlog=waiting,
        lag_s=unreported_s + left_s if unreported_s else 0.0,
        overdue_s=overdue_s,
        overloaded=late or overdue_s > typical_s,
        latency=_latency(inside, before, left_s),
        busy_s=busy_s * (scale or 1.0),
        cpu_s=sum(stage.cpu_s for stage in work) * scale,
        gc_s=sum(stage.gc_s for stage in work) * scale,
        spilled_bytes=sum(stage.spilled_bytes for stage in work),
        most_tasks=max(max_concurrent_tasks(work).values(), default=0),
        state_bytes=last.state_bytes,
        probes=_sum_probes(inside),
        stages=_sum_stages(inside, work),
        bottlenecks=bottlenecks(inside, work, slots, fitted),
        has_stages=bool(share_with_stages),
        gc_share=gc_share(work),
        batch_time=fitted,
        measured_s=measured_s,
        settles_in_s=load.settles_in_s,
    )


def unsettled_window(view: QueryView) -> QueryWindow | None:
    """Return the window while no batch of the present size has finished.

    Arrivals do not depend on the size. Busy time does: it is that of the last batches of one known size
    (`former_slots`), or left out.
    """
    now_s, window_s, batches = view.now_s, view.window_s, view.batches
    ended = [batch for batch in batches if batch.end_s > now_s - window_s]
    shown = ended or list(batches[-1:])
    window = _window_of(view, batches, (), shown)
    if window is None:
        return None
    rate, backlog, reported_s = window.rate_per_s, window.backlog, max(shown[-1].start_s, view.last_idle_s)
    if _arrived_records(shown[-1], view.counters, 0.0) is None and now_s - reported_s > window_s:
        # A report older than a window does not describe the present.
        rate = backlog = None
    former_slots, former = _former_window(view, ended)
    return replace(
        former or replace(window, records=0.0, busy_s=0.0, probes={}, stages=()),
        rate_per_s=rate,
        backlog=backlog,
        lag_s=window.lag_s,
        overdue_s=window.overdue_s,
        overloaded=False,
        latency=window.latency if ended else None,
        bottlenecks=(),
        batch_time=None,
        settled=False,
        former_slots=former_slots,
        measured_s=window.measured_s,
        settles_in_s=window.settles_in_s,
    )


def _former_window(view: QueryView, ended: Sequence[Batch]) -> tuple[int | None, QueryWindow | None]:
    """Return the size of the last of these batches whose size is known, and the window of those before it, too."""
    sized = [(batch, view.slots_during(batch.start_s, batch.end_s)) for batch in ended]
    while sized and sized[-1][1] is None:
        sized.pop()
    if not sized:
        return None, None
    former_slots = sized[-1][1]
    alike = [batch for batch, _ in takewhile(lambda pair: pair[1] == former_slots, reversed(sized))][::-1]
    before = [batch for batch in view.batches if batch.start_s <= alike[-1].start_s]
    return former_slots, _window_of(view, before, view.stages, alike)


def _window_of(
    view: QueryView, batches: Sequence[Batch], stages: Sequence[Stage], shown: Sequence[Batch]
) -> QueryWindow | None:
    """Return the window of the shown batches, which are the last of these; None if there are none."""
    if not shown:
        return None
    window = query_window(
        batches,
        stages,
        view.counters,
        view.now_s,
        shown[0].start_s,
        view.active,
        window_s=view.window_s,
        last_idle_s=view.last_idle_s,
    )
    return window if isinstance(window, QueryWindow) else None


def _share_with_stages(inside: Sequence[Batch], work: Sequence[Stage]) -> float:
    """Return the share of the records in batches with stages; 1 for batches without records."""
    with_stages = {(stage.run_id, stage.batch) for stage in work}
    rows = sum(batch.rows for batch in inside)
    return sum(batch.rows for batch in inside if (batch.run_id, batch.number) in with_stages) / rows if rows else 1.0


def _fit_batch_time(batches: Sequence[Batch], counters: Counters, slots_during: SlotsDuring | None) -> BatchTime | None:
    """Fit the batch time to batches with a constant number of slots."""
    if slots_during is None:
        return None
    sized = ((batch, slots_during(batch.start_s, batch.end_s)) for batch in batches)
    return fit_batches(
        Sample(_processed_records([batch], counters), slots, batch.seconds) for batch, slots in sized if slots
    )


def _sum_probes(inside: Sequence[Batch]) -> dict[str, Probe]:
    """Sum the counts of the probes over all batches."""
    sums: dict[str, Probe] = {}
    for batch in inside:
        for name, counted in batch.observed.items():
            probe = read_probe(counted)
            if probe is None:
                continue
            so_far = sums.get(name, Probe(0, 0.0))
            timed = so_far.useful_s is not None and probe.useful_s is not None
            useful_s = (so_far.useful_s or 0.0) + (probe.useful_s or 0.0) if timed else None
            sums[name] = Probe(so_far.records + probe.records, useful_s)
    return sums


def _sum_stages(inside: Sequence[Batch], work: Sequence[Stage]) -> tuple[StageTotal, ...]:
    """Sum up the stages of all batches, by their places; batches of another shape than most are left out.

    The only stage of a query is the query itself.
    """
    batches = list(by_batch(work).values())
    usual = mode(map(len, batches)) if batches else 0
    if usual < 2:
        return ()
    places = zip(*(sorted(s, key=attrgetter("number")) for s in batches if len(s) == usual), strict=True)
    return tuple(
        StageTotal(
            inside[-1].query, float(sum(stage.records_in for stage in stages)), sum(stage.busy_s for stage in stages)
        )
        for stages in places
    )


def _sum_over_sources(
    batch: Batch, count: Callable[[OffsetCounter, SourceProgress], float | None], counters: Counters
) -> float | None:
    """Sum a count over all sources of a batch; None when one is unknown."""
    total = 0.0
    for index, source in enumerate(batch.sources):
        records = count(counters(batch.query, index, source.description), source)
        if records is None:
            return None
        total += records
    return total


def _records_before(batch: Batch, offset: str, counters: Counters) -> float | None:
    """Return the records before one of the offsets of a batch."""
    return _sum_over_sources(batch, lambda counter, source: counter.records(getattr(source, offset)), counters)


def _available_records(batch: Batch, counters: Counters) -> float | None:
    """Return the records that existed when the batch began: by the latest offset, else by the records left."""

    def count(counter: OffsetCounter, source: SourceProgress) -> float | None:
        latest = counter.records(source.latest_offset)
        if latest is not None:
            return latest
        done = counter.records(source.end_offset)
        left = 0.0 if source.took_all else source.offsets_left
        return None if done is None or left is None else done + left

    return _sum_over_sources(batch, count, counters)


def _arrived_records(last: Batch, counters: Counters, seconds: float) -> float | None:
    """Return the records that exist `seconds` after the last trigger, for sources with a fixed rate."""
    return _sum_over_sources(last, lambda counter, source: counter.ahead(source.latest_offset, seconds), counters)


def _processed_records(inside: Sequence[Batch], counters: Counters) -> float:
    start = _records_before(inside[0], "start_offset", counters)
    end = _records_before(inside[-1], "end_offset", counters)
    rows = float(sum(batch.rows for batch in inside))
    return rows if start is None or end is None or end < start else end - start


def _counts_by_clock(last: Batch, counters: Counters, since_last_s: float, window_s: float) -> list[ArrivalCount]:
    """Return recent counts of sources whose records are known by the clock, moments relative to now; [] of others."""
    recent = range(int(min(window_s, RECENT_S)), -1, -1)
    ages_s = [*([window_s] if window_s > recent[0] else []), *map(float, recent)]
    counts = [(-age_s, _arrived_records(last, counters, since_last_s - age_s)) for age_s in ages_s]
    known = [ArrivalCount(at_s, records) for at_s, records in counts if records is not None]
    return known if len(known) == len(counts) else []


def _waiting_records(
    last: Batch, counters: Counters, since_last_s: float, unreported_s: float, rate: float | None, most_s: float
) -> float | None:
    """Return the records without a result: by the clock, or the records left plus the arrivals since at this rate.

    A rate that was reported more than `most_s` ago says nothing about the arrivals since.
    """
    arrived, done = _arrived_records(last, counters, since_last_s), _records_before(last, "end_offset", counters)
    if arrived is not None and done is not None:
        return max(0.0, arrived - done)
    if rate is None or unreported_s > most_s:
        return None
    return (_records_left(last, counters) or 0.0) + rate * unreported_s


def _rate_by_reports(before: Batch, inside: Sequence[Batch], counters: Counters, last_idle_s: float) -> float | None:
    """Return the input rate from the latest offsets; for sources that take everything, from the rows they took."""
    last = inside[-1]
    if last.start_s <= before.start_s:
        return None
    # Idle before the first of these batches: all their input arrived since then. Idle after the last: none did since.
    idle_before = before.start_s < last_idle_s < inside[0].start_s
    seconds = max(last.start_s, last_idle_s) - (last_idle_s if idle_before else before.start_s)
    start, end = _available_records(before, counters), _available_records(last, counters)
    if start is not None and end is not None:
        return max(0.0, end - start) / seconds
    later = [batch for batch in inside if batch.start_s > before.start_s]
    takes_all = all(source.took_all for batch in later for source in batch.sources)
    return sum(batch.rows for batch in later) / seconds if takes_all else None


def _gap_s(batches: Sequence[Batch]) -> float:
    """Return the median idle gap between two batches."""
    gaps = [max(0.0, later.start_s - sooner.end_s) for sooner, later in pairwise(batches[-GAP_BATCHES:])]
    return median(gaps) if gaps else 0.0


def _records_left(last: Batch, counters: Counters) -> float | None:
    """Return the records that the last batch left at the source because of its limit per trigger."""
    available, end = _available_records(last, counters), _records_before(last, "end_offset", counters)
    return None if available is None or end is None else max(0.0, available - end)


def _latency(inside: Sequence[Batch], before: Batch | None, waiting_s: float) -> Latency:
    processing = sorted(batch.seconds for batch in inside)
    event = []
    earlier = before
    for batch in inside:
        gap_s = batch.start_s - earlier.start_s if earlier else batch.seconds
        event += [batch.seconds + share * gap_s + waiting_s for share in ARRIVAL_SHARES]
        earlier = batch
    event.sort()

    def at(ranked: list[float], share: float) -> float:
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))]

    return Latency(*(at(processing, q) for q in (0.5, 0.95, 0.99)), *(at(event, q) for q in (0.5, 0.95, 0.99)))
