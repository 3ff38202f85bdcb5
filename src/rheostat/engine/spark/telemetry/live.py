"""One running query at this moment: what its sources say, and how far its running batch has come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rheostat.engine.batches.arrivals import HISTORY, ArrivalCount
from rheostat.engine.batches.live import Live
from rheostat.engine.batches.offsets import FileCounter, OffsetCounter
from rheostat.engine.batches.present import RunningBatch, SourceEnd, add_waiting
from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.stage import Stage, by_batch, side_stages
from rheostat.engine.batches.work import UsualBatch, Work, WorkReader
from rheostat.engine.spark.telemetry.ends import SourceEnds
from rheostat.engine.spark.telemetry.readers import find_readers
from rheostat.engine.spark.telemetry.running import RunningBatches
from rheostat.job.observation import total
from rheostat.ports import Clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

USUAL_BATCHES = 16
"""Batches whose stages tell what is still to come in the running one."""

FRESH_READING_S = 0.5
"""Largest age of a source's answer at which the running batch counts as read at the same moment."""

CounterOf = Callable[[int], OffsetCounter]
"""Index of a source -> its counter."""


class LiveQuery:
    """Watches one query. A restarted query needs a new one."""

    def __init__(
        self, spark: SparkSession, query: StreamingQuery, batches: RunningBatches, clock: Clock, own_counter: object
    ) -> None:
        self._query, self._running = query, batches
        self._ends = SourceEnds(lambda: find_readers(spark, query, clock, own_counter), clock)
        self.ask = self._ends.begin
        """Start to ask the sources: ask those of all queries before you listen to the first."""
        self._arrived: deque[ArrivalCount] = deque(maxlen=HISTORY)
        self._answers: tuple[SourceEnd, ...] = ()
        self._works = WorkReader()
        self._files: dict[int, FileCounter] = {}

    @property
    def descriptions(self) -> tuple[str, ...]:
        """Spark's descriptions of the sources, as in progress events; none before the first batch is planned."""
        return self._ends.descriptions

    def listen(self) -> None:
        """Wait for the answers of the sources, for a moment."""
        self._answers = self._ends.read()

    def read(
        self, now_s: float, changed_s: float, batches: Sequence[Batch], stages: Sequence[Stage], counter: CounterOf
    ) -> Live:
        """Return the query as of the last answers of its sources. `batches` and `stages` are the finished ones."""
        ends = self._answers
        counter = self._with_files(ends, batches, counter)
        while self._ends.samples:
            self._count(self._ends.samples.popleft(), batches, counter)
        self._count(ends, batches, counter)
        fresh = bool(self._arrived) and 0 <= now_s - self._arrived[-1].at_s < FRESH_READING_S
        running, offsets = self._running.read(self._query, self._arrived[-1].at_s if fresh else now_s)
        committed = _committed(offsets, running, batches, counter)
        if running is not None and batches and running.number <= batches[-1].number:
            running = None
        begun = None if running is None else _count_all(running.begun, counter)
        if committed is not None and begun is not None and committed > begun:
            running = None
        waiting = [end.waiting for end in ends if end.waiting is not None]
        work = None if running is None or begun is None else self._work(running, begun, changed_s, stages, counter)
        return Live(
            self._arrived,
            committed,
            None if running is None else running.start_s,
            work,
            self._works.settled,
            "; ".join(dict.fromkeys(end.problem for end in ends if end.problem)),
            add_waiting(waiting) if waiting else None,
        )

    def close(self) -> None:
        """Stop asking the sources."""
        self._ends.close()

    def _with_files(self, ends: Sequence[SourceEnd], batches: Sequence[Batch], counter: CounterOf) -> CounterOf:
        """Return the counters, with those of file sources, which learn from listings and from finished batches."""
        for index, end in enumerate(ends):
            if end.files is not None and end.offset is not None:
                self._files.setdefault(index, FileCounter()).enter_listing(end.offset)
        for index, files in self._files.items():
            for batch in batches:
                if index < len(batch.sources):
                    files.enter_batch(batch.sources[index].end_offset, batch.sources[index].rows)
        known: dict[int, OffsetCounter] = dict(self._files)
        known |= {index: end.counter for index, end in enumerate(ends) if end.counter is not None}
        return lambda index: known[index] if index in known else counter(index)

    def _count(self, ends: Sequence[SourceEnd], batches: Sequence[Batch], counter: CounterOf) -> None:
        """Count the records of all sources, if they have answered since the last count."""
        if not ends or any(end.offset is None for end in ends):
            return
        if batches and all(
            counter(index).ahead(source.latest_offset, 0.0) is not None
            for index, source in enumerate(batches[-1].sources)
        ):
            return  # the clock says it more exactly than offsets in whole seconds
        at_s, records = min(end.at_s for end in ends), _count_all([end.offset for end in ends], counter)
        if records is not None and (not self._arrived or at_s > self._arrived[-1].at_s):
            self._arrived.append(ArrivalCount(at_s, records))

    def _work(
        self, running: RunningBatch, begun: float, changed_s: float, stages: Sequence[Stage], counter: CounterOf
    ) -> Work | None:
        planned = _count_all(running.planned, counter)
        if planned is None or running.stages_missing:
            return None
        before = by_batch(s for s in stages if s.run_id == running.run_id and s.batch < running.number)
        recent = list(before.values())[-USUAL_BATCHES:]
        skipped = side_stages(recent)
        main = (members[skipped:] for members in recent if len(members) > skipped)
        usual = [
            UsualBatch(tuple(stage.busy_s for stage in members), members[0].records_in, members[0].tasks)
            for members in main
        ]
        running = replace(running, stages=running.stages[skipped:])
        return self._works.read(running, planned - begun, usual, changed_s)


def _committed(
    offsets: Sequence[Any], running: RunningBatch | None, batches: Sequence[Batch], counter: CounterOf
) -> float | None:
    """Return the records of finished batches: as committed, as the running batch began, or as reported."""
    reported = [source.end_offset for source in batches[-1].sources] if batches else []
    known = (offsets, () if running is None else running.begun, reported)
    counts = (_count_all(each, counter) for each in known if each)
    return next((count for count in counts if count is not None), None)


def _count_all(offsets: Sequence[Any], counter: CounterOf) -> float | None:
    """Return the records before the offsets of all sources; None where one does not show them."""
    return total(counter(index).records(offset) for index, offset in enumerate(offsets))
