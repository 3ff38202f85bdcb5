"""A query that Rheostat starts itself, and restarts for another allocation.

    executors -> stop after a batch -> repartition the state -> start -> first batch

A batch can take minutes just when more slots are needed, so a restart runs in its own thread and the engine reports its
activity. Each step is journaled before it happens. If a step fails, the query starts again as before. If the driver is
killed while it repartitions the state, the next start repairs the checkpoint (`checkpoint.py`).
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from rheostat.clock import WallClock
from rheostat.engine.spark.lifecycle.checkpoint import (
    PARTITIONS,
    Checkpoint,
    Repartition,
    StateStore,
    temporary_settings,
)
from rheostat.errors import EngineError, InvalidValue, JournalError, LeaseRefused, first_line
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Status
from rheostat.ports import Clock, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Start = Callable[[Allocation], "StreamingQuery"]
"""Builds and starts a query for an allocation."""

Build = Callable[[Allocation], Callable[[], "StreamingQuery"]]
"""Builds a query for an allocation, while another one may run, and returns the function that starts it."""

Prepare = Callable[[], Allocation | None]
"""Waits for the executors of a restart and returns its allocation; None if no restart is needed."""

JOB = "job"
"""The one operator of a micro-batch application."""
TASKS_PER_SLOT = 2
"""Tasks per slot at a start: the slots can double before the next restart, and a long task delays a stage half as
much."""
BATCH_S = 60.0
"""Seconds that a stop waits for the end of a batch. Then it interrupts the batch, which is repeated with more slots."""
TRIES = 5
"""Attempts to stop between two batches, which repartitioning requires: of back-to-back batches of 0.5 s, 10 of 12 stops
succeeded at the first attempt."""
POLL_S = 0.001
"""Seconds between two reads of the query's status in a wait for a gap between batches, which lasts at least 50 ms."""
FIRST_POLL_S = 0.05
"""Seconds between two checks for the first batch."""
BATCH_RUNS = ("Initializing", "Processing", "No new data but")
"""Beginnings of Spark's status message while a batch runs."""

STARTED = re.compile(r"start with ((?:[^ =]+=\d+ ?)+)")
"""The journaled step that starts the new query."""

log = logging.getLogger(__name__)


class Shape(Protocol):
    """The meaning of an allocation for a query: shuffle partitions, state partitions, stops."""

    exactly_once: bool
    """Whether state may be repartitioned only after a whole batch has reached the sink."""

    def stop_wait_s(self) -> float:
        """Return the seconds to wait for the end of a batch before a stop interrupts it."""

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return the number of shuffle partitions, which is also that of a new state."""

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return the number of partitions that an existing state should have."""

    def with_state_partitions(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return the allocation that fits a state that cannot be repartitioned."""

    def is_processing(self, query: StreamingQuery) -> bool:
        """Whether a query that has just started processes data."""


class MicroBatch:
    """All stages share the slots: each has several tasks per slot, and the state only gets more partitions."""

    exactly_once = True

    def stop_wait_s(self) -> float:
        """Return a minute: batches can take long just when more slots are needed."""
        return BATCH_S

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return twice the slots."""
        return TASKS_PER_SLOT * allocation.slots

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return twice the slots, or the present number if that is larger."""
        return max(state.partitions, TASKS_PER_SLOT * allocation.slots)

    def with_state_partitions(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return the allocation unchanged: stages without state can use its slots."""
        return allocation

    def is_processing(self, query: StreamingQuery) -> bool:
        """Return whether the first progress event has arrived, even one without a batch."""
        return query.lastProgress is not None


class Pipeline:
    """A query with the function that builds it. `activity` describes a running restart, "" without one."""

    def __init__(
        self,
        spark: SparkSession,
        build: Build,
        clock: Clock | None = None,
        shape: Shape | None = None,
    ) -> None:
        self.spark, self._build_query, self._clock = spark, build, clock or WallClock()
        self.shape: Shape = shape or MicroBatch()
        self.confirm_claim: Callable[[], None] = lambda: None
        """Raises if another driver has taken over the checkpoint; called before every effect on it."""
        self.query: StreamingQuery | None = None
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
        self._worker: threading.Thread | None = None

    @property
    def slots(self) -> int:
        """Slots of the last start; 0 before the first one."""
        return 0 if self.allocation is None else self.allocation.slots

    def begin(self, allocation: Allocation) -> None:
        """Start the query for the first time in this process."""
        self._start(allocation)
        self._run_in_background(self._await_first_batch)

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
                self._start(allocation)
                self._await_first_batch()
                self.downtime_s = self.ready_s - failed_s

        self._run_in_background(work)

    def wait(self) -> None:
        """Wait for the end of a running restart."""
        if self._worker is not None:
            self._worker.join()

    def finish(self) -> None:
        """Allow no further restart. A running one is cancelled if the query still runs, else finished."""
        self.closing = True
        self.wait()

    # -- the steps ---------------------------------------------------------------------------------------------

    def _replace_query(self, target: Allocation, note: Note, stopped: Callable[[], None] | None) -> None:
        before, checkpoint = self._started_allocation(), Checkpoint.of(self.spark, self._started_query())
        partitions = self._new_partitions(checkpoint, target, note)
        try:
            start = self._build(target)
        except Exception as error:
            self._mark_fixed(target, error)
            raise
        self._stop(checkpoint, partitions is not None and self.shape.exactly_once, note)
        stopped_s = self._clock.now()
        try:
            if partitions is not None:
                change = Repartition(checkpoint.location, checkpoint.done, *partitions)
                if not self._repartition(change, checkpoint, note):
                    target = self.shape.with_state_partitions(target, change.old)
                    start = self._build(target)
            if stopped is not None:
                stopped()
            note(f"start with {target}")
            self._start(target, start)
            self._await_first_batch()
        except LeaseRefused:
            raise  # another controller owns the job and starts it
        except Exception as error:
            if not isinstance(error, JournalError):
                self._mark_fixed(target, error)
            try:
                note(f"start with {before} as before: {first_line(error)}")
            except LeaseRefused:
                raise  # as above
            except (JournalError, EngineError) as unwritten:
                log.warning("the query is started as before, and that cannot be journaled: %s", unwritten)
            self._start(before)
            self._await_first_batch()
            raise
        finally:
            if self.status is Status.RUNNING:
                self.downtime_s = self.ready_s - stopped_s

    def _new_partitions(self, checkpoint: Checkpoint, target: Allocation, note: Note) -> tuple[int, int] | None:
        """Return the present and the new number of state partitions; None if they stay the same."""
        state = checkpoint.state()
        new = None if state is None else self.shape.state_partitions(target, state)
        if state is None or new is None or new == state.partitions:
            return None
        if not state.movable:
            self.state_fixed_reason = (
                f"the state keeps its {state.partitions} partitions: {state.provider} cannot repartition it"
            )
            note(f"{self.state_fixed_reason}, RocksDB can")
            return None
        return state.partitions, new

    def _stop(self, checkpoint: Checkpoint, whole: bool, note: Note) -> None:
        """Stop after a batch; if the batch must be whole, this may take several attempts."""
        for _ in range(TRIES):
            self.activity = "waiting for the end of a batch"
            note("stop after a batch")
            query = self._started_query()
            await_gap(query, self._clock, None if whole else self.shape.stop_wait_s(), lambda: self.closing)
            if self.closing:
                raise EngineError("the restart was cancelled because the scaler was stopped")
            note("")  # the wait may have outlasted the lease or the change
            query.stop()
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

    def _repartition(self, change: Repartition, checkpoint: Checkpoint, note: Note) -> bool:
        """Repartition the state; if Spark cannot, restore it and return False."""
        self.activity = f"repartitioning the state from {change.old} to {change.new}"
        note(str(change))
        self.confirm_claim()
        try:
            checkpoint.repartition(change, exactly_once=self.shape.exactly_once)
        except EngineError as error:
            # No step to journal: after a kill, the journaled repartition is rolled back in the same way.
            self.confirm_claim()
            checkpoint.roll_back(change.batch)
            self.state_fixed_reason = f"the state keeps its {change.old} partitions: {error}"
            note(self.state_fixed_reason)
            return False
        return True

    def _mark_fixed(self, target: Allocation, error: Exception) -> None:
        self.fixed_reason = f"the query could not start with {target}: {first_line(error)}"

    def _build(self, allocation: Allocation) -> Callable[[], StreamingQuery]:
        from pyspark.sql import SparkSession

        # The active session is a thread-local, and the user's function may read it.
        SparkSession._get_j_spark_session_class(self.spark._jvm).setActiveSession(self.spark._jsparkSession)
        return self._build_query(allocation)

    def _start(self, allocation: Allocation, start: Callable[[], StreamingQuery] | None = None) -> None:
        from pyspark.sql.streaming.query import StreamingQuery

        self.activity = f"starting with {allocation}"
        start = start or self._build(allocation)
        self.confirm_claim()
        with temporary_settings(self.spark, {PARTITIONS: str(self.shape.shuffle_partitions(allocation))}):
            query = start()
        if not isinstance(query, StreamingQuery):
            kind = f"{type(query).__module__}.{type(query).__name__}"
            raise InvalidValue(f"the function that starts the query must return it, and returned a {kind}")
        self.query, self.allocation, self.status = query, allocation, Status.RECOVERING
        if not query._jsq.streamingQuery().sparkSession().equals(self.spark._jsparkSession):
            query.stop()
            raise InvalidValue("the query was started by another session: use SparkSession.active()")

    def _await_first_batch(self) -> None:
        """Wait until the query processes data."""
        self.activity = "waiting for the first batch"
        query = self._started_query()
        while not self.shape.is_processing(query) and not self.closing:
            if not query.isActive:
                error = query.exception()
                reason = first_line(error) if error else "stopped"
                raise EngineError(f"the query ended before its first batch: {reason}")
            self._clock.sleep(FIRST_POLL_S)
        self.ready_s, self.status = self._clock.now(), Status.RUNNING

    def _started_allocation(self) -> Allocation:
        if self.allocation is None:
            raise EngineError("the pipeline was not started")
        return self.allocation

    def _started_query(self) -> StreamingQuery:
        if self.query is None:
            raise EngineError("the pipeline was not started")
        return self.query

    def _run_in_background(self, work: Callable[[], None]) -> None:
        if self.activity and self._worker is not None and self._worker.is_alive():
            raise EngineError(f"the pipeline is restarting: {self.activity}")

        def run() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the engine reports `failure`; a thread has no caller
                if not self.closing:
                    log.warning("the pipeline could not restart: %s", first_line(error))
                self.failure = error
            finally:
                self.activity = ""

        self.failure, self.activity = None, "beginning"
        self._worker = threading.Thread(target=run, name="rheostat-pipeline", daemon=True)
        self._worker.start()


def build_at_start(start: Start) -> Build:
    """Return a Build for a user's function that builds and starts the query in one step."""
    return lambda allocation: lambda: start(allocation)


def stop_after_batch(query: StreamingQuery, clock: Clock, wait_s: float | None) -> None:
    """Stop a query between two batches, or after `wait_s` (None: never) inside a batch."""
    await_gap(query, clock, wait_s)
    query.stop()


def await_gap(
    query: StreamingQuery, clock: Clock, wait_s: float | None, cancelled: Callable[[], bool] = lambda: False
) -> None:
    """Return when no batch runs, after `wait_s`, or when cancelled.

    Between back-to-back batches this is the moment when one has ended and the next has not begun. The poll can miss
    it, so a caller that depends on it checks the checkpoint afterwards.
    """
    deadline_s = None if wait_s is None else clock.monotonic() + wait_s
    ran = False
    while query.isActive and not cancelled() and (deadline_s is None or clock.monotonic() < deadline_s):
        message = str(query.status["message"])
        runs = message.startswith(BATCH_RUNS)
        if message.startswith("Waiting") or (ran and not runs):
            return
        ran = runs
        clock.sleep(POLL_S)
