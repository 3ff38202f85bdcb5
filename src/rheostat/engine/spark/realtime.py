"""A pipeline in real-time mode behind the Engine port: tasks of every stage are tuned, each change is a restart.

    executors -> stop after a batch -> move the state -> executors that are too many leave -> start -> tasks run

In real-time mode every task holds a slot for the whole batch, and a query without slots enough fails: slots are
counted before anything is stopped. A query that fails, as it does when an executor dies, is started again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rheostat.engine.batches.lateness import Chain, worth_waiting_s
from rheostat.engine.batches.observation import JobView, observe_stages
from rheostat.engine.batches.offsets import KafkaCounter
from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.batches.realtime_window import (
    ArrivalCount,
    RealTimeWindow,
    RunningBatch,
    arrival_rate,
    realtime_window,
)
from rheostat.engine.batches.selection import window_start_s
from rheostat.engine.batches.stage import Stage
from rheostat.engine.spark.executors.slots import Slots
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint, StateStore
from rheostat.engine.spark.lifecycle.downtime import Downtime, expected_downtime_s
from rheostat.engine.spark.lifecycle.owner import Owner
from rheostat.engine.spark.lifecycle.restart import Pipeline
from rheostat.engine.spark.lifecycle.watcher import Watcher
from rheostat.engine.spark.pipeline import BATCH_S, Staged
from rheostat.engine.spark.telemetry.feed import Feed
from rheostat.engine.spark.telemetry.stages import Stages
from rheostat.engine.spark.telemetry.topic import TopicEnds
from rheostat.errors import EngineError, RheostatError
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import Change, Observation, SourceReading, Status
from rheostat.job.record import Intent
from rheostat.job.slo import Bounds
from rheostat.ports import Clock, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KEPT = 512
ARRIVALS_KEPT = 1024
POLL_S = 0.2


class RealTime:
    """What an allocation means in real-time mode: the state has as many partitions as the keyed stage has tasks."""

    exactly_once = False
    """The sink is Kafka, which gets a batch again that was not finished."""

    def __init__(self, spark: SparkSession, pipeline: Staged, left_s: Callable[[], float]) -> None:
        self._tracker: Any = spark.sparkContext.statusTracker()
        self._pipeline, self._left_s = pipeline, left_s

    def patience_s(self) -> float:
        """Wait for the end of a batch, but not for ever: one that is overdue is what a change is to cure."""
        return self._left_s()

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return the tasks of the keyed stage."""
        return allocation.tasks[self._pipeline.keyed] if self._pipeline.keyed else 1

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return the tasks of the keyed stage."""
        return self.shuffle_partitions(allocation)

    def keeping(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return it with as many tasks of the keyed stage as the state has partitions."""
        return allocation.with_tasks({self._pipeline.keyed: partitions} if self._pipeline.keyed else {})

    def alive(self, query: StreamingQuery) -> bool:
        """Whether the stages are at work, or a batch was finished meanwhile."""
        # Behind a single task Spark needs no exchange by key, and runs the keyed stage in the one before it.
        stages = max(2, len(self._pipeline.names) - 1)
        return len(self._tracker.getActiveStageIds()) >= stages or query.lastProgress is not None


@dataclass(frozen=True, slots=True)
class Earlier:
    """The last batch before a restart, with its stages and the tasks that it ran with."""

    batch: Batch
    work: tuple[Stage, ...]
    tasks: Mapping[str, int]


class RealTimeEngine:
    """Sees a real-time query through its batches and its topic, and starts it anew with other tasks."""

    def __init__(
        self,
        spark: SparkSession,
        staged: Staged,
        slots: Slots,
        clock: Clock,
        *,
        name: str = "",
        window_s: float = 30.0,
        patience_s: float = 60.0,
    ) -> None:
        self.spark, self.staged, self.slots, self.clock = spark, staged, slots, clock
        self.name = name or staged.name
        self.window_s, self.patience_s = window_s, patience_s
        shape = RealTime(spark, staged, self._left_s)
        self.pipeline = Pipeline(spark, lambda allocation: staged.drawn(spark, allocation), clock, shape)
        self.topic = TopicEnds(spark, staged.source.servers, staged.source.topic, staged.source.options)
        self.partitions = self.topic.partitions()
        self._feed = Feed()
        spark.streams.addListener(self._feed)
        self._stages = Stages(spark.sparkContext)
        self._store: Any = spark.sparkContext._jsc.sc().statusStore()
        self._batches: deque[Batch] = deque(maxlen=KEPT)
        self._work: deque[Stage] = deque(maxlen=KEPT * len(staged.names))
        self._arrived: deque[ArrivalCount] = deque(maxlen=ARRIVALS_KEPT)
        self._run = ""
        self._before: Earlier | None = None
        self._applied = ""
        self._target: Allocation | None = None
        self._started_s = clock.now()
        self._tasks: dict[str, int] = {}
        self._downtimes: list[Downtime] = []
        self._owner = Owner(Checkpoint(spark, staged.checkpoint), clock)
        self._watcher = Watcher(self.name, self.pipeline, self._owner, self._await_own_slots)

    # -- what the scaler needs -----------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """The query that runs; a restart replaces it."""
        return () if self.pipeline.query is None else (self.pipeline.query,)

    @property
    def ended(self) -> bool:
        """Whether the query was stopped by someone else, or fails whenever it is started."""
        if self.pipeline.doing:
            return False
        stopped = any(not query.isActive and query.exception() is None for query in self.queries)
        return self._watcher.given_up or stopped

    @property
    def failure(self) -> Exception | None:
        """Why the last restart was given up."""
        return self.pipeline.failure

    def claim(self) -> None:
        """Wait until no other driver works on the checkpoint; refuse where one goes on."""
        self._owner.claim()

    def begin(self, allocation: Allocation) -> None:
        """Start the query for the first time in this process."""
        self._check_pinned()
        self.check_slots(allocation, self.slots.most)
        self.slots.want(self.needed(allocation), lambda _: None)
        self._await_slots(allocation)
        self.pipeline.begin(allocation)
        self._watcher.start()

    def close(self) -> None:
        """Let nothing more be done to the query, and stop listening."""
        self._watcher.closed.set()
        try:
            self.pipeline.finish()
        finally:
            if not any(query.isActive for query in self.queries):
                self._owner.release()
            self.spark.streams.removeListener(self._feed)
            self.topic.close()

    # -- the port ------------------------------------------------------------------------------------------------

    @property
    def pinned(self) -> str:
        """Why the state keeps its number of partitions; "" where it can be moved."""
        return self.pipeline.kept

    def describe(self) -> JobSpec:
        """Return a chain: the source has a task per partition of its topic, the stages share the other slots."""
        names = self.staged.names
        room = self.slots.most - self.partitions
        most = max(1, room - (len(names) - 2))
        fixed = {names[0]: (self.partitions, f"one task per partition of topic {self.staged.source.topic}")}
        if self.pinned and self.staged.keyed:
            tasks = self.pipeline.allocation.tasks[self.staged.keyed] if self.pipeline.allocation else 1
            fixed[self.staged.keyed] = (tasks, self.pinned)
        edges = tuple(Edge(one, other) for one, other in pairwise(names))
        tunable = tuple(Tunable(name, Bounds(1, most)) for name in names if name not in fixed)
        pinned = tuple(Pinned(name, tasks, why) for name, (tasks, why) in fixed.items())
        held = sum(tasks for tasks, _ in fixed.values())
        return JobSpec(
            self.name,
            Graph(names, edges, (names[0],)),
            tunable,
            pinned,
            checkpoint_interval_s=BATCH_S,
            slots_available=max(len(tunable), self.slots.most - held),
        )

    def apply(self, intent: Intent, note: Note) -> None:
        """Start the query anew with the wanted tasks, in the background."""
        if intent.id == self._applied:
            return
        target = self._whole(intent.target)
        self.check_slots(target, self.slots.most)
        if self.pipeline.doing:
            raise EngineError(f"the pipeline is being built anew: {self.pipeline.doing}")
        self._applied, self._target = intent.id, target
        self.pipeline.failure = self.pipeline.downtime_s = None
        if target == self.pipeline.allocation:
            return
        needed = self.needed(target)
        if needed > self.slots.available():
            self.slots.want(needed, note)
        was, keys = self.pipeline.allocation, self._keys()

        def prepare() -> Allocation:
            self._await_slots(target)
            return target

        def done() -> None:
            if self.pipeline.failure is None and self.pipeline.downtime_s is not None and was is not None:
                moved = (
                    self.staged.keyed is not None and target.tasks[self.staged.keyed] != was.tasks[self.staged.keyed]
                )
                self._downtimes.append(Downtime(moved, keys, self.pipeline.downtime_s))

        self.pipeline.rebuild(prepare, note, stopped=lambda: self.slots.want(needed, note), done=done)

    def observe(self) -> Observation:
        """Return what the batches since the last change, or of the last window, show."""
        now_s = self.clock.now()
        # In this order: a restart that ends in between still counts as under way.
        doing, status, downtime_s = self.pipeline.doing, self.pipeline.status, self.pipeline.downtime_s
        self._collect()
        broker = self._ask(now_s)
        allocation = self.pipeline.allocation
        running = None if allocation is None else self._tuned(allocation)
        change = self.slots.state(self.patience_s, now_s)
        if doing:
            change = Change.UNDER_WAY
        elif self.failure is not None:
            change = Change.FAILED
        query = self.pipeline.query
        if doing or status is not Status.RUNNING or query is None or not query.isActive:
            why = f"restart: {doing}" if doing else self._why_ended()
            wanted = running if self._target is None else self._tuned(self._target)
            down = status if doing else Status.DOWN
            return JobView(now_s, running, wanted, change, down).observation(problem=why)
        job = JobView(
            now_s,
            running,
            running,
            change,
            Status.RUNNING,
            now_s - self._started_s,
            downtime_s,
            tuple(text for text in (self.pipeline.kept, self.pipeline.fixed) if text),
            {
                name: expected_downtime_s(self._downtimes, name == self.staged.keyed, self._keys())
                for name in (() if running is None else running.tasks)
            },
        )
        chain = Chain(self.staged.names, self._tasks, BATCH_S)
        found = self._window(chain, now_s)
        if isinstance(found, str):
            sources = (SourceReading(chain.names[0], arrival_rate(self._arrived, now_s - self.window_s)),)
            overdue_s = max(0.0, now_s - self._begun_s() - chain.late_s)
            return job.observation(sources=sources, overdue_s=overdue_s, problem=broker or found)
        return observe_stages(job, chain.names[0], found, broker, self.pipeline.ready_s if self._batches else 0.0)

    # -- slots -----------------------------------------------------------------------------------------------------

    def needed(self, allocation: Allocation) -> int:
        """Return the slots that an allocation holds, the source's among them."""
        return self.partitions + allocation.slots

    def check_slots(self, allocation: Allocation, there: int) -> None:
        """Refuse what Spark would fail at: every task of real-time mode needs a slot of its own at the same time."""
        if (needed := self.needed(allocation)) > there:
            raise EngineError(
                f"{allocation} and {self.partitions} tasks of the source need {needed} slots at the same time, and "
                f"there are {there}: more executors, or fewer tasks"
            )

    def _await_slots(self, allocation: Allocation) -> None:
        deadline_s = self.clock.now() + self.patience_s
        while (there := self.slots.available()) < self.needed(allocation):
            if self.clock.now() > deadline_s or self._watcher.closed.is_set():
                self.check_slots(allocation, there)
            self.clock.sleep_until(self.clock.now() + POLL_S)

    def _await_own_slots(self) -> None:
        if self.pipeline.allocation is not None:
            self._await_slots(self.pipeline.allocation)

    # -- allocations -----------------------------------------------------------------------------------------------

    def _whole(self, target: Allocation) -> Allocation:
        """Return an allocation with all stages, also those that are pinned."""
        wanted = set(self.staged.names[1:])
        tasks = dict(target.tasks)
        if self.pinned and self.staged.keyed and self.pipeline.allocation is not None:
            tasks[self.staged.keyed] = self.pipeline.allocation.tasks[self.staged.keyed]
        if set(tasks) != wanted:
            raise EngineError(f"the pipeline has the stages {sorted(wanted)}, not {sorted(tasks)}")
        return Allocation({name: tasks[name] for name in self.staged.names[1:]})

    def _tuned(self, allocation: Allocation) -> Allocation:
        """Return the part of an allocation that can be tuned."""
        fixed = self.staged.keyed if self.pinned else None
        return Allocation({name: count for name, count in allocation.tasks.items() if name != fixed})

    def _check_pinned(self) -> None:
        """Find out, before anything is decided, whether the state can be moved at all."""
        checkpoint = Checkpoint(self.spark, self.staged.checkpoint)
        state = checkpoint.state()
        if state is not None and self.staged.keyed:
            self.pipeline.kept = checkpoint.immovable()

    # -- what is seen ------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        query = self.pipeline.query
        run = "" if query is None else str(query.runId)
        if run != self._run:
            if self._batches:
                self._before = Earlier(self._batches[-1], tuple(self._work), self._tasks)
            self._run, self._started_s = run, self.clock.now()
            self._batches.clear()
            self._work.clear()
        if self.pipeline.allocation is not None:
            self._tasks = {self.staged.names[0]: self.partitions, **self.pipeline.allocation.tasks}
        for text in self._feed.drain():
            batch = parse_progress(text)
            if batch is not None and batch.run_id == run:
                self._batches.append(batch)
                self._watcher.failures.clear()
        self._work.extend(stage for stage in self._stages.finished() if stage.run_id == run)

    def _ask(self, now_s: float) -> str | None:
        """Ask the broker how far the topic is; return why it does not say."""
        try:
            self._arrived.append(ArrivalCount(now_s, self.topic.end()))
        except RheostatError as error:
            return str(error)
        return None

    def _window(self, chain: Chain, now_s: float) -> RealTimeWindow | str:
        batches, work, before = list(self._batches), list(self._work), self._before
        clean_s, begun_s = batches[0].start_s if batches else now_s, self._begun_s()
        if before is not None:
            # The batch before the restart stands in where the first one after it is overdue.
            batches, work = [before.batch, *batches], [*before.work, *work]
        overdue = now_s - begun_s > chain.late_s
        since_s = window_start_s(batches, now_s, self.window_s, clean_s, overdue=overdue)
        running = RunningBatch(begun_s, self._at_work(chain) if overdue else (), chain.tasks)
        if before is not None and not self._batches:
            # What stages can do is then told with the tasks that they had.
            chain = replace(chain, tasks=before.tasks)
        done = None
        if batches and batches[-1].sources:
            done = KafkaCounter().records(batches[-1].sources[0].end_offset)
        # The load is what came lately, however old the batch is that tells what stages can do.
        lately = [point for point in self._arrived if point.at_s >= now_s - self.window_s]
        return realtime_window(chain, batches, work, since_s, now_s, lately, done, running)

    def _keys(self) -> int:
        return self._batches[-1].state_rows if self._batches else 0

    def _begun_s(self) -> float:
        return self._batches[-1].end_s if self._batches else self.pipeline.ready_s

    def _left_s(self) -> float:
        """Return how long the end of the running batch is worth waiting for."""
        was = {} if self.pipeline.allocation is None else self.pipeline.allocation.tasks
        target = {} if self._target is None else self._target.tasks
        return worth_waiting_s(self.clock.now() - self._begun_s(), 2 * BATCH_S, was, target)

    def _at_work(self, chain: Chain) -> tuple[str, ...]:
        """Name the stages that are not done: what stands behind a stage at work waits for it, so they are the last."""
        count = int(self._store.activeStages().size())
        return chain.names[-min(count, len(chain.names)) :] if count else ()

    def _why_ended(self) -> str:
        why = self._watcher.failures[-1] if self._watcher.failures else ""
        if self.failure is not None:
            why = str(self.failure)
        return f"the query is not active{': ' + why if why else ''}"
