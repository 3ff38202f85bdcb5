"""Running micro-batch queries of one Spark application behind the Engine port.

Executors belong to the application, so there is one engine for all its queries and one tunable operator, the job:
its tasks are the slots of all executors, in steps of one executor. A pipeline, which knows how to start its query, is
also restarted when its partitions are too few for the slots.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rheostat.engine.batches.bottleneck import describe_unused_slots
from rheostat.engine.batches.observation import JobView, observe_queries
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.spark.executors.pool import Executors, Loss, lost_executors
from rheostat.engine.spark.lifecycle.restart import JOB, Pipeline
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
"""Seconds between two looks at executors that are waited for."""
NO_ROOM_S = 300.0
"""Seconds for which requests stay capped at the last partial grant."""


class MicroBatchEngine:
    """Sees queries through their progress and stages, and resizes their application."""

    def __init__(
        self,
        spark: SparkSession,
        what: Sequence[StreamingQuery] | Pipeline,
        executors: tuple[int, int],
        clock: Clock,
        *,
        name: str = "",
        window_s: float = 30.0,
        patience_s: float = 60.0,
        counters: Mapping[str, OffsetCounter] | None = None,
    ) -> None:
        self.spark, self.clock = spark, clock
        self.pipeline = what if isinstance(what, Pipeline) else None
        self._attached = () if isinstance(what, Pipeline) else tuple(what)
        self.name = name or "+".join(query.name or str(query.id) for query in self._attached)
        self.least, self.most = executors
        self.window_s, self.patience_s = window_s, patience_s
        self.executors = Executors.of(spark.sparkContext)
        # A pipeline's worker looks at the executors too, and they are used from one thread at a time.
        self._lever = threading.Lock()
        self.telemetry = QueryTelemetry(spark, counters)
        self.telemetry.follow(self._attached)
        self._started_s = self._changed_s = self._lost_s = clock.now()
        self._before = len(self.executors.running())
        self._given: tuple[int, float] | None = None
        self._applied = ""

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """The queries that run; a restart replaces them."""
        if self.pipeline is None:
            return self._attached
        return () if self.pipeline.query is None else (self.pipeline.query,)

    @property
    def ended(self) -> bool:
        """Whether no query is active, and none is about to be."""
        busy = self.pipeline is not None and bool(self.pipeline.doing)
        return not busy and not any(query.isActive for query in self.queries)

    @property
    def failure(self) -> Exception | None:
        """Why the last restart was given up."""
        return None if self.pipeline is None else self.pipeline.failure

    @property
    def executors_seen(self) -> int:
        """Executors that there were at the last look."""
        return self._before

    def close(self) -> None:
        """Wait for the end of a restart that is under way, give up one that only waits, and stop listening."""
        try:
            if self.pipeline is not None:
                self.pipeline.finish()
        finally:
            self.telemetry.close()

    # -- the port ----------------------------------------------------------------------------------------------

    def describe(self) -> JobSpec:
        """Return one tunable operator; never more slots than can be used."""
        cores = self.executors.cores_per_executor
        most, useful = self.most * cores, self._useful()
        if useful is not None:
            most = min(most, -(-useful // cores) * cores)
        if self._given is not None and self.clock.now() - self._given[1] < NO_ROOM_S:
            # Those that come all the same may stay.
            most = min(most, max(self._given[0], self._before) * cores)
        low = self.least * cores
        return JobSpec(self.name, Graph((JOB,), (), (JOB,)), (Tunable(JOB, Bounds(low, max(low, most)), cores),))

    def apply(self, intent: Intent, note: Note) -> None:
        """Ask for another number of executors, which Spark brings one by one; a pipeline may be restarted for them."""
        if intent.id == self._applied:
            return
        if set(intent.target.tasks) != {JOB}:
            raise EngineError(f"a micro-batch application has the operator {JOB!r}, not {sorted(intent.target.tasks)}")
        cores = self.executors.cores_per_executor
        count, rest = divmod(intent.target.tasks[JOB], cores)
        if rest or not count:
            raise EngineError(f"{intent.target.tasks[JOB]} slots are no whole number of executors of {cores}")
        if self.pipeline is not None:
            if self.pipeline.doing:
                raise EngineError(f"the pipeline is being built anew: {self.pipeline.doing}")
            self.pipeline.failure = self.pipeline.downtime_s = None
        with self._lever:
            self.executors.want(count, note)
        self._applied = intent.id
        if self.pipeline is not None and not self.pipeline.fixed:
            # Before its first batch nothing is known but what it was built for.
            enough = self.telemetry.max_tasks or self.pipeline.slots
            if intent.target.slots > enough:
                self.pipeline.rebuild(lambda: self._arrived(enough), note)

    def observe(self) -> Observation:
        """Return what the batches since the last change, or of the last window, show."""
        now_s = self.clock.now()
        doing, status, downtime_s = self._doing()
        if self.telemetry.follow(self.queries):
            self._started_s = now_s
        if self.pipeline is not None:
            # The first batch loads state and works off what the restart held up: it belongs to the change.
            self._changed_s = max(self._changed_s, self.pipeline.ready_s)
        self.telemetry.collect()
        with self._lever:
            seen = self.executors.survey(self.patience_s, now_s)
        change, slots, lost = seen.change, self._slots(len(seen.running), now_s), self._lost(seen.losses, now_s)
        self.telemetry.slot_history.record(now_s, slots, replaced=lost is not None)
        if change is Change.PARTIAL and self._before < (self.executors.wanted or 0):
            self._given = self._before, now_s
        if doing:
            change = Change.UNDER_WAY
        elif self.failure is not None:
            change = Change.FAILED
        running = Allocation({JOB: slots}) if slots else None
        asked = self.executors.wanted
        wanted = running if asked is None else Allocation({JOB: asked * self.executors.cores_per_executor})
        if status is not Status.RUNNING or not any(query.isActive for query in self.queries):
            down = status if doing else Status.DOWN
            why = f"restart: {doing}" if doing else self._why_ended()
            return JobView(now_s, running, wanted, change, down).observation(problem=why)
        parts, problem = self.telemetry.windows(now_s, self.window_s, self._changed_s, slots)
        uptime_s = now_s - self._started_s
        job = JobView(now_s, running, wanted, change, Status.RUNNING, uptime_s, downtime_s, tuple(self._cap(slots)))
        return observe_queries(job, JOB, slots, parts, lost or problem)

    # -- what it is made of -----------------------------------------------------------------------------------

    def _doing(self) -> tuple[str, Status, float | None]:
        """Return what is done to the pipeline at the moment; attached queries are left alone."""
        if self.pipeline is None:
            return "", Status.RUNNING, None
        # In this order: a restart that ends in between still counts as under way.
        doing = self.pipeline.doing
        return doing, self.pipeline.status, self.pipeline.downtime_s

    def _why_ended(self) -> str:
        why = self.telemetry.failure if self.failure is None else str(self.failure)
        return f"no query is active{': ' + why.splitlines()[0] if why else ''}"

    def _useful(self) -> int | None:
        """Return the most slots that find tasks; None where a restart can make more, or no stage was seen."""
        known = bool(self.telemetry.max_tasks)
        if self.pipeline is not None:
            known = known and (bool(self.pipeline.fixed) or self.telemetry.max_tasks < self.pipeline.slots)
        return self.telemetry.max_tasks if known else None

    def _cap(self, slots: int) -> list[str]:
        """Say why more slots have no use, or why some have none already."""
        useful = self._useful()
        if useful is None or slots < useful:
            return []
        if self.pipeline is None:
            return [describe_unused_slots(useful, slots)] if slots > useful else []
        built = f"built for {self.pipeline.slots} slots, its widest stage has {useful} tasks"
        return [f"more than {useful} slots have no use: {self.pipeline.fixed or self.pipeline.kept or built}"]

    def _arrived(self, enough: int) -> Allocation | None:
        """Wait until no more executors come, and return the slots that are there; None when these need no restart."""
        while self.pipeline is not None and not self.pipeline.ending:
            with self._lever:
                now_s = self.clock.now()
                under_way = self.executors.state(self.patience_s, now_s) is Change.UNDER_WAY
                count = len(self.executors.running())
            if not under_way:
                slots = count * self.executors.cores_per_executor
                return Allocation({JOB: slots}) if slots > enough else None
            self.clock.sleep_until(now_s + POLL_S)
        return None

    def _slots(self, count: int, now_s: float) -> int:
        """Return the slots of so many executors; whenever they are others than before, windows begin anew."""
        if count != self._before:
            self._before, self._changed_s = count, now_s
        return count * self.executors.cores_per_executor

    def _lost(self, losses: Sequence[Loss], now_s: float) -> str | None:
        """Name the executors that died since the last look; whatever their number now is, windows begin anew."""
        lost = [loss for loss in losses if loss.noticed_s >= self._lost_s]
        self._lost_s = self.clock.now()
        if not lost:
            return None
        self._changed_s = now_s
        return lost_executors(lost)
