"""The micro-batch mode of Spark Structured Streaming, simulated exactly in continuous time, from event to event.

A batch begins at a trigger, takes the backlog of the source, is planned for `fixed_s`, runs its tasks in waves on the
registered slots, is committed for `commit_s`, and ends. Only then do its records have results. Executors start and stop
meanwhile: running tasks go on, waiting tasks take new slots, and the tasks of a lost slot run again from their start.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rheostat.engine.batches.present import RunningBatch, RunningStage
from rheostat.engine.simulated.arrivals import TINY, Arrivals
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.executors import Executors
from rheostat.errors import InvalidValue

POLL_S = 0.01
"""Seconds until a query without a trigger interval polls an empty source again (Spark's own polling delay)."""
BATCH_HISTORY = 512
"""Finished batches to remember: more than any window covers."""

Capacity = Callable[[int], float]
"""Slots -> records/s of those that a batch can use, while all of them work."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One finished batch."""

    start_s: float
    end_s: float
    records: float
    oldest_s: float
    """Arrival of its oldest record."""
    before: float
    """Records finished before it."""
    latest: float
    """Latest offset at its trigger: the records finished after it, had it no limit."""
    work_s: float
    """Seconds from the start of its first task to the end of its last."""
    busy_s: float
    """Busy time of all slots in seconds; repeated work counts once."""


@dataclass(slots=True)
class _Group:
    """Tasks that started together on equal slots: they also end together."""

    count: int
    start_up_s: float
    records: float
    """Records left per task."""
    busy_s: float = 0.0
    """Busy time of all their slots in seconds."""


@dataclass(slots=True)
class _RunningBatch:
    """The running batch."""

    start_s: float
    until: float
    """Its end offset: records finished after it, counted from the start."""
    latest: float
    waiting: int
    """Tasks without a slot."""
    each: float
    """Records per task."""
    work_s: float | None = None
    """When tasks could start; None during planning."""
    worked_s: float | None = None
    """When its last task ended."""
    busy_s: float = 0.0
    groups: list[_Group] = field(default_factory=list)
    """Running tasks, oldest first."""

    @property
    def tasks(self) -> int:
        """Number of running tasks."""
        return sum(group.count for group in self.groups)


class MicroBatchJob:
    """One job: its arrivals, its finished records, the running batch, and the executors.

    `arrive` adds the records of the next second, `run_until` simulates any part of the seconds added so far.
    """

    def __init__(
        self, discipline: MicroBatch, slots: int, capacity: Capacity, history: int | None = BATCH_HISTORY
    ) -> None:
        self.discipline = discipline
        self.executors = Executors(discipline, self._executors_for(slots))
        self.now_s = 0.0
        self.done = 0.0
        """Records of finished batches."""
        self.finished: deque[Batch] = deque(maxlen=history)
        self.changed_s: float | None = None
        """Moment of the last change of the slots."""
        self.slot_s = self.busy_s = 0.0
        """Seconds of all slots since the start: registered, and busy."""
        self._capacity = capacity
        self._batch: _RunningBatch | None = None
        self._next_poll_s = discipline.trigger_phase_s
        self._arrivals = Arrivals()
        self._task_per_s = self._rate()

    @property
    def slots(self) -> int:
        """Number of registered slots."""
        return self.executors.count * self.discipline.quantum

    @property
    def active(self) -> bool:
        """Whether a batch runs."""
        return self._batch is not None

    @property
    def backlog(self) -> float:
        """Records without a result."""
        return max(0.0, self._arrivals.count_by(self.now_s, self.done) - self.done)

    @property
    def worked(self) -> float:
        """Records that tasks have worked off, those of the running batch included."""
        batch = self.running_batch()
        return self.done + (0.0 if batch is None else batch.rows_done or 0.0)

    @property
    def lag_s(self) -> float:
        """Age of the oldest record without a result."""
        return max(0.0, self.now_s - self._arrivals.oldest_s(self.done))

    def running_batch(self) -> RunningBatch | None:
        """Return the running batch as Spark shows one: tasks that have finished, rows that were read."""
        batch = self._batch
        if batch is None:
            return None
        tasks = self.discipline.partitions or 1
        running = sum(group.count for group in batch.groups)
        finished = tasks - running - batch.waiting if batch.work_s is not None else 0
        read = finished * batch.each + sum(group.count * (batch.each - group.records) for group in batch.groups)
        busy_s = sum(group.busy_s for group in batch.groups)
        stage = RunningStage(
            0, tasks, finished, running, batch.busy_s, round(finished * batch.each), busy_s, batch.work_s
        )
        return RunningBatch("", 0, self.now_s, batch.start_s, (self.done,), (batch.until,), (stage,), read)

    def arrive(self, records: float) -> None:
        """Add the records of the next second; they arrive evenly."""
        self._arrivals.add(records)
        self._arrivals.forget(self.done)

    def request(self, slots: int) -> None:
        """Request a number of slots now."""
        self.executors.request(self._executors_for(slots), self.now_s)

    def kill(self) -> None:
        """Kill an executor now; another one replaces it."""
        if self.executors.lose(self.now_s):
            self._assign_slots()

    def set_capacity(self, capacity: Capacity) -> None:
        """Continue with another capacity."""
        self._capacity = capacity
        self._task_per_s = self._rate()

    def run_until(self, end_s: float) -> None:
        """Simulate up to this moment, for which arrivals must be known."""
        while True:
            batch_s, change_s = self._next_s(), self.executors.next_s(self.now_s, boundary=not self._tasks_started)
            moment = min(batch_s, change_s, end_s)
            self._advance(moment)
            if change_s <= moment:
                # Before a batch that starts in the same moment: executors stop between two batches.
                self.executors.step(moment)
                self._assign_slots()
            elif batch_s <= moment:
                self._process_event()
            else:
                return

    # -- from event to event ------------------------------------------------------------------------------------

    @property
    def _tasks_started(self) -> bool:
        return self._batch is not None and self._batch.work_s is not None and self._batch.worked_s is None

    def _next_s(self) -> float:
        """Return the next event of the batches: a poll of the source, a start or end of tasks, the end of a batch."""
        batch = self._batch
        if batch is None:
            return self._next_poll_s
        if batch.work_s is None:
            return batch.start_s + self.discipline.fixed_s
        if batch.worked_s is not None:
            return batch.worked_s + self.discipline.commit_s
        if not batch.groups or not self._task_per_s:
            return math.inf
        return self.now_s + min(map(self._left_s, batch.groups))

    def _left_s(self, group: _Group) -> float:
        """Return the remaining seconds of a group's tasks."""
        return group.start_up_s + group.records / self._task_per_s

    def _advance(self, moment: float) -> None:
        """Run tasks until a moment."""
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

    def _process_event(self) -> None:
        batch = self._batch
        if batch is None:
            self._poll_source()
        elif batch.work_s is None:
            batch.work_s = self.now_s
            self._fill_slots(batch)
        elif batch.worked_s is not None:
            self._end(batch, batch.worked_s - batch.work_s)
        else:
            first = min(batch.groups, key=self._left_s)
            batch.groups.remove(first)
            batch.busy_s += first.busy_s
            self._fill_slots(batch)
            if not batch.groups and not batch.waiting:
                batch.worked_s = self.now_s

    def _poll_source(self) -> None:
        """Begin a batch if there is input; else poll again at the next trigger."""
        own, step_s = self.discipline, self.discipline.source_step_s
        released_s = math.floor(self.now_s / step_s + TINY) * step_s if step_s else self.now_s
        latest = self._arrivals.count_by(released_s, self.done)
        if latest - self.done > TINY * max(1.0, self.done):
            cap = own.max_records_per_batch
            until = latest if cap is None else min(latest, self.done + cap)
            tasks = own.partitions or 1
            self._batch = _RunningBatch(self.now_s, until, latest, tasks, (until - self.done) / tasks)
        elif own.trigger_s:
            self._next_poll_s = self._trigger_after(self.now_s)
        else:
            self._next_poll_s = released_s + step_s if step_s else self.now_s + POLL_S

    def _end(self, batch: _RunningBatch, work_s: float) -> None:
        oldest_s, records = self._arrivals.oldest_s(self.done), batch.until - self.done
        self.finished.append(
            Batch(batch.start_s, self.now_s, records, oldest_s, self.done, batch.latest, work_s, batch.busy_s)
        )
        self.done = batch.until
        self._arrivals.forget(self.done)
        self._batch = None
        # As in Spark, the next trigger is the first one after this batch's start, even if it is past.
        due_s = self._trigger_after(batch.start_s) if self.discipline.trigger_s else self.now_s
        self._next_poll_s = max(self.now_s, due_s)

    def _trigger_after(self, moment: float) -> float:
        interval_s, phase_s = self.discipline.trigger_s, self.discipline.trigger_phase_s
        return phase_s + (math.floor((moment - phase_s) / interval_s + TINY) + 1) * interval_s

    # -- tasks and slots ----------------------------------------------------------------------------------------

    def _assign_slots(self) -> None:
        """Give new slots to waiting tasks; tasks on lost slots, the ones that started last, wait again."""
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

    def _fill_slots(self, batch: _RunningBatch) -> None:
        """Start waiting tasks on free slots; without partitions the batch is one task on all slots."""
        free = self.slots - batch.tasks if self.discipline.partitions else 1
        starting = min(batch.waiting, free)
        if starting <= 0 or batch.work_s is None:
            return
        batch.waiting -= starting
        own, executors = self.discipline, self.executors
        # New executors are idle, so their slots are among the free ones.
        cold = min(executors.cold * own.quantum, starting) if own.cold_s and own.partitions else 0
        executors.cold -= -(-cold // own.quantum)
        for count, cold_s in ((starting - cold, 0.0), (cold, own.cold_s * executors.starting_together)):
            if count:
                batch.groups.append(_Group(count, own.task_s + cold_s, batch.each))

    def _rate(self) -> float:
        """Return the records/s of one task."""
        if not self.slots:
            return 0.0
        capacity = self._capacity(self.slots)
        return capacity / self.discipline.usable(self.slots) if self.discipline.partitions else capacity

    def _executors_for(self, slots: int) -> int:
        """Return the number of executors with these slots."""
        executors, rest = divmod(slots, self.discipline.quantum)
        if rest or executors < 1:
            raise InvalidValue(f"{slots} slots is not a multiple of the slots per executor ({self.discipline.quantum})")
        return executors
