"""From a source's offset to the records before it: how a rate and a backlog become known.

Spark's own `inputRowsPerSecond` is what was taken, not what arrived. What arrived is how far the latest offset
moved; every kind of source writes its offsets in its own way, so each has a counter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol


class OffsetCounter(Protocol):
    """Counts the records before an offset, from any fixed beginning; None where it cannot be told."""

    def records(self, offset: Any) -> float | None:
        """Return how many records lie before the offset."""

    def ahead(self, offset: Any, seconds: float) -> float | None:
        """Return how many will have come so long after this was the latest offset; None where only the source knows.

        Progress arrives when a batch ends. A source that goes by the clock can tell in between what has come.
        """


class ByReport:
    """A source of which nothing is known between two reports."""

    def ahead(self, offset: Any, seconds: float) -> float | None:
        """Say that it cannot be told."""
        return None


def decoded(offset: Any) -> Any:
    """Return an offset as plain data; progress shows some as text that holds JSON."""
    if isinstance(offset, str):
        try:
            return json.loads(offset)
        except json.JSONDecodeError:
            return offset
    return offset


class KafkaCounter(ByReport):
    """Kafka: {"topic": {"partition": offset}}."""

    def records(self, offset: Any) -> float | None:
        """Add up all partitions."""
        topics = decoded(offset)
        if not isinstance(topics, Mapping):
            return None
        return float(sum(sum(partitions.values()) for partitions in topics.values()))


class RateCounter:
    """The `rate` source: whole seconds since its start, at a fixed number of rows per second."""

    def __init__(self, rows_per_s: float) -> None:
        self.rows_per_s = rows_per_s

    def records(self, offset: Any) -> float | None:
        """Multiply seconds by the rate."""
        return self.ahead(offset, 0.0)

    def ahead(self, offset: Any, seconds: float) -> float | None:
        """Go on at the same rate."""
        at = decoded(offset)
        return (at + seconds) * self.rows_per_s if isinstance(at, int | float) else None


class RowCounter(ByReport):
    """Sources whose offset is itself a count of rows: `rate-micro-batch`, the memory stream."""

    def records(self, offset: Any) -> float | None:
        """Take the number as it is."""
        value = decoded(offset)
        if isinstance(value, Mapping):
            value = value.get("offset")
        return float(value) if isinstance(value, int | float) else None


class UnknownCounter(ByReport):
    """A source whose offsets say nothing about records, such as files: its backlog is not reported."""

    def records(self, offset: Any) -> float | None:
        """Say that it cannot be told."""
        return None


def counter_for(description: str) -> OffsetCounter:
    """Return the counter for a source, by how Spark describes it."""
    if description.startswith("KafkaV2") or description.startswith("KafkaSource"):
        return KafkaCounter()
    if description.startswith("RateStream"):
        found = re.search(r"rowsPerSecond=(\d+)", description)
        return RateCounter(float(found[1])) if found else UnknownCounter()
    if description.startswith(("RatePerMicroBatchStream", "MemoryStream")):
        return RowCounter()
    return UnknownCounter()
