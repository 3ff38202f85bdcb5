"""Reads the tasks, busy time, CPU time and records of stages from Spark's status store, in one call."""

from __future__ import annotations

import json
from typing import Any

from rheostat.engine.batches.stage import Stage, StageBook

FIELDS = frozenset(
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
"""Fields of a stage's row that Rheostat reads."""
MOST = 256
"""Stages to read in one call; of more, only the newest are read."""
SPARE = 2
"""Rows to read beyond the new stages: a retried stage has one per attempt."""


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
        self._gateway, self._jvm = gateway, gateway.jvm
        self._mapper = self._new_mapper()
        self._whole = True
        """Whether rows hold all fields: only the first ones, which show the fields to leave out."""
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
        rows = self._rows(listed, self._row_count)
        new = rows[0]["stageId"] - self._book.newest if rows else 0
        self._row_count = min(MOST, max(new, 0)) + SPARE
        if self._row_count > len(rows):
            rows = self._rows(listed, self._row_count)
        if rows and self._whole:
            self._leave_out(set(rows[0]) - FIELDS)
        listed_ids = {row["stageId"] for row in rows}
        again = {number: self._attempt(number) for number in self._book.open if number not in listed_ids}
        return self._book.enter(rows, again)

    def _rows(self, listed: Any, count: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self._mapper.writeValueAsString(listed.take(count)))
        return rows

    def _new_mapper(self) -> Any:
        return self._jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()

    def _leave_out(self, names: set[str]) -> None:
        """Leave these fields out from now on: most of a stage's row are its accumulators and its call stack."""
        self._whole = False
        array = self._gateway.new_array(self._jvm.java.lang.String, len(names))
        for place, name in enumerate(sorted(names)):
            array[place] = name
        kind = self._jvm.java.lang.Class.forName("org.apache.spark.status.api.v1.StageData")
        ignored = self._jvm.com.fasterxml.jackson.annotation.JsonIgnoreProperties.Value.forIgnoredProperties(array)
        # A mapper caches the serializer of a class, so the override needs a new mapper.
        self._mapper = self._new_mapper()
        self._mapper.configOverride(kind).setIgnorals(ignored)

    def _attempt(self, number: int) -> dict[str, Any] | None:
        """Read the last attempt of one stage; return None if the store has evicted it."""
        from py4j.protocol import Py4JJavaError

        try:
            row: dict[str, Any] = json.loads(self._mapper.writeValueAsString(self._store.lastStageAttempt(number)))
        except Py4JJavaError:
            return None
        return row
