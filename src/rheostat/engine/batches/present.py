"""What a query shows at one moment, whatever batch runs: the ends of its sources, and the batch under way. Pure.

A progress event comes only when a batch ends. A long batch is when a scaler is needed, so the sources are asked for
their ends, and the running batch is read from its tasks (`work.py` says how far that is).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rheostat.engine.batches.offsets import OffsetCounter


@dataclass(frozen=True, slots=True)
class Waiting:
    """What no batch of a source has taken, beside its records: of a folder of files, or of a table."""

    files: int
    bytes: int
    versions: int | None = None
    """Versions of a table after the one that the source has come to, that one included while files of it wait; None
    for a folder."""


def add_waiting(parts: Sequence[Waiting]) -> Waiting:
    """Return what waits at several sources together."""
    versions = [part.versions for part in parts if part.versions is not None]
    files, size = sum(part.files for part in parts), sum(part.bytes for part in parts)
    return Waiting(files, size, sum(versions) if versions else None)


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The newest record of one source, as the source itself says."""

    at_s: float
    """When the source answered."""
    offset: Any = None
    """Its end as an offset, in the form of progress events; None where it has none, or did not answer."""
    files: int | None = None
    """Files so far, taken and waiting; None for a source without files."""
    waiting: Waiting | None = None
    """What no batch has taken; None for a source without files."""
    problem: str = ""
    """Why it did not answer."""
    counter: OffsetCounter | None = None
    """What counts its offsets, where only the source itself knows."""


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task that runs now."""

    number: int
    age_s: float
    """Seconds since its launch."""
    records: float
    """Records that it has read, as of the last heartbeat."""


@dataclass(frozen=True, slots=True)
class RunningStage:
    """A stage of the running batch, finished or not."""

    number: int
    tasks: int
    finished: int
    """Tasks that have ended."""
    active: int
    """Tasks that run now."""
    busy_s: float
    """Run time of the finished tasks without their waits for shuffle data."""
    records_in: int
    """Records that the finished tasks have read."""
    active_s: float = 0.0
    """Seconds since their launch, of the tasks that run now."""
    start_s: float | None = None
    """Launch of its first task, seconds since the epoch."""
    reads_input: bool = False
    """Whether its finished tasks have read a source or a table. The first stage of a batch always does."""
    ended: int = 0
    """Tasks that have ended since the other counts were made: nothing else is known of them."""
    running: tuple[RunningTask, ...] = ()
    """The tasks that run now, or some that stand for all; () where only their number and time are known."""


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """The batch that a query runs now."""

    run_id: str
    number: int
    at_s: float
    """When it was read."""
    start_s: float | None
    """Start of its trigger, seconds since the epoch; None where it is unknown."""
    begun: tuple[Any, ...]
    """Start offset of every source, in the form of progress events; None for a source's first batch."""
    planned: tuple[Any, ...]
    """End offset of every source, in the form of progress events."""
    stages: tuple[RunningStage, ...] = ()
    """Its stages so far, by number; later ones may follow."""
    rows_done: float | None = None
    """Rows that its scans have read and Python, if they pass it, has given back, running tasks included; None where
    that is unknown."""
    rows_read: float | None = None
    """Rows that its scans have read; None where a scan has not reported."""
    rows_age_s: float = 0.0
    """Largest age of these rows: executors report them with heartbeats."""
    stages_missing: bool = False
    """Whether Spark has evicted some of its finished stages (`spark.ui.retainedStages`)."""
