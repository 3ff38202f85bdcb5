"""A finished micro-batch, as Spark's progress tells it. Pure: JSON in, numbers out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rheostat.engine.batches.offsets import decoded


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """One source of a batch: what it took, and how far it could have gone. Offsets are Spark's JSON values."""

    description: str
    start_offset: Any
    end_offset: Any
    latest_offset: Any
    rows: int
    metrics: Mapping[str, str]
    all_taken: bool | None = None
    """Whether nothing was left behind, where neither offsets nor metrics tell; None when it is not known."""

    @property
    def took_all(self) -> bool | None:
        """Whether the batch took all there was; None when it cannot be told."""
        if self.latest_offset is not None:
            return bool(self.latest_offset == self.end_offset)
        # Files: open-source Spark does not report these, others do.
        left = self.offsets_left if self.offsets_left is not None else self._metric("numFilesOutstanding")
        return self.all_taken if left is None else left == 0

    @property
    def offsets_left(self) -> float | None:
        """Records that were left behind, as Kafka's own metrics count them: an average over its partitions."""
        average, topics = self._metric("avgOffsetsBehindLatest"), decoded(self.end_offset)
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
    """When its trigger began, seconds since the epoch."""
    seconds: float
    """How long the trigger took, planning and commits included."""
    work_s: float
    """How long its jobs ran (`addBatch`)."""
    rows: int
    sources: tuple[SourceProgress, ...]
    observed: Mapping[str, Mapping[str, Any]]
    """What `observe()` counted, by name."""
    state_rows: int
    state_bytes: int

    @property
    def end_s(self) -> float:
        """When it was finished."""
        return self.start_s + self.seconds


def parse_progress(text: str) -> Batch | None:
    """Read one progress report; None for those that only say that a query is idle."""
    report = json.loads(text)
    durations = report.get("durationMs", {})
    # An idle trigger reports too, without having run a batch: its number is that of the batch to come.
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
