"""Restarts a real-time query after a failure, and stops it when another driver has taken over its checkpoint."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from rheostat.engine.spark.lifecycle.owner import Owner
from rheostat.engine.spark.lifecycle.restart import Pipeline
from rheostat.errors import EngineError, first_line

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

WATCH_S = 0.2
"""Seconds between two checks that the query runs."""
BACK_OFF_S: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before each restart of a query that fails again and again without finishing a batch."""
TWO_DRIVERS = "CONCURRENT_STREAM_LOG_UPDATE"
"""Spark's error class when another driver has written the same batch."""

log = logging.getLogger(__name__)


class Watcher:
    """A thread beside one pipeline. `await_slots` returns when there are enough slots for the next start."""

    def __init__(self, job: str, pipeline: Pipeline, owner: Owner, await_slots: Callable[[], None]) -> None:
        self.job, self.closed = job, threading.Event()
        self.failures: list[str] = []
        """Errors of the query since it last finished a batch."""
        self.given_up = False
        self._pipeline, self._owner, self._await_slots = pipeline, owner, await_slots
        self._thread = threading.Thread(target=self._watch, name="rheostat-watcher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _watch(self) -> None:
        pipeline = self._pipeline
        while not self.closed.wait(WATCH_S):
            query = pipeline.query
            if self._stop_if_taken_over(query):
                return
            if query is None or pipeline.activity or query.isActive or pipeline.closing:
                continue
            error = query.exception()
            if error is None and pipeline.failure is None:
                return  # the user stopped it
            self.failures.append((str(error or pipeline.failure).splitlines() or ["?"])[0])
            if len(self.failures) > len(BACK_OFF_S) or TWO_DRIVERS in self.failures[-1]:
                self._give_up()
                return
            wait_s = BACK_OFF_S[len(self.failures) - 1]
            log.warning("query %s failed, restart in %g s: %s", self.job, wait_s, self.failures[-1])
            try:
                pipeline.recover(lambda wait_s=wait_s: self._ready(wait_s))  # type: ignore[misc]
                pipeline.wait()
            except EngineError:
                continue  # another restart has just begun and will start the query

    def _stop_if_taken_over(self, query: StreamingQuery | None) -> bool:
        """Stop the query if another driver owns the checkpoint; if the store does not answer, check again later."""
        from py4j.protocol import Py4JError

        try:
            other = self._owner.renew()
        except Py4JError as error:
            log.warning("query %s: cannot write to its checkpoint: %s", self.job, first_line(error))
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
        log.error("query %s: given up after %d failures: %s", self.job, len(self.failures), self.failures[-1])

    def _ready(self, wait_s: float) -> None:
        self.closed.wait(wait_s)
        self._await_slots()
