"""A pipeline in real-time mode behind the Engine port: every stage has its own tasks, and each change is a restart.

    executors -> stop after a batch -> repartition the state -> remove surplus executors -> start -> tasks run

In real-time mode every task occupies a slot for the whole batch, and a query with too few slots fails. So the slots are
counted before the query is stopped. A query that fails, as after the death of an executor, is restarted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rheostat.engine.batches.lateness import worth_waiting_s
from rheostat.engine.batches.observation import JobView, observe_stages
from rheostat.engine.batches.selection import WINDOW_S
from rheostat.engine.spark.executors.slots import Slots
from rheostat.engine.spark.lifecycle.application import Query, SparkApplication
from rheostat.engine.spark.lifecycle.checkpoint import StateStore
from rheostat.engine.spark.lifecycle.downtime import Downtime, expected_downtime_s
from rheostat.engine.spark.lifecycle.restart import Pipeline
from rheostat.engine.spark.lifecycle.watcher import Watcher
from rheostat.engine.spark.pipeline import BATCH_S, Staged
from rheostat.engine.spark.telemetry.staged import StagedTelemetry
from rheostat.engine.spark.telemetry.topic import TopicEnds
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.record import Intent
from rheostat.job.slo import Bounds
from rheostat.ports import Clock, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCH_HISTORY = 512
"""Batches to retain: more than a window covers."""
POLL_S = 0.2
"""Seconds between two checks for slots."""

log = logging.getLogger(__name__)


class RealTime:
    """The meaning of an allocation in real-time mode: the state has one partition per task of the keyed stage."""

    exactly_once = False
    """False: the sink is Kafka, and an unfinished batch is written to it again."""

    def __init__(self, spark: SparkSession, pipeline: Staged, stop_wait_s: Callable[[], float]) -> None:
        self._tracker: Any = spark.sparkContext.statusTracker()
        self._pipeline, self._stop_wait_s = pipeline, stop_wait_s

    def stop_wait_s(self) -> float:
        """Return a limited wait for the end of a batch: an overdue batch may be the reason for the change."""
        return self._stop_wait_s()

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return the tasks of the keyed stage."""
        return allocation.tasks[self._pipeline.keyed] if self._pipeline.keyed else 1

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return the tasks of the keyed stage."""
        return self.shuffle_partitions(allocation)

    def with_state_partitions(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return the allocation with one task of the keyed stage per partition of the state."""
        return allocation.with_tasks({self._pipeline.keyed: partitions} if self._pipeline.keyed else {})

    def is_processing(self, query: Query) -> bool:
        """Whether the stages run, or a batch has finished."""
        # After a single task Spark needs no exchange by key, and runs the keyed stage together with the one before.
        stages = max(2, len(self._pipeline.names) - 1)
        return len(self._tracker.getActiveStageIds()) >= stages or query.lastProgress is not None


class RealTimeEngine:
    """Observes a real-time query through its batches and its topic, and restarts it with other tasks."""

    def __init__(
        self,
        spark: SparkSession,
        staged: Staged,
        slots: Slots,
        clock: Clock,
        *,
        name: str = "",
        window_s: float | None = None,
        patience_s: float = 60.0,
    ) -> None:
        self.spark, self.staged, self.slots, self.clock = spark, staged, slots, clock
        self.name = name or staged.name
        self.window_s, self.patience_s = WINDOW_S if window_s is None else window_s, patience_s
        shape = RealTime(spark, staged, self._stop_wait_s)
        application = SparkApplication(spark)
        self.pipeline = Pipeline(application, lambda allocation: staged.build(spark, allocation), clock, shape)
        self.checkpoint = application.checkpoint(staged.checkpoint)
        topic = TopicEnds.of_topic(spark, staged.source.servers, staged.source.topic, staged.source.options)
        self.partitions = topic.partitions()
        self.telemetry = StagedTelemetry(spark, staged.names, topic, clock, self.window_s, BATCH_S)
        self._waits: set[str] = set()
        self._applied = ""
        self._target: Allocation | None = None
        self._downtimes: list[Downtime] = []
        self._watcher = Watcher(self.name, self.pipeline, self._await_own_slots)

    # -- for the scaler ------------------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """The running query; a restart replaces it."""
        return () if self.pipeline.query is None else (self.pipeline.query,)

    @property
    def ended(self) -> bool:
        """Whether the user stopped the query, or it keeps failing after restarts."""
        if self.pipeline.activity:
            return False
        stopped = any(not query.isActive and query.exception() is None for query in self.queries)
        return self._watcher.given_up or stopped

    @property
    def failure(self) -> Exception | None:
        """The error of the last restart."""
        return self.pipeline.failure

    def begin(self, allocation: Allocation) -> None:
        """Start the query for the first time in this process."""
        self._check_state()
        self.check_slots(allocation, self.slots.most)
        self.slots.request(self.slots_needed(allocation), lambda _: None)
        self._await_slots(allocation)
        self.pipeline.begin(allocation)
        self._watcher.start()

    def close(self) -> None:
        """Allow no further restart, and stop listening."""
        self._watcher.closed.set()
        try:
            self.pipeline.finish()
        finally:
            self.telemetry.close()

    # -- the port ------------------------------------------------------------------------------------------------

    @property
    def pinned(self) -> str:
        """Why the state cannot be repartitioned; "" if it can."""
        return self.pipeline.state_fixed_reason

    def describe(self) -> JobSpec:
        """Return a chain: the source has one task per partition of its topic, the stages share the other slots."""
        names = self.staged.names
        left = self.slots.most - self.partitions
        most = max(1, left - (len(names) - 2))
        fixed = {names[0]: (self.partitions, f"one task per partition of topic {self.staged.source.topic}")}
        if self.pinned and self.staged.keyed:
            tasks = self.pipeline.allocation.tasks[self.staged.keyed] if self.pipeline.allocation else 1
            fixed[self.staged.keyed] = (tasks, self.pinned)
        edges = tuple(Edge(one, other) for one, other in pairwise(names))
        tunable = tuple(Tunable(name, Bounds(1, most)) for name in names if name not in fixed)
        pinned = tuple(Pinned(name, tasks, reason) for name, (tasks, reason) in fixed.items())
        occupied = sum(tasks for tasks, _ in fixed.values())
        return JobSpec(
            self.name,
            Graph(names, edges, (names[0],)),
            tunable,
            pinned,
            checkpoint_interval_s=BATCH_S,
            slots_available=max(len(tunable), self.slots.most - occupied),
        )

    def apply(self, intent: Intent, note: Note) -> None:
        """Restart the query with the requested tasks, in the background."""
        if intent.id == self._applied:
            return
        target = self._with_pinned(intent.target)
        self.check_slots(target, self.slots.most)
        if self.pipeline.activity:
            raise EngineError(f"the pipeline is restarting: {self.pipeline.activity}")
        self._target = target
        self.pipeline.failure = self.pipeline.downtime_s = None
        if target == self.pipeline.allocation:
            self._applied = intent.id
            return
        needed = self.slots_needed(target)
        if needed > self.slots.available():
            self.slots.request(needed, note)
        # Only now: a request that the cluster manager refused is made again with the same intent.
        self._applied = intent.id
        before, keys = self.pipeline.allocation, self.telemetry.state_rows

        def prepare() -> Allocation:
            self._await_slots(target)
            return target

        def done() -> None:
            if self.pipeline.failure is None and self.pipeline.downtime_s is not None and before is not None:
                keyed = self.staged.keyed
                moved = keyed is not None and target.tasks[keyed] != before.tasks[keyed]
                self._downtimes.append(Downtime(moved, keys, self.pipeline.downtime_s))

        self.pipeline.restart(prepare, note, stopped=lambda: self.slots.request(needed, note), done=done)

    def observe(self) -> Observation:
        """Return the window of the batches since the last change."""
        now_s = self.clock.now()
        # The activity first: a restart that ends between the two reads still counts as under way.
        activity, status, downtime_s = self.pipeline.activity, self.pipeline.status, self.pipeline.downtime_s
        self.telemetry.begin()
        allocation = self.pipeline.allocation
        tasks = None if allocation is None else {self.staged.names[0]: self.partitions, **allocation.tasks}
        if self.telemetry.collect(self.pipeline.query, tasks, self.pipeline.ready_s, now_s):
            self._watcher.failures.clear()
        broker_problem = self.telemetry.count_arrivals(now_s)
        running = None if allocation is None else self._tunable_part(allocation)
        change = self.slots.state(self.patience_s, now_s)
        if activity:
            change = Change.UNDER_WAY
        elif self.failure is not None:
            change = Change.FAILED
        now = self.telemetry.running(now_s)
        if activity or status is not Status.RUNNING or now is None:
            problem = f"restart: {activity}" if activity else self._why_ended()
            wanted = running if self._target is None else self._tunable_part(self._target)
            down = status if activity else Status.DOWN
            # While a restart waits for the end of a batch, that batch goes on.
            sources = (self.telemetry.source(now, now_s),)
            return JobView(now_s, running, wanted, change, down).observation(sources=sources, problem=problem)
        job = JobView(
            now_s,
            running,
            running,
            change,
            Status.RUNNING,
            now_s - self.telemetry.started_s,
            downtime_s,
            tuple(text for text in (self.pipeline.state_fixed_reason, self.pipeline.fixed_reason) if text),
            {
                name: expected_downtime_s(self._downtimes, name == self.staged.keyed, self.telemetry.state_rows)
                for name in (() if running is None else running.tasks)
            },
        )
        window = self.telemetry.window(now, now_s)
        if isinstance(window, str):
            sources, overdue_s = (self.telemetry.source(now, now_s),), self.telemetry.overdue_s(now_s)
            return job.observation(sources=sources, overdue_s=overdue_s, problem=broker_problem or window)
        for name in set(window.waits) - self._waits:
            self._waits.add(name)
            log.warning(
                "stage %r is overloaded although its CPU time is short: it waits for something. Its rate is known only "
                "while it is overloaded; measure its time with p.stage(%r, ..., timed=True)",
                name,
                name,
            )
        former_tasks, former = self.telemetry.former_tasks, None
        if former_tasks is not None and not window.overdue_s:
            former = self._tunable_part(Allocation({name: former_tasks[name] for name in self.staged.names[1:]}))
        since_s = self.pipeline.ready_s if former_tasks is None else 0.0
        return observe_stages(job, self.staged.names[0], window, broker_problem, since_s, former)

    # -- slots -----------------------------------------------------------------------------------------------------

    def slots_needed(self, allocation: Allocation) -> int:
        """Return the slots of an allocation, with those of the source."""
        return self.partitions + allocation.slots

    def check_slots(self, allocation: Allocation, available: int) -> None:
        """Refuse an allocation that would fail on Spark: in real-time mode every task needs its own slot."""
        if (needed := self.slots_needed(allocation)) > available:
            raise EngineError(
                f"{allocation} and {self.partitions} tasks of the source need {needed} slots at the same time, and "
                f"there are {available}: use more executors or fewer tasks"
            )

    def _await_slots(self, allocation: Allocation) -> None:
        deadline_s = self.clock.monotonic() + self.patience_s
        while (available := self.slots.available()) < self.slots_needed(allocation):
            if self.clock.monotonic() > deadline_s or self._watcher.closed.is_set():
                self.check_slots(allocation, available)
            self.clock.sleep(POLL_S)

    def _await_own_slots(self) -> None:
        if self.pipeline.allocation is not None:
            self._await_slots(self.pipeline.allocation)

    # -- allocations -----------------------------------------------------------------------------------------------

    def _with_pinned(self, target: Allocation) -> Allocation:
        """Return an allocation of all stages, pinned ones included."""
        stages = set(self.staged.names[1:])
        tasks = dict(target.tasks)
        if self.pinned and self.staged.keyed and self.pipeline.allocation is not None:
            tasks[self.staged.keyed] = self.pipeline.allocation.tasks[self.staged.keyed]
        if set(tasks) != stages:
            raise EngineError(f"the pipeline has the stages {sorted(stages)}, not {sorted(tasks)}")
        return Allocation({name: tasks[name] for name in self.staged.names[1:]})

    def _tunable_part(self, allocation: Allocation) -> Allocation:
        """Return the allocation without pinned stages."""
        fixed = self.staged.keyed if self.pinned else None
        return Allocation({name: count for name, count in allocation.tasks.items() if name != fixed})

    def _check_state(self) -> None:
        """Find out before the first decision whether the state can be repartitioned."""
        if self.staged.keyed:
            self.pipeline.state_fixed_reason = self.checkpoint.immovable_reason()

    def _stop_wait_s(self) -> float:
        """Return the seconds for which it pays to wait for the end of the running batch."""
        before = {} if self.pipeline.allocation is None else self.pipeline.allocation.tasks
        target = {} if self._target is None else self._target.tasks
        now_s = self.clock.now()
        elapsed_s, left_s = self.telemetry.elapsed_s(now_s), self.telemetry.left_s(now_s)
        return worth_waiting_s(elapsed_s, 2 * BATCH_S, before, target, left_s)

    def _why_ended(self) -> str:
        error = self._watcher.failures[-1] if self._watcher.failures else ""
        if self.failure is not None:
            error = str(self.failure)
        return f"the query is not active{': ' + error if error else ''}"
