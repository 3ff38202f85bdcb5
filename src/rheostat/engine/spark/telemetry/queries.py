"""What Spark reports of micro-batch queries, collected at every look: their batches, their stages, what they do now."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rheostat.engine.batches.batch_time import SlotHistory
from rheostat.engine.batches.offsets import OffsetCounter, counter_for
from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.batches.stage import Stage, max_concurrent_tasks
from rheostat.engine.batches.window import QueryView, QueryWindow, read_query
from rheostat.engine.spark.telemetry.admission import Admission
from rheostat.engine.spark.telemetry.feed import Feed
from rheostat.engine.spark.telemetry.stages import Stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCHES_KEPT = 512
"""Batches that are retained per query."""
STAGES_KEPT = 4096
"""Stages that are retained of all queries."""


class QueryTelemetry:
    """Listens to the queries of one session."""

    def __init__(self, spark: SparkSession, counters: Mapping[str, OffsetCounter] | None = None) -> None:
        self._spark = spark
        self._own_counters = dict(counters or {})
        self._counters: dict[tuple[str, int, str], OffsetCounter] = {}
        self._stages = Stages(spark.sparkContext)
        self._feed = Feed()
        spark.streams.addListener(self._feed)
        self._runs: dict[str, StreamingQuery] = {}
        self._batches: dict[str, deque[Batch]] = {}
        self._work: deque[Stage] = deque(maxlen=STAGES_KEPT)
        self._admissions: dict[str, Admission] = {}
        self._quiet_s: dict[str, float] = {}
        self.slot_history = SlotHistory()
        self.max_tasks = 0
        """Tasks that the queries can have at a time, as far as stages were seen; 0 before the first."""

    @property
    def batches_done(self) -> dict[str, int]:
        """Query -> batches that it has finished since its checkpoint was made, as of the last look."""
        return {batches[-1].query: batches[-1].number + 1 for batches in self._batches.values() if batches}

    @property
    def ended(self) -> dict[str, str]:
        """Run id of every query that has ended -> its exception, "" where it was stopped."""
        return {run: why for run, why in self._feed.ended.items() if run in self._batches}

    @property
    def failure(self) -> str:
        """Why a query of this session has ended; "" where none has failed."""
        return next((text for text in self._feed.ended.values() if text), "")

    def close(self) -> None:
        """Stop listening."""
        self._spark.streams.removeListener(self._feed)

    def follow(self, queries: Sequence[StreamingQuery]) -> bool:
        """Follow these queries from now on; return whether they are others than before, whose reports are dropped."""
        if list(map(id, queries)) != list(map(id, self._runs.values())):
            # A query's run never changes, and asking for it takes two round trips.
            self._runs = {str(query.runId): query for query in queries}
        if set(self._runs) == set(self._batches):
            return False
        self._batches = {run: deque(maxlen=BATCHES_KEPT) for run in self._runs}
        self.max_tasks = 0
        return True

    def collect(self) -> None:
        """Take in the batches and stages that have finished since the last look."""
        for text in self._feed.drain():
            batch = parse_progress(text)
            if batch is not None and batch.run_id in self._batches:
                self._batches[batch.run_id].append(self._completed(batch))
        found, broken = [*self._work, *self._stages.finished()], self._stages.broken
        self._work.clear()
        self._work.extend(s for s in found if s.run_id in self._batches and (s.run_id, s.batch) not in broken)
        # Queries run side by side, and so do some stages of a query; of a batch that runs only the first may be here.
        done = {(batch.run_id, batch.number) for batches in self._batches.values() for batch in batches}
        self.max_tasks = max(
            self.max_tasks, sum(max_concurrent_tasks(s for s in self._work if (s.run_id, s.batch) in done).values())
        )

    def windows(
        self, now_s: float, window_s: float, changed_s: float, slots: int
    ) -> tuple[list[QueryWindow], str | None]:
        """Return every active query's part of the window, and why they cannot be decided from, where that is so."""
        active = {run: query for run, query in self._runs.items() if query.isActive}
        parts, problem = [], None
        for run, query in active.items():
            status = query.status
            works = bool(status["isTriggerActive"])
            # Its last trigger found nothing new, and it waits for the next.
            if not works and not status["isDataAvailable"]:
                self._quiet_s[run] = now_s
            part, why = read_query(
                QueryView(
                    list(self._batches[run]),
                    self._work,
                    self._counter,
                    now_s,
                    window_s,
                    changed_s,
                    self._quiet_s.get(run, 0.0),
                    works,
                    # Bottlenecks of one query are judged by its share of the slots.
                    max(1, slots // len(active)),
                    self.slot_history.during,
                )
            )
            parts += [] if part is None else [part]
            problem = problem if why is None else f"{query.name or query.id}: {why}"
        return parts, problem

    def _completed(self, batch: Batch) -> Batch:
        """Add what the progress does not say and the running query knows."""
        if batch.run_id not in self._admissions:
            query = self._runs.get(batch.run_id)
            if query is None:
                return batch
            self._admissions = {run: kept for run, kept in self._admissions.items() if run in self._batches}
            self._admissions[batch.run_id] = Admission(query)
        return self._admissions[batch.run_id].complete(batch)

    def _counter(self, query: str, index: int, description: str) -> OffsetCounter:
        key = (query, index, description)
        if key not in self._counters:
            self._counters[key] = self._own_counters.get(query) or counter_for(description)
        return self._counters[key]
