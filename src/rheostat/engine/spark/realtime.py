"""A pipeline in real-time mode behind the Engine port: tasks of every stage are tuned, each change is a restart.

    executors -> stop after a batch -> move the state -> executors that are too many leave -> start -> tasks run

In real-time mode every task holds a slot for the whole batch, and a query without slots enough fails: slots are
counted before anything is stopped. A query that fails, as it does when an executor dies, is started again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import structlog

from rheostat.engine.batches.lateness import Chain, worth_waiting_s
from rheostat.engine.batches.offsets import KafkaCounter
from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.batches.realtime_window import Arrived, RealTimeWindow, Running, arrival_rate, realtime_window
from rheostat.engine.batches.stage import Stage
from rheostat.engine.spark.executors.slots import Slots
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint, StateStore
from rheostat.engine.spark.lifecycle.downtime import Downtime, expected_downtime_s
from rheostat.engine.spark.lifecycle.owner import Owner
from rheostat.engine.spark.lifecycle.restart import Pipeline
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
WATCH_S = 0.2
"""Between two looks at whether the query still runs."""
BACK_OFF_S: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""How long a query that failed waits for its next start, by how often it failed without finishing a batch."""
POLL_S = 0.2
TWO_DRIVERS = "CONCURRENT_STREAM_LOG_UPDATE"
"""Spark's name for finding that somebody else has written the same batch."""

log = structlog.get_logger("rheostat.spark")


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
        self.failures: list[str] = []
        """With what the query failed, since it last finished a batch."""
        self._feed = Feed()
        spark.streams.addListener(self._feed)
        self._stages = Stages(spark.sparkContext)
        self._store: Any = spark.sparkContext._jsc.sc().statusStore()
        self._batches: deque[Batch] = deque(maxlen=KEPT)
        self._work: deque[Stage] = deque(maxlen=KEPT * len(staged.names))
        self._arrived: deque[Arrived] = deque(maxlen=ARRIVALS_KEPT)
        self._run = ""
        self._before: Earlier | None = None
        self._applied = ""
        self._target: Allocation | None = None
        self._started_s = clock.now()
        self._tasks: dict[str, int] = {}
        self._downtimes: list[Downtime] = []
        self._given_up = False
        self._closed = threading.Event()
        self._owner = Owner(Checkpoint(spark, staged.checkpoint), clock)
        self._watcher = threading.Thread(target=self._watch, name="rheostat-watcher", daemon=True)

    # -- what the scaler needs -----------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """The query that runs; a restart replaces it."""
        return () if self.pipeline.query is None else (self.pipeline.query,)

    @property
    def over(self) -> bool:
        """Whether the query was stopped by someone else, or fails whenever it is started."""
        if self.pipeline.doing:
            return False
        return self._given_up or any(not query.isActive and query.exception() is None for query in self.queries)

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

    def finish(self) -> None:
        """Let nothing more be done to the query."""
        self._closed.set()
        self.pipeline.finish()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
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
        elif self.pipeline.failure is not None:
            change = Change.FAILED
        query = self.pipeline.query
        if doing or status is not Status.RUNNING or query is None or not query.isActive:
            why = f"restart: {doing}" if doing else self._ended()
            shown = status if doing else Status.DOWN
            wanted = running if self._target is None else self._tuned(self._target)
            return Observation(now_s, now_s, now_s, running, wanted, change, shown, problem=why)
        assert allocation is not None
        chain = Chain(self.staged.names, self._tasks, BATCH_S)
        found = self._window(chain, now_s)
        if isinstance(found, str):
            sources = (SourceReading(chain.names[0], arrival_rate(self._arrived, now_s - self.window_s)),)
            overdue_s = max(0.0, now_s - self._begun_s() - chain.late_s)
            return Observation(
                now_s,
                now_s,
                now_s,
                running,
                running,
                change,
                sources=sources,
                overdue_s=overdue_s,
                downtime_s=downtime_s,
                problem=broker or found,
            )
        return Observation(
            at_s=now_s,
            start_s=max(found.start_s, self.pipeline.ready_s) if self._batches else found.start_s,
            end_s=now_s,
            running=running,
            wanted=running,
            change=change,
            sources=(SourceReading(chain.names[0], found.rate_per_s, found.backlog, found.lag_s),),
            operators=found.operators,
            edges=found.edges,
            overloaded=found.overloaded,
            overdue_s=found.overdue_s,
            catching_up=found.catching_up,
            latency=found.latency,
            uptime_s=now_s - self._started_s,
            downtime_s=downtime_s,
            change_costs_s={
                name: expected_downtime_s(self._downtimes, name == self.staged.keyed, self._keys())
                for name in (() if running is None else running.tasks)
            },
            hindrances=tuple(text for text in (self.pipeline.kept, self.pipeline.fixed) if text),
            problem=broker,
        )

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
            if self.clock.now() > deadline_s or self._closed.is_set():
                self.check_slots(allocation, there)
            self.clock.sleep_until(self.clock.now() + POLL_S)

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
                self.failures.clear()
        self._work.extend(stage for stage in self._stages.finished() if stage.run_id == run)

    def _ask(self, now_s: float) -> str | None:
        """Ask the broker how far the topic is; return why it does not say."""
        try:
            self._arrived.append(Arrived(now_s, self.topic.end()))
        except RheostatError as error:
            return str(error)
        return None

    def _window(self, chain: Chain, now_s: float) -> RealTimeWindow | str:
        since_s = now_s - self.window_s
        batches, work, before = list(self._batches), list(self._work), self._before
        begun_s = self._begun_s()
        overdue = now_s - begun_s > chain.late_s
        running = Running(begun_s, self._at_work(chain) if overdue else (), chain.tasks)
        unread_s = None if before is None else before.batch.start_s + BATCH_S
        if not batches and overdue and before is not None:
            # The first batch after a change is too long, which is itself the signal. What stages can do is then told
            # by the batch before it, with the tasks that they had.
            batches, work, unread_s = [before.batch], list(before.work), None
            chain = replace(chain, tasks=before.tasks)
        if batches and batches[-1].start_s < since_s:
            since_s = batches[-1].start_s  # so is one that outlasts the window
        done = None
        if batches and batches[-1].sources:
            done = KafkaCounter().records(batches[-1].sources[0].end_offset)
        # The load is what came lately, however old the batch is that tells what stages can do.
        lately = [point for point in self._arrived if point.at_s >= now_s - self.window_s]
        return realtime_window(chain, batches, work, since_s, now_s, lately, done, running, unread_s)

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

    def _ended(self) -> str:
        why = self.failures[-1] if self.failures else ""
        if self.pipeline.failure is not None:
            why = str(self.pipeline.failure)
        return f"the query is not active{': ' + why if why else ''}"

    # -- failures ------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Start the query again whenever it has failed."""
        while not self._closed.wait(WATCH_S):
            query = self.pipeline.query
            if self._overtaken(query):
                return
            if query is None or self.pipeline.doing or query.isActive or self.pipeline.ending:
                continue
            error = query.exception()
            if error is None and self.pipeline.failure is None:
                return  # it was stopped by someone else
            self.failures.append((str(error or self.pipeline.failure).splitlines() or ["?"])[0])
            if len(self.failures) > len(BACK_OFF_S) or TWO_DRIVERS in self.failures[-1]:
                self._give_up()
                return
            log.warning("the query failed and is started again", job=self.name, error=self.failures[-1])
            wait_s = BACK_OFF_S[len(self.failures) - 1]
            try:
                self.pipeline.revive(lambda wait_s=wait_s: self._ready(wait_s))  # type: ignore[misc]
                self.pipeline.wait()
            except EngineError:
                continue  # a restart has just begun, which does the same

    def _overtaken(self, query: StreamingQuery | None) -> bool:
        """Stop where another driver works on the checkpoint by now; a store that does not answer is asked later."""
        from py4j.protocol import Py4JError

        try:
            other = self._owner.renew()
        except Py4JError as error:
            log.warning("the checkpoint cannot be written", job=self.name, error=str(error).splitlines()[0])
            return False
        if other is None or query is None:
            return False
        self.failures.append(f"another driver (process {other.pid} on {other.host}) runs on {self.staged.checkpoint}")
        query.stop()
        self._give_up()
        return True

    def _give_up(self) -> None:
        self.pipeline.failure = EngineError(f"given up after {len(self.failures)} failures: {self.failures[-1]}")
        self._given_up = True
        log.error("given up", job=self.name, failures=len(self.failures), error=self.failures[-1])

    def _ready(self, wait_s: float) -> None:
        self._closed.wait(wait_s)
        if self.pipeline.allocation is not None:
            self._await_slots(self.pipeline.allocation)
