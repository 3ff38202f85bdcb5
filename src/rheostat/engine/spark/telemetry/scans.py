"""Reads the rows that the scans of a running batch have read so far, from Spark's SQL metrics.

Executors report these counts with every heartbeat (`spark.executor.heartbeatInterval`), running tasks included. A
micro-batch has a root SQL execution and inner ones: that of its sink, or one per action inside `foreachBatch`. The
counts are in the execution whose stages read the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from rheostat.engine.batches.flow import EXCHANGE
from rheostat.engine.batches.scan import ScanCounters, batch_executions, parse_count
from rheostat.engine.spark.telemetry.rows import Rows

LISTED = 128
"""Newest SQL executions to search: more than the open batches of all queries have."""
MOST_EXECUTIONS = 8
"""Newest executions of a batch to read; only `foreachBatch` with many actions has more."""
HEARTBEAT = ("spark.executor.heartbeatInterval", "10s")
"""Setting for the time between two reports of an executor, with Spark's default."""
FIELDS = frozenset(["executionId", "rootExecutionId", "description"])
"""Fields of an execution's row that Rheostat reads."""
PACKAGE, EXECUTION = "org.apache.spark.sql.execution.ui", "SQLExecutionUIData"
ROWS, PYTHON_ROWS = "numOutputRows", "pythonNumRowsReceived"
"""Metrics with the output rows of a node: of most, and of those that run Python."""
ADAPTIVE, REALTIME_SCAN = "AdaptiveSparkPlan", "StreamScan"


def heartbeat_s(spark: Any) -> float:
    """Return the seconds between two reports of an executor."""
    return float(spark.sparkContext._jsc.sc().conf().getTimeAsMs(*HEARTBEAT)) / 1e3


class ScanRows:
    """Counts the rows of scans of one application."""

    def __init__(self, spark: Any) -> None:
        self._sql = spark._jsparkSession.sharedState().statusStore()
        self._rows = Rows(spark.sparkContext._gateway, PACKAGE, {EXECUTION: FIELDS})
        self.heartbeat_s = heartbeat_s(spark)
        self._listed_s: float | None = None
        self._listed: list[dict[str, Any]] = []

    def scans(self, context: Any) -> tuple[ScanCounters, ...] | None:
        """Return the accumulators that count the rows of a batch's scans of streams; None before it is planned."""
        execution = context.executionPlan()
        return None if execution is None else tuple(map(_counters, stream_paths(execution.executedPlan())))

    def read(self, description: str, scans: tuple[int, ...], now_s: float) -> dict[int, int]:
        """Return the rows per accumulator of a batch's scans; an accumulator without a report is left out.

        `description` is what Spark writes on the jobs of the batch. Where several executions have read the same
        source, the largest count is returned.
        """
        counts: dict[int, int] = {}
        for number in batch_executions(self._executions(now_s), description)[-MOST_EXECUTIONS:]:
            metrics = self._sql.executionMetrics(number)
            for scan in scans:
                rows = parse_count(str(metrics.get(scan)))
                if rows is not None:
                    counts[scan] = max(rows, counts.get(scan, 0))
        return counts

    def _executions(self, now_s: float) -> list[dict[str, Any]]:
        """Return the newest executions, oldest first: one call for all queries of a step."""
        if self._listed_s != now_s:
            # Spark evicts the oldest, so a number is no place in the list. The list is sorted by number.
            count = int(self._sql.executionsCount())
            self._listed = self._rows.read(self._sql.executionsList(max(0, count - LISTED), LISTED), LISTED)
            self._listed_s = now_s
        return self._listed


def stream_paths(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the nodes of a plan from every scan of a stream upwards."""
    children = node.children()
    if children.size():
        for index in range(children.size()):
            yield from stream_paths(children.apply(index), (node, *above))
    elif str(node.nodeName()) == ADAPTIVE:
        # The present plan of adaptive execution hides scans behind finished stages, the initial one does not.
        yield from stream_paths(node.initialPlan(), above)
    elif _reads_stream(node):
        yield (node, *above)


def _counters(path: tuple[Any, ...]) -> ScanCounters:
    """Return the counters of a scan, and of the last Python node above it in its stage."""
    scan = last = int(path[0].metrics().apply(ROWS).id())
    python = None
    for node in takewhile(lambda node: EXCHANGE not in str(node.nodeName()), path[1:]):
        metrics = node.metrics()
        if (received := metrics.get(PYTHON_ROWS)).isDefined():
            python = last, int(received.get().id())
            last = python[1]
        elif (rows := metrics.get(ROWS)).isDefined():
            last = int(rows.get().id())
    return ScanCounters(scan, python)


def _reads_stream(leaf: Any) -> bool:
    from py4j.protocol import Py4JError

    if REALTIME_SCAN in str(leaf.nodeName()):
        return True  # it has no `getStream`
    try:
        return bool(leaf.getStream().isDefined())
    except Py4JError:
        # It is no scan: the result of another query, say.
        return False
