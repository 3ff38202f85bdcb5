"""Counts the records before a source's offset: the basis of the input rate and of the backlog.

Spark's own `inputRowsPerSecond` counts the rows that a batch took, not the rows that arrived. Arrivals are the
distance that the latest offset moved. Every kind of source has its own offset format, hence its own counter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

NO_OFFSET, SEPARATOR = "-", ", "
FILE_BATCHES = 64
"""Batches of a file source whose rows and bytes are retained."""


class OffsetCounter(Protocol):
    """Counts the records before an offset, from any fixed origin; None where the offset does not show them."""

    def records(self, offset: Any) -> float | None:
        """Return the number of records before the offset."""

    def ahead(self, offset: Any, seconds: float) -> float | None:
        """Return the records that exist `seconds` after this was the latest offset; None for an unpredictable source.

        A progress event arrives only when a batch ends. In between, arrivals are known for sources with a fixed rate.
        """


@runtime_checkable
class LatestOffset(Protocol):
    """What a counter of your own may offer besides: the source's end, whatever batch runs."""

    def latest(self) -> Any:
        """Return the offset after the newest record, in the form of progress events; None if it is unknown.

        It is called at every step, on a thread of its own, and may raise: then the window says so.
        """


class ByReport:
    """A source whose arrivals are unknown between two progress events."""

    def ahead(self, offset: Any, seconds: float) -> float | None:
        """Return None: arrivals are unknown."""
        return None


def decode_offset(offset: Any) -> Any:
    """Return an offset as plain data; some progress events hold it as JSON text."""
    if isinstance(offset, str):
        try:
            return json.loads(offset)
        except json.JSONDecodeError:
            return offset
    return offset


def split_offsets(text: str, count: int) -> tuple[Any, ...]:
    """Read Spark's text of the offsets of `count` sources, such as `[-, {"a": {"0": 5}}]`; `-` is None: no offset yet.

    The offset of a single source may be any text. Those of several are separated by reading their JSON.
    """
    inside = text.removeprefix("[").removesuffix("]")
    if count == 1:
        return (None if inside == NO_OFFSET else decode_offset(inside),)
    offsets: list[Any] = []
    rest = inside
    while rest:
        if rest == NO_OFFSET or rest.startswith(NO_OFFSET + SEPARATOR):
            offset, end = None, len(NO_OFFSET)
        else:
            offset, end = json.JSONDecoder().raw_decode(rest)
        offsets.append(offset)
        rest = rest[end:].removeprefix(SEPARATOR)
    if len(offsets) != count:
        raise ValueError(f"{text!r} has {len(offsets)} offsets, not {count}")
    return tuple(offsets)


class KafkaCounter(ByReport):
    """Kafka: {"topic": {"partition": offset}}."""

    def records(self, offset: Any) -> float | None:
        """Sum over all partitions."""
        topics = decode_offset(offset)
        if not isinstance(topics, Mapping):
            return None
        return float(sum(sum(partitions.values()) for partitions in topics.values()))


class RateCounter:
    """The `rate` source: whole seconds since its start, at a fixed number of rows per second."""

    def __init__(self, rows_per_s: float) -> None:
        self.rows_per_s = rows_per_s

    def records(self, offset: Any) -> float | None:
        """Return the seconds times the rate."""
        return self.ahead(offset, 0.0)

    def ahead(self, offset: Any, seconds: float) -> float | None:
        """Extrapolate at the same rate."""
        at = decode_offset(offset)
        return (at + seconds) * self.rows_per_s if isinstance(at, int | float) else None


class RowCounter(ByReport):
    """Sources whose offset is itself a count of rows: `rate-micro-batch`, the memory stream."""

    def records(self, offset: Any) -> float | None:
        """Return the offset itself."""
        value = decode_offset(offset)
        if isinstance(value, Mapping):
            value = value.get("offset")
        return float(value) if isinstance(value, int | float) else None


class FileCounter(ByReport):
    """Files: the rows of finished batches, and the bytes beyond them at the rows per byte of these batches.

    The offset of a file source counts its batches (`logOffset`). A listing adds the bytes of the files that were taken
    up to an offset, and of those that wait; a finished batch adds its rows.
    """

    def __init__(self) -> None:
        self._bytes: dict[int, float] = {}
        """Log offset -> bytes of the files up to it."""
        self._rows: dict[int, float] = {}
        """Log offset -> rows of the finished batches up to it."""

    def enter_listing(self, offset: Any) -> None:
        """Add a listing: an offset with `logOffset` and `taken`."""
        self._retain(self._bytes, int(offset["logOffset"]), float(offset["taken"]))

    def enter_batch(self, end_offset: Any, rows: int) -> None:
        """Add the next finished batch; one that was added before changes nothing."""
        number, newest = _log_offset(end_offset), max(self._rows, default=-1)
        if number is not None and number > newest:
            self._retain(self._rows, number, self._rows.get(newest, 0.0) + rows)

    def records(self, offset: Any) -> float | None:
        """Return the rows before an offset, or, for one with `waiting` bytes, those of all files."""
        number = _log_offset(offset)
        if number is None:
            return None
        waiting = float(decode_offset(offset).get("waiting", 0.0))
        if not waiting and number in self._rows:
            return self._rows[number]
        both = [one for one in self._bytes if one in self._rows]
        if not both or number not in self._bytes:
            return None
        first, last = min(both), max(both)
        taken = self._bytes[last] - self._bytes[first]
        if taken <= 0:
            return None
        per_byte = (self._rows[last] - self._rows[first]) / taken
        beyond = max(0.0, self._bytes[number] - self._bytes[last]) if number not in self._rows else 0.0
        return self._rows.get(number, self._rows[last]) + per_byte * (beyond + waiting)

    def _retain(self, values: dict[int, float], number: int, value: float) -> None:
        values[number] = value
        while len(values) > FILE_BATCHES:
            del values[min(values)]


def _log_offset(offset: Any) -> int | None:
    value = decode_offset(offset)
    number = value.get("logOffset") if isinstance(value, Mapping) else None
    return number if isinstance(number, int) else None


class UnknownCounter(ByReport):
    """A source whose offsets do not count records: its backlog is not reported."""

    def records(self, offset: Any) -> float | None:
        """Return None: the offset does not count records."""
        return None


def counter_for(description: str) -> OffsetCounter:
    """Return the counter for a source, selected by Spark's description of it."""
    if description.startswith("KafkaV2") or description.startswith("KafkaSource"):
        return KafkaCounter()
    if description.startswith("RateStream"):
        rate = re.search(r"rowsPerSecond=(\d+)", description)
        return RateCounter(float(rate[1])) if rate else UnknownCounter()
    if description.startswith(("RatePerMicroBatchStream", "MemoryStream")):
        return RowCounter()
    return UnknownCounter()
