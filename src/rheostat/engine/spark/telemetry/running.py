"""Reads the batch that a micro-batch query runs now: its offsets, its stages, the rows that its scans have read.

Spark's progress event comes when a batch has ended. Before that its execution context shows the offsets that it reads,
the status store its finished and running tasks, and the SQL metrics the rows as of the last heartbeats.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rheostat.engine.batches.offsets import split_offsets
from rheostat.engine.batches.present import RunningBatch
from rheostat.engine.batches.scan import ScanCounters, count_rows
from rheostat.engine.spark.telemetry.scans import ScanRows
from rheostat.engine.spark.telemetry.stages import Stages
from rheostat.errors import describe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

LONG_S = 2.0
"""Seconds after which a batch is long enough to count its rows: about two heartbeats of `rheostat.session`."""


@dataclass(slots=True)
class OpenBatch:
    """What stays the same while a batch runs, read once, and the highest counts of its scans."""

    context: Any
    number: int
    start_s: float | None
    begun: tuple[Any, ...]
    planned: tuple[Any, ...]
    scans: tuple[ScanCounters, ...] | None = None
    rows: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class QueryHandle:
    """A query inside the JVM, and its last batch."""

    run_id: str
    execution: Any
    batch: OpenBatch | None = None
    sources: Any = None
    """Its distinct sources in the JVM, once its first batch is planned: they stay the same while it runs."""
    source_count: int = 0

    def offsets(self, progress: Any) -> tuple[Any, ...]:
        """Return the offsets of all sources, in the order of progress events; None for a source without one."""
        if not self.source_count:
            self.sources = self.execution.sources().distinct()
            self.source_count = int(self.sources.size())
        return split_offsets(str(progress.toOffsetSeq(self.sources, None).toString()), self.source_count)


class RunningBatches:
    """The running batches of one application. `stages` must have been read in the same step."""

    def __init__(self, spark: SparkSession, stages: Stages) -> None:
        self._stages = stages
        self._scan_rows = ScanRows(spark)
        self._handles: WeakKeyDictionary[StreamingQuery, QueryHandle] = WeakKeyDictionary()

    def read(self, query: StreamingQuery, now_s: float) -> tuple[RunningBatch | None, tuple[Any, ...]]:
        """Return the batch that the query runs now, and what it has committed.

        The batch is None between batches, or where Spark does not show it. What is committed is read after it: if it
        has ended meanwhile, that shows.
        """
        return self._running(query, now_s), self._committed(query)

    def _running(self, query: StreamingQuery, now_s: float) -> RunningBatch | None:
        from py4j.protocol import Py4JError

        try:
            return self._read(query, now_s)
        except (Py4JError, ValueError) as error:
            # Another Spark may have other internals, and an offset may be no JSON: then the batch stays unknown.
            log.debug("the running batch is not known: %s", describe(error))
            return None

    def _read(self, query: StreamingQuery, now_s: float) -> RunningBatch | None:
        handle = self._handle(query)
        context = handle.execution.getLatestExecutionContext()
        # After its end a batch stays the latest one, with its flags, until the next trigger.
        if context is None or not (context.currentStatus().isTriggerActive() and context.isCurrentBatchConstructed()):
            handle.batch = None
            return None
        number = int(context.batchId())
        if handle.batch is None or handle.batch.number != number:
            handle.batch = _open(handle, context, number)
        batch = handle.batch
        self._read_rows(handle.execution, batch, now_s)
        rows_done, rows_read = count_rows(batch.scans or (), batch.rows)
        return RunningBatch(
            run_id=handle.run_id,
            number=number,
            at_s=now_s,
            start_s=batch.start_s,
            begun=batch.begun,
            planned=batch.planned,
            stages=self._stages.running(handle.run_id, number, now_s),
            rows_done=rows_done,
            rows_read=rows_read,
            rows_age_s=self._scan_rows.heartbeat_s,
            stages_missing=(handle.run_id, number) in self._stages.broken,
        )

    def _committed(self, query: StreamingQuery) -> tuple[Any, ...]:
        """Return the end offset of every source in finished batches; () where Spark does not show it.

        A batch is committed before its progress event arrives, and long before the next trigger if there is no input.
        """
        from py4j.protocol import Py4JError

        try:
            handle = self._handle(query)
            return handle.offsets(handle.execution.committedOffsets())
        except (Py4JError, ValueError) as error:
            log.debug("the committed offsets are not known: %s", describe(error))
            return ()

    def _handle(self, query: StreamingQuery) -> QueryHandle:
        if query not in self._handles:
            self._handles[query] = QueryHandle(str(query.runId), query._jsq.streamingQuery())
        return self._handles[query]

    def _read_rows(self, execution: Any, batch: OpenBatch, now_s: float) -> None:
        """Read the rows of all scans of a long batch."""
        from py4j.protocol import Py4JError

        if batch.start_s is None or now_s - batch.start_s < LONG_S:
            return
        try:
            if batch.scans is None:
                batch.scans = self._scan_rows.scans(batch.context)
            if batch.scans:
                counters = tuple(counter for scan in batch.scans for counter in scan.all)
                counts = self._scan_rows.read(str(execution.getBatchDescriptionString()), counters, now_s)
                # The status store may forget a finished execution inside `foreachBatch`.
                batch.rows |= {scan: max(rows, batch.rows.get(scan, 0)) for scan, rows in counts.items()}
        except Py4JError as error:
            log.debug("the rows of the running batch are not known: %s", describe(error))
            batch.scans = ()


def _open(handle: QueryHandle, context: Any, number: int) -> OpenBatch:
    start_ms = int(context.currentTriggerStartTimestamp())
    begun, planned = (handle.offsets(offsets) for offsets in (context.startOffsets(), context.endOffsets()))
    return OpenBatch(context, number, start_ms / 1e3 if start_ms >= 0 else None, begun, planned)
