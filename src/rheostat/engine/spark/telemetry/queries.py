"""Collects what Spark reports about micro-batch queries: their batches, their stages, their status."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rheostat.engine.batches.batch_time import SlotHistory
from rheostat.engine.batches.live import read_live
from rheostat.engine.batches.offsets import OffsetCounter, counter_for
from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.batches.selection import WINDOW_S, usual_window_s
from rheostat.engine.batches.stage import Stage, max_concurrent_tasks
from rheostat.engine.batches.window import QueryView, QueryWindow
from rheostat.engine.spark.telemetry.admission import Admission
from rheostat.engine.spark.telemetry.feed import Feed
from rheostat.engine.spark.telemetry.live import CounterOf, LiveQuery
from rheostat.engine.spark.telemetry.running import RunningBatches
from rheostat.engine.spark.telemetry.stages import Stages
from rheostat.ports import Clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCH_HISTORY = 512
"""Batches to retain per query: more than a window and the fit of the batch time cover."""
STAGE_HISTORY = 4096
"""Stages to retain of all queries: those of the retained batches of a few queries."""


class QueryTelemetry:
    """Listens to the queries of one session."""

    def __init__(self, spark: SparkSession, clock: Clock, counters: Mapping[str, OffsetCounter] | None = None) -> None:
        self._spark, self._clock = spark, clock
        self._own_counters = dict(counters or {})
        self._counters: dict[tuple[str, int, str], OffsetCounter] = {}
        self._stages = Stages(spark.sparkContext)
        self._running = RunningBatches(spark, self._stages)
        self._live: dict[str, LiveQuery] = {}
        self.feed = Feed()
        spark.streams.addListener(self.feed)
        self._runs: dict[str, StreamingQuery] = {}
        self._active: dict[str, StreamingQuery] = {}
        self._batches: dict[str, deque[Batch]] = {}
        self._work: deque[Stage] = deque(maxlen=STAGE_HISTORY)
        self._admissions: dict[str, Admission] = {}
        self._last_idle_s: dict[str, float] = {}
        self.slot_history = SlotHistory()
        self.max_tasks = 0
        """Most concurrent tasks of the queries in the stages read so far; 0 before the first stage."""

    @property
    def batches_done(self) -> dict[str, int]:
        """Query -> batches finished since its checkpoint was created, as of the last `collect`."""
        return {batches[-1].query: batches[-1].number + 1 for batches in self._batches.values() if batches}

    @property
    def ended(self) -> dict[str, str]:
        """Run id of every terminated query -> its exception, "" if it was stopped."""
        return {run: error for run, error in self.feed.ended.items() if run in self._batches}

    @property
    def failure(self) -> str:
        """The exception of a failed query of this session; "" if none has failed."""
        return next((error for error in self.feed.ended.values() if error), "")

    def close(self) -> None:
        """Stop listening, and asking the sources."""
        for live in self._live.values():
            live.close()
        self._live = {}
        self._spark.streams.removeListener(self.feed)

    def follow(self, queries: Sequence[StreamingQuery]) -> bool:
        """Follow these queries from now on; return whether they changed, which drops the batches of the old ones."""
        if list(map(id, queries)) != list(map(id, self._runs.values())):
            # The run id of a query object never changes, and reading it takes two round trips.
            self._runs = {str(query.runId): query for query in queries}
        if set(self._runs) == set(self._batches):
            return False
        self._batches = {run: deque(maxlen=BATCH_HISTORY) for run in self._runs}
        for run in set(self._live) - set(self._runs):
            self._live.pop(run).close()
        self.max_tasks = 0
        return True

    def collect(self) -> None:
        """Ask the sources, and collect the batches and stages that have finished since the last call.

        The stages are read as soon as the sources have answered: what has arrived and what is done are of one moment.
        """
        self._active = {run: query for run, query in self._runs.items() if query.isActive}
        for run, query in self._active.items():
            self._watch(run, query).ask()
        for text in self.feed.drain():
            batch = parse_progress(text)
            if batch is not None and batch.run_id in self._batches:
                self._batches[batch.run_id].append(self._complete(batch))
        for run in self._active:
            self._live[run].listen()
        stages, broken = [*self._work, *self._stages.read_finished()], self._stages.broken
        self._work.clear()
        self._work.extend(s for s in stages if s.run_id in self._batches and (s.run_id, s.batch) not in broken)
        # Queries run concurrently, and so do some stages of a query. A running batch is left out: it may lack stages.
        done = {(batch.run_id, batch.number) for batches in self._batches.values() for batch in batches}
        self.max_tasks = max(
            self.max_tasks, sum(max_concurrent_tasks(s for s in self._work if (s.run_id, s.batch) in done).values())
        )

    def windows(
        self, now_s: float, window_s: float | None, changed_s: float, slots: int
    ) -> tuple[list[QueryWindow], str | None]:
        """Return every active query's part of the window, and the reason if no decision may rest on it.

        `collect` must have been called in the same step. A window without a length covers a few batches of the slowest
        query.
        """
        active = self._active
        if window_s is None:
            window_s = max((usual_window_s(list(self._batches[run])) for run in active), default=WINDOW_S)
        parts, problem = [], None
        for run, query in active.items():
            status = query.status
            trigger_active = bool(status["isTriggerActive"])
            # Idle: the last trigger had no input, and the query waits for the next one.
            if not trigger_active and not status["isDataAvailable"]:
                self._last_idle_s[run] = now_s
            view = QueryView(
                list(self._batches[run]),
                self._work,
                self._counter,
                now_s,
                window_s,
                changed_s,
                self._last_idle_s.get(run, 0.0),
                trigger_active,
                # The bottlenecks of a query are judged by its share of the slots.
                max(1, slots // len(active)),
                self.slot_history.during,
            )
            live = self._live[run].read(now_s, changed_s, view.batches, self._work, self._counters_of(run, query))
            part, reason = read_live(view, live)
            parts.append(part)
            problem = problem if reason is None else f"{query.name or query.id}: {reason}"
        return parts, problem

    def _watch(self, run: str, query: StreamingQuery) -> LiveQuery:
        if run not in self._live:
            own = self._own_counters.get(query.name or str(query.id))
            self._live[run] = LiveQuery(self._spark, query, self._running, self._clock, own)
        return self._live[run]

    def _counters_of(self, run: str, query: StreamingQuery) -> CounterOf:
        """Return the counters of a query's sources, by their place among them."""
        batches, live, name = self._batches[run], self._live[run], query.name or str(query.id)

        def counter(index: int) -> OffsetCounter:
            # Before its first batch the sources are asked in the background: until then nothing counts their offsets.
            descriptions = [source.description for source in batches[-1].sources] if batches else live.descriptions
            return self._counter(name, index, "".join(descriptions[index : index + 1]))

        return counter

    def _complete(self, batch: Batch) -> Batch:
        """Add the limits of the running query's sources, which its progress does not hold."""
        if batch.run_id not in self._admissions:
            query = self._runs.get(batch.run_id)
            if query is None:
                return batch
            self._admissions = {run: one for run, one in self._admissions.items() if run in self._batches}
            self._admissions[batch.run_id] = Admission(query)
        return self._admissions[batch.run_id].complete(batch)

    def _counter(self, query: str, index: int, description: str) -> OffsetCounter:
        key = (query, index, description)
        if key not in self._counters:
            self._counters[key] = self._own_counters.get(query) or counter_for(description)
        return self._counters[key]
