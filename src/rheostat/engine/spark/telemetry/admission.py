"""Whether a source took all there was, where its progress does not say: files, and sources of few words.

Spark's file source reports no latest offset and, unlike others, no files that wait. But a running source tells its
limit (`maxFilesPerTrigger`) and how many files it has seen. Without a limit a batch takes all there is; under one it
left files behind, or may have, when it took as many as it was allowed to.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from rheostat.engine.batches.offsets import decode_offset
from rheostat.engine.batches.progress import Batch, SourceProgress

ALL = "All Available"
"""How Spark writes that there is no limit."""
VIRTUAL = "RatePerMicroBatchStream"
"""Its limit is its rate: nothing is ever left behind."""
SPANS_KEPT = 64


@dataclass(frozen=True, slots=True)
class Look:
    """How far a file source has come: its log offset, which counts batches, and the files that it has seen."""

    offset: int
    files: int


class FileLimit:
    """Which batches of a file source reached its limit, as far as two looks at it tell. Pure."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._last: Look | None = None
        self._spans: deque[tuple[int, int, bool]] = deque(maxlen=SPANS_KEPT)

    def enter(self, look: Look) -> None:
        """Compare with the look before: as many files as batches were allowed to take is the limit."""
        last = self._last
        if last is not None and look.offset > last.offset:
            full = look.files - last.files >= self.limit * (look.offset - last.offset)
            self._spans.append((last.offset, look.offset, full))
        self._last = look

    def took_all(self, end_offset: Any) -> bool | None:
        """Say whether the batch that ended there was below the limit; None when it was not watched."""
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
        """Return the batch with what its progress does not say about its sources."""
        if all(source.took_all is not None for source in batch.sources):
            return batch
        from py4j.protocol import Py4JError

        try:
            self._read()
        except Py4JError:
            # Spark's inner life may differ elsewhere; then it stays unknown.
            return batch
        if len(self._limits) != len(batch.sources):
            return batch
        limits = zip(batch.sources, self._limits, strict=True)
        return replace(batch, sources=tuple(_completed(source, limit) for source, limit in limits))

    def _read(self) -> None:
        if not self._sources:
            listed = self._query._jsq.streamingQuery().sources()
            self._sources = [listed.apply(index) for index in range(listed.size())]
            self._limits = [_limit(str(source.toString()), read_limit(source)) for source in self._sources]
        for source, limit in zip(self._sources, self._limits, strict=True):
            if isinstance(limit, FileLimit) and (look := _look(source)) is not None:
                limit.enter(look)


def _limit(description: str, limit: str) -> FileLimit | bool | None:
    """Return a limit in files, True where there is none, None where it is of another kind."""
    if limit == ALL or description.startswith(VIRTUAL):
        return True
    files = re.fullmatch(r"MaxFiles: (\d+)", limit)
    return FileLimit(int(files[1])) if files else None


def _completed(source: SourceProgress, limit: FileLimit | bool | None) -> SourceProgress:
    if source.took_all is not None or limit is None:
        return source
    told = limit.took_all(source.end_offset) if isinstance(limit, FileLimit) else limit
    return replace(source, all_taken=told)


def read_limit(source: Any) -> str:
    """Return what a running source may take at a trigger, in Spark's words; one that has no limits takes all."""
    from py4j.protocol import Py4JError

    try:
        return str(source.getDefaultReadLimit().toString())
    except Py4JError:
        return ALL


def _look(source: Any) -> Look | None:
    """Look at a file source; None when a batch was planned meanwhile."""
    before = int(source.currentLogOffset())
    files = int(source.seenFiles().size())
    return Look(before, files) if int(source.currentLogOffset()) == before else None
