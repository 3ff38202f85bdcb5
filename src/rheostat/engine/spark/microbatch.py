"""Running micro-batch queries of one Spark application behind the Engine port.

Executors belong to the application, so there is one engine for all its queries and one tunable operator, the job:
its tasks are the slots of all executors, in steps of one executor. A pipeline, which knows how to start its query, is
also built anew when its partitions are too few for the slots.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rheostat.engine.batches.batch_time import Sizes
from rheostat.engine.batches.bottleneck import unused
from rheostat.engine.batches.offsets import OffsetCounter, counter_for
from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.batches.readings import idle, job_reading, named_readings, worst_latency
from rheostat.engine.batches.stage import Stage, widest
from rheostat.engine.batches.window import QueryWindow, query_window, unsettled
from rheostat.engine.spark.executors.pool import Executors, Loss, lost_executors
from rheostat.engine.spark.lifecycle.restart import JOB, Pipeline
from rheostat.engine.spark.telemetry.admission import Admission
from rheostat.engine.spark.telemetry.feed import Feed
from rheostat.engine.spark.telemetry.stages import Stages
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.observation import (
    Change,
    Observation,
    SourceReading,
    Status,
    total,
)
from rheostat.job.record import Intent
from rheostat.job.slo import Bounds
from rheostat.ports import Clock, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KEPT = 512
"""Batches that are remembered per query."""
STAGES_KEPT = 4096
"""Stages that are remembered of all queries."""
POLL_S = 0.2
"""Between two looks at executors that are waited for."""
NO_ROOM_S = 300.0
"""For so long no more executors are asked for than a cluster gave when it gave fewer than asked."""


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
        self._own_counters = dict(counters or {})
        self._counters: dict[tuple[str, int, str], OffsetCounter] = {}
        self._stages = Stages(spark.sparkContext)
        self._feed = Feed()
        spark.streams.addListener(self._feed)
        self._started_s = clock.now()
        self._changed_s = clock.now()
        self._before = len(self.executors.running())
        self._runs: dict[str, StreamingQuery] = {str(query.runId): query for query in self._attached}
        self._batches: dict[str, deque[Batch]] = {run: deque(maxlen=KEPT) for run in self._runs}
        self._work: deque[Stage] = deque(maxlen=STAGES_KEPT)
        self._admissions: dict[str, Admission] = {}
        self._sizes = Sizes()
        self._widest = 0
        self._given: tuple[int, float] | None = None
        self._lost_s = clock.now()
        self._quiet_s: dict[str, float] = {}
        self._applied = ""

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """The queries that run; a restart replaces them."""
        if self.pipeline is None:
            return self._attached
        return () if self.pipeline.query is None else (self.pipeline.query,)

    @property
    def over(self) -> bool:
        """Whether no query is active, and none is about to be."""
        busy = self.pipeline is not None and bool(self.pipeline.doing)
        return not busy and not any(query.isActive for query in self.queries)

    @property
    def batches_done(self) -> dict[str, int]:
        """Query -> batches that it has finished since its checkpoint was made, as of the last look."""
        return {batches[-1].query: batches[-1].number + 1 for batches in self._batches.values() if batches}

    @property
    def executors_seen(self) -> int:
        """Executors that there were at the last look."""
        return self._before

    @property
    def ended(self) -> dict[str, str]:
        """Run id of every query that has ended -> its exception, "" where it was stopped."""
        return {run: why for run, why in self._feed.ended.items() if run in self._batches}

    def finish(self) -> None:
        """Wait for the end of a restart that is under way; one that only waits is given up."""
        if self.pipeline is not None:
            self.pipeline.finish()

    def close(self) -> None:
        """Stop listening."""
        self.spark.streams.removeListener(self._feed)

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
        """Ask for another number of executors, which Spark brings one by one; a pipeline may be built anew for them."""
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
            enough = self._widest or self.pipeline.slots
            if intent.target.slots > enough:
                self.pipeline.rebuild(lambda: self._arrived(enough), note)

    def observe(self) -> Observation:
        """Return what the batches since the last change, or of the last window, show."""
        now_s = self.clock.now()
        doing, status, downtime_s = self._doing()
        runs = self._follow()
        self._collect()
        with self._lever:
            seen = self.executors.survey(self.patience_s, now_s)
        change, slots, lost = seen.change, self._slots(len(seen.running), now_s), self._lost(seen.losses, now_s)
        self._sizes.note(now_s, slots, disturbed=lost is not None)
        if change is Change.PARTIAL and self._before < (self.executors.wanted or 0):
            self._given = self._before, now_s
        if doing:
            change = Change.UNDER_WAY
        elif self.pipeline is not None and self.pipeline.failure is not None:
            change = Change.FAILED
        active = {run: query for run, query in runs.items() if query.isActive}
        running = Allocation({JOB: slots}) if slots else None
        asked = self.executors.wanted
        wanted = running if asked is None else Allocation({JOB: asked * self.executors.cores_per_executor})
        if status is not Status.RUNNING or not active:
            down = status if doing else Status.DOWN
            why = f"restart: {doing}" if doing else self._ended()
            return Observation(now_s, now_s, now_s, running, wanted, change, down, problem=why)
        parts, problem = self._parts(active, now_s, slots)
        problem = lost or problem
        if not parts:
            return Observation(now_s, now_s, now_s, running, wanted, change, downtime_s=downtime_s, problem=problem)
        start_s = min(part.start_s for part in parts)
        seconds = max(part.end_s for part in parts) - start_s
        # What a slot does is told only when all of it was seen at the present size.
        operators = [] if problem else [job_reading(JOB, parts, slots, seconds), *named_readings(parts, slots, seconds)]
        return Observation(
            at_s=now_s,
            start_s=start_s,
            end_s=now_s,
            running=running,
            wanted=wanted,
            change=change,
            sources=(
                SourceReading(
                    JOB,
                    total(part.rate_per_s for part in parts),
                    total(part.backlog for part in parts),
                    max(part.lag_s for part in parts),
                ),
            ),
            operators=tuple(operators),
            overloaded=(JOB,) if not problem and any(part.overloaded for part in parts) else (),
            overdue_s=max(part.overdue_s for part in parts),
            latency=worst_latency(parts),
            hindrances=tuple(dict.fromkeys((*(text for part in parts for text in part.hindrances), *self._cap(slots)))),
            uptime_s=now_s - self._started_s,
            downtime_s=downtime_s,
            batch_time=parts[0].batch_time if len(parts) == 1 else None,
            problem=problem,
        )

    # -- what it is made of -----------------------------------------------------------------------------------

    def _doing(self) -> tuple[str, Status, float | None]:
        """Return what is done to the pipeline at the moment; attached queries are left alone."""
        if self.pipeline is None:
            return "", Status.RUNNING, None
        # In this order: a restart that ends in between still counts as under way.
        doing = self.pipeline.doing
        return doing, self.pipeline.status, self.pipeline.downtime_s

    def _ended(self) -> str:
        why = next((text for text in self._feed.ended.values() if text), "")
        if self.pipeline is not None and self.pipeline.failure is not None:
            why = str(self.pipeline.failure)
        return f"no query is active{': ' + why.splitlines()[0] if why else ''}"

    def _useful(self) -> int | None:
        """Return the most slots that find tasks; None where a restart can make more, or no stage was seen."""
        known = bool(self._widest)
        if self.pipeline is not None:
            known = known and (bool(self.pipeline.fixed) or self._widest < self.pipeline.slots)
        return self._widest if known else None

    def _cap(self, slots: int) -> list[str]:
        """Say why more slots have no use, or why some have none already."""
        useful = self._useful()
        if useful is None or slots < useful:
            return []
        if self.pipeline is None:
            return [unused(useful, slots)] if slots > useful else []
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

    def _follow(self) -> dict[str, StreamingQuery]:
        """Return the queries by run id; what was seen of a pipeline's query before the last restart is dropped."""
        queries = self.queries
        if list(map(id, queries)) != list(map(id, self._runs.values())):
            # A query's run never changes, and asking for it takes two round trips.
            self._runs = {str(query.runId): query for query in queries}
        if self.pipeline is None:
            return self._runs
        if set(self._runs) != set(self._batches):
            self._batches = {run: deque(maxlen=KEPT) for run in self._runs}
            self._widest, self._started_s = 0, self.clock.now()
        # The first batch loads state and works off what the restart held up: it belongs to the change.
        self._changed_s = max(self._changed_s, self.pipeline.ready_s)
        return self._runs

    def _collect(self) -> None:
        for text in self._feed.drain():
            batch = parse_progress(text)
            if batch is not None and batch.run_id in self._batches:
                self._batches[batch.run_id].append(self._completed(batch))
        found, broken = [*self._work, *self._stages.finished()], self._stages.broken
        self._work.clear()
        self._work.extend(s for s in found if s.run_id in self._batches and (s.run_id, s.batch) not in broken)
        # Queries run side by side, and so do some stages of a query; of a batch that runs only the first may be here.
        done = {(batch.run_id, batch.number) for batches in self._batches.values() for batch in batches}
        self._widest = max(self._widest, sum(widest(s for s in self._work if (s.run_id, s.batch) in done).values()))

    def _completed(self, batch: Batch) -> Batch:
        """Add what the progress does not say and the running query knows."""
        if batch.run_id not in self._admissions:
            query = self._runs.get(batch.run_id)
            if query is None:
                return batch
            self._admissions = {run: kept for run, kept in self._admissions.items() if run in self._batches}
            self._admissions[batch.run_id] = Admission(query)
        return self._admissions[batch.run_id].complete(batch)

    def _parts(
        self, active: Mapping[str, StreamingQuery], now_s: float, slots: int
    ) -> tuple[list[QueryWindow], str | None]:
        parts: list[QueryWindow] = []
        problem = None
        for run, query in active.items():
            batches = list(self._batches[run])
            status = query.status
            at_work = bool(status["isTriggerActive"])
            # Its last trigger found nothing new, and it waits for the next.
            resting = not at_work and not status["isDataAvailable"]
            quiet_s = self._quiet_s[run] = now_s if resting else self._quiet_s.get(run, 0.0)
            clean = [batch for batch in batches if batch.start_s >= self._changed_s]
            if not clean and now_s - max(self._changed_s, quiet_s) > self.window_s:
                # A batch that outlasts the window is itself the signal. What a slot can do is taken from the batch
                # before it, though it ran at another size; what has come since is counted by the clock.
                clean = batches[-1:]
            # An older batch only stands in while one runs that is longer than the window, not after a rest.
            late = clean and (clean[-1].start_s > quiet_s or now_s - quiet_s > self.window_s)
            newest = clean[-1].start_s if late else now_s
            since_s = min(max(now_s - self.window_s, self._changed_s), newest)
            found = query_window(
                batches,
                self._work,
                self._counter,
                now_s,
                since_s,
                at_work,
                # Hindrances of one query are judged by its share of the slots.
                max(1, slots // len(active)),
                self.window_s,
                quiet_s,
                self._sizes.during,
            )
            if isinstance(found, str) and resting and now_s - self._changed_s >= self.window_s:
                # Nothing to do for a whole window is a window too.
                found = idle(now_s, self.window_s)
            if isinstance(found, QueryWindow):
                parts.append(found)
                continue
            problem = f"{query.name or query.id}: {found}"
            certain = unsettled(batches, self._counter, now_s, at_work, self.window_s, quiet_s)
            parts += [] if certain is None else [certain]
        return parts, problem

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

    def _counter(self, query: str, index: int, description: str) -> OffsetCounter:
        key = (query, index, description)
        if key not in self._counters:
            self._counters[key] = self._own_counters.get(query) or counter_for(description)
        return self._counters[key]
