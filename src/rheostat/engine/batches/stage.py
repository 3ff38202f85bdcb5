"""What a stage of a batch cost, read from a row of Spark's status store. Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

RUN_ID = re.compile(r"runId = (\S+)\nbatch = (\d+)")


@dataclass(frozen=True, slots=True)
class Stage:
    """One finished stage of a micro-batch."""

    number: int
    run_id: str
    batch: int
    tasks: int
    wall_s: float
    """From its first to its last moment."""
    busy_s: float
    """Run time of all tasks, less what they waited for shuffled data."""
    cpu_s: float
    gc_s: float
    records_in: int
    spilled_bytes: int
    run_s: float = 0.0
    """Run time of all tasks, what they waited for included."""
    failed_tasks: int = 0
    start_s: float | None = None
    """When its first task began, seconds since the epoch."""
    queued_s: float = 0.0
    """How long it waited for its first slot."""


BROKEN_KEPT = 256

UNFINISHED = ("ACTIVE", "PENDING", "FAILED")
"""A failed attempt is followed by another one, or by the end of the query."""


class StageBook:
    """Which stages were seen, which are waited for, and which batches lost one. Pure."""

    def __init__(self) -> None:
        self.seen = -1
        """The newest number that was looked at."""
        self.open: dict[int, tuple[str, int] | None] = {}
        """Stages that had not finished, and whose they are."""
        self.broken: deque[tuple[str, int]] = deque(maxlen=BROKEN_KEPT)
        self._latest: dict[str, int] = {}
        self._torn: set[str] = set()

    def enter(self, rows: Sequence[dict[str, Any]], again: Mapping[int, dict[str, Any] | None]) -> list[Stage]:
        """Take in the newest rows, newest first, and those of open stages (None: forgotten); return what finished."""
        found: dict[int, dict[str, Any] | None] = dict(again)
        for row in reversed(rows):  # of several attempts the newest stays
            if row["stageId"] > self.seen or row["stageId"] in self.open:
                found[row["stageId"]] = row
        newest = max([self.seen, *found])
        self._miss(found, newest)
        ready = []
        for number, row in sorted(found.items()):
            owner = self.open.pop(number, None) if row is None else batch_of(row)
            if row is None:
                # A stage that waits for another has no description yet: it may be anyone's.
                self.broken.extend([owner] if owner else self._latest.items())
                continue
            if owner:
                self._latest[owner[0]] = owner[1]
                if owner[0] in self._torn and number > self.seen:
                    self._torn.discard(owner[0])
                    self.broken.append(owner)
            if row["status"] in UNFINISHED:
                self.open[number] = owner
                continue
            self.open.pop(number, None)
            if stage := parse_stage(row):
                ready.append(stage)
        self.seen = max(self.seen, newest)
        return ready

    def _miss(self, found: Mapping[int, dict[str, Any] | None], newest: int) -> None:
        """Where numbers are missing, each query may have lost stages of the batch before and of the one after."""
        if sum(number > self.seen for number in found) == newest - self.seen:
            return
        self.broken.extend(self._latest.items())
        owners = (batch_of(row) for row in found.values() if row)
        self._torn |= set(self._latest) | {owner[0] for owner in owners if owner}


def widest(stages: Iterable[Stage]) -> dict[str, int]:
    """Return how many tasks each query (by run id) can have at a time: stages that overlap add up."""
    batches: dict[tuple[str, int], list[Stage]] = {}
    for stage in stages:
        batches.setdefault((stage.run_id, stage.batch), []).append(stage)
    found: dict[str, int] = {}
    for (run_id, _), members in batches.items():
        found[run_id] = max(found.get(run_id, 0), _at_a_time(members))
    return found


def _at_a_time(stages: Sequence[Stage]) -> int:
    """Count the tasks of the stages of one batch at the moment that has most of them."""
    timed = [(s.start_s, s.start_s + s.wall_s, s.tasks) for s in stages if s.start_s is not None]
    together = [sum(tasks for low, high, tasks in timed if low <= start_s < high) for start_s, _, _ in timed]
    return max([stage.tasks for stage in stages] + together, default=0)


def batch_of(row: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the run id and batch that a stage belongs to; None where it is no stage of a streaming query."""
    found = RUN_ID.search(row.get("description") or "")
    return (found[1], int(found[2])) if found else None


def parse_stage(row: dict[str, Any]) -> Stage | None:
    """Read one stage of the status store; None unless it is a finished stage of a streaming query."""
    owner = batch_of(row)
    if row["status"] != "COMPLETE" or owner is None:
        return None
    waited_s = row.get("shuffleFetchWaitTime", 0) / 1e3
    times = ("submissionTime", "firstTaskLaunchedTime", "completionTime")
    submitted_s, start_s, end_s = (_moment_s(row.get(name)) for name in times)
    return Stage(
        number=row["stageId"],
        run_id=owner[0],
        batch=owner[1],
        tasks=row["numTasks"],
        wall_s=end_s - start_s if start_s is not None and end_s is not None else 0.0,
        busy_s=max(0.0, row["executorRunTime"] / 1e3 - waited_s),
        cpu_s=row["executorCpuTime"] / 1e9,
        gc_s=row.get("jvmGcTime", 0) / 1e3,
        records_in=row["inputRecords"] + row["shuffleReadRecords"],
        spilled_bytes=row.get("diskBytesSpilled", 0),
        run_s=row["executorRunTime"] / 1e3,
        failed_tasks=row.get("numFailedTasks", 0),
        start_s=start_s,
        queued_s=max(0.0, start_s - submitted_s) if start_s is not None and submitted_s is not None else 0.0,
    )


def _moment_s(text: str | None) -> float | None:
    """Read the status store's `2026-11-15T22:45:48.062GMT`."""
    return datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp() if text else None
