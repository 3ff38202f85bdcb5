"""A query that Rheostat starts itself, and builds anew when its partitions are too few for the slots it needs.

    executors -> stop after a batch -> move the state -> start -> first batch

A batch can take minutes just when more slots are needed, so this happens beside the loop: meanwhile the engine says
how far it is. Each step is journaled before it is done. Whatever fails, a query that ran before runs again afterwards;
what only a kill can leave behind, a state that is half moved, is repaired at the next start (`checkpoint.py`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from rheostat.clock import WallClock
from rheostat.engine.spark.checkpoint import PARTITIONS, Checkpoint, Repartition
from rheostat.errors import EngineError, InvalidValue, JournalError, LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Status
from rheostat.ports import Clock, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Start = Callable[[Allocation], "StreamingQuery"]
"""Builds and starts a query for an allocation."""

JOB = "job"
"""The one operator that a micro-batch application has."""
TASKS_PER_SLOT = 2
"""Tasks that a pipeline is built with per slot: it can double before it is built anew, and a task that lasts longer
than others holds up half as much."""
BATCH_S = 60.0
"""A stop waits so long for the end of a batch. Then the batch is cut off, and repeated with more slots."""
TRIES = 5
"""State can only be moved after a whole batch. Where batches follow each other without a pause, 10 of 12 stops came
in between two (measured on batches of 0.5 s)."""
POLL_S = 0.001
"""Between two looks at the query while a gap between batches is waited for: it lasts 50 ms and more."""
FIRST_POLL_S = 0.05
AT_WORK = ("Initializing", "Processing", "No new data but")
"""How Spark's status begins while a batch runs."""

STARTED = re.compile(r"start for (\d+) slots")
"""The step that starts the new query, as it is journaled."""

log = structlog.get_logger("rheostat.spark")


class Pipeline:
    """A query and what builds it. `doing` says what is done to it at the moment, "" when nothing is."""

    def __init__(self, spark: SparkSession, start: Start, clock: Clock | None = None) -> None:
        self.spark, self._build, self._clock = spark, start, clock or WallClock()
        self.query: StreamingQuery | None = None
        self.slots = 0
        """What it is built for."""
        self.status = Status.DOWN
        self.doing = ""
        self.ready_s = 0.0
        """When the first batch after the last start was done."""
        self.downtime_s: float | None = None
        """Seconds from the last restart's stop to its first finished batch."""
        self.failure: Exception | None = None
        """Why the last restart was given up."""
        self.fixed = ""
        """Why it cannot be built for more slots."""
        self.kept = ""
        """Why the state keeps its partitions."""
        self.ending = False
        """Whether nothing more is to be done to it."""
        self._worker: threading.Thread | None = None

    def begin(self, slots: int) -> None:
        """Start it for the first time in this process."""
        self._start(slots)
        self._in_background(self._first_batch)

    def rebuild(self, arrived: Callable[[], int], enough: int, note: Note) -> None:
        """Build it anew, in the background, for the slots that have arrived, unless its partitions are enough."""

        def work() -> None:
            self.doing = "waiting for executors"
            slots = arrived()
            if slots > enough:
                self._restart(slots, note)

        self._in_background(work)

    def wait(self) -> None:
        """Wait until what is being done to it is done."""
        if self._worker is not None:
            self._worker.join()

    def finish(self) -> None:
        """Let nothing more be done to it. A restart is given up as long as the query was not stopped, else finished."""
        self.ending = True
        self.wait()

    # -- the steps ---------------------------------------------------------------------------------------------

    def _restart(self, slots: int, note: Note) -> None:
        was, checkpoint = self.slots, Checkpoint.of(self.spark, self._running())
        partitions = self._partitions(checkpoint, slots, note)
        self._stop(checkpoint, partitions is not None, note)
        stopped_s = self._clock.now()
        try:
            if partitions is not None:
                self._move(Repartition(checkpoint.location, checkpoint.done, *partitions), checkpoint, note)
            note(f"start for {slots} slots")
            self._start(slots)
            self._first_batch()
        except LeaseRefused:
            raise  # another controller has the job, and starts it
        except Exception as error:
            if not isinstance(error, JournalError):
                self.fixed = f"it could not be built for {slots} slots: {_words(error)}"
            with suppress(JournalError):
                note(f"start for {was} slots, as before: {_words(error)}")
            self._start(was)
            self._first_batch()
            raise
        finally:
            if self.status is Status.RUNNING:
                self.downtime_s = self.ready_s - stopped_s

    def _partitions(self, checkpoint: Checkpoint, slots: int, note: Note) -> tuple[int, int] | None:
        """Return the state's partitions now and then; None when they stay as they are."""
        state, new = checkpoint.state(), TASKS_PER_SLOT * slots
        if state is None or state.partitions >= new:
            return None
        if not state.movable:
            self.kept = f"the state keeps its {state.partitions} partitions: {state.provider} cannot move it"
            note(f"{self.kept}, RocksDB could")
            return None
        return state.partitions, new

    def _stop(self, checkpoint: Checkpoint, whole: bool, note: Note) -> None:
        """Stop after a batch; where it must be a whole one, it may take several times."""
        for _ in range(TRIES):
            self.doing = "waiting for the end of a batch"
            note("stop after a batch")
            query = self._running()
            await_gap(query, self._clock, None if whole else BATCH_S, lambda: self.ending)
            if self.ending:
                raise EngineError("given up, because the scaler was stopped")
            query.stop()
            self.status, self.doing = Status.DOWN, "stopped"
            if (error := query.exception()) is not None:
                raise EngineError(f"the query failed: {_words(error)}")
            if not whole or checkpoint.begun == checkpoint.done:
                return
            note("start again: the next batch had begun, and state can only be moved after a whole one")
            self._start(self.slots)
            self._first_batch()
        raise EngineError(f"the query was stopped {TRIES} times, and never between two batches")

    def _move(self, change: Repartition, checkpoint: Checkpoint, note: Note) -> None:
        self.doing = f"moving the state from {change.old} to {change.new} partitions"
        note(str(change))
        try:
            checkpoint.repartition(change)
        except EngineError as error:
            # Nothing to note: after a kill the journaled change leads to the same.
            checkpoint.roll_back(change.batch)
            self.kept = f"the state keeps its {change.old} partitions: {error}"
            note(self.kept)

    def _start(self, slots: int) -> None:
        from pyspark.sql import SparkSession
        from pyspark.sql.streaming.query import StreamingQuery

        self.doing = f"starting for {slots} slots"
        # Every thread has its own; what builds the query may ask for it.
        SparkSession._get_j_spark_session_class(self.spark._jvm).setActiveSession(self.spark._jsparkSession)
        conf = self.spark.conf
        before = conf.get(PARTITIONS)
        conf.set(PARTITIONS, str(TASKS_PER_SLOT * slots))
        try:
            query = self._build(Allocation({JOB: slots}))
        finally:
            # The query has its own copy of the settings; other work in this session goes on as before.
            conf.set(PARTITIONS, str(before))
        if not isinstance(query, StreamingQuery):
            kind = f"{type(query).__module__}.{type(query).__name__}"
            raise InvalidValue(f"the function that starts the query must return it, and returned a {kind}")
        self.query, self.slots, self.status = query, slots, Status.RECOVERING
        if not query._jsq.streamingQuery().sparkSession().equals(self.spark._jsparkSession):
            query.stop()
            raise InvalidValue("the query was started by another session: use SparkSession.active()")

    def _first_batch(self) -> None:
        """Wait for the first report; one without a batch says that there is nothing to do."""
        self.doing = "waiting for the first batch"
        query = self._running()
        while query.lastProgress is None and not self.ending:
            if not query.isActive:
                error = query.exception()
                raise EngineError(f"the query ended before its first batch: {_words(error) if error else 'stopped'}")
            self._clock.sleep_until(self._clock.now() + FIRST_POLL_S)
        self.ready_s, self.status = self._clock.now(), Status.RUNNING

    def _running(self) -> StreamingQuery:
        if self.query is None:
            raise EngineError("the pipeline was not started")
        return self.query

    def _in_background(self, work: Callable[[], None]) -> None:
        if self.doing and self._worker is not None and self._worker.is_alive():
            raise EngineError(f"the pipeline is being built anew: {self.doing}")

        def guarded() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - told by the engine; a thread has nobody else to tell
                if not self.ending:
                    log.warning("the pipeline was not built anew", error=_words(error))
                self.failure = error
            finally:
                self.doing = ""

        self.failure, self.doing = None, "beginning"
        self._worker = threading.Thread(target=guarded, name="rheostat-pipeline", daemon=True)
        self._worker.start()


def stop_after_batch(query: StreamingQuery, clock: Clock, wait_s: float | None) -> None:
    """Stop a query between two batches; after `wait_s` without such a moment (None: never), inside one."""
    await_gap(query, clock, wait_s)
    query.stop()


def await_gap(
    query: StreamingQuery, clock: Clock, wait_s: float | None, given_up: Callable[[], bool] = lambda: False
) -> None:
    """Return when no batch runs, or after `wait_s`, or when it is given up.

    Where batches follow each other without a pause, the moment is when one has ended and the next has not begun. It
    can be missed, so whoever needs it looks into the checkpoint afterwards.
    """
    deadline_s = None if wait_s is None else clock.now() + wait_s
    worked = False
    while query.isActive and not given_up() and (deadline_s is None or clock.now() < deadline_s):
        message = str(query.status["message"])
        works = message.startswith(AT_WORK)
        if message.startswith("Waiting") or (worked and not works):
            return
        worked = works
        clock.sleep_until(clock.now() + POLL_S)


def _words(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0]
