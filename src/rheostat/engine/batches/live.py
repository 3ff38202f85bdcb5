"""Completes a micro-batch query's window with what is seen now: the ends of its sources, and its running batch. Pure.

Finished batches say what a slot can do, but they are as old as the last progress event. The load, the backlog and the
lag come from the sources themselves. A batch that lasts longer than usual, or that is the first of its size, counts
with the tasks that it has finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rheostat.engine.batches.arrivals import FRESH_S, ArrivalCount, arrival_moment_s, present_load
from rheostat.engine.batches.present import Waiting
from rheostat.engine.batches.window import BACK_TO_BACK, BEHIND, QueryView, QueryWindow, read_query
from rheostat.engine.batches.work import Work
from rheostat.job.observation import Latency


@dataclass(frozen=True, slots=True)
class Live:
    """A query at this moment."""

    arrived: Sequence[ArrivalCount] = ()
    """Counts of all its sources together, oldest first."""
    committed: float | None = None
    """Records of its finished batches, counted as `arrived`."""
    batch_s: float | None = None
    """Start of the running batch; None between two batches."""
    work: Work | None = None
    """How far the running batch has come."""
    settled: Work | None = None
    """The last work that is settled: that of the running batch, or of one before it."""
    problem: str = ""
    """Why the sources did not answer."""
    waiting: Waiting | None = None
    """Files, bytes and versions that no batch has taken; None where no source has files."""


def read_live(view: QueryView, live: Live) -> tuple[QueryWindow, str | None]:
    """Return one query's part of the window, and the reason if no decision may rest on it."""
    part, problem = read_query(view)
    work, settled = live.work, live.settled
    part = part or _nothing_yet(view)
    if not part.settled and settled is not None and settled.start_s >= view.changed_s:
        part, problem = _first_of_its_size(settled, part), None
    elif part.settled and part.overdue_s > 0 and work is not None and work.settled:
        part = _with_running(view, work, part)
    part = _with_sources(view, live, part if live.waiting is None else replace(part, waiting=live.waiting))
    if part.former_slots is not None and part.rate_per_s is not None and view.now_s - (part.measured_s or 0) < FRESH_S:
        problem = None  # the load is known, and what a slot does was known a moment ago
    return part, problem if problem is None or not live.problem else live.problem


def _nothing_yet(view: QueryView) -> QueryWindow:
    """Return the window of a query that has finished no batch since it was followed."""
    return QueryWindow(
        start_s=view.now_s,
        end_s=view.now_s,
        batches=0,
        records=0.0,
        rate_per_s=None,
        backlog=None,
        lag_s=0.0,
        overdue_s=0.0,
        overloaded=False,
        latency=None,
        busy_s=0.0,
        cpu_s=0.0,
        gc_s=0.0,
        spilled_bytes=0,
        most_tasks=0,
        state_bytes=0,
        probes={},
        stages=(),
        bottlenecks=(),
        settled=False,
    )


def _first_of_its_size(work: Work, part: QueryWindow) -> QueryWindow:
    """Return the window of a batch that ran during the change or still runs: no other one of this size has finished."""
    return replace(
        part,
        start_s=work.start_s,
        end_s=work.at_s,
        batches=0,
        records=work.records,
        busy_s=work.busy_s,
        most_tasks=work.tasks,
        settled=True,
        former_slots=None,
    )


def _with_running(view: QueryView, work: Work, part: QueryWindow) -> QueryWindow:
    """Add a batch that lasts longer than usual to the finished ones."""
    running_s, latency = view.now_s - work.start_s, part.latency
    if latency is not None:
        latency = Latency(
            latency.p50_s,
            max(latency.p95_s, running_s),
            max(latency.p99_s, running_s),
            latency.event_p50_s,
            max(latency.event_p95_s, running_s),
            max(latency.event_p99_s, running_s),
        )
    return replace(
        part,
        end_s=view.now_s,
        records=part.records + work.records,
        busy_s=part.busy_s + work.busy_s,
        most_tasks=max(part.most_tasks, work.tasks),
        latency=latency,
    )


def _with_sources(view: QueryView, live: Live, part: QueryWindow) -> QueryWindow:
    """Replace load, backlog and lag by what the sources say now."""
    arrived, done = live.arrived, 0.0 if live.work is None else live.work.done
    if not arrived or view.now_s - arrived[-1].at_s > FRESH_S:
        # By the clock, or by reports: what arrived since the last finished batch.
        return part if part.backlog is None else replace(part, backlog=max(0.0, part.backlog - done))
    load, newest = present_load(arrived, view.window_s), arrived[-1]
    rate = load.rate_per_s
    backlog = lag_s = None
    if live.committed is not None:
        backlog = max(0.0, newest.records - live.committed - done)
        lag_s = _lag_s(arrived, live.committed, view.now_s, part.lag_s)
    if rate is None:
        rate = part.rate_per_s
    seconds = max(part.end_s - part.start_s, 1e-3)
    running_s = 0.0 if live.batch_s is None else max(0.0, part.end_s - max(live.batch_s, part.start_s))
    overloaded = part.overloaded
    if not part.batches and rate is not None and part.settled:
        overloaded = running_s > BACK_TO_BACK * seconds and rate > BEHIND * part.records / seconds
    return replace(
        part,
        rate_per_s=rate,
        backlog=part.backlog if backlog is None else backlog,
        lag_s=part.lag_s if lag_s is None else lag_s,
        overloaded=overloaded,
        measured_s=min(newest.at_s, view.now_s),  # the sources answer while the window is read
        settles_in_s=load.settles_in_s,
    )


def _lag_s(arrived: Sequence[ArrivalCount], committed: float, now_s: float, reported_s: float) -> float:
    """Return the age of the oldest record without a result; where it arrived before the first count, by the reports."""
    if committed >= arrived[-1].records:
        return 0.0
    moment_s = arrival_moment_s(arrived, committed)
    return max(reported_s, now_s - arrived[0].at_s) if moment_s is None else max(0.0, now_s - moment_s)
