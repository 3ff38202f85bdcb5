"""The cost of a stage of a batch, read from a row of Spark's status store. Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median_low
from typing import Any

from rheostat.engine.batches.present import RunningStage, RunningTask

RUN_ID = re.compile(r"runId = (\S+)\nbatch = (\d+)")
LIGHT = 0.1
"""Largest share of a batch's busy time in the stages that read the tables of its broadcast joins."""
MOST_RUNNING = 256
"""Running tasks to read per stage; more are extrapolated from these."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One finished stage of a micro-batch."""

    number: int
    run_id: str
    batch: int
    tasks: int
    wall_s: float
    """From the launch of its first task to its completion."""
    busy_s: float
    """Run time of all tasks without their waits for shuffle data."""
    cpu_s: float
    gc_s: float
    records_in: int
    spilled_bytes: int
    run_s: float = 0.0
    """Run time of all tasks, waits included."""
    failed_tasks: int = 0
    start_s: float | None = None
    """Launch of its first task, seconds since the epoch."""
    queued_s: float = 0.0
    """Wait between its submission and its first task."""
    attempt: int = 0
    reads_input: bool = False
    """Whether it has read a source or a table."""
    longest_task_s: float | None = None
    """Run time of its longest task; None where that was not read."""


BROKEN_BATCHES = 256
"""Batches with missing stages to remember: more than the windows and the fit ever cover."""
RUNS = 64
"""Runs of queries whose newest batch is retained: more than one application has at a time."""
LOOKS_BACK = 3
"""Calls after the failure of a stage: Spark repeats the stages whose shuffle files it lost within a second."""
UNFINISHED = ("ACTIVE", "PENDING", "FAILED")
"""States of a stage that is not over: after a failed attempt comes another one, or the end of the query."""


class StageBook:
    """Tracks the stages that were read, those that still run, and the batches that lost one. Pure.

    A finished stage runs again when its shuffle files are lost. It is returned once, but its new attempt is `rerun`
    until it ends, and shows in the rows of its batch.
    """

    def __init__(self) -> None:
        self.newest = -1
        """The highest stage id that was read."""
        self.open: dict[int, tuple[str, int] | None] = {}
        """Unfinished stages, with their run id and batch."""
        self.looks_back = 0
        """Calls of `enter` left in which older stages may show a new attempt."""
        self.rerun: set[int] = set()
        """Stages that were returned and run again."""
        self.broken: deque[tuple[str, int]] = deque(maxlen=BROKEN_BATCHES)
        self._rows: dict[str, tuple[int, dict[int, dict[str, Any]]]] = {}
        """Run id -> its newest batch, with the last row of each of its stages."""
        self._latest: dict[str, int] = {}
        self._after_gap: set[str] = set()

    def rows(self, run_id: str, batch: int) -> list[dict[str, Any]]:
        """Return the last row of every stage of a query's newest batch, by number; empty for an older batch."""
        newest, rows = self._rows.get(run_id, (batch, {}))
        return [row for _, row in sorted(rows.items())] if newest == batch else []

    def enter(self, rows: Sequence[dict[str, Any]], again: Mapping[int, dict[str, Any] | None]) -> list[Stage]:
        """Enter the newest rows, newest first, and those of open stages (None: evicted); return the finished stages."""
        self.looks_back = max(0, self.looks_back - 1)
        self._enter_reruns(rows, again)
        again = {number: row for number, row in again.items() if number in self.open}
        current: dict[int, dict[str, Any] | None] = dict(again)
        for row in reversed(rows):  # the newest of several attempts wins
            if row["stageId"] > self.newest or row["stageId"] in self.open:
                current[row["stageId"]] = row
        newest = max([self.newest, *current])
        self._mark_gap(current, newest)
        ready = []
        for number, row in sorted(current.items()):
            owner = self.open.pop(number, None) if row is None else batch_of(row)
            if row is None:
                # A stage that waits for another has no description yet: it may belong to any query.
                self.broken.extend([owner] if owner else self._latest.items())
                continue
            if owner:
                self._latest[owner[0]] = owner[1]
                self._retain(owner, row)
                if owner[0] in self._after_gap and number > self.newest:
                    self._after_gap.discard(owner[0])
                    self.broken.append(owner)
            if row["status"] in UNFINISHED:
                self.open[number] = owner
                continue
            self.open.pop(number, None)
            if stage := parse_stage(row):
                ready.append(stage)
        self.newest = max(self.newest, newest)
        return ready

    def _enter_reruns(self, rows: Sequence[dict[str, Any]], again: Mapping[int, dict[str, Any] | None]) -> None:
        """Refresh the stages that run again: a newer attempt of a stage that had finished."""
        asked = [row for number, row in again.items() if row is not None and number in self.rerun]
        self.rerun -= {number for number, row in again.items() if row is None}
        for row in [*reversed(rows), *asked]:
            owner, number = batch_of(row), row["stageId"]
            if owner is None or number > self.newest or number in self.open:
                continue
            batch, retained = self._rows.get(owner[0], (-1, {}))
            before = retained.get(number)
            if batch != owner[1] or before is None or row.get("attemptId", 0) < before.get("attemptId", 0):
                continue
            if row["status"] in UNFINISHED and row.get("attemptId", 0) > before.get("attemptId", 0):
                self.rerun.add(number)
            if number in self.rerun:
                retained[number] = row
                if row["status"] not in UNFINISHED:
                    self.rerun.discard(number)

    def _retain(self, owner: tuple[str, int], row: dict[str, Any]) -> None:
        """Retain a row of the newest batch of a run."""
        batch, rows = self._rows.pop(owner[0], (owner[1], {}))
        if owner[1] > batch:
            self.rerun -= set(rows)
            batch, rows = owner[1], {}
        if owner[1] == batch:
            before = rows.get(row["stageId"], {})
            if row["status"] == "FAILED" and (before.get("status"), before.get("attemptId")) != (
                row["status"],
                row.get("attemptId"),
            ):
                self.looks_back = LOOKS_BACK
            rows[row["stageId"]] = row
        self._rows[owner[0]] = batch, rows
        while len(self._rows) > RUNS:
            del self._rows[next(iter(self._rows))]

    def _mark_gap(self, current: Mapping[int, dict[str, Any] | None], newest: int) -> None:
        """If stage ids are missing, mark the batch before and the one after the gap, for every query."""
        if sum(number > self.newest for number in current) == newest - self.newest:
            return
        self.broken.extend(self._latest.items())
        owners = (batch_of(row) for row in current.values() if row)
        self._after_gap |= set(self._latest) | {owner[0] for owner in owners if owner}


def by_batch(stages: Iterable[Stage]) -> dict[tuple[str, int], list[Stage]]:
    """Return the stages of every batch, by run id and number of the batch."""
    batches: dict[tuple[str, int], list[Stage]] = {}
    for stage in stages:
        batches.setdefault((stage.run_id, stage.batch), []).append(stage)
    return batches


def side_stages(batches: Collection[Sequence[Stage]]) -> int:
    """Return how many stages of a batch come before the one that reads the stream, by finished batches.

    The table of a broadcast join is read first, by a stage of its own. It takes little time, and another stage that
    reads input follows: the stage of a stream that a shuffle follows is not meant.
    """
    return median_low([_side_stages(stages) for stages in batches]) if batches else 0


def _side_stages(stages: Sequence[Stage]) -> int:
    light_s = LIGHT * sum(stage.busy_s for stage in stages)
    inputs = (place for place, stage in enumerate(stages) if stage.reads_input)
    return max((place for place in inputs if sum(stage.busy_s for stage in stages[:place]) <= light_s), default=0)


def max_concurrent_tasks(stages: Iterable[Stage]) -> dict[str, int]:
    """Return the most tasks that each query (by run id) runs at a time: overlapping stages add up."""
    tasks: dict[str, int] = {}
    for (run_id, _), members in by_batch(stages).items():
        tasks[run_id] = max(tasks.get(run_id, 0), _concurrent_tasks(members))
    return tasks


def _concurrent_tasks(stages: Sequence[Stage]) -> int:
    """Return the peak of the concurrent tasks in one batch."""
    timed = [(s.start_s, s.start_s + s.wall_s, s.tasks) for s in stages if s.start_s is not None]
    together = [sum(tasks for low, high, tasks in timed if low <= start_s < high) for start_s, _, _ in timed]
    return max([stage.tasks for stage in stages] + together, default=0)


def batch_of(row: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the run id and the batch of a stage; None for a stage outside of streaming queries."""
    match = RUN_ID.search(row.get("description") or "")
    return (match[1], int(match[2])) if match else None


def parse_stage(row: dict[str, Any]) -> Stage | None:
    """Read one row of the status store; return None unless it is a finished stage of a streaming query."""
    owner = batch_of(row)
    if row["status"] != "COMPLETE" or owner is None:
        return None
    waited_s = row.get("shuffleFetchWaitTime", 0) / 1e3
    times = ("submissionTime", "firstTaskLaunchedTime", "completionTime")
    submitted_s, start_s, end_s = (moment_s(row.get(name)) for name in times)
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
        attempt=row.get("attemptId", 0),
        reads_input=row["inputRecords"] > 0,
    )


def parse_running(row: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]] = (), now_s: float = 0.0) -> RunningStage:
    """Read one row of the status store as a stage of a running batch, finished or not, with its running tasks.

    A retried stage shows its last attempt, which has only the tasks that were missing. A partition counts once however
    many of its tasks have succeeded; of speculative copies all that run are active. Failed and killed tasks add to
    the busy time and to the records. `tasks` are those that run now, or `MOST_RUNNING` of them, which stand for all:
    where they are fewer than the row says, the others have ended since it was written.
    """
    counted = row["numActiveTasks"]
    active = counted if len(tasks) >= MOST_RUNNING else min(counted, len(tasks))
    parts = [_running_part(task, now_s) for task in tasks]
    alike = active / len(parts) if parts else 0.0
    # Heartbeats add what running tasks have read to the row of their stage: it is taken out again.
    busy_s, records = alike * sum(busy_s for _, busy_s in parts), alike * sum(task.records for task, _ in parts)
    return RunningStage(
        number=row["stageId"],
        tasks=row["numTasks"],
        finished=row.get("numCompletedIndices", row["numCompleteTasks"]),
        active=active,
        busy_s=max(0.0, (row["executorRunTime"] - row.get("shuffleFetchWaitTime", 0)) / 1e3 - busy_s),
        records_in=max(0, row["inputRecords"] + row["shuffleReadRecords"] - round(records)),
        active_s=alike * sum(task.age_s for task, _ in parts),
        ended=counted - active,
        running=tuple(task for task, _ in parts),
        start_s=moment_s(row.get("firstTaskLaunchedTime")),
        reads_input=row["inputRecords"] > 0,
    )


def _running_part(row: Mapping[str, Any], now_s: float) -> tuple[RunningTask, float]:
    """Return a running task, and the busy time that its stage counts for it."""
    start_s, metrics = moment_s(row.get("launchTime")), row.get("taskMetrics") or {}
    shuffle = metrics.get("shuffleReadMetrics", {})
    busy_ms = metrics.get("executorRunTime", 0) - shuffle.get("fetchWaitTime", 0)
    records = metrics.get("inputMetrics", {}).get("recordsRead", 0) + shuffle.get("recordsRead", 0)
    age_s = 0.0 if start_s is None else max(0.0, now_s - start_s)
    return RunningTask(row.get("taskId", 0), age_s, float(records)), busy_ms / 1e3


def moment_s(text: str | None) -> float | None:
    """Read a time stamp of the status store, such as `2026-11-15T22:45:48.062GMT`."""
    return datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp() if text else None
