"""A finished micro-batch, as Spark's progress event reports it. Pure: JSON in, numbers out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rheostat.engine.batches.flow import Flow
from rheostat.engine.batches.offsets import decode_offset


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """One source of a batch: the offsets it read, and the latest one available. Offsets are Spark's JSON values."""

    description: str
    start_offset: Any
    end_offset: Any
    latest_offset: Any
    rows: int
    metrics: Mapping[str, str]
    all_taken: bool | None = None
    """Whether the batch took everything, for sources whose offsets and metrics do not show it; None when unknown."""

    @property
    def took_all(self) -> bool | None:
        """Whether the batch took everything that was available; None when unknown."""
        if self.latest_offset is not None:
            return bool(self.latest_offset == self.end_offset)
        # Files: Databricks reports this metric, open-source Spark does not.
        left = self.offsets_left if self.offsets_left is not None else self._metric("numFilesOutstanding")
        return self.all_taken if left is None else left == 0

    @property
    def offsets_left(self) -> float | None:
        """Records left at the source, from Kafka's own metric, which is an average over its partitions."""
        average, topics = self._metric("avgOffsetsBehindLatest"), decode_offset(self.end_offset)
        if average is None or not isinstance(topics, Mapping):
            return None
        return average * sum(len(partitions) for partitions in topics.values() if isinstance(partitions, Mapping))

    def _metric(self, name: str) -> float | None:
        try:
            value = float(self.metrics[name])
        except (KeyError, TypeError, ValueError):
            return None
        return value if math.isfinite(value) and value >= 0 else None


@dataclass(frozen=True, slots=True)
class Batch:
    """One finished micro-batch of one query."""

    query: str
    run_id: str
    number: int
    start_s: float
    """Start of its trigger, seconds since the epoch."""
    seconds: float
    """Duration of the trigger, planning and commits included."""
    work_s: float
    """Duration of its Spark jobs (`addBatch`)."""
    rows: int
    sources: tuple[SourceProgress, ...]
    observed: Mapping[str, Mapping[str, Any]]
    """Results of `observe()`, by name."""
    state_rows: int
    state_bytes: int
    flow: Flow | None = None
    """Rows of its stages in real-time mode; None where they were not read."""

    @property
    def end_s(self) -> float:
        """End of its trigger, seconds since the epoch."""
        return self.start_s + self.seconds


def parse_progress(text: str) -> Batch | None:
    """Read one progress event; return None for an idle one, which ran no batch."""
    report = json.loads(text)
    durations = report.get("durationMs", {})
    # An idle trigger sends an event too. Its batchId is that of the next batch.
    if "addBatch" not in durations:
        return None
    states = report.get("stateOperators", [])
    return Batch(
        query=report.get("name") or report["id"],
        run_id=report["runId"],
        number=int(report["batchId"]),
        start_s=datetime.fromisoformat(report["timestamp"].replace("Z", "+00:00")).timestamp(),
        seconds=durations.get("triggerExecution", 0) / 1e3,
        work_s=durations["addBatch"] / 1e3,
        rows=int(report.get("numInputRows", 0)),
        sources=tuple(_source(source) for source in report.get("sources", [])),
        observed=report.get("observedMetrics", {}),
        state_rows=sum(int(s.get("numRowsTotal", 0)) for s in states),
        state_bytes=sum(int(s.get("memoryUsedBytes", 0)) for s in states),
    )


def _source(source: Mapping[str, Any]) -> SourceProgress:
    return SourceProgress(
        source.get("description", ""),
        source.get("startOffset"),
        source.get("endOffset"),
        source.get("latestOffset"),
        int(source.get("numInputRows", 0)),
        source.get("metrics", {}),
    )
