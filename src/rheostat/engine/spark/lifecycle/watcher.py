"""Restarts a real-time query after a failure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rheostat.engine.spark.lifecycle.owner import Overtaken
from rheostat.engine.spark.lifecycle.restart import TWO_DRIVERS, Pipeline
from rheostat.errors import EngineError, describe

WATCH_S = 0.5
"""Seconds between two checks that the query runs: each is a call into the JVM, for as long as it does."""
BACK_OFF_S: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before each restart of a query that fails again and again without finishing a batch."""

log = logging.getLogger(__name__)


class Watcher:
    """A thread beside one pipeline. `await_slots` returns when there are enough slots for the next start."""

    def __init__(self, job: str, pipeline: Pipeline, await_slots: Callable[[], None]) -> None:
        self.job, self.closed = job, threading.Event()
        self.failures: list[str] = []
        """Errors of the query since it last finished a batch."""
        self.given_up = False
        self._pipeline, self._await_slots = pipeline, await_slots
        self._thread = threading.Thread(target=self._work, name="rheostat-watcher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _work(self) -> None:
        while not self.closed.wait(WATCH_S):
            try:
                if self.watch():
                    return
            except Exception as error:  # noqa: BLE001 - a call into Spark that fails may succeed the next time
                log.warning("query %s could not be watched: %s", self.job, describe(error))

    def watch(self) -> bool:
        """Check the query once, and start it again if it has failed; return whether there is no more to watch."""
        pipeline, query = self._pipeline, self._pipeline.query
        if query is None or pipeline.activity or pipeline.closing or query.isActive:
            return False
        error = query.exception()
        if error is None and pipeline.failure is None:
            return True  # the user stopped it
        self.failures.append((str(error or pipeline.failure).splitlines() or ["?"])[0])
        if len(self.failures) > len(BACK_OFF_S) or self._is_overtaken() or pipeline.application.ended():
            self._give_up()
            return True
        wait_s = BACK_OFF_S[len(self.failures) - 1]
        log.warning("query %s failed, restart in %g s: %s", self.job, wait_s, self.failures[-1])
        try:
            pipeline.recover(lambda: self._ready(wait_s))
            pipeline.wait()
        except EngineError as refusal:
            log.debug("query %s is not restarted here: %s", self.job, refusal)  # another restart has just begun
        return False

    def _is_overtaken(self) -> bool:
        """Whether another driver has written the same batch, and owns the checkpoint; if we do, that one ends."""
        if TWO_DRIVERS.search(self.failures[-1]) is None:
            return False
        try:
            self._pipeline.confirm_claim()
        except Overtaken:
            return True
        return False

    def _give_up(self) -> None:
        self._pipeline.failure = EngineError(f"given up after {len(self.failures)} failures: {self.failures[-1]}")
        self.given_up = True
        log.error("query %s: given up after %d failures: %s", self.job, len(self.failures), self.failures[-1])

    def _ready(self, wait_s: float) -> None:
        self.closed.wait(wait_s)
        self._await_slots()
