"""Collects what Spark and the broker report about one real-time query, through its restarts.

A restart is a new run of the query. Until its first batch has ended, the window is that of the last batch before it,
with the tasks that it had then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rheostat.engine.batches.arrivals import FRESH_S, HISTORY, ArrivalCount, present_rate
from rheostat.engine.batches.flow import Flow, left_s
from rheostat.engine.batches.lateness import Chain, late_after_s
from rheostat.engine.batches.observation import source_reading
from rheostat.engine.batches.offsets import KafkaCounter
from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.batches.realtime_window import RealTimeBatch, RealTimeWindow, read_source, realtime_window
from rheostat.engine.batches.selection import window_start_s
from rheostat.engine.batches.stage import Stage
from rheostat.engine.spark.telemetry.ends import SourceEnds
from rheostat.engine.spark.telemetry.feed import Feed
from rheostat.engine.spark.telemetry.flow import BatchFlows, OpenFlow
from rheostat.engine.spark.telemetry.readers import Topics
from rheostat.engine.spark.telemetry.scans import heartbeat_s
from rheostat.engine.spark.telemetry.stages import Stages
from rheostat.engine.spark.telemetry.topic import TopicEnds
from rheostat.job.observation import SourceReading
from rheostat.ports import Clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCH_HISTORY = 512
"""Batches to retain: more than a window covers."""


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """The last batches before a restart, with their stages and their tasks."""

    batch: Batch
    """The last one."""
    counted: Batch
    """The last one whose rows are known."""
    work: tuple[Stage, ...]
    tasks: Mapping[str, int]


class StagedTelemetry:
    """Follows one query of named stages, the source first. Call `begin`, then `collect`, then the rest in a step."""

    def __init__(
        self, spark: SparkSession, names: Sequence[str], topic: TopicEnds, clock: Clock, window_s: float, batch_s: float
    ) -> None:
        self._spark, self._clock, self._window_s = spark, clock, window_s
        self.chain = Chain(tuple(names), {}, batch_s)
        """The stages with their present tasks."""
        self._ends = SourceEnds(lambda: [(topic.topic, Topics(topic))], clock)
        self.feed = Feed()
        spark.streams.addListener(self.feed)
        self._stages = Stages(spark.sparkContext)
        self._store: Any = spark.sparkContext._jsc.sc().statusStore()
        self._heartbeat_s = heartbeat_s(spark)
        self._query: StreamingQuery | None = None
        self._ready_s = 0.0
        self._batches: deque[Batch] = deque(maxlen=BATCH_HISTORY)
        self._work: deque[Stage] = deque(maxlen=BATCH_HISTORY * len(names))
        self._arrived: deque[ArrivalCount] = deque(maxlen=HISTORY)
        self._flows: BatchFlows | None = None
        self._open: OpenFlow | None = None
        self._run = ""
        self._previous: PreviousRun | None = None
        self.started_s = clock.now()
        """When the present run was first seen."""

    def close(self) -> None:
        """Stop listening, and asking the broker."""
        self._spark.streams.removeListener(self.feed)
        self._ends.close()

    def begin(self) -> None:
        """Start to ask the broker."""
        self._ends.begin()

    def collect(
        self, query: StreamingQuery | None, tasks: Mapping[str, int] | None, ready_s: float, now_s: float
    ) -> bool:
        """Collect the batches and stages since the last call; return whether the query has finished a batch.

        `tasks` are those that the query has now, if they are known. It has processed records since `ready_s`.
        """
        run = "" if query is None else str(query.runId)
        self._query, self._ready_s = query, ready_s
        reported = [batch for text in self.feed.drain() if (batch := parse_progress(text)) is not None]
        stages = self._stages.read_finished()
        if run != self._run:
            # The last batch before a restart may have been reported since the last window.
            self._enter(reported, stages)
            if self._batches:
                last = self._batches[-1]
                counted = next((batch for batch in reversed(self._batches) if batch.flow is not None), last)
                self._previous = PreviousRun(last, counted, tuple(self._work), self.chain.tasks)
            self._run, self.started_s = run, now_s
            self._batches.clear()
            self._work.clear()
            self._flows = None if query is None else BatchFlows(self._spark, query, len(self.chain.names))
        if tasks is not None:
            self.chain = replace(self.chain, tasks=tasks)
        finished = self._enter(reported, stages)
        self._open = None if self._flows is None else self._flows.read(now_s)
        if self._open is not None and self._batches and self._open.number <= self._batches[-1].number:
            self._open = None  # it has just ended
        return finished

    def count_arrivals(self, now_s: float) -> str | None:
        """Take the topic's end offsets; return why there are none of the present, if so."""
        ends = self._ends.read()
        samples = [self._ends.samples.popleft() for _ in range(len(self._ends.samples))]
        for end in (end for sample in (*samples, ends) for end in sample if end.offset is not None):
            records = KafkaCounter().records(end.offset)
            if records is not None and (not self._arrived or end.at_s > self._arrived[-1].at_s):
                self._arrived.append(ArrivalCount(end.at_s, records))
        fresh = self._arrived and now_s - self._arrived[-1].at_s <= FRESH_S
        return None if fresh else next((end.problem for end in ends if end.problem), "the topic has not been read yet")

    @property
    def state_rows(self) -> int:
        """Keys in the state, as of the last batch of this run."""
        return self._batches[-1].state_rows if self._batches else 0

    @property
    def former_tasks(self) -> Mapping[str, int] | None:
        """Tasks before the last restart, as long as no batch since then has ended; None otherwise."""
        return self._previous.tasks if self._previous is not None and not self._batches else None

    def running(self, now_s: float) -> RealTimeBatch | None:
        """Return the batch that runs now; None while the query does not run."""
        if self._query is None or not self._query.isActive:
            return None
        return RealTimeBatch(
            self._begun_s(),
            self._active_stages() if self.overdue_s(now_s) > 0 else (),
            self.chain.tasks,
            None if self._open is None else self._open.flow,
            self._heartbeat_s,
        )

    def overdue_s(self, now_s: float) -> float:
        """Return by how many seconds the running batch is overdue, at least 0."""
        return max(0.0, now_s - self._begun_s() - self.chain.late_s)

    def window(self, running: RealTimeBatch, now_s: float) -> RealTimeWindow | str:
        """Return the window of the batches since the restart, or the reason why there is none."""
        batches, work, chain = list(self._batches), list(self._work), self.chain
        clean_s, previous = batches[0].start_s if batches else now_s, self._previous
        if previous is not None:
            batches, work = [previous.counted, *batches], [*previous.work, *work]
        # Until the first batch after a restart has ended, the window covers the last one before the restart: for long
        # if it is overdue, because that shows overload.
        recent = previous is not None and previous.counted.end_s > now_s - self._window_s
        overdue = self.overdue_s(now_s) > 0
        since_s = window_start_s(batches, now_s, self._window_s, clean_s, overdue=overdue or recent)
        if self.former_tasks is not None:
            chain = replace(chain, tasks=self.former_tasks)
        return realtime_window(chain, batches, work, since_s, now_s, self._recent(now_s), self._done(), running)

    def source(self, running: RealTimeBatch | None, now_s: float) -> SourceReading:
        """Return the reading of the source while no window shows it."""
        now = read_source(self.chain, self._recent(now_s), self._done(), running, self._last_flow(), now_s)
        return source_reading(self.chain.names[0], now)

    def elapsed_s(self, now_s: float) -> float:
        """Return the seconds since the start of the running batch."""
        return now_s - self._begun_s()

    def left_s(self, now_s: float) -> float | None:
        """Return the rest of the running batch, if its rows show that it takes longer than a batch on time."""
        usual, rate = self._last_flow(), present_rate(self._recent(now_s), self._window_s)
        if self._open is None or self._open.flow is None or usual is None or rate is None:
            return None
        elapsed_s, batch_s = self.elapsed_s(now_s), self.chain.batch_s
        rest_s = left_s(self._open.flow, usual, rate, elapsed_s, batch_s)
        return rest_s if elapsed_s + rest_s > late_after_s(batch_s) else None

    def _enter(self, reported: Sequence[Batch], stages: Sequence[Stage]) -> bool:
        """Add the batches and stages of the present run; return whether there are such batches."""
        ours = [batch for batch in reported if batch.run_id == self._run]
        for batch in ours:
            flow = None if self._flows is None else self._flows.finished(batch.number)
            self._batches.append(replace(batch, flow=flow))
        self._work.extend(stage for stage in stages if stage.run_id == self._run)
        return bool(ours)

    def _recent(self, now_s: float) -> list[ArrivalCount]:
        """Return the counts of the last window: the input rate is the present one, even if the batches are older."""
        # A copy: the thread of a restart asks, too.
        return [count for count in list(self._arrived) if count.at_s >= now_s - self._window_s]

    def _done(self) -> float | None:
        """Return the topic's records in finished batches."""
        last = self._batches[-1] if self._batches else None if self._previous is None else self._previous.batch
        reported = None if last is None or not last.sources else KafkaCounter().records(last.sources[0].end_offset)
        stopped = self._query is None or not self._query.isActive
        if last is None or reported is None or self._flows is None or stopped:
            return reported  # a batch that a restart interrupts is repeated
        return reported + self._flows.unreported(last.number, None if self._open is None else self._open.number)

    def _last_flow(self) -> Flow | None:
        """Return the rows of the last finished batch whose rows are known."""
        flows = (batch.flow for batch in reversed(list(self._batches)) if batch.flow is not None)
        return next(flows, None if self._previous is None else self._previous.counted.flow)

    def _begun_s(self) -> float:
        if self._open is not None:
            return max(self._open.start_s, self._ready_s)
        return self._batches[-1].end_s if self._batches else self._ready_s

    def _active_stages(self) -> tuple[str, ...]:
        """Return the active stages: a stage waits for those before it, so they are the last ones of the chain."""
        count, names = int(self._store.activeStages().size()), self.chain.names
        return names[-min(count, len(names)) :] if count else ()
