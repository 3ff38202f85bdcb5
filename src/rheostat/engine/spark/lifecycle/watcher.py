"""Starts a real-time query again whenever it has failed, and lets go where another driver has taken it over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from rheostat.engine.spark.lifecycle.owner import Owner
from rheostat.engine.spark.lifecycle.restart import Pipeline
from rheostat.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

WATCH_S = 0.2
"""Seconds between two looks at whether the query still runs."""
BACK_OFF_S: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before the next start of a failed query, by how often it failed without finishing a batch."""
TWO_DRIVERS = "CONCURRENT_STREAM_LOG_UPDATE"
"""Spark's error class when another driver has written the same batch."""

log = structlog.get_logger("rheostat.spark")


class Watcher:
    """A thread beside one pipeline. `await_slots` returns when there are slots for the query's next start."""

    def __init__(self, job: str, pipeline: Pipeline, owner: Owner, await_slots: Callable[[], None]) -> None:
        self.job, self.closed = job, threading.Event()
        self.failures: list[str] = []
        """What the query failed with since it last finished a batch."""
        self.given_up = False
        self._pipeline, self._owner, self._await_slots = pipeline, owner, await_slots
        self._thread = threading.Thread(target=self._watch, name="rheostat-watcher", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def _watch(self) -> None:
        pipeline = self._pipeline
        while not self.closed.wait(WATCH_S):
            query = pipeline.query
            if self._overtaken(query):
                return
            if query is None or pipeline.doing or query.isActive or pipeline.ending:
                continue
            error = query.exception()
            if error is None and pipeline.failure is None:
                return  # it was stopped by someone else
            self.failures.append((str(error or pipeline.failure).splitlines() or ["?"])[0])
            if len(self.failures) > len(BACK_OFF_S) or TWO_DRIVERS in self.failures[-1]:
                self._give_up()
                return
            log.warning("the query failed and is started again", job=self.job, error=self.failures[-1])
            wait_s = BACK_OFF_S[len(self.failures) - 1]
            try:
                pipeline.revive(lambda wait_s=wait_s: self._ready(wait_s))  # type: ignore[misc]
                pipeline.wait()
            except EngineError:
                continue  # a restart has just begun, which does the same

    def _overtaken(self, query: StreamingQuery | None) -> bool:
        """Stop where another driver works on the checkpoint by now; a store that does not answer is asked later."""
        from py4j.protocol import Py4JError

        try:
            other = self._owner.renew()
        except Py4JError as error:
            log.warning("the checkpoint cannot be written", job=self.job, error=str(error).splitlines()[0])
            return False
        if other is None or query is None:
            return False
        self.failures.append(f"another driver (process {other.pid} on {other.host}) runs on {self._owner.location}")
        query.stop()
        self._give_up()
        return True

    def _give_up(self) -> None:
        self._pipeline.failure = EngineError(f"given up after {len(self.failures)} failures: {self.failures[-1]}")
        self.given_up = True
        log.error("given up", job=self.job, failures=len(self.failures), error=self.failures[-1])

    def _ready(self, wait_s: float) -> None:
        self.closed.wait(wait_s)
        self._await_slots()
