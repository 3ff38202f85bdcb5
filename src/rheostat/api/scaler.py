"""A running scaler, as a user holds it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from rheostat.api.summary import html, text
from rheostat.clock import WallClock
from rheostat.control.controller import Controller, Step
from rheostat.errors import LeaseRefused, RheostatError, describe, first_line
from rheostat.job.decision import Decision
from rheostat.ports import RunningJob

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

STOP_S = 180.0
"""Longest wait for the end of a scaler, in seconds: a change that is under way may take its deadline of 120 s."""
RETAINED_STEPS = 1000
"""Steps that a scaler shows; the journal has all of them."""


class Scaler:
    """A running scaler: look at it, pause it, stop it. The queries go on without it."""

    def __init__(
        self,
        controller: Controller[Any],
        job: RunningJob,
        clock: WallClock,
        interval_s: float,
        own_journal: bool = False,
        needs: tuple[str, ...] = (),
    ) -> None:
        self.needs = needs
        """What resizing would need of the application; only a dry run attaches without it."""
        self._controller, self._engine, self._clock, self._interval_s = controller, job, clock, interval_s
        self._steps: deque[Step] = deque(maxlen=RETAINED_STEPS)
        self._changes = 0
        self._error: BaseException | None = None
        self._refusal: LeaseRefused | None = None
        self._own_journal = own_journal
        if not controller.started:  # of a query that runs already: no other is started before the lease is there
            try:
                controller.start()
            except LeaseRefused as refusal:
                # Mostly of a driver that was killed and is back: its lease lasts a little longer, and the query runs.
                self._refusal = refusal
        self._thread = threading.Thread(target=self._work, name="rheostat-scaler", daemon=True)
        self._thread.start()

    @property
    def status(self) -> str:
        """One of running, paused, waiting for the lease, stopped, or failed; with the reason where there is one."""
        if self._error is not None:
            why = str(self._error) if isinstance(self._error, RheostatError) else describe(self._error)
            return f"failed: {why}"
        failure = self.query_failure
        if failure and self._engine.ended:
            return f"failed: {self._engine.failure or failure}"
        if not self._thread.is_alive():
            return "stopped"
        if self._clock.wake.is_set():
            return "stopping: the step or the change that is under way has not ended; no further one begins"
        if self._refusal is not None:
            return f"waiting: {self._refusal}"
        if self._controller.paused:
            return "paused"
        if failure:
            return f"running, but {failure}"  # another query runs, or this one is started again
        last = self._steps[-1] if self._steps else None
        if last is not None and last.policy_failure is not None:
            times = f"{self.policy_failures} time{'s' if self.policy_failures > 1 else ''}"
            return f"running, but the policy failed {times}: {last.policy_failure}"
        return f"running, but {last.problem}" if last is not None and last.problem else "running"

    @property
    def job(self) -> str:
        """The job's name, under which it is journaled."""
        return self._engine.name

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """The queries that run now; a restart replaces them."""
        return self._engine.queries

    @property
    def query_failure(self) -> str:
        """Which query failed, with the first line of its exception; "" while none has."""
        try:
            for query in self.queries:
                if not query.isActive and (error := query.exception()) is not None:
                    return f"query {query.name or query.id} failed: {first_line(error)}"
        except Exception as error:  # noqa: BLE001 - Spark's JVM may be gone, and a status never raises
            log.debug("the queries could not be asked for their exceptions: %s", describe(error))
        return ""

    @property
    def policy_failures(self) -> int:
        """Steps in which the policy raised; the job kept its size then."""
        return self._controller.policy_failures

    @property
    def changes(self) -> int:
        """Changes of size so far."""
        return self._changes

    @property
    def holds(self) -> bool:
        """Whether it looks after a query that runs."""
        try:
            return self._thread.is_alive() and not self._engine.ended
        except Exception as error:  # noqa: BLE001 - Spark's JVM may be gone
            log.debug("whether a query runs is not known: %s", describe(error))
            return False

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was seen and decided, oldest first; the last thousand."""
        return tuple(self._steps)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions, oldest first."""
        return tuple(step.decision for step in self._steps)

    def pause(self) -> None:
        """Stop looking and changing; the executors stay as they are."""
        self._controller.paused = True

    def resume(self) -> None:
        """Go on after a pause."""
        self._controller.paused = False

    def stop(self, timeout_s: float = STOP_S) -> None:
        """End the scaler; doing it again changes nothing. It returns after `timeout_s`; `status` says what is left."""
        self._controller.halt()
        self._clock.wake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                log.warning("%s: the scaler has not ended within %g s: %s", self.job, timeout_s, self.status)

    def __enter__(self) -> Scaler:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return text(self.job, self.status, self._controller.mind.policy.name, self.steps, self.needs)

    def _repr_html_(self) -> str:
        return html(self.job, self.status, self._controller.mind.policy.name, self.steps, self.needs)

    def _work(self) -> None:
        parts = [self._run, self._engine.close, self._controller.stop]
        if self._own_journal:
            parts.append(self._controller.journal.close)
        for part in parts:
            try:
                part()
            except BaseException as error:  # noqa: BLE001 - whatever the scaler dies of, it gives back what it holds
                if self._error is None:
                    log.error("%s: the scaler ends: %s", self.job, describe(error))
                self._error = self._error or error

    def _run(self) -> None:
        if self._refusal is not None:
            self._controller.start_when_free(self._note_refusal, self._clock.wake.is_set)
            self._refusal = None
        self._controller.run(self._interval_s, each=self._retain)
        if self._engine.ended and self._engine.failure is not None:
            raise self._engine.failure

    def _note_refusal(self, refusal: LeaseRefused) -> None:
        self._refusal = refusal

    def _retain(self, step: Step) -> None:
        self._steps.append(step)
        self._changes += step.intent is not None
        if self._engine.ended:
            self._controller.halt()
