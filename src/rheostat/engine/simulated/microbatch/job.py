"""The micro-batch discipline, as Spark Structured Streaming has it: exact in continuous time, from event to event.

A batch begins at a trigger, takes what waits at the source, is planned for `fixed_s`, runs its tasks in waves on the
slots that are there, and ends: only then do its records have results. Executors come and go meanwhile. Tasks that run
go on, waiting ones take new slots, and the tasks of a slot that is lost are done again from their start.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rheostat.engine.simulated.arrivals import TINY, Arrivals
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.executors import Executors
from rheostat.errors import InvalidValue

POLL_S = 0.01
"""How soon a query without a trigger interval looks again when nothing waited (Spark's own polling delay)."""
KEPT = 512
"""Finished batches that are remembered."""

Capacity = Callable[[int], float]
"""Slots -> records/s of those that a batch can use, all together and all at work."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One finished batch."""

    start_s: float
    end_s: float
    records: float
    oldest_s: float
    """When the first of its records arrived."""
    before: float
    """Records that were finished before it."""
    latest: float
    """Records that would have been finished with it, had it been allowed to take all."""
    work_s: float
    """From the start of its first task to the end of its last."""
    busy_s: float
    """Seconds of all slots together in which its tasks worked; what was lost and done again counts once."""


@dataclass(slots=True)
class _Group:
    """Tasks that started together on slots that are alike: they also end together."""

    count: int
    start_up_s: float
    records: float
    """What each of them still has to do."""
    busy_s: float = 0.0
    """Seconds of all their slots together in which they worked."""


@dataclass(slots=True)
class _Running:
    """The batch that runs."""

    start_s: float
    until: float
    """Records that will be finished with it, since the beginning."""
    latest: float
    waiting: int
    """Tasks that have no slot yet."""
    each: float
    """Records of one task."""
    work_s: float | None = None
    """When tasks could start; None while it is planned."""
    busy_s: float = 0.0
    groups: list[_Group] = field(default_factory=list)
    """Running tasks, the oldest first."""

    @property
    def tasks(self) -> int:
        """Tasks that run."""
        return sum(group.count for group in self.groups)


class MicroBatchJob:
    """One job: what has arrived, what is finished, the batch that runs, and the executors.

    `arrive` tells what the next second brings, `run_until` plays any part of what was told.
    """

    def __init__(self, discipline: MicroBatch, slots: int, capacity: Capacity, kept: int | None = KEPT) -> None:
        self.discipline = discipline
        self.executors = Executors(discipline, self._whole(slots))
        self.now_s = 0.0
        self.done = 0.0
        """Records whose batch has ended."""
        self.finished: deque[Batch] = deque(maxlen=kept)
        self.changed_s: float | None = None
        """When the slots last became others."""
        self.slot_s = self.busy_s = 0.0
        """Seconds of all slots together since the start: in which they were there, and in which tasks worked."""
        self._capacity = capacity
        self._batch: _Running | None = None
        self._look_s = discipline.trigger_phase_s
        self._arrivals = Arrivals()
        self._task_per_s = self._rate()

    @property
    def slots(self) -> int:
        """Slots that are there."""
        return self.executors.count * self.discipline.quantum

    @property
    def active(self) -> bool:
        """Whether a batch runs."""
        return self._batch is not None

    @property
    def backlog(self) -> float:
        """Records that have come and have no result."""
        return max(0.0, self._arrivals.by(self.now_s, self.done) - self.done)

    @property
    def lag_s(self) -> float:
        """Age of the oldest record without a result."""
        return max(0.0, self.now_s - self._arrivals.oldest_s(self.done))

    def arrive(self, records: float) -> None:
        """Tell how many records come, evenly, in the second after those that are known."""
        self._arrivals.add(records)
        self._arrivals.forget(self.done)

    def want(self, slots: int) -> None:
        """Ask for another number of slots, now."""
        self.executors.want(self._whole(slots), self.now_s)

    def kill(self) -> None:
        """Lose an executor, now; another one comes in its place."""
        if self.executors.lose(self.now_s):
            self._resized()

    def renew(self, capacity: Capacity) -> None:
        """Go on with other capacities."""
        self._capacity = capacity
        self._task_per_s = self._rate()

    def run_until(self, end_s: float) -> None:
        """Let everything happen up to this moment, which must not be later than what was told to arrive."""
        while True:
            batch_s, change_s = self._next_s(), self.executors.next_s(self.now_s, boundary=not self._at_work)
            moment = min(batch_s, change_s, end_s)
            self._pass(moment)
            if change_s <= moment:
                # Before a batch that starts in the same moment: executors leave between the two.
                self.executors.step(moment)
                self._resized()
            elif batch_s <= moment:
                self._event()
            else:
                return

    # -- from event to event ------------------------------------------------------------------------------------

    @property
    def _at_work(self) -> bool:
        return self._batch is not None and self._batch.work_s is not None

    def _next_s(self) -> float:
        """Return when the next thing happens to a batch: it starts, its tasks start, or the oldest of them end."""
        batch = self._batch
        if batch is None:
            return self._look_s
        if batch.work_s is None:
            return batch.start_s + self.discipline.fixed_s
        if not batch.groups or not self._task_per_s:
            return math.inf
        return self.now_s + min(map(self._left_s, batch.groups))

    def _left_s(self, group: _Group) -> float:
        """Return how long a group's tasks still run."""
        return group.start_up_s + group.records / self._task_per_s

    def _pass(self, moment: float) -> None:
        """Let tasks work until a moment."""
        seconds = moment - self.now_s
        self.slot_s += seconds * self.slots
        for group in self._batch.groups if self._batch else ():
            starting_s = min(group.start_up_s, seconds)
            group.start_up_s -= starting_s
            group.records -= (seconds - starting_s) * self._task_per_s
            worked_s = (seconds - starting_s) * (group.count if self.discipline.partitions else self.slots)
            group.busy_s += worked_s
            self.busy_s += worked_s
        self.now_s = moment

    def _event(self) -> None:
        batch = self._batch
        if batch is None:
            self._look()
        elif batch.work_s is None:
            batch.work_s = self.now_s
            self._fill_slots(batch)
        else:
            first = min(batch.groups, key=self._left_s)
            batch.groups.remove(first)
            batch.busy_s += first.busy_s
            self._fill_slots(batch)
            if not batch.groups and not batch.waiting:
                self._end(batch, self.now_s - batch.work_s)

    def _look(self) -> None:
        """Begin a batch when something waits; else look again at the next trigger."""
        own, step_s = self.discipline, self.discipline.source_step_s
        handed_out_s = math.floor(self.now_s / step_s + TINY) * step_s if step_s else self.now_s
        latest = self._arrivals.by(handed_out_s, self.done)
        if latest - self.done > TINY * max(1.0, self.done):
            cap = own.max_records_per_batch
            until = latest if cap is None else min(latest, self.done + cap)
            tasks = own.partitions or 1
            self._batch = _Running(self.now_s, until, latest, tasks, (until - self.done) / tasks)
        elif own.trigger_s:
            self._look_s = self._trigger_after(self.now_s)
        else:
            self._look_s = handed_out_s + step_s if step_s else self.now_s + POLL_S

    def _end(self, batch: _Running, work_s: float) -> None:
        oldest_s, records = self._arrivals.oldest_s(self.done), batch.until - self.done
        self.finished.append(
            Batch(batch.start_s, self.now_s, records, oldest_s, self.done, batch.latest, work_s, batch.busy_s)
        )
        self.done = batch.until
        self._arrivals.forget(self.done)
        self._batch = None
        # As Spark has it: the trigger after this batch's start is the next one, even when it is past.
        self._look_s = max(self.now_s, self._trigger_after(batch.start_s)) if self.discipline.trigger_s else self.now_s

    def _trigger_after(self, moment: float) -> float:
        interval_s, phase_s = self.discipline.trigger_s, self.discipline.trigger_phase_s
        return phase_s + (math.floor((moment - phase_s) / interval_s + TINY) + 1) * interval_s

    # -- tasks and slots ----------------------------------------------------------------------------------------

    def _resized(self) -> None:
        """Give waiting tasks the new slots, or take back those whose slots are gone: the ones that started last."""
        self.changed_s = self.now_s
        self._task_per_s = self._rate()
        batch = self._batch
        if batch is None:
            return
        while self.discipline.partitions and batch.tasks > self.slots:
            newest = batch.groups[-1]
            lost = min(newest.count, batch.tasks - self.slots)
            newest.busy_s *= 1 - lost / newest.count
            newest.count -= lost
            batch.waiting += lost
            if not newest.count:
                batch.groups.pop()
        self._fill_slots(batch)

    def _fill_slots(self, batch: _Running) -> None:
        """Start waiting tasks on free slots; without partitions the batch is one task on all of them."""
        free = self.slots - batch.tasks if self.discipline.partitions else 1
        starting = min(batch.waiting, free)
        if starting <= 0 or batch.work_s is None:
            return
        batch.waiting -= starting
        own, executors = self.discipline, self.executors
        # New executors have nothing to do yet, so theirs are among the free slots.
        cold = min(executors.cold * own.quantum, starting) if own.cold_s and own.partitions else 0
        executors.cold -= -(-cold // own.quantum)
        for count, cold_s in ((starting - cold, 0.0), (cold, own.cold_s * executors.together)):
            if count:
                batch.groups.append(_Group(count, own.task_s + cold_s, batch.each))

    def _rate(self) -> float:
        """Return the records/s of one task."""
        if not self.slots:
            return 0.0
        capacity = self._capacity(self.slots)
        return capacity / self.discipline.usable(self.slots) if self.discipline.partitions else capacity

    def _whole(self, slots: int) -> int:
        """Return the executors that have so many slots."""
        executors, rest = divmod(slots, self.discipline.quantum)
        if rest or executors < 1:
            raise InvalidValue(f"{slots} slots are no whole number of executors of {self.discipline.quantum}")
        return executors
