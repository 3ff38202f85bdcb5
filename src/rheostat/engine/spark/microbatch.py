"""Running micro-batch queries of one Spark application behind the Engine port.

Executors belong to the application, so there is one engine for all its queries and one tunable operator, the job:
its tasks are the slots of all executors, in steps of one executor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rheostat.engine.spark.executors import Executors
from rheostat.engine.spark.feed import Feed
from rheostat.engine.spark.offsets import OffsetCounter, counter_for
from rheostat.engine.spark.progress import Batch, parse_progress
from rheostat.engine.spark.stages import Stage, Stages
from rheostat.engine.spark.window import QueryWindow, query_window
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.observation import (
    Latency,
    Observation,
    OperatorReading,
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

JOB = "job"
"""The one operator that a micro-batch application has."""
KEPT = 512
"""Batches and stages that are remembered per query."""


class MicroBatchEngine:
    """Sees queries through their progress and stages, and resizes their application."""

    def __init__(
        self,
        spark: SparkSession,
        queries: Sequence[StreamingQuery],
        executors: tuple[int, int],
        clock: Clock,
        *,
        window_s: float = 30.0,
        patience_s: float = 60.0,
        counters: Mapping[str, OffsetCounter] | None = None,
    ) -> None:
        self.spark, self.queries, self.clock = spark, tuple(queries), clock
        self.least, self.most = executors
        self.window_s, self.patience_s = window_s, patience_s
        self.executors = Executors.of(spark.sparkContext)
        self._own_counters = dict(counters or {})
        self._counters: dict[tuple[str, int, str], OffsetCounter] = {}
        self._stages = Stages(spark.sparkContext)
        self._feed = Feed()
        spark.streams.addListener(self._feed)
        self._started_s = clock.now()
        self._changed_s = clock.now()
        self._before = len(self.executors.running())
        self._batches: dict[str, deque[Batch]] = {str(q.runId): deque(maxlen=KEPT) for q in queries}
        self._work: deque[Stage] = deque(maxlen=KEPT)
        self._widest = 0
        self._applied = ""

    def close(self) -> None:
        """Stop listening."""
        self.spark.streams.removeListener(self._feed)

    # -- the port ----------------------------------------------------------------------------------------------

    def describe(self) -> JobSpec:
        """Return one tunable operator; never more slots than the widest stage has tasks."""
        cores = self.executors.cores_per_executor
        most = self.most * cores
        if self._widest:
            most = min(most, -(-self._widest // cores) * cores)
        low = self.least * cores
        name = "+".join(query.name or str(query.id) for query in self.queries)
        return JobSpec(name, Graph((JOB,), (), (JOB,)), (Tunable(JOB, Bounds(low, max(low, most)), cores),))

    def apply(self, intent: Intent, note: Note) -> None:
        """Ask for another number of executors; Spark brings them one by one."""
        if intent.id == self._applied:
            return
        if set(intent.target.tasks) != {JOB}:
            raise EngineError(f"a micro-batch application has the operator {JOB!r}, not {sorted(intent.target.tasks)}")
        cores = self.executors.cores_per_executor
        count, rest = divmod(intent.target.tasks[JOB], cores)
        if rest or not count:
            raise EngineError(f"{intent.target.tasks[JOB]} slots are no whole number of executors of {cores}")
        self.executors.want(count, note)
        self._applied = intent.id

    def observe(self) -> Observation:
        """Return what the batches since the last change, or of the last window, show."""
        now_s = self.clock.now()
        self._collect()
        # In this order: an executor that comes in between then makes a change look unfinished, never finished too soon.
        change = self.executors.state(self.patience_s, now_s)
        slots = self._slots(now_s)
        active = [query for query in self.queries if query.isActive]
        running = Allocation({JOB: slots}) if slots else None
        asked = self.executors.wanted
        wanted = running if asked is None else Allocation({JOB: asked * self.executors.cores_per_executor})
        if not active:
            why = next((text for text in self._feed.ended.values() if text), "")
            ended = f"no query is active{': ' + why.splitlines()[0] if why else ''}"
            return Observation(now_s, now_s, now_s, running, wanted, change, Status.DOWN, problem=ended)
        parts, problem = self._parts(active, now_s, slots)
        if not parts:
            return Observation(now_s, now_s, now_s, running, wanted, change, problem=problem)
        self._widest = max(self._widest, *(part.most_tasks for part in parts))
        start_s = min(part.start_s for part in parts)
        seconds = max(part.end_s for part in parts) - start_s
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
            operators=(self._reading(parts, slots, seconds), *self._named(parts, slots, seconds)),
            overloaded=(JOB,) if any(part.overloaded for part in parts) else (),
            overdue_s=max(part.overdue_s for part in parts),
            latency=_worst(parts),
            hindrances=tuple(dict.fromkeys(text for part in parts for text in part.hindrances)),
            uptime_s=now_s - self._started_s,
            problem=problem,
        )

    # -- what it is made of -----------------------------------------------------------------------------------

    def _collect(self) -> None:
        for text in self._feed.drain():
            batch = parse_progress(text)
            if batch is not None and batch.run_id in self._batches:
                self._batches[batch.run_id].append(batch)
        self._work.extend(stage for stage in self._stages.finished() if stage.run_id in self._batches)

    def _parts(
        self, active: Sequence[StreamingQuery], now_s: float, slots: int
    ) -> tuple[list[QueryWindow], str | None]:
        parts, problem = [], None
        for query in active:
            batches = list(self._batches[str(query.runId)])
            status = query.status
            clean = [batch for batch in batches if batch.start_s >= self._changed_s]
            if not clean and now_s - self._changed_s > self.window_s:
                # A batch that outlasts the window is itself the signal. What a slot can do is taken from the batch
                # before it, though it ran at another size; what has come since is counted by the clock.
                clean = batches[-1:]
            newest = clean[-1].start_s if clean else self._changed_s
            since_s = min(max(now_s - self.window_s, self._changed_s), newest)
            found = query_window(
                batches,
                self._work,
                self._counter,
                now_s,
                since_s,
                bool(status["isTriggerActive"]),
                slots,
                self.window_s,
            )
            if isinstance(found, str):
                found = self._idle(status, now_s) or found
            if isinstance(found, str):
                problem = f"{query.name or query.id}: {found}"
            else:
                parts.append(found)
        return parts, problem

    def _idle(self, status: Mapping[str, Any], now_s: float) -> QueryWindow | None:
        """Return the window of a query that has had nothing to do for a whole window; None when it may be at work."""
        if status["isTriggerActive"] or status["isDataAvailable"] or now_s - self._changed_s < self.window_s:
            return None
        calm = Latency(0, 0, 0, 0, 0, 0)
        start_s = now_s - self.window_s
        return QueryWindow(start_s, now_s, 0, 0.0, 0.0, 0.0, 0.0, 0.0, False, calm, 0.0, 0.0, 0.0, 0, 0, 0, {}, ())

    def _reading(self, parts: Sequence[QueryWindow], slots: int, seconds: float) -> OperatorReading:
        records, busy_s = sum(part.records for part in parts), sum(part.busy_s for part in parts)
        slot_s = max(slots, 1) * max(seconds, 1e-3)
        return OperatorReading(
            JOB,
            slots,
            records_in_per_s=records / max(seconds, 1e-3),
            useful_share=min(1.0, busy_s / slot_s),
            true_rate_per_s=records / busy_s if busy_s > 0 and records > 0 else None,
            cpu_share=min(1.0, sum(part.cpu_s for part in parts) / slot_s),
            state_bytes=float(sum(part.state_bytes for part in parts)),
            spilled_bytes=float(sum(part.spilled_bytes for part in parts)),
        )

    def _named(self, parts: Sequence[QueryWindow], slots: int, seconds: float) -> list[OperatorReading]:
        """Return the readings of operators with probes: evidence, since only the job as a whole can be tuned."""
        return [
            OperatorReading(
                name,
                slots,
                records_in_per_s=probe.records / max(seconds, 1e-3),
                useful_share=None
                if probe.useful_s is None
                else min(1.0, probe.useful_s / (slots * max(seconds, 1e-3))),
                true_rate_per_s=probe.records / probe.useful_s if probe.useful_s and probe.records else None,
            )
            for part in parts
            for name, probe in part.probes.items()
            if slots
        ]

    def _slots(self, now_s: float) -> int:
        """Count the slots; whenever they are others than before, windows begin anew."""
        count = len(self.executors.running())
        if count != self._before:
            self._before, self._changed_s = count, now_s
        return count * self.executors.cores_per_executor

    def _counter(self, query: str, index: int, description: str) -> OffsetCounter:
        key = (query, index, description)
        if key not in self._counters:
            self._counters[key] = self._own_counters.get(query) or counter_for(description)
        return self._counters[key]


def _worst(parts: Sequence[QueryWindow]) -> Latency:
    names = ("p50_s", "p95_s", "p99_s", "event_p50_s", "event_p95_s", "event_p99_s")
    return Latency(*(max(getattr(part.latency, name) for part in parts) for name in names))
