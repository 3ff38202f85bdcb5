"""The tasks that have read the input of a query's batches, from Spark's status store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rheostat.engine.batches.stage import batch_of, moment_s
from rheostat.engine.spark.telemetry.rows import Rows
from rheostat.engine.spark.telemetry.stages import API
from rheostat.lab.experiment.run import TaskWork

MOST_STAGES, MOST_TASKS = 4096, 1024
STAGE_FIELDS = frozenset(["stageId", "attemptId", "status", "description", "inputRecords", "executorRunTime"])
TASK_FIELDS = {
    "TaskData": frozenset(["launchTime", "duration", "status", "taskMetrics"]),
    "TaskMetrics": frozenset(["inputMetrics"]),
    "InputMetrics": frozenset(["recordsRead"]),
}


def input_tasks(context: Any, run_id: str) -> Iterator[TaskWork]:
    """Yield the tasks of every batch's stage that read its input; batches that Spark has forgotten are left out.

    Of several stages with input it is the one with the most work: the table of a join takes little.
    """
    gateway, store = context._gateway, context._jsc.sc().statusStore()
    no_states = gateway.jvm.java.util.ArrayList()
    by_launch = gateway.jvm.org.apache.spark.status.api.v1.TaskSorting.ID
    listed = store.stageList(None, False, False, gateway.new_array(gateway.jvm.double, 0), no_states)
    stages: dict[int, dict[str, Any]] = {}
    for row in Rows(gateway, API, "StageData", {"StageData": STAGE_FIELDS}).read(listed, MOST_STAGES):
        owner = batch_of(row)
        if owner is None or owner[0] != run_id or row["status"] != "COMPLETE" or not row["inputRecords"]:
            continue
        if row["executorRunTime"] >= stages.get(owner[1], row)["executorRunTime"]:
            stages[owner[1]] = row
    task_rows = Rows(gateway, API, "TaskData", TASK_FIELDS)
    for number, stage in sorted(stages.items()):
        tasks = store.taskList(stage["stageId"], stage["attemptId"], 0, MOST_TASKS, by_launch, no_states)
        for row in task_rows.read(tasks, MOST_TASKS):
            records = (row.get("taskMetrics") or {}).get("inputMetrics", {}).get("recordsRead", 0)
            start_s = moment_s(row.get("launchTime"))
            if row["status"] == "SUCCESS" and start_s is not None:
                yield number, start_s, row.get("duration", 0) / 1e3, records / stage["inputRecords"]
