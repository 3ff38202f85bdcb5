"""The real-time discipline, as Spark's real-time mode has it: exact in continuous time, from event to event.

All stages of a chain run at once, each with tasks of its own. The source reads whatever comes for `batch_s`. Nothing
holds it back: records pass on at once and wait in front of a slow stage. The batch lasts until the last stage has
drained; only then, after a gap, does the source read what has piled up meanwhile. A change stops the query after a
batch and starts it again. A failure does so at once, and the batch is repeated: its state is exact, what it had put
out before comes out twice.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.engine.batches.lateness import worth_waiting_s
from rheostat.engine.simulated.arrivals import TINY, Arrivals
from rheostat.engine.simulated.realtime.discipline import RealTime, Span
from rheostat.job.allocation import Allocation

KEPT = 512
"""Finished batches that are remembered."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the tasks of one stage can do together, in records/s."""

    per_s: float
    shown_per_s: float
    """As its useful time tells it: without what its metrics do not show."""
    tasks: int


Capacities = Callable[[Allocation], Sequence[Capacity]]
"""Allocation -> the capacities of all stages, the source first."""


@dataclass(slots=True)
class Work:
    """What one stage did in one batch."""

    records: float = 0.0
    useful_s: float = 0.0
    """Seconds of all its tasks together."""
    end_s: float = math.inf
    """When it had drained; the source: when it stopped reading."""


@dataclass(slots=True)
class Batch:
    """One batch."""

    start_s: float
    before: float
    """Records that had been read before it."""
    unread_s: float
    """Since when nothing had been read."""
    running: Allocation
    stages: tuple[Work, ...]
    end_s: float = math.inf
    gap_s: float = 0.0
    """From its end to the start of the next one."""


class RealTimeJob:
    """One job: what has come, what has been read, what waits in front of every stage, and the batch that runs.

    `arrive` tells what the next second brings, `run_until` plays any part of what was told. Stages are in the order of
    the records, the source first; `selectivity` is what comes into each per record into the one before it (source: 1).
    """

    def __init__(
        self,
        discipline: RealTime,
        selectivity: Sequence[float],
        stateful: Collection[str],
        start: Allocation,
        capacities: Capacities,
        rng: np.random.Generator,
        kept: int | None = KEPT,
    ) -> None:
        self.discipline, self.running, self.wanted = discipline, start, start
        self.now_s = self.done = self.repeated = 0.0
        """Records, as the source counts them, that have a result; and those whose result came out twice."""
        self.batch: Batch | None = None
        self.finished: deque[Batch] = deque(maxlen=kept)
        self.queue = [0.0] * len(selectivity)
        """Records in front of every stage; of the source they are at the broker, and not counted here."""
        self.work = tuple(Work() for _ in selectivity)
        """Records and useful time of every stage since the beginning."""
        self.up, self.recovering = True, False
        """Whether the query runs; whether it failed and has not finished a batch since."""
        self.started_s = self.stopped_s = 0.0
        self.downtime_s: float | None = None
        self.slot_s = self.up_s = 0.0
        """Seconds since the beginning: of all slots together, and in which the query ran."""
        self.late_s = self.late_inside_s = 0.0
        """How long records waited at most, since they came and since they could be read; `calm` sets it back."""
        self._selectivity, self._stateful, self._rng = tuple(selectivity), frozenset(stateful), rng
        self._per_read = [math.prod(selectivity[: place + 1]) for place in range(len(selectivity))]
        self._capacities, self._able = capacities, capacities(start)
        self._arrivals, self._read = Arrivals(), 0.0
        self._target, self._next_start_s, self._patience_ends_s = start, 0.0, math.inf
        self._unread_s = 0.0
        """Since when nothing has been read."""

    @property
    def backlog(self) -> float:
        """Records that have come and have no result."""
        return max(0.0, self._arrivals.by(self.now_s, self.done) - self.done)

    @property
    def lag_s(self) -> float:
        """Age of the oldest record without a result."""
        waits = self.backlog > TINY * max(1.0, self.done)
        return max(0.0, self.now_s - self._arrivals.oldest_s(self.done)) if waits else 0.0

    def arrive(self, records: float) -> None:
        """Tell how many records come, evenly, in the second after those that are known."""
        self._arrivals.add(records)
        self._arrivals.forget(self.done)

    def calm(self) -> None:
        """Measure anew how late results are."""
        self.late_s = self.late_inside_s = 0.0

    def renew(self, capacities: Capacities) -> None:
        """Go on with other capacities."""
        self._capacities = capacities
        self._able = capacities(self.running)

    def want(self, target: Allocation) -> None:
        """Ask for another allocation: the query stops when its batch has ended, between two of them at once."""
        self.wanted = target
        elapsed_s = self.now_s - self.batch.start_s if self.batch is not None else 0.0
        least_s = self.discipline.boundary_s
        self._patience_ends_s = self.now_s + worth_waiting_s(elapsed_s, least_s, self.running.tasks, target.tasks)
        if self.up and self.batch is None and target != self.running:
            self._change()

    def kill(self) -> None:
        """Lose an executor: the query fails now, and is started again after a while."""
        again_s = self.now_s + self._draw(self.discipline.failure_s)
        if self.up:
            self._target, self._next_start_s = self.running, again_s
            self._stop()
        self._next_start_s = max(self._next_start_s, again_s)
        self.recovering = True

    def run_until(self, end_s: float) -> None:
        """Let everything happen up to this moment, which must not be later than what was told to arrive."""
        while (moment := self._next_s()) <= end_s:
            self._pass(moment)
            self._event()
        self._pass(end_s)

    # -- from event to event ------------------------------------------------------------------------------------

    def _next_s(self) -> float:
        """Return when the next thing happens: a start, the end of reading, an empty queue, or the end of patience."""
        if self.batch is None:
            return self._next_start_s
        moment = self._patience_ends_s if self.wanted != self.running else math.inf
        inflow = 0.0
        if self._reading:
            waiting, inflow = self._waiting(self.now_s), self._arrivals.per_s(self.now_s)
            moment = min(moment, self.batch.start_s + self.discipline.batch_s, math.floor(self.now_s + TINY) + 1.0)
            if waiting:
                moment = min(moment, self._empty_s(waiting, self._able[0].per_s, inflow))
                inflow = self._able[0].per_s
            inflow = min(inflow, self._able[0].per_s)
        for place in range(1, len(self.queue)):
            inflow *= self._selectivity[place]
            able = self._able[place].per_s
            if self.queue[place]:
                moment = min(moment, self._empty_s(self.queue[place], able, inflow))
                inflow = able
            inflow = min(inflow, able)
        return max(moment, self.now_s)

    def _empty_s(self, queue: float, able: float, inflow: float) -> float:
        return self.now_s + max(queue / (able - inflow), TINY) if able > inflow else math.inf

    def _pass(self, moment: float) -> None:
        """Let records flow until a moment, up to which no queue becomes empty."""
        seconds = moment - self.now_s
        self.slot_s += seconds * self.running.slots
        self.up_s += seconds if self.up else 0.0
        if self.batch is not None:
            self._flow(self.batch, moment, seconds)
        self.now_s = moment
        lag_s = self.lag_s
        self.late_s = max(self.late_s, lag_s)
        if self.batch is not None:
            self.late_inside_s = max(self.late_inside_s, min(lag_s, moment - self.batch.start_s))

    def _flow(self, batch: Batch, moment: float, seconds: float) -> None:
        inflow, waiting = 0.0, 0.0
        for place, able in enumerate(self._able):
            if place:
                present = self.queue[place] + inflow * self._selectivity[place]
            else:
                present = self._waiting(moment) if self._reading else 0.0
            moved = min(present, able.per_s * seconds)
            if present - moved <= TINY * max(1.0, present):
                moved = present
            if place:
                self.queue[place] = present - moved
                waiting += self.queue[place] / self._per_read[place] if self._per_read[place] else 0.0
            else:
                self._read += moved
            for work in (self.work[place], batch.stages[place]):
                work.records += moved
                work.useful_s += moved * able.tasks / able.shown_per_s
            inflow = moved
        self.done = max(self.done, self._read - waiting)
        self._arrivals.forget(self.done)

    def _event(self) -> None:
        batch = self.batch
        if batch is None:
            self._begin()
            return
        if self.now_s >= batch.start_s + self.discipline.batch_s - TINY:
            self._drain(batch)
        if batch.stages[-1].end_s <= self.now_s:
            self._end(batch)
        elif self.wanted != self.running and self.now_s >= self._patience_ends_s:
            self._change()

    def _begin(self) -> None:
        """Start a batch, and before it the query where it is down."""
        if not self.up:
            self.up, self.running, self.started_s = True, self._target, self.now_s
            self.downtime_s = self.now_s - self.stopped_s
            self._able = self._capacities(self.running)
            self._patience_ends_s = self.now_s + self.discipline.boundary_s
        stages = tuple(Work() for _ in self.queue)
        self.batch = Batch(self.now_s, self._read, self._unread_s, self.running, stages)

    def _drain(self, batch: Batch) -> None:
        """Note which stages have finished: those with nothing in front of them, behind others that have finished."""
        for place, work in enumerate(batch.stages):
            if self.queue[place]:
                return
            work.end_s = min(work.end_s, self.now_s)

    def _end(self, batch: Batch) -> None:
        batch.end_s, self.batch, self._unread_s = self.now_s, None, batch.stages[0].end_s
        self.finished.append(batch)
        self.recovering = False
        if self.wanted != self.running:
            self._change()
        else:
            batch.gap_s = self._draw(self.discipline.gap_s)
            self._next_start_s = self.now_s + batch.gap_s

    def _change(self) -> None:
        """Stop, and start again with what is wanted."""
        before, self._target = self.running, self.wanted
        changed = {name for name, tasks in self.wanted.tasks.items() if tasks != before.tasks[name]}
        stateful = not changed.isdisjoint(self._stateful)
        self._next_start_s = self.now_s + self.discipline.change_s(stateful, self._draw)
        self._stop()

    def _stop(self) -> None:
        """Stop; a batch that runs is given up, to be repeated from its beginning."""
        self.up, self.stopped_s = False, self.now_s
        if self.batch is not None:
            # What has come out of the last stage comes out again.
            inside = sum(q / per for q, per in zip(self.queue, self._per_read, strict=True) if per)
            self.repeated += max(0.0, self._read - inside - self.batch.before)
            self._read, self._unread_s = self.batch.before, self.batch.unread_s
            self.batch = None
            self.queue = [0.0] * len(self.queue)

    # -- what it is made of -------------------------------------------------------------------------------------

    @property
    def _reading(self) -> bool:
        return self.batch is not None and self.now_s < self.batch.start_s + self.discipline.batch_s - TINY

    def _waiting(self, moment: float) -> float:
        """Return what is to be read at a moment; rounding is nothing."""
        came = self._arrivals.by(moment, self.done)
        return came - self._read if came - self._read > TINY * max(1.0, came) else 0.0

    def _draw(self, span: Span) -> float:
        return float(self._rng.uniform(*span))
