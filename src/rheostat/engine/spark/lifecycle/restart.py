"""A query that Rheostat starts itself, and builds anew for another allocation.

    executors -> stop after a batch -> move the state -> start -> first sign of life

A batch can take minutes just when more slots are needed, so this happens beside the loop: meanwhile the engine says
how far it is. Each step is journaled before it is done. Whatever fails, a query that ran before runs again afterwards;
what only a kill can leave behind, a state that is half moved, is repaired at the next start (`checkpoint.py`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import structlog

from rheostat.clock import WallClock
from rheostat.engine.spark.lifecycle.checkpoint import PARTITIONS, Checkpoint, Repartition, StateStore, set_for_now
from rheostat.errors import EngineError, InvalidValue, JournalError, LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Status
from rheostat.ports import Clock, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Start = Callable[[Allocation], "StreamingQuery"]
"""Builds and starts a query for an allocation."""

Draw = Callable[[Allocation], Callable[[], "StreamingQuery"]]
"""Does what can be done for an allocation while another query still runs; what it returns starts the query."""

Prepare = Callable[[], Allocation | None]
"""Waits for what a restart needs, and returns what to build for; None when nothing is to be done."""

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

STARTED = re.compile(r"start with ((?:[^ =]+=\d+ ?)+)")
"""The step that starts the new query, as it is journaled."""

log = structlog.get_logger("rheostat.spark")


class Shape(Protocol):
    """What an allocation means for the query that is built for it."""

    exactly_once: bool
    """Whether the state is only moved after a whole batch has reached the sink."""

    def patience_s(self) -> float:
        """Return how long the end of a batch is waited for before it is cut off, to be repeated after the restart."""

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return Spark's number of shuffle partitions, which is that of a new state."""

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return the partitions that an existing state should have."""

    def keeping(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return what is left of an allocation when the state keeps its partitions."""

    def alive(self, query: StreamingQuery) -> bool:
        """Whether a query that was just started does its work."""


class MicroBatch:
    """All stages share the slots: several tasks for each, and a state that only ever gets more partitions."""

    exactly_once = True

    def patience_s(self) -> float:
        """Return a minute: batches can take long just when more slots are needed."""
        return BATCH_S

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return twice the slots."""
        return TASKS_PER_SLOT * allocation.slots

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return twice the slots, where that is more than there are."""
        return max(state.partitions, TASKS_PER_SLOT * allocation.slots)

    def keeping(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return it as it is: stages without state gain all the same."""
        return allocation

    def alive(self, query: StreamingQuery) -> bool:
        """Wait for the first report; one without a batch says that there is nothing to do."""
        return query.lastProgress is not None


class Pipeline:
    """A query and what builds it. `doing` says what is done to it at the moment, "" when nothing is."""

    def __init__(
        self,
        spark: SparkSession,
        draw: Draw,
        clock: Clock | None = None,
        shape: Shape | None = None,
    ) -> None:
        self.spark, self._draw, self._clock = spark, draw, clock or WallClock()
        self.shape: Shape = shape or MicroBatch()
        self.query: StreamingQuery | None = None
        self.allocation: Allocation | None = None
        """What it is built for."""
        self.status = Status.DOWN
        self.doing = ""
        self.ready_s = 0.0
        """When the query was first seen at work after the last start."""
        self.downtime_s: float | None = None
        """Seconds from the last restart's stop until the new query was seen at work."""
        self.failure: Exception | None = None
        """Why the last restart was given up."""
        self.fixed = ""
        """Why it cannot be built for another allocation."""
        self.kept = ""
        """Why the state keeps its partitions."""
        self.ending = False
        """Whether nothing more is to be done to it."""
        self._worker: threading.Thread | None = None

    @property
    def slots(self) -> int:
        """Slots that it is built for; 0 before the first start."""
        return 0 if self.allocation is None else self.allocation.slots

    def begin(self, allocation: Allocation) -> None:
        """Start it for the first time in this process."""
        self._start(allocation)
        self._in_background(self._first_sign)

    def rebuild(
        self,
        prepare: Prepare,
        note: Note,
        stopped: Callable[[], None] | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Build it anew, in the background, for the allocation that `prepare` returns after its waiting.

        `stopped` is called while no query runs, `done` when the new one was seen at work.
        """

        def work() -> None:
            self.doing = "waiting for executors"
            allocation = prepare()
            if allocation is not None:
                self._restart(allocation, note, stopped)
                if done is not None:
                    done()

        self._in_background(work)

    def revive(self, ready: Callable[[], None]) -> None:
        """Start a query again that has failed, in the background, when `ready` returns."""

        def work() -> None:
            allocation = self.allocation
            self.status, failed_s = Status.RECOVERING, self._clock.now()
            self.doing = "starting again after a failure"
            ready()
            if allocation is not None and not self.ending:
                self._start(allocation)
                self._first_sign()
                self.downtime_s = self.ready_s - failed_s

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

    def _restart(self, target: Allocation, note: Note, stopped: Callable[[], None] | None) -> None:
        was, checkpoint = self._built(), Checkpoint.of(self.spark, self._running())
        partitions = self._partitions(checkpoint, target, note)
        try:
            ready = self._drawn(target)
        except Exception as error:
            self._cannot_be_built(target, error)
            raise
        self._stop(checkpoint, partitions is not None and self.shape.exactly_once, note)
        stopped_s = self._clock.now()
        try:
            if partitions is not None:
                change = Repartition(checkpoint.location, checkpoint.done, *partitions)
                if not self._move(change, checkpoint, note):
                    target = self.shape.keeping(target, change.old)
                    ready = self._drawn(target)
            if stopped is not None:
                stopped()
            note(f"start with {target}")
            self._start(target, ready)
            self._first_sign()
        except LeaseRefused:
            raise  # another controller has the job, and starts it
        except Exception as error:
            if not isinstance(error, JournalError):
                self._cannot_be_built(target, error)
            with suppress(JournalError):
                note(f"start with {was} as before: {_words(error)}")
            self._start(was)
            self._first_sign()
            raise
        finally:
            if self.status is Status.RUNNING:
                self.downtime_s = self.ready_s - stopped_s

    def _partitions(self, checkpoint: Checkpoint, target: Allocation, note: Note) -> tuple[int, int] | None:
        """Return the state's partitions now and then; None when they stay as they are."""
        state = checkpoint.state()
        new = None if state is None else self.shape.state_partitions(target, state)
        if state is None or new is None or new == state.partitions:
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
            await_gap(query, self._clock, None if whole else self.shape.patience_s(), lambda: self.ending)
            if self.ending:
                raise EngineError("given up, because the scaler was stopped")
            query.stop()
            self.status, self.doing = Status.DOWN, "stopped"
            if (error := query.exception()) is not None:
                raise EngineError(f"the query failed: {_words(error)}")
            if not whole or checkpoint.begun == checkpoint.done:
                return
            note("start again: the next batch had begun, and state can only be moved after a whole one")
            self._start(self._built())
            self._first_sign()
        raise EngineError(f"the query was stopped {TRIES} times, and never between two batches")

    def _move(self, change: Repartition, checkpoint: Checkpoint, note: Note) -> bool:
        """Move the state; where Spark cannot, leave it as it was."""
        self.doing = f"moving the state from {change.old} to {change.new} partitions"
        note(str(change))
        try:
            checkpoint.repartition(change, exactly_once=self.shape.exactly_once)
        except EngineError as error:
            # Nothing to note: after a kill the journaled change leads to the same.
            checkpoint.roll_back(change.batch)
            self.kept = f"the state keeps its {change.old} partitions: {error}"
            note(self.kept)
            return False
        return True

    def _cannot_be_built(self, target: Allocation, error: Exception) -> None:
        self.fixed = f"it could not be built for {target}: {_words(error)}"

    def _drawn(self, allocation: Allocation) -> Callable[[], StreamingQuery]:
        from pyspark.sql import SparkSession

        # Every thread has its own; what builds the query may ask for it.
        SparkSession._get_j_spark_session_class(self.spark._jvm).setActiveSession(self.spark._jsparkSession)
        return self._draw(allocation)

    def _start(self, allocation: Allocation, ready: Callable[[], StreamingQuery] | None = None) -> None:
        from pyspark.sql.streaming.query import StreamingQuery

        self.doing = f"starting with {allocation}"
        ready = ready or self._drawn(allocation)
        with set_for_now(self.spark, {PARTITIONS: str(self.shape.shuffle_partitions(allocation))}):
            query = ready()
        if not isinstance(query, StreamingQuery):
            kind = f"{type(query).__module__}.{type(query).__name__}"
            raise InvalidValue(f"the function that starts the query must return it, and returned a {kind}")
        self.query, self.allocation, self.status = query, allocation, Status.RECOVERING
        if not query._jsq.streamingQuery().sparkSession().equals(self.spark._jsparkSession):
            query.stop()
            raise InvalidValue("the query was started by another session: use SparkSession.active()")

    def _first_sign(self) -> None:
        """Wait until the query is seen at work."""
        self.doing = "waiting for the first batch"
        query = self._running()
        while not self.shape.alive(query) and not self.ending:
            if not query.isActive:
                error = query.exception()
                raise EngineError(f"the query ended before its first batch: {_words(error) if error else 'stopped'}")
            self._clock.sleep_until(self._clock.now() + FIRST_POLL_S)
        self.ready_s, self.status = self._clock.now(), Status.RUNNING

    def _built(self) -> Allocation:
        if self.allocation is None:
            raise EngineError("the pipeline was not started")
        return self.allocation

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


def at_once(start: Start) -> Draw:
    """Draw nothing beforehand: a function of the user's builds and starts the query in one."""
    return lambda allocation: lambda: start(allocation)


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
