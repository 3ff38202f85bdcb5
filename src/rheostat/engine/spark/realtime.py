"""A pipeline in real-time mode behind the Engine port: every stage has its own tasks, and each change is a restart.

    executors -> stop after a batch -> repartition the state -> remove surplus executors -> start -> tasks run

In real-time mode every task occupies a slot for the whole batch, and a query with too few slots fails. So the slots are
counted before the query is stopped. A query that fails, as after the death of an executor, is restarted.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rheostat.engine.batches.arrivals import FRESH_S, HISTORY, ArrivalCount, present_rate
from rheostat.engine.batches.flow import Flow, left_s
from rheostat.engine.batches.lateness import Chain, late_after_s, worth_waiting_s
from rheostat.engine.batches.observation import JobView, observe_stages, source_reading
from rheostat.engine.batches.offsets import KafkaCounter
from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.batches.realtime_window import (
    RealTimeBatch,
    RealTimeWindow,
    read_source,
    realtime_window,
)
from rheostat.engine.batches.selection import WINDOW_S, window_start_s
from rheostat.engine.batches.stage import Stage
from rheostat.engine.spark.executors.slots import Slots
from rheostat.engine.spark.lifecycle.application import Query, SparkApplication
from rheostat.engine.spark.lifecycle.checkpoint import StateStore
from rheostat.engine.spark.lifecycle.downtime import Downtime, expected_downtime_s
from rheostat.engine.spark.lifecycle.restart import Pipeline
from rheostat.engine.spark.lifecycle.watcher import Watcher
from rheostat.engine.spark.pipeline import BATCH_S, Staged
from rheostat.engine.spark.telemetry.ends import SourceEnds
from rheostat.engine.spark.telemetry.feed import Feed
from rheostat.engine.spark.telemetry.flow import BatchFlows, OpenFlow
from rheostat.engine.spark.telemetry.readers import Topics
from rheostat.engine.spark.telemetry.scans import heartbeat_s
from rheostat.engine.spark.telemetry.stages import Stages
from rheostat.engine.spark.telemetry.topic import TopicEnds
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import Change, Observation, SourceReading, Status
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


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """The last batches before a restart, with their stages and their tasks."""

    batch: Batch
    """The last one."""
    counted: Batch
    """The last one whose rows are known."""
    work: tuple[Stage, ...]
    tasks: Mapping[str, int]


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
        self._ends = SourceEnds(lambda: [(staged.source.topic, Topics(topic))], clock)
        self._feed = Feed()
        spark.streams.addListener(self._feed)
        self._stages = Stages(spark.sparkContext)
        self._store: Any = spark.sparkContext._jsc.sc().statusStore()
        self._batches: deque[Batch] = deque(maxlen=BATCH_HISTORY)
        self._work: deque[Stage] = deque(maxlen=BATCH_HISTORY * len(staged.names))
        self._arrived: deque[ArrivalCount] = deque(maxlen=HISTORY)
        self._flows: BatchFlows | None = None
        self._open: OpenFlow | None = None
        self._heartbeat_s = heartbeat_s(spark)
        self._waits: set[str] = set()
        self._run = ""
        self._previous: PreviousRun | None = None
        self._applied = ""
        self._target: Allocation | None = None
        self._started_s = clock.now()
        self._tasks: dict[str, int] = {}
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
            self.spark.streams.removeListener(self._feed)
            self._ends.close()

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
        before, keys = self.pipeline.allocation, self._keys()

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
        self._ends.begin()
        self._collect(now_s)
        broker_problem = self._count_arrivals(now_s)
        chain = Chain(self.staged.names, self._tasks, BATCH_S)
        allocation = self.pipeline.allocation
        running = None if allocation is None else self._tunable_part(allocation)
        change = self.slots.state(self.patience_s, now_s)
        if activity:
            change = Change.UNDER_WAY
        elif self.failure is not None:
            change = Change.FAILED
        now = self._running_batch(chain, now_s)
        if activity or status is not Status.RUNNING or now is None:
            problem = f"restart: {activity}" if activity else self._why_ended()
            wanted = running if self._target is None else self._tunable_part(self._target)
            down = status if activity else Status.DOWN
            # While a restart waits for the end of a batch, that batch goes on.
            sources = self._sources(chain, now, now_s)
            return JobView(now_s, running, wanted, change, down).observation(sources=sources, problem=problem)
        job = JobView(
            now_s,
            running,
            running,
            change,
            Status.RUNNING,
            now_s - self._started_s,
            downtime_s,
            tuple(text for text in (self.pipeline.state_fixed_reason, self.pipeline.fixed_reason) if text),
            {
                name: expected_downtime_s(self._downtimes, name == self.staged.keyed, self._keys())
                for name in (() if running is None else running.tasks)
            },
        )
        window = self._window(chain, now, now_s)
        if isinstance(window, str):
            sources = self._sources(chain, now, now_s)
            overdue_s = max(0.0, self._overdue_s(chain, now_s))
            return job.observation(sources=sources, overdue_s=overdue_s, problem=broker_problem or window)
        for name in set(window.waits) - self._waits:
            self._waits.add(name)
            log.warning(
                "stage %r is overloaded although its CPU time is short: it waits for something. Its rate is known only "
                "while it is overloaded; measure its time with p.stage(%r, ..., timed=True)",
                name,
                name,
            )
        since_s = self.pipeline.ready_s if self._batches else 0.0
        former = None
        if self._previous is not None and not self._batches and not window.overdue_s:
            former = self._tunable_part(Allocation({name: self._previous.tasks[name] for name in chain.names[1:]}))
        return observe_stages(job, chain.names[0], window, broker_problem, since_s, former)

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

    # -- observation -------------------------------------------------------------------------------------------------

    def _collect(self, now_s: float) -> None:
        query = self.pipeline.query
        run = "" if query is None else str(query.runId)
        reported = [batch for text in self._feed.drain() if (batch := parse_progress(text)) is not None]
        stages = self._stages.read_finished()
        if run != self._run:
            # The last batch before a restart may have been reported since the last window.
            self._enter(reported, stages)
            if self._batches:
                last = self._batches[-1]
                counted = next((batch for batch in reversed(self._batches) if batch.flow is not None), last)
                self._previous = PreviousRun(last, counted, tuple(self._work), self._tasks)
            self._run, self._started_s = run, now_s
            self._batches.clear()
            self._work.clear()
            self._flows = None if query is None else BatchFlows(self.spark, query, len(self.staged.names))
        if self.pipeline.allocation is not None:
            self._tasks = {self.staged.names[0]: self.partitions, **self.pipeline.allocation.tasks}
        self._enter(reported, stages)
        self._open = None if self._flows is None else self._flows.read(now_s)
        if self._open is not None and self._batches and self._open.number <= self._batches[-1].number:
            self._open = None  # it has just ended

    def _enter(self, reported: Sequence[Batch], stages: Sequence[Stage]) -> None:
        """Add the batches and stages of the present run."""
        for batch in reported:
            if batch.run_id == self._run:
                flow = None if self._flows is None else self._flows.finished(batch.number)
                self._batches.append(replace(batch, flow=flow))
                self._watcher.failures.clear()
        self._work.extend(stage for stage in stages if stage.run_id == self._run)

    def _count_arrivals(self, now_s: float) -> str | None:
        """Take the topic's end offsets; return why there are none of the present, if so."""
        ends = self._ends.read()
        for end in (end for sample in (*self._ends.samples(), ends) for end in sample if end.offset is not None):
            records = KafkaCounter().records(end.offset)
            if records is not None and (not self._arrived or end.at_s > self._arrived[-1].at_s):
                self._arrived.append(ArrivalCount(end.at_s, records))
        fresh = self._arrived and now_s - self._arrived[-1].at_s <= FRESH_S
        return None if fresh else next((end.problem for end in ends if end.problem), "the topic has not been read yet")

    def _running_batch(self, chain: Chain, now_s: float) -> RealTimeBatch | None:
        """Return the batch that runs now; None while the query does not run."""
        query = self.pipeline.query
        if query is None or not query.isActive:
            return None
        return RealTimeBatch(
            self._begun_s(),
            self._active_stages(chain) if self._overdue_s(chain, now_s) > 0 else (),
            chain.tasks,
            None if self._open is None else self._open.flow,
            self._heartbeat_s,
        )

    def _window(self, chain: Chain, running: RealTimeBatch, now_s: float) -> RealTimeWindow | str:
        batches, work, previous = list(self._batches), list(self._work), self._previous
        clean_s = batches[0].start_s if batches else now_s
        if previous is not None:
            batches, work = [previous.counted, *batches], [*previous.work, *work]
        # Until the first batch after a restart has ended, the window covers the last one before the restart: for long
        # if it is overdue, because that shows overload.
        overdue = self._overdue_s(chain, now_s) > 0
        recent = previous is not None and previous.counted.end_s > now_s - self.window_s
        since_s = window_start_s(batches, now_s, self.window_s, clean_s, overdue=overdue or recent)
        if previous is not None and not self._batches:
            # The readings then have the tasks of that batch.
            chain = replace(chain, tasks=previous.tasks)
        return realtime_window(chain, batches, work, since_s, now_s, self._recent(now_s), self._done(), running)

    def _sources(self, chain: Chain, running: RealTimeBatch | None, now_s: float) -> tuple[SourceReading, ...]:
        """Return the reading of the source while no window shows it."""
        now = read_source(chain, self._recent(now_s), self._done(), running, self._last_flow(), now_s)
        return (source_reading(chain.names[0], now),)

    def _recent(self, now_s: float) -> list[ArrivalCount]:
        """Return the counts of the last window: the input rate is the present one, even if the batches are older."""
        # A copy: the thread of a restart asks, too.
        return [count for count in list(self._arrived) if count.at_s >= now_s - self.window_s]

    def _done(self) -> float | None:
        """Return the topic's records in finished batches."""
        last = self._last_batch()
        reported = None if last is None or not last.sources else KafkaCounter().records(last.sources[0].end_offset)
        query = self.pipeline.query
        if last is None or reported is None or self._flows is None or query is None or not query.isActive:
            return reported  # a batch that a restart interrupts is repeated
        return reported + self._flows.unreported(last.number, None if self._open is None else self._open.number)

    def _last_batch(self) -> Batch | None:
        if self._batches:
            return self._batches[-1]
        return None if self._previous is None else self._previous.batch

    def _last_flow(self) -> Flow | None:
        """Return the rows of the last finished batch whose rows are known."""
        flows = (batch.flow for batch in reversed(list(self._batches)) if batch.flow is not None)
        return next(flows, None if self._previous is None else self._previous.counted.flow)

    def _overdue_s(self, chain: Chain, now_s: float) -> float:
        return now_s - self._begun_s() - chain.late_s

    def _keys(self) -> int:
        return self._batches[-1].state_rows if self._batches else 0

    def _begun_s(self) -> float:
        if self._open is not None:
            return max(self._open.start_s, self.pipeline.ready_s)
        return self._batches[-1].end_s if self._batches else self.pipeline.ready_s

    def _stop_wait_s(self) -> float:
        """Return the seconds for which it pays to wait for the end of the running batch."""
        before = {} if self.pipeline.allocation is None else self.pipeline.allocation.tasks
        target = {} if self._target is None else self._target.tasks
        elapsed_s = self.clock.now() - self._begun_s()
        return worth_waiting_s(elapsed_s, 2 * BATCH_S, before, target, self._left_s(elapsed_s))

    def _left_s(self, elapsed_s: float) -> float | None:
        """Return the rest of the running batch, if its rows show that it takes longer than a batch on time."""
        usual, rate = self._last_flow(), present_rate(self._recent(self.clock.now()), self.window_s)
        if self._open is None or self._open.flow is None or usual is None or rate is None:
            return None
        rest_s = left_s(self._open.flow, usual, rate, elapsed_s, BATCH_S)
        return rest_s if elapsed_s + rest_s > late_after_s(BATCH_S) else None

    def _active_stages(self, chain: Chain) -> tuple[str, ...]:
        """Return the active stages: a stage waits for those before it, so they are the last ones of the chain."""
        count = int(self._store.activeStages().size())
        return chain.names[-min(count, len(chain.names)) :] if count else ()

    def _why_ended(self) -> str:
        error = self._watcher.failures[-1] if self._watcher.failures else ""
        if self.failure is not None:
            error = str(self.failure)
        return f"the query is not active{': ' + error if error else ''}"
