"""Reads the tasks, busy time, CPU time and records of stages from Spark's status store.

The store is there with `spark.ui.enabled=false`, too. Spark writes a running stage to it when a task ends, at most
every `spark.ui.liveUpdate.period`; what it held back follows with a heartbeat (`spark.executor.heartbeatInterval`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rheostat.engine.batches.bottleneck import BEHIND_S, UNEVEN
from rheostat.engine.batches.present import RunningStage
from rheostat.engine.batches.stage import MOST_RUNNING, Stage, StageBook, parse_running
from rheostat.engine.spark.telemetry.rows import Rows

FIELDS = frozenset(
    [
        "stageId",
        "attemptId",
        "status",
        "description",
        "numTasks",
        "numActiveTasks",
        "numCompleteTasks",
        "numCompletedIndices",
        "submissionTime",
        "firstTaskLaunchedTime",
        "completionTime",
        "executorRunTime",
        "executorCpuTime",
        "jvmGcTime",
        "inputRecords",
        "shuffleReadRecords",
        "shuffleFetchWaitTime",
        "diskBytesSpilled",
        "numFailedTasks",
    ]
)
"""Fields of a stage's row that Rheostat reads."""
MOST = 256
"""Stages to read in one call; of more, only the newest are read."""
SPARE = 2
"""Rows to read beyond the new stages: a retried stage has one per attempt."""
TASK_FIELDS = {
    "TaskData": frozenset(["taskId", "launchTime", "taskMetrics"]),
    "TaskMetrics": frozenset(["executorRunTime", "inputMetrics", "shuffleReadMetrics"]),
    "InputMetrics": frozenset(["recordsRead"]),
    "ShuffleReadMetrics": frozenset(["recordsRead", "fetchWaitTime"]),
}
"""Fields of a task's row that Rheostat reads."""
API = "org.apache.spark.status.api.v1"


class Stages:
    """Returns each finished stage of a streaming query once, oldest first.

    Spark evicts old stages (`spark.ui.retainedStages`). Stage ids have no gaps, so a gap shows that stages were evicted
    between two calls. The batches around it are `broken`: their remaining stages would mislead.
    """

    def __init__(self, context: Any) -> None:
        gateway = context._gateway
        self._store = context._jsc.sc().statusStore()
        self._no_quantiles = gateway.new_array(gateway.jvm.double, 0)
        self._no_states = gateway.jvm.java.util.ArrayList()
        self._stage_rows = Rows(gateway, API, {"StageData": FIELDS})
        self._task_rows = Rows(gateway, API, TASK_FIELDS)
        kinds = gateway.jvm.org.apache.spark.status.api.v1
        # Running tasks have no run time yet, so they come first. Without an order Spark sorts the tasks of all stages.
        self._running_first = kinds.TaskSorting.INCREASING_RUNTIME
        self._longest_first = kinds.TaskSorting.DECREASING_RUNTIME
        self._running = gateway.jvm.java.util.ArrayList()
        self._running.add(kinds.TaskStatus.RUNNING)
        self._book = StageBook()
        self._row_count = SPARE

    @property
    def broken(self) -> frozenset[tuple[str, int]]:
        """(run id, batch) of batches that lost a stage."""
        return frozenset(self._book.broken)

    def read_finished(self) -> list[Stage]:
        """Return the stages that finished since the last call."""
        listed = self._store.stageList(None, False, False, self._no_quantiles, self._no_states)
        # The store lists the newest first, and ids only rise. The row count of the last call is usually enough.
        rows = self._stage_rows.read(listed, self._row_count)
        new = rows[0]["stageId"] - self._book.newest if rows else 0
        self._row_count = min(MOST, max(new, 0)) + SPARE
        if self._row_count > len(rows):
            rows = self._stage_rows.read(listed, self._row_count)
        if self._book.looks_back:
            # A stage has failed. Its parents run again where their shuffle files were lost, and they have lower ids.
            rows = self._stage_rows.read(listed, MOST)
        listed_ids = {row["stageId"] for row in rows}
        unfinished = {*self._book.open, *self._book.rerun} - listed_ids
        finished = self._book.enter(rows, {number: self._attempt(number) for number in unfinished})
        return [replace(s, longest_task_s=self._longest_task_s(s)) if _may_be_skewed(s) else s for s in finished]

    def running(self, run_id: str, batch: int, now_s: float) -> tuple[RunningStage, ...]:
        """Return the stages of a query's running batch, by number, as of the last `read_finished`.

        The tasks that run are read now. The batch may lack stages if it is `broken`.
        """
        rows = self._book.rows(run_id, batch)
        return tuple(parse_running(row, self._tasks(row) if row["numActiveTasks"] else (), now_s) for row in rows)

    def _tasks(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Return running tasks of a stage."""
        stage, attempt = row["stageId"], row["attemptId"]
        listed = self._store.taskList(stage, attempt, 0, MOST_RUNNING, self._running_first, self._running)
        return self._task_rows.read(listed, MOST_RUNNING)

    def _longest_task_s(self, stage: Stage) -> float | None:
        """Return the run time of a finished stage's longest task; None if the store has evicted it."""
        listed = self._store.taskList(stage.number, stage.attempt, 0, 1, self._longest_first, self._no_states)
        metrics = listed.apply(0).taskMetrics() if listed.size() else None
        return metrics.get().executorRunTime() / 1e3 if metrics is not None and metrics.isDefined() else None

    def _attempt(self, number: int) -> dict[str, Any] | None:
        """Read the last attempt of one stage; return None if the store has evicted it."""
        from py4j.protocol import Py4JJavaError

        try:
            return self._stage_rows.read_one(self._store.lastStageAttempt(number))
        except Py4JJavaError:
            return None


def _may_be_skewed(stage: Stage) -> bool:
    """Whether a stage takes so much longer than its work, spread evenly, that it matters whether it has a long task."""
    return stage.wall_s >= BEHIND_S and stage.tasks > 1 and stage.wall_s * stage.tasks >= UNEVEN * stage.busy_s
