"""Reads the rows of every stage of a real-time query from the plans of its batches, without probes.

The nodes of a plan count their rows. Executors report these counts with every heartbeat, and Spark's SQL status store
shows them while the batch runs. After its end the nodes themselves have the whole counts, in the driver.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rheostat.engine.batches.flow import Flow, PlanNode, flow_counters, read_flow
from rheostat.engine.spark.telemetry.scans import ROWS, ScanRows, stream_paths
from rheostat.errors import describe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PLANS = 4
"""Batches whose plans are held: the running one, and those whose progress event is on its way."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenFlow:
    """The running batch: its number, its start, and its rows so far."""

    number: int
    start_s: float
    flow: Flow | None


@dataclass(frozen=True, slots=True)
class Counter:
    """What counts the rows of one node: an accumulator of the driver."""

    metric: Any
    number: int

    @classmethod
    def of(cls, node: Any) -> Counter:
        """Return the counter of a node's output rows."""
        metric = node.metrics().apply(ROWS)
        return cls(metric, int(metric.id()))


class BatchFlows:
    """Counts the rows of one run of a query with this number of stages. A restarted query needs a new one."""

    def __init__(self, spark: SparkSession, query: StreamingQuery, stages: int) -> None:
        self._execution: Any = query._jsq.streamingQuery()
        self._scan_rows, self._stages = ScanRows(spark), stages
        self._plans: dict[int, tuple[Counter, ...]] = {}
        """Batch -> its counters."""
        self._places: tuple[tuple[int, str], ...] = ()
        """Number and name of the nodes that count, in the plan of every batch."""

    def read(self, now_s: float) -> OpenFlow | None:
        """Return the running batch; None between two batches."""
        from py4j.protocol import Py4JError

        try:
            return self._read(now_s)
        except Py4JError as error:
            # Another Spark may have other internals; then the rows stay unknown.
            log.debug("the rows of the running batch are not known: %s", describe(error))
            return None

    def finished(self, number: int) -> Flow | None:
        """Return the rows of a finished batch, once; None if no `read` has seen it."""
        from py4j.protocol import Py4JError

        try:
            return read_flow([int(counter.metric.value()) for counter in self._plans.pop(number, ())])
        except Py4JError as error:
            log.debug("the rows of batch %d are not known: %s", number, describe(error))
            return None

    def unreported(self, reported: int, running: int | None) -> float:
        """Return the source's rows in batches that have ended since the last reported one; a report takes a moment."""
        from py4j.protocol import Py4JError

        ended = (
            counters for number, counters in self._plans.items() if number > reported and number != running and counters
        )
        try:
            return float(sum(int(counters[0].metric.value()) for counters in ended))
        except Py4JError as error:
            log.debug("the rows of a batch that has ended are not known: %s", describe(error))
            return 0.0

    def _read(self, now_s: float) -> OpenFlow | None:
        context = self._execution.getLatestExecutionContext()
        if context is None or not context.currentStatus().isTriggerActive():
            return None
        number, start_ms = int(context.batchId()), int(context.currentTriggerStartTimestamp())
        if start_ms < 0:
            return None
        counters = self._plans.get(number)
        if counters is None:
            execution = context.executionPlan()
            if execution is None:
                return OpenFlow(number, start_ms / 1e3, None)
            counters = self._plans[number] = self._counters(execution.executedPlan())
            while len(self._plans) > PLANS:
                del self._plans[next(iter(self._plans))]
        ids = tuple(counter.number for counter in counters)
        rows = self._scan_rows.read(str(self._execution.getBatchDescriptionString()), ids, now_s) if ids else {}
        return OpenFlow(number, start_ms / 1e3, read_flow([rows.get(counter) for counter in ids]))

    def _counters(self, plan: Any) -> tuple[Counter, ...]:
        """Return the counters of a batch's plan: at the places of the batch before, else by a walk through the plan.

        A walk takes a hundred calls into the JVM, and the plans of a run are alike.
        """
        places, self._places = self._places, ()  # a failure here leads to a walk the next time
        nodes = [(plan.p(place), name) for place, name in places]
        if nodes and all(node is not None and str(node.nodeName()) == name for node, name in nodes):
            counters = tuple(Counter.of(node) for node, _ in nodes)
            self._places = places
            return counters
        path = next(stream_paths(plan), ())
        named = [str(node.nodeName()) for node in path]
        counting = (index if node.metrics().contains(ROWS) else None for index, node in enumerate(path))
        indices = flow_counters([PlanNode(*pair) for pair in zip(named, counting, strict=True)], self._stages)
        counters = tuple(Counter.of(path[index]) for index in indices)
        self._places = self._numbered(plan, [(len(path) - 1 - index, named[index]) for index in indices], counters)
        return counters

    def _numbered(
        self, plan: Any, places: list[tuple[int, str]], counters: tuple[Counter, ...]
    ) -> tuple[tuple[int, str], ...]:
        """Return the places if Spark finds the same counters there by number; else none.

        Spark numbers the nodes of a plan from the sink downwards, the first child first.
        """
        from py4j.protocol import Py4JError

        try:
            found = [Counter.of(plan.p(place)).number for place, _ in places]
        except (Py4JError, AttributeError):  # a node without counter, or none
            return ()
        return tuple(places) if found == [counter.number for counter in counters] else ()
