"""What a query shows at one moment, whatever batch runs: the ends of its sources, and the batch under way. Pure.

A progress event comes only when a batch ends. A long batch is when a scaler is needed, so the sources are asked for
their ends, and the running batch is read from its tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median
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
    stages_missing: bool = False
    """Whether Spark has evicted some of its finished stages (`spark.ui.retainedStages`)."""


class ReadingAtChange:
    """Remembers the running batch as it was when the size last changed."""

    def __init__(self) -> None:
        self._changed_s = -math.inf
        self._then: RunningBatch | None = None

    def of(self, now: RunningBatch, changed_s: float) -> RunningBatch | None:
        """Return the reading at the last change; None if the batch began later."""
        if now.start_s is None or changed_s <= now.start_s:
            return None
        then = self._then
        if then is None or then.start_s != now.start_s or self._changed_s != changed_s or now.at_s <= changed_s:
            self._then, self._changed_s = now, changed_s
        return self._then


@dataclass(frozen=True, slots=True)
class Work:
    """How far the running batch has come."""

    done: float
    """Its input records whose work is done, by the share of its busy time that has passed."""
    left_busy_s: float
    """Expected busy time of its tasks until its end."""
    tasks: int
    """Most tasks of a stage."""
    start_s: float
    """When it began; or when the size changed, if that was later."""
    records: float
    """Input records whose work was done since then."""
    busy_s: float
    """Busy time since then; tasks that still run count from their launch."""
    settled: bool
    """Whether tasks have ended since then, so that busy time and records are those of the present size."""


def read_work(
    now: RunningBatch, records: float, usual: Sequence[Sequence[float]], then: RunningBatch | None = None
) -> Work | None:
    """Return how far a batch with these input records has come; None where nothing of it shows that.

    `usual` holds the busy times of the stages of the batches before it. `then` is the same batch at the last change of
    size, if it ran then.
    """
    if now.start_s is None or records <= 0 or not now.stages:
        return None
    stages_s = (_expected_s(stage, now, records) for stage in now.stages)
    # A stage that has just begun shows nothing yet: it counts as one of those to come.
    known_s = [seconds for seconds in takewhile(lambda seconds: seconds is not None, stages_s) if seconds is not None]
    if not known_s:
        return None
    spent_s = _spent_s(now)
    whole_s = max(spent_s, sum(known_s) * _with_later_stages(len(known_s), usual))
    if spent_s <= 0:
        return None
    since_s = spent_s - (0.0 if then is None else _spent_s(then))
    return Work(
        done=records * spent_s / whole_s,
        left_busy_s=whole_s - spent_s,
        tasks=max(stage.tasks for stage in now.stages),
        start_s=now.start_s if then is None else then.at_s,
        records=records * since_s / whole_s,
        busy_s=since_s,
        settled=since_s > 0 and (then is None or _finished(now) > _finished(then)),
    )


def _expected_s(stage: RunningStage, batch: RunningBatch, records: float) -> float | None:
    """Return the busy time of a whole stage: by its finished tasks, or by the rows that its running tasks have read."""
    if stage.finished:
        return stage.busy_s / stage.finished * stage.tasks
    read_input = stage is batch.stages[0] and batch.rows_read
    return stage.active_s * records / min(batch.rows_read, records) if read_input and batch.rows_read else None


def _spent_s(batch: RunningBatch) -> float:
    return sum(stage.busy_s + stage.active_s for stage in batch.stages)


def _finished(batch: RunningBatch) -> int:
    return sum(stage.finished for stage in batch.stages)


def _with_later_stages(seen: int, usual: Sequence[Sequence[float]]) -> float:
    """Return the busy time of a whole batch as a multiple of that of its first stages, by the batches before it."""
    ratios = [sum(busy_s) / sum(busy_s[:seen]) for busy_s in usual if len(busy_s) > seen and sum(busy_s[:seen]) > 0]
    return median(ratios) if ratios else 1.0
