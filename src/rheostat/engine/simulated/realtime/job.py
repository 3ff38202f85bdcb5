"""Spark's real-time mode, simulated exactly in continuous time, from event to event.

All stages of a chain run at once, each with its own tasks. The source reads for `batch_s` without back pressure:
records pass on at once and wait in front of a slow stage. The batch lasts until the last stage has drained. Only then,
after a gap, does the source read the backlog. A change restarts the query after a batch. A failure restarts it at once
and repeats the batch: its state is exact, the results that it had written appear twice.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.engine.batches.flow import Flow, left_s
from rheostat.engine.batches.lateness import late_after_s, worth_waiting_s
from rheostat.engine.simulated.arrivals import TINY, Arrivals
from rheostat.engine.simulated.realtime.discipline import RealTime, Span
from rheostat.job.allocation import Allocation

BATCH_HISTORY = 512
"""Finished batches to remember: more than any window covers."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of one stage in records/s."""

    per_s: float
    shown_per_s: float
    """Capacity by its useful time: without interference and skew, which no metric shows."""
    tasks: int


Capacities = Callable[[Allocation], Sequence[Capacity]]
"""Allocation -> the capacities of all stages, the source first."""


@dataclass(slots=True)
class Work:
    """The work of one stage in one batch."""

    records: float = 0.0
    useful_s: float = 0.0
    """Useful time of all its tasks in seconds."""
    end_s: float = math.inf
    """When it has drained; for the source: when it stops reading."""


@dataclass(slots=True)
class Batch:
    """One batch."""

    start_s: float
    before: float
    """Records read before it."""
    last_read_s: float
    """Last read of the source before it."""
    running: Allocation
    stages: tuple[Work, ...]
    end_s: float = math.inf
    gap_s: float = 0.0
    """Seconds from its end to the start of the next one."""


class RealTimeJob:
    """One job: its arrivals, the records read, the queue in front of every stage, and the running batch.

    `arrive` adds the records of the next second, `run_until` simulates any part of the seconds added so far. Stages are
    in the order of the records, the source first; `selectivity` is each stage's input per record of input into the
    stage before it (source: 1).
    """

    def __init__(
        self,
        discipline: RealTime,
        selectivity: Sequence[float],
        stateful: Collection[str],
        start: Allocation,
        capacities: Capacities,
        rng: np.random.Generator,
        history: int | None = BATCH_HISTORY,
    ) -> None:
        self.discipline, self.running, self.wanted = discipline, start, start
        self.now_s = self.done = self.repeated = 0.0
        """Records of the source with a result, and those with a repeated result."""
        self.batch: Batch | None = None
        self.finished: deque[Batch] = deque(maxlen=history)
        self.queue = [0.0] * len(selectivity)
        """Records in front of every stage; 0 for the source, whose backlog is at the broker."""
        self.work = tuple(Work() for _ in selectivity)
        """Records and useful time of every stage since the start."""
        self.up, self.recovering = True, False
        """Whether the query runs; whether it has finished no batch since a failure."""
        self.started_s = self.stopped_s = 0.0
        self.downtime_s: float | None = None
        self.slot_s = self.up_s = self.changing_s = 0.0
        """Seconds of all slots, in which the query ran, and in which it was down for a change, since the start."""
        self.late_s = self.late_inside_s = 0.0
        """Longest wait of a record since its arrival, and inside a batch, since `reset_lateness`."""
        self._selectivity, self._stateful, self._rng = tuple(selectivity), frozenset(stateful), rng
        self._per_read = [math.prod(selectivity[: place + 1]) for place in range(len(selectivity))]
        self._capacities, self._capacity = capacities, capacities(start)
        self._arrivals, self._read = Arrivals(), 0.0
        self._target, self._next_start_s, self._interrupt_s = start, 0.0, math.inf
        self._last_read_s = 0.0
        """Last read of the source."""
        self._changing = False
        """Whether the query is down for a change."""

    @property
    def backlog(self) -> float:
        """Records without a result."""
        return max(0.0, self._arrivals.count_by(self.now_s, self.done) - self.done)

    @property
    def lag_s(self) -> float:
        """Age of the oldest record without a result."""
        waits = self.backlog > TINY * max(1.0, self.done)
        return max(0.0, self.now_s - self._arrivals.oldest_s(self.done)) if waits else 0.0

    def arrive(self, records: float) -> None:
        """Add the records of the next second; they arrive evenly."""
        self._arrivals.add(records)
        self._arrivals.forget(self.done)

    def reset_lateness(self) -> None:
        """Start a new measurement of the longest wait."""
        self.late_s = self.late_inside_s = 0.0

    def set_capacities(self, capacities: Capacities) -> None:
        """Continue with other capacities."""
        self._capacities = capacities
        self._capacity = capacities(self.running)

    def request(self, target: Allocation) -> None:
        """Request an allocation: the query restarts after the running batch, or at once between two batches."""
        self.wanted = target
        elapsed_s = self.now_s - self.batch.start_s if self.batch is not None else 0.0
        least_s = self.discipline.boundary_s
        wait_s = worth_waiting_s(elapsed_s, least_s, self.running.tasks, target.tasks, self._left_s(elapsed_s))
        self._interrupt_s = self.now_s + wait_s
        if self.up and self.batch is None and target != self.running:
            self._change()

    def flow(self) -> Flow | None:
        """Return the rows of the running batch so far."""
        if self.batch is None:
            return None
        done = [work.records for work in self.batch.stages]
        return Flow(tuple(rows + queue for rows, queue in zip(done, self.queue, strict=True)), done[-1])

    def _left_s(self, elapsed_s: float) -> float | None:
        """Return the rest of the running batch, if it takes longer than a batch on time."""
        now, batch_s = self.flow(), self.discipline.batch_s
        if now is None:
            return None
        usual = Flow(tuple(self._per_read), self._per_read[-1])
        rest_s = left_s(now, usual, self._arrivals.per_s(self.now_s - 1.0), elapsed_s, batch_s)
        return rest_s if elapsed_s + rest_s > late_after_s(batch_s) else None

    def kill(self) -> None:
        """Kill an executor: the query fails now and restarts after `failure_s`."""
        restart_s = self.now_s + self._draw(self.discipline.failure_s)
        if self.up:
            self._target, self._next_start_s = self.running, restart_s
            self._stop()
        self._next_start_s = max(self._next_start_s, restart_s)
        self.recovering = True

    def run_until(self, end_s: float) -> None:
        """Simulate up to this moment, for which arrivals must be known."""
        while (moment := self._next_s()) <= end_s:
            self._advance(moment)
            self._process_event()
        self._advance(end_s)

    # -- from event to event ------------------------------------------------------------------------------------

    def _next_s(self) -> float:
        """Return the next event: a start, the end of reading, an empty queue, or the interruption of the batch."""
        if self.batch is None:
            return self._next_start_s
        moment = self._interrupt_s if self.wanted != self.running else math.inf
        inflow = 0.0
        if self._reading:
            waiting, inflow = self._waiting(self.now_s), self._arrivals.per_s(self.now_s)
            moment = min(moment, self.batch.start_s + self.discipline.batch_s, math.floor(self.now_s + TINY) + 1.0)
            if waiting:
                moment = min(moment, self._empty_s(waiting, self._capacity[0].per_s, inflow))
                inflow = self._capacity[0].per_s
            inflow = min(inflow, self._capacity[0].per_s)
        for place in range(1, len(self.queue)):
            inflow *= self._selectivity[place]
            capacity_per_s = self._capacity[place].per_s
            if self.queue[place]:
                moment = min(moment, self._empty_s(self.queue[place], capacity_per_s, inflow))
                inflow = capacity_per_s
            inflow = min(inflow, capacity_per_s)
        return max(moment, self.now_s)

    def _empty_s(self, queue: float, capacity_per_s: float, inflow: float) -> float:
        return self.now_s + max(queue / (capacity_per_s - inflow), TINY) if capacity_per_s > inflow else math.inf

    def _advance(self, moment: float) -> None:
        """Move records until a moment, before which no queue becomes empty."""
        seconds = moment - self.now_s
        self.slot_s += seconds * self.running.slots
        self.up_s += seconds if self.up else 0.0
        self.changing_s += seconds if self._changing else 0.0
        if self.batch is not None:
            self._flow(self.batch, moment, seconds)
        self.now_s = moment
        lag_s = self.lag_s
        self.late_s = max(self.late_s, lag_s)
        if self.batch is not None:
            self.late_inside_s = max(self.late_inside_s, min(lag_s, moment - self.batch.start_s))

    def _flow(self, batch: Batch, moment: float, seconds: float) -> None:
        inflow, waiting = 0.0, 0.0
        for place, capacity in enumerate(self._capacity):
            if place:
                present = self.queue[place] + inflow * self._selectivity[place]
            else:
                present = self._waiting(moment) if self._reading else 0.0
            moved = min(present, capacity.per_s * seconds)
            if present - moved <= TINY * max(1.0, present):
                moved = present
            if place:
                self.queue[place] = present - moved
                waiting += self.queue[place] / self._per_read[place] if self._per_read[place] else 0.0
            else:
                self._read += moved
            for work in (self.work[place], batch.stages[place]):
                work.records += moved
                work.useful_s += moved * capacity.tasks / capacity.shown_per_s
            inflow = moved
        self.done = max(self.done, self._read - waiting)
        self._arrivals.forget(self.done)

    def _process_event(self) -> None:
        batch = self.batch
        if batch is None:
            self._begin()
            return
        if self.now_s >= batch.start_s + self.discipline.batch_s - TINY:
            self._drain(batch)
        if batch.stages[-1].end_s <= self.now_s:
            self._end(batch)
        elif self.wanted != self.running and self.now_s >= self._interrupt_s:
            self._change()

    def _begin(self) -> None:
        """Start a batch, and before it the query if it is down."""
        if not self.up:
            self.up, self._changing, self.running, self.started_s = True, False, self._target, self.now_s
            self.downtime_s = self.now_s - self.stopped_s
            self._capacity = self._capacities(self.running)
            self._interrupt_s = self.now_s + self.discipline.boundary_s
        stages = tuple(Work() for _ in self.queue)
        self.batch = Batch(self.now_s, self._read, self._last_read_s, self.running, stages)

    def _drain(self, batch: Batch) -> None:
        """Mark the stages that have finished: their queue is empty and the stages before them have finished."""
        for place, work in enumerate(batch.stages):
            if self.queue[place]:
                return
            work.end_s = min(work.end_s, self.now_s)

    def _end(self, batch: Batch) -> None:
        batch.end_s, self.batch, self._last_read_s = self.now_s, None, batch.stages[0].end_s
        self.finished.append(batch)
        self.recovering = False
        if self.wanted != self.running:
            self._change()
        else:
            batch.gap_s = self._draw(self.discipline.gap_s)
            self._next_start_s = self.now_s + batch.gap_s

    def _change(self) -> None:
        """Stop the query, to start it again with the requested allocation."""
        before, self._target, self._changing = self.running, self.wanted, True
        changed = {name for name, tasks in self.wanted.tasks.items() if tasks != before.tasks[name]}
        stateful = not changed.isdisjoint(self._stateful)
        self._next_start_s = self.now_s + self.discipline.change_s(stateful, self._draw)
        self._stop()

    def _stop(self) -> None:
        """Stop the query; a running batch is interrupted and will be repeated."""
        self.up, self.stopped_s = False, self.now_s
        if self.batch is not None:
            # The last stage writes the results of this batch again.
            inside = sum(q / per for q, per in zip(self.queue, self._per_read, strict=True) if per)
            self.repeated += max(0.0, self._read - inside - self.batch.before)
            self._read, self._last_read_s = self.batch.before, self.batch.last_read_s
            self.batch = None
            self.queue = [0.0] * len(self.queue)

    # -- parts --------------------------------------------------------------------------------------------------

    @property
    def _reading(self) -> bool:
        return self.batch is not None and self.now_s < self.batch.start_s + self.discipline.batch_s - TINY

    def _waiting(self, moment: float) -> float:
        """Return the records that wait at the source at a moment, without rounding errors."""
        arrived = self._arrivals.count_by(moment, self.done)
        return arrived - self._read if arrived - self._read > TINY * max(1.0, arrived) else 0.0

    def _draw(self, span: Span) -> float:
        return float(self._rng.uniform(*span))
