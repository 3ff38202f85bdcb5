"""The running micro-batch queries of one Spark application behind the Engine port.

Executors belong to the application, so there is one engine for all its queries and one tunable operator, the job. Its
tasks are the slots of all executors, in steps of one executor. A pipeline can start its query, so it is also restarted
when it has too few partitions for the slots.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rheostat.engine.batches.bottleneck import describe_unused_slots
from rheostat.engine.batches.observation import JobView, observe_queries
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.spark.executors.pool import Executors, Loss, describe_losses
from rheostat.engine.spark.executors.scheduler import Executor
from rheostat.engine.spark.lifecycle.restart import Pipeline
from rheostat.engine.spark.lifecycle.shape import JOB
from rheostat.engine.spark.telemetry.queries import QueryTelemetry
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.record import Intent
from rheostat.job.slo import Bounds
from rheostat.ports import Clock, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.2
"""Seconds between two checks for requested executors."""
PARTIAL_GRANT_S = 300.0
"""Seconds for which requests stay capped at the last partial grant."""


class MicroBatchEngine:
    """Observes queries through their progress and stages, and resizes their application."""

    def __init__(
        self,
        spark: SparkSession,
        target: Sequence[StreamingQuery] | Pipeline,
        executors: tuple[int, int],
        clock: Clock,
        *,
        name: str = "",
        window_s: float | None = None,
        patience_s: float = 60.0,
        counters: Mapping[str, OffsetCounter] | None = None,
    ) -> None:
        self.spark, self.clock = spark, clock
        self.pipeline = target if isinstance(target, Pipeline) else None
        self._attached = () if isinstance(target, Pipeline) else tuple(target)
        self.name = name or "+".join(query.name or str(query.id) for query in self._attached)
        self.least, self.most = executors
        self.window_s, self.patience_s = window_s, patience_s
        self.executors = Executors.of(spark.sparkContext)
        # A pipeline's worker reads the executors, too, and `Executors` is used from one thread at a time.
        self._executors_lock = threading.Lock()
        self.telemetry = QueryTelemetry(spark, clock, counters)
        self.telemetry.follow(self._attached)
        self._started_s = self._changed_s = self._lost_s = clock.now()
        self._executor_count = len(self.executors.running())
        self._partial_grant: tuple[int, float] | None = None
        """Executors of the last partial grant, and its moment."""
        self._applied = ""

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """The running queries; a restart replaces them."""
        if self.pipeline is None:
            return self._attached
        return () if self.pipeline.query is None else (self.pipeline.query,)

    @property
    def ended(self) -> bool:
        """Whether no query is active and none is restarting."""
        busy = self.pipeline is not None and bool(self.pipeline.activity)
        return not busy and not any(query.isActive for query in self.queries)

    @property
    def failure(self) -> Exception | None:
        """The error of the last restart."""
        return None if self.pipeline is None else self.pipeline.failure

    @property
    def executors_seen(self) -> int:
        """Executors at the last observation."""
        return self._executor_count

    def close(self) -> None:
        """Finish a restart that has stopped the query, cancel one that still waits, and stop listening."""
        try:
            if self.pipeline is not None:
                self.pipeline.finish()
        finally:
            self.telemetry.close()

    # -- the port ----------------------------------------------------------------------------------------------

    def describe(self) -> JobSpec:
        """Return the job as one tunable operator, bounded by the slots that it can use."""
        cores = self.executors.cores_per_executor
        most, useful = self.most * cores, self._usable_slots()
        if useful is not None:
            most = min(most, -(-useful // cores) * cores)
        if self._partial_grant is not None and self.clock.now() - self._partial_grant[1] < PARTIAL_GRANT_S:
            # Executors that register later may stay.
            most = min(most, max(self._partial_grant[0], self._executor_count) * cores)
        low = self.least * cores
        return JobSpec(self.name, Graph((JOB,), (), (JOB,)), (Tunable(JOB, Bounds(low, max(low, most)), cores),))

    def apply(self, intent: Intent, note: Note) -> None:
        """Request a number of executors, which register one by one; a pipeline may restart to use them."""
        if intent.id == self._applied:
            return
        if set(intent.target.tasks) != {JOB}:
            raise EngineError(
                f"a micro-batch application has the one operator {JOB!r}, not {sorted(intent.target.tasks)}"
            )
        cores = self.executors.cores_per_executor
        count, rest = divmod(intent.target.tasks[JOB], cores)
        if rest or not count:
            slots = intent.target.tasks[JOB]
            raise EngineError(f"{slots} slots is not a multiple of spark.executor.cores ({cores})")
        if self.pipeline is not None:
            if self.pipeline.activity:
                raise EngineError(f"the pipeline is restarting: {self.pipeline.activity}")
            self.pipeline.failure = self.pipeline.downtime_s = None
        with self._executors_lock:
            self.executors.request(count, note)
        self._applied = intent.id
        if self.pipeline is not None and not self.pipeline.fixed_reason:
            # Before the first batch its tasks are unknown: then the slots that it was built for count.
            usable = self.telemetry.max_tasks or self.pipeline.slots
            if intent.target.slots > usable:
                self.pipeline.restart(lambda: self._await_executors(usable), note)

    def observe(self) -> Observation:
        """Return the window of the batches since the last change."""
        now_s = self.clock.now()
        activity, status, downtime_s = self._restart_state()
        if self.telemetry.follow(self.queries):
            self._started_s = now_s
        if self.pipeline is not None:
            # The first batch loads state and works off the backlog of the restart: it belongs to the change.
            self._changed_s = max(self._changed_s, self.pipeline.ready_s)
        self.telemetry.collect()
        with self._executors_lock:
            survey = self.executors.survey(self.patience_s, now_s)
        change, slots = survey.change, self._slots(survey.running, now_s)
        lost = self._new_losses(survey.losses, now_s)
        self.telemetry.slot_history.record(now_s, slots, replaced=lost is not None)
        if change is Change.PARTIAL and self._executor_count < (self.executors.wanted or 0):
            self._partial_grant = self._executor_count, now_s
        if activity:
            change = Change.UNDER_WAY
        elif self.failure is not None:
            change = Change.FAILED
        running = Allocation({JOB: slots}) if slots else None
        requested = self.executors.wanted
        wanted = running if requested is None else Allocation({JOB: requested * self.executors.cores_per_executor})
        if status is not Status.RUNNING or not any(query.isActive for query in self.queries):
            down = status if activity else Status.DOWN
            ended = f"restart: {activity}" if activity else self._why_ended()
            return JobView(now_s, running, wanted, change, down).observation(problem=ended)
        now_s = self.clock.now()  # of the readings, not of the first request for them
        parts, problem = self.telemetry.windows(now_s, self.window_s, self._changed_s, slots)
        uptime_s = now_s - self._started_s
        limits = tuple(self._slot_limit(slots))
        job = JobView(now_s, running, wanted, change, Status.RUNNING, uptime_s, downtime_s, limits)
        return observe_queries(job, JOB, slots, parts, lost or problem)

    # -- parts ------------------------------------------------------------------------------------------------

    def _restart_state(self) -> tuple[str, Status, float | None]:
        """Return the pipeline's present activity, its status and its last downtime; attached queries never restart."""
        if self.pipeline is None:
            return "", Status.RUNNING, None
        # The activity first: a restart that ends between the two reads still counts as under way.
        activity = self.pipeline.activity
        return activity, self.pipeline.status, self.pipeline.downtime_s

    def _why_ended(self) -> str:
        error = self.telemetry.failure if self.failure is None else str(self.failure)
        return f"no query is active{': ' + error.splitlines()[0] if error else ''}"

    def _usable_slots(self) -> int | None:
        """Return the most slots that get tasks; None if a restart can add tasks, or before the first stage."""
        limited = bool(self.telemetry.max_tasks)
        if self.pipeline is not None:
            fixed = bool(self.pipeline.fixed_reason)
            limited = limited and (fixed or self.telemetry.max_tasks < self.pipeline.slots)
        return self.telemetry.max_tasks if limited else None

    def _slot_limit(self, slots: int) -> list[str]:
        """Return why more slots, or some of the present ones, stay idle."""
        useful = self._usable_slots()
        if useful is None or slots < useful:
            return []
        if self.pipeline is None:
            return [describe_unused_slots(useful, slots)] if slots > useful else []
        pipeline = self.pipeline
        built = f"it was started for {pipeline.slots} slots, and its widest stage has {useful} tasks"
        reason = pipeline.fixed_reason or pipeline.state_fixed_reason or built
        return [f"more than {useful} slots cannot be used: {reason}"]

    def _await_executors(self, usable: int) -> Allocation | None:
        """Wait until no more executors register; return the slots, or None if these need no restart."""
        while self.pipeline is not None and not self.pipeline.closing:
            with self._executors_lock:
                now_s = self.clock.now()
                under_way = self.executors.state(self.patience_s, now_s) is Change.UNDER_WAY
                count = len(self.executors.running())
            if not under_way:
                slots = count * self.executors.cores_per_executor
                return Allocation({JOB: slots}) if slots > usable else None
            self.clock.sleep(POLL_S)
        return None

    def _slots(self, running: Sequence[Executor], now_s: float) -> int:
        """Return the slots of the executors; if their number has changed, a new window starts."""
        count = len(running)
        if count != self._executor_count:
            came_s = max((executor.since_s for executor in running), default=now_s)
            # Of a removal only the moment of this call is known. A clock that was set proves nothing.
            grew = count > self._executor_count and self._changed_s < came_s < now_s
            self._executor_count, self._changed_s = count, came_s if grew else now_s
        # Without `spark.executor.cores` executors may differ; a dry run looks at such applications, too.
        return sum(executor.cores for executor in running)

    def _new_losses(self, losses: Sequence[Loss], now_s: float) -> str | None:
        """Return a message about executors that died since the last observation; a loss starts a new window."""
        new = [loss for loss in losses if loss.noticed_s >= self._lost_s]
        self._lost_s = self.clock.now()
        if not new:
            return None
        self._changed_s = now_s
        return describe_losses(new)
