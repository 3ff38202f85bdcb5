"""What stages cost: tasks, busy time, CPU, records; read from Spark's status store, in one call a look."""

from __future__ import annotations

import json
from typing import Any

from rheostat.engine.batches.stage import Stage, StageBook

READ = frozenset(
    [
        "stageId",
        "status",
        "description",
        "numTasks",
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
"""What is read of a stage's row."""
MOST = 256
"""Stages that are read at one look; of more only the newest."""
SPARE = 2
"""Rows read beyond the new stages: a stage that was tried again has one per attempt."""


class Stages:
    """Hands out each finished stage of a streaming query once, oldest first.

    Spark forgets old stages (`spark.ui.retainedStages`). Stage numbers have no gaps, so it shows when some were
    forgotten between two looks; the batches that may have lost one are `broken`, and what is left of them misleads.
    """

    def __init__(self, context: Any) -> None:
        gateway = context._gateway
        self._store = context._jsc.sc().statusStore()
        self._no_quantiles = gateway.new_array(gateway.jvm.double, 0)
        self._no_states = gateway.jvm.java.util.ArrayList()
        self._gateway, self._jvm = gateway, gateway.jvm
        self._mapper = self._new_mapper()
        self._whole = True
        """Whether rows come with all that Spark knows: the first ones, which tell what there is to leave out."""
        self._book = StageBook()
        self._usual = SPARE

    @property
    def broken(self) -> frozenset[tuple[str, int]]:
        """(run id, batch) of which a stage was missed."""
        return frozenset(self._book.broken)

    def finished(self) -> list[Stage]:
        """Return the stages that finished since the last look."""
        listed = self._store.stageList(None, False, False, self._no_quantiles, self._no_states)
        # The store lists the newest first, and numbers only rise. As many as last time are most often enough.
        rows = self._rows(listed, self._usual)
        new = rows[0]["stageId"] - self._book.newest if rows else 0
        self._usual = min(MOST, max(new, 0)) + SPARE
        if self._usual > len(rows):
            rows = self._rows(listed, self._usual)
        if rows and self._whole:
            self._leave_out(set(rows[0]) - READ)
        known = {row["stageId"] for row in rows}
        again = {number: self._attempt(number) for number in self._book.open if number not in known}
        return self._book.enter(rows, again)

    def _rows(self, listed: Any, count: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self._mapper.writeValueAsString(listed.take(count)))
        return rows

    def _new_mapper(self) -> Any:
        return self._jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()

    def _leave_out(self, names: set[str]) -> None:
        """Write only what is read from now on: a stage's accumulators and call stack are most of its row."""
        self._whole = False
        listed = sorted(names)
        array = self._gateway.new_array(self._jvm.java.lang.String, len(listed))
        for place, name in enumerate(listed):
            array[place] = name
        kind = self._jvm.java.lang.Class.forName("org.apache.spark.status.api.v1.StageData")
        ignored = self._jvm.com.fasterxml.jackson.annotation.JsonIgnoreProperties.Value.forIgnoredProperties(array)
        # A mapper keeps how it writes a class from the first time on.
        self._mapper = self._new_mapper()
        self._mapper.configOverride(kind).setIgnorals(ignored)

    def _attempt(self, number: int) -> dict[str, Any] | None:
        """Read the last attempt of one stage; None when the store has forgotten it."""
        from py4j.protocol import Py4JJavaError

        try:
            row: dict[str, Any] = json.loads(self._mapper.writeValueAsString(self._store.lastStageAttempt(number)))
        except Py4JJavaError:
            return None
        return row
