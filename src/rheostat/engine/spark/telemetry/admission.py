"""Finds out whether a source took all of its backlog if its progress does not show it, as for files.

Spark's file source reports neither a latest offset nor the number of waiting files. But a running source exposes its
limit (`maxFilesPerTrigger`) and the number of files it has seen. Without a limit a batch takes every file. With one, a
batch that took as many files as allowed may have left some.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from rheostat.engine.batches.offsets import decode_offset
from rheostat.engine.batches.progress import Batch, SourceProgress

ALL = "All Available"
"""Spark's text for a source without a limit."""
VIRTUAL = "RatePerMicroBatchStream"
"""A source whose limit is its rate: it never has a backlog."""
SPANS = 64
"""Pairs of readings to remember per source: progress events arrive within a few of them."""


@dataclass(frozen=True, slots=True)
class FileReading:
    """The position of a file source: its log offset, which counts batches, and the number of files it has seen."""

    offset: int
    files: int


class FileLimit:
    """Finds the batches of a file source that reached its limit, from successive readings. Pure."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._last: FileReading | None = None
        self._spans: deque[tuple[int, int, bool]] = deque(maxlen=SPANS)

    def enter(self, reading: FileReading) -> None:
        """Compare with the reading before: did the batches in between take as many files as allowed?"""
        last = self._last
        if last is not None and reading.offset > last.offset:
            full = reading.files - last.files >= self.limit * (reading.offset - last.offset)
            self._spans.append((last.offset, reading.offset, full))
        self._last = reading

    def took_all(self, end_offset: Any) -> bool | None:
        """Return whether the batch with this end offset was below the limit; None for a batch without readings."""
        offset = decode_offset(end_offset)
        number = offset.get("logOffset") if isinstance(offset, dict) else None
        if not isinstance(number, int):
            return None
        return next((not full for low, high, full in self._spans if low < number <= high), None)


class Admission:
    """The limits of one running query's sources."""

    def __init__(self, query: Any) -> None:
        self._query = query
        self._sources: list[Any] = []
        self._limits: list[FileLimit | bool | None] = []

    def complete(self, batch: Batch) -> Batch:
        """Return the batch with `all_taken` of its sources filled in."""
        if all(source.took_all is not None for source in batch.sources):
            return batch
        from py4j.protocol import Py4JError

        try:
            self._read()
        except Py4JError:
            # Another Spark may have other internals; then it stays unknown.
            return batch
        if len(self._limits) != len(batch.sources):
            return batch
        limits = zip(batch.sources, self._limits, strict=True)
        return replace(batch, sources=tuple(_complete(source, limit) for source, limit in limits))

    def _read(self) -> None:
        if not self._sources:
            listed = self._query._jsq.streamingQuery().sources()
            self._sources = [listed.apply(index) for index in range(listed.size())]
            self._limits = [_limit(str(source.toString()), read_limit(source)) for source in self._sources]
        for source, limit in zip(self._sources, self._limits, strict=True):
            if isinstance(limit, FileLimit) and (reading := _read_files(source)) is not None:
                limit.enter(reading)


def _limit(description: str, limit: str) -> FileLimit | bool | None:
    """Return a limit in files, True without a limit, None for a limit of another kind."""
    if limit == ALL or description.startswith(VIRTUAL):
        return True
    files = re.fullmatch(r"MaxFiles: (\d+)", limit)
    return FileLimit(int(files[1])) if files else None


def _complete(source: SourceProgress, limit: FileLimit | bool | None) -> SourceProgress:
    if source.took_all is not None or limit is None:
        return source
    all_taken = limit.took_all(source.end_offset) if isinstance(limit, FileLimit) else limit
    return replace(source, all_taken=all_taken)


def read_limit(source: Any) -> str:
    """Return the limit of a running source per trigger, in Spark's text; a source without limits takes everything."""
    from py4j.protocol import Py4JError

    try:
        return str(source.getDefaultReadLimit().toString())
    except Py4JError:
        return ALL


def _read_files(source: Any) -> FileReading | None:
    """Read the position of a file source; return None if a batch was planned meanwhile."""
    before = int(source.currentLogOffset())
    files = int(source.seenFiles().size())
    return FileReading(before, files) if int(source.currentLogOffset()) == before else None
