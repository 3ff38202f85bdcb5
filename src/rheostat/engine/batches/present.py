"""What a query shows at one moment, whatever batch runs: the ends of its sources, and the batch under way. Pure.

A progress event comes only when a batch ends. A long batch is when a scaler is needed, so the sources are asked for
their ends, and the running batch is read from its tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The newest record of one source, as the source itself says."""

    at_s: float
    """When the source answered."""
    offset: Any = None
    """Its end as an offset, in the form of progress events; None where it has none, or did not answer."""
    files: int | None = None
    """Files so far, taken and waiting; None for a source without files."""
    files_waiting: int | None = None
    """Of these, files that no batch has taken."""
    problem: str = ""
    """Why it did not answer."""


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
    rows_read: float | None = None
    """Rows that its scans have read, running tasks included, as of the last heartbeats; None where that is unknown."""
