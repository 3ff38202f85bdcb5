"""What stages cost: tasks, busy time, CPU, records; read from Spark's status store, in one call a look."""

from __future__ import annotations

import json
import re
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


LOOK_BACK = 64
"""A running stage that many numbers behind the newest belongs to something long, and is not waited for."""


class Stages:
    """Hands out each finished stage of a streaming query once, oldest first."""

    def __init__(self, context: Any) -> None:
        gateway = context._gateway
        self._store = context._jsc.sc().statusStore()
        self._no_quantiles = gateway.new_array(gateway.jvm.double, 0)
        self._no_states = gateway.jvm.java.util.ArrayList()
        self._mapper = gateway.jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        self._seen = -1

    def finished(self, most: int = 256) -> list[Stage]:
        """Return the stages that finished since the last look; at most so many, the newest."""
        listed = self._store.stageList(None, False, False, self._no_quantiles, self._no_states)
        newest = listed.head().stageId() if listed.nonEmpty() else -1
        # The store lists the newest first, and numbers only rise; a few more cover stages that were running before.
        wanted = min(most, max(0, newest - self._seen) + 8)
        if not wanted:
            return []
        rows = json.loads(self._mapper.writeValueAsString(listed.take(wanted)))
        found = [stage for row in rows if (stage := parse_stage(row)) and stage.number > self._seen]
        # Stages of a query finish in order; one that still runs must be looked at again, unless it runs for ever.
        waiting = [
            row["stageId"]
            for row in rows
            if row["status"] in ("ACTIVE", "PENDING") and row["stageId"] > max(self._seen, newest - LOOK_BACK)
        ]
        limit = min(waiting, default=newest + 1)
        ready = sorted((stage for stage in found if stage.number < limit), key=lambda stage: stage.number)
        self._seen = max(self._seen, limit - 1)
        return ready


def parse_stage(row: dict[str, Any]) -> Stage | None:
    """Read one stage of the status store; None unless it is a finished stage of a streaming query."""
    found = RUN_ID.search(row.get("description") or "")
    if row["status"] != "COMPLETE" or found is None:
        return None
    waited_s = row.get("shuffleFetchWaitTime", 0) / 1e3
    return Stage(
        number=row["stageId"],
        run_id=found[1],
        batch=int(found[2]),
        tasks=row["numTasks"],
        wall_s=_moment_s(row.get("completionTime")) - _moment_s(row.get("firstTaskLaunchedTime")),
        busy_s=max(0.0, row["executorRunTime"] / 1e3 - waited_s),
        cpu_s=row["executorCpuTime"] / 1e9,
        gc_s=row.get("jvmGcTime", 0) / 1e3,
        records_in=row["inputRecords"] + row["shuffleReadRecords"],
        spilled_bytes=row.get("diskBytesSpilled", 0),
    )


def _moment_s(text: str | None) -> float:
    """Read the status store's `2026-11-15T22:45:48.062GMT`."""
    return datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp() if text else 0.0
