"""A query that Rheostat starts itself, and restarts for another allocation.

    executors -> stop after a batch -> repartition the state -> start -> first batch

A batch can take minutes just when more slots are needed, so a restart runs in its own thread and the engine reports its
activity. Each step is journaled before it happens. Whatever fails after the stop, the query starts again as before, for
as long as this driver owns the checkpoint (`owner.py`): the journal decides who may change a job, the claim who may run
it. What a killed driver leaves of a repartition is undone at the next start (`checkpoint.py`).
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from typing import Any

from rheostat.clock import WallClock
from rheostat.deadline import Deadline
from rheostat.engine.spark.lifecycle.application import Application, Build, Query, StartQuery
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint
from rheostat.engine.spark.lifecycle.owner import Overtaken, Owner
from rheostat.engine.spark.lifecycle.shape import MicroBatch, Shape
from rheostat.errors import EngineError, JournalError, describe, first_line, redact
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Status
from rheostat.ports import Clock, Note

Start = Callable[[Allocation], Any]
"""Builds and starts a query for an allocation."""

Prepare = Callable[[], Allocation | None]
"""Waits for the executors of a restart and returns its allocation; None if no restart is needed."""

TRIES = 5
"""Attempts to stop between two batches, which repartitioning requires: of back-to-back batches of 0.5 s, 10 of 12 stops
succeeded at the first attempt."""
POLL_S = 0.001
"""Seconds between two reads of the query's status in a wait for a gap between batches, which lasts at least 50 ms."""
FIRST_POLL_S = 0.05
"""Seconds between two checks for the first batch."""
FIRST_BATCH_S = 120.0
"""Seconds that a start waits for the first batch. A longer one is observed as it runs: it may need more executors."""
WHOLE_BATCH_S = 900.0
"""Seconds that a stop waits for the end of a batch that must be whole; then the restart is given up."""
STOP_S = 120.0
"""Seconds within which a query must have stopped."""
START_S = 300.0
"""Seconds within which a query must have started, its wait for another driver included."""
RESTORE_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds before each attempt to start a query as before a restart that failed."""
TWO_DRIVERS = re.compile("CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming queries are concurrently using")
"""Spark's errors when another driver has written the same batch: one is seen before the write, one by the rename."""
BATCH_RUNS = ("Initializing", "Processing", "No new data but")
"""Beginnings of Spark's status message while a batch runs."""

STARTED = re.compile(r"start with ((?:[^ =]+=\d+ ?)+)")
"""The journaled step that starts the new query."""

log = logging.getLogger(__name__)


class Pipeline:
    """A query with the function that builds it. `activity` describes a running restart, "" without one."""

    def __init__(
        self,
        application: Application,
        build: Build,
        clock: Clock | None = None,
        shape: Shape | None = None,
    ) -> None:
        self.application, self._build_query, self._clock = application, build, clock or WallClock()
        self.shape: Shape = shape or MicroBatch()
        self.query: Any = None
        """The query that was started last, a StreamingQuery; None before the first start."""
        self.allocation: Allocation | None = None
        """The allocation of the last start."""
        self.status = Status.DOWN
        self.activity = ""
        self.ready_s = 0.0
        """First moment at which the query processed data after the last start."""
        self.downtime_s: float | None = None
        """Seconds from the stop of the last restart until the new query processed data."""
        self.failure: Exception | None = None
        """The error of the last restart."""
        self.fixed_reason = ""
        """Why the query cannot be built for another allocation; "" if it can."""
        self.state_fixed_reason = ""
        """Why the state cannot be repartitioned; "" if it can."""
        self.closing = False
        """Whether no further restart may begin."""
        self._owner: Owner | None = None
        self._working, self._works = threading.Lock(), False
        self._worker: threading.Thread | None = None
        self._stopping, self._starting = Deadline(STOP_S), Deadline(START_S)

    @property
    def slots(self) -> int:
        """Slots of the last start; 0 before the first one."""
        return 0 if self.allocation is None else self.allocation.slots

    def begin(self, allocation: Allocation) -> None:
        """Start the query for the first time in this process, on the caller's thread."""
        self._start(allocation, deadline=Deadline(None))
        self._run_in_background(self._await_beginning)

    def restart(
        self,
        prepare: Prepare,
        note: Note,
        stopped: Callable[[], None] | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Restart the query in the background, for the allocation that `prepare` returns.

        `stopped` is called while no query runs, `done` when the new query processes data.
        """

        def work() -> None:
            self.activity = "waiting for executors"
            allocation = prepare()
            if allocation is not None:
                self._replace_query(allocation, note, stopped)
                if done is not None:
                    done()

        self._run_in_background(work)

    def recover(self, ready: Callable[[], None]) -> None:
        """Start a failed query again in the background, after `ready` returns."""

        def work() -> None:
            allocation = self.allocation
            self.status, failed_s = Status.RECOVERING, self._clock.now()
            self.activity = "starting again after a failure"
            ready()
            if allocation is not None and not self.closing:
                self._start(self._settled_allocation(allocation))
                self._await_first_batch()
                self.downtime_s = self.ready_s - failed_s

        self._run_in_background(work)

    def wait(self) -> None:
        """Wait for the end of a running restart."""
        if self._worker is not None:
            self._worker.join()

    def finish(self) -> None:
        """Allow no further restart. A running one is cancelled if the query still runs, else finished.

        The claim on the checkpoint is given back as soon as the query has ended.
        """
        with self._working:
            self.closing = True
        self.wait()
        if self._owner is not None:
            self._owner.release(self._runs)

    # -- the claim -----------------------------------------------------------------------------------------------

    @property
    def location(self) -> str | None:
        """The location of the checkpoint that this driver has claimed; None before that."""
        return self._owner.checkpoint.location if self._owner is not None and self._owner.claimed else None

    def watch_owner(self, location: str) -> Owner:
        """Return this driver's claim on a checkpoint, which is not taken yet: its present owner is looked at."""
        if self._owner is None:
            self._owner = self._claim_on(location)
        self._owner.look()
        return self._owner

    def claim(self, location: str) -> None:
        """Take the checkpoint, and undo a repartition that its last owner left behind."""
        owner = self.watch_owner(location)
        owner.claim()
        self._settle(owner.checkpoint)
        owner.checkpoint.check()

    def confirm_claim(self) -> None:
        """Raise Overtaken if another driver owns the checkpoint; called before every effect on it."""
        if self._owner is not None and self._owner.claimed:
            self._owner.confirm()

    def _claim_on(self, location: str) -> Owner:
        application = self.application
        return Owner(application.checkpoint(location), application.driver(), self._clock, self._abandon)

    def _admit(self, location: str) -> None:
        """Let a query begin that is about to: on this driver's checkpoint, or on one that it can claim."""
        if self._owner is not None and not self.application.same(location, self._owner.checkpoint.location):
            self._owner.release()
            self._owner = None
        if self._owner is not None and self._owner.claimed:
            self._owner.confirm()
        else:
            self.claim(location)

    def _settle(self, checkpoint: Checkpoint) -> None:
        if done := checkpoint.settle():
            log.warning("checkpoint %s: %s", redact(checkpoint.location), done)

    def _abandon(self, overtaken: Overtaken) -> None:
        """Stop the query, since another driver owns its checkpoint."""
        self.closing, self.failure = True, overtaken
        if self.query is not None:
            try:
                Deadline(STOP_S).call("stop", self.query.stop)
            except Exception as error:  # noqa: BLE001 - the claim's thread has no caller
                log.error("the query could not be stopped: %s", describe(error))

    # -- the steps -----------------------------------------------------------------------------------------------

    def _replace_query(self, target: Allocation, note: Note, stopped: Callable[[], None] | None) -> None:
        before, query = self._started_allocation(), self._started_query()
        checkpoint = self.application.checkpoint(self.application.location(query))
        partitions = self._new_partitions(checkpoint, target, note)
        try:
            start = self._build(target)
        except Exception as error:
            self._mark_fixed(target, error)
            raise
        whole = partitions is not None and self.shape.exactly_once
        self._await_stop(note, whole)
        stopped_s, at_fault = self._clock.now(), False
        try:
            self._stop(checkpoint, whole, note)
            if partitions is not None:
                have = self._repartition(checkpoint, partitions, note)
                if have != partitions:
                    target = self.shape.with_state_partitions(target, have)
                    start = self._build(target)
            if stopped is not None:
                stopped()
            note(f"start with {target}")
            at_fault = True  # from here on what fails is the query, or its start with this allocation
            self._start(target, start)
            self._await_first_batch()
        except Exception as error:
            if at_fault and not isinstance(error, Overtaken):
                self._mark_fixed(target, error)
            self._restore(before, error, note)
            raise
        finally:
            if self.status is Status.RUNNING:
                self.downtime_s = self.ready_s - stopped_s

    def _new_partitions(self, checkpoint: Checkpoint, target: Allocation, note: Note) -> int | None:
        """Return the new number of state partitions; None if it stays the same."""
        state = checkpoint.state()
        new = None if state is None else self.shape.state_partitions(target, state)
        if state is None or new == state.partitions:
            return None
        if not state.movable or not checkpoint.can_repartition:
            self.state_fixed_reason = (
                f"the state keeps its {state.partitions} partitions: {checkpoint.immovable_reason()}"
            )
            note(self.state_fixed_reason)
            return None
        return new

    def _await_stop(self, note: Note, whole: bool) -> None:
        """Wait for the end of a batch, and ask whether this change may stop the query now."""
        self.activity = "waiting for the end of a batch"
        note("stop after a batch")
        query, wait_s = self._started_query(), WHOLE_BATCH_S if whole else self.shape.stop_wait_s()
        reached = await_gap(query, self._clock, wait_s, lambda: self.closing)
        if self.closing:
            raise EngineError("the restart was cancelled because the scaler was stopped")
        if not query.isActive:
            error = query.exception()
            raise EngineError(f"the query failed: {first_line(error)}" if error else "the query was stopped")
        if whole and not reached:
            raise EngineError(f"state can be repartitioned only after a whole batch, and none ended in {wait_s:g} s")
        note("")  # the wait may have outlasted the lease or the change

    def _stop(self, checkpoint: Checkpoint, whole: bool, note: Note) -> None:
        """Stop after a batch; if the batch must be whole, this may take several attempts."""
        for attempt in range(TRIES):
            if attempt:
                self._await_stop(note, whole)
            query = self._started_query()
            self._stopping.call("stop", query.stop)
            self.status, self.activity = Status.DOWN, "stopped"
            if (error := query.exception()) is not None:
                raise EngineError(f"the query failed: {first_line(error)}")
            if not whole or checkpoint.begun == checkpoint.done:
                return
            start = self._build(self._started_allocation())
            note("start again: the next batch had begun, and state can be repartitioned only after a whole batch")
            self._start(self._started_allocation(), start)
            self._await_first_batch()
        raise EngineError(f"the query was stopped {TRIES} times, but never between two batches")

    def _repartition(self, checkpoint: Checkpoint, partitions: int, note: Note) -> int:
        """Repartition the state; return the number of its partitions, which stays the same if Spark cannot."""
        change = checkpoint.plan(partitions)
        self.activity = f"repartitioning the state from {change.old} to {change.new}"
        note(str(change))
        self.confirm_claim()
        try:
            checkpoint.repartition(change, exactly_once=self.shape.exactly_once)
        except EngineError as error:
            if (have := checkpoint.plan(partitions).old) != partitions:
                self.state_fixed_reason = f"the state keeps its {have} partitions: {error}"
                note(self.state_fixed_reason)
            return have
        return partitions

    def _restore(self, before: Allocation, cause: Exception, note: Note) -> None:
        """Start the query as before a restart that failed, unless it runs or another driver owns its checkpoint.

        Without the lease, too: no other driver may run the query while the claim is ours.
        """
        last: Exception = cause
        for wait_s in RESTORE_S:
            if not self.closing:
                self._clock.sleep(wait_s)
            try:
                if self.application.ended():
                    break
                if self._runs():
                    self.status = Status.RUNNING
                    return
                self.confirm_claim()
                allocation = self._settled_allocation(before)
                try:
                    note(f"start with {allocation} as before: {first_line(cause)}")
                except (JournalError, EngineError) as unwritten:
                    log.warning("the query is started as before, and that cannot be journaled: %s", unwritten)
                self._start(allocation)
                self._await_first_batch()
                return
            except Overtaken:
                raise  # the other driver runs the query
            except Exception as error:  # noqa: BLE001 - tried again below
                log.warning("the query could not be started as before: %s", first_line(error))
                last = error
        raise EngineError(
            f"the query is stopped: a restart failed ({first_line(cause)}), and it could not be started as before "
            f"({first_line(last)}); the next start repairs it"
        ) from last

    def _settled_allocation(self, allocation: Allocation) -> Allocation:
        """Undo what an interrupted repartition left, and return the allocation that fits the state."""
        if self._owner is None:
            return allocation
        checkpoint = self._owner.checkpoint
        self._settle(checkpoint)
        state = checkpoint.state()
        return allocation if state is None else self.shape.with_state_partitions(allocation, state.partitions)

    def _runs(self) -> bool:
        return self.query is not None and bool(self.query.isActive)

    def _mark_fixed(self, target: Allocation, error: Exception) -> None:
        self.fixed_reason = f"the query could not start with {target}: {first_line(error)}"

    def _build(self, allocation: Allocation) -> StartQuery:
        return self.application.build(self._build_query, allocation)

    def _start(self, allocation: Allocation, start: StartQuery | None = None, deadline: Deadline | None = None) -> None:
        self.activity = f"starting with {allocation}"
        built = start or self._build(allocation)
        self.confirm_claim()
        partitions, deadline = self.shape.shuffle_partitions(allocation), deadline or self._starting
        self.query = deadline.call("start", lambda: self.application.start(built, partitions, self._admit))
        self.allocation, self.status = allocation, Status.RECOVERING
        if self.closing and isinstance(self.failure, Overtaken):
            self._abandon(self.failure)  # it was overtaken while the query started
            raise self.failure

    def _await_first_batch(self) -> None:
        """Wait until the query processes data, for a limited time."""
        self.activity = "waiting for the first batch"
        query, deadline_s = self._started_query(), self._clock.monotonic() + FIRST_BATCH_S
        while not self.shape.is_processing(query) and not self.closing:
            if not query.isActive:
                error = query.exception()
                reason = first_line(error) if error else "stopped"
                raise EngineError(f"the query ended before its first batch: {reason}")
            if self._clock.monotonic() > deadline_s:
                log.warning("the first batch has not ended after %g s: it is observed as it runs", FIRST_BATCH_S)
                break
            self._clock.sleep(FIRST_POLL_S)
        self.ready_s, self.status = self._clock.now(), Status.RUNNING

    def _await_beginning(self) -> None:
        """Wait for the first batch, and start again if the driver that was overtaken has committed it meanwhile."""
        for attempt in range(TRIES):
            try:
                self._await_first_batch()
                return
            except EngineError as error:
                if TWO_DRIVERS.search(str(error)) is None or attempt == TRIES - 1:
                    raise
                log.warning("the query is started again: %s", error)
                self._start(self._settled_allocation(self._started_allocation()))

    def _started_allocation(self) -> Allocation:
        if self.allocation is None:
            raise EngineError("the pipeline was not started")
        return self.allocation

    def _started_query(self) -> Query:
        if self.query is None:
            raise EngineError("the pipeline was not started")
        query: Query = self.query
        return query

    def _run_in_background(self, work: Callable[[], None]) -> None:
        def run() -> None:
            failure: Exception | None = None
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the engine reports `failure`; a thread has no caller
                if not self.closing:
                    log.warning("the pipeline could not restart: %s", first_line(error))
                failure = error
            with self._working:
                self.failure, self.activity, self._works = failure or self.failure, "", False

        with self._working:
            if self._works:
                raise EngineError(f"the pipeline is restarting: {self.activity}")
            if self.closing:
                raise EngineError("the pipeline is closing: no restart begins")
            self.failure, self.activity, self._works = None, "beginning", True
            self._worker = threading.Thread(target=run, name="rheostat-pipeline", daemon=True)
            self._worker.start()


def build_at_start(start: Start) -> Build:
    """Return a Build for a user's function that builds and starts the query in one step."""
    return lambda allocation: lambda: start(allocation)


def stop_after_batch(query: Query, clock: Clock, wait_s: float | None) -> None:
    """Stop a query between two batches, or after `wait_s` (None: never) inside a batch."""
    await_gap(query, clock, wait_s)
    query.stop()


def await_gap(query: Query, clock: Clock, wait_s: float | None, cancelled: Callable[[], bool] = lambda: False) -> bool:
    """Return whether no batch runs: True as soon as that is so, False after `wait_s`, when cancelled or not active.

    Between back-to-back batches this is the moment when one has ended and the next has not begun. The poll can miss
    it, so a caller that depends on it checks the checkpoint afterwards.
    """
    deadline_s = None if wait_s is None else clock.monotonic() + wait_s
    ran = False
    while query.isActive and not cancelled() and (deadline_s is None or clock.monotonic() < deadline_s):
        message = str(query.status["message"])
        runs = message.startswith(BATCH_RUNS)
        if message.startswith("Waiting") or (ran and not runs):
            return True
        ran = runs
        clock.sleep(POLL_S)
    return False
