"""`rheostat.autoscale`: one line to attach a scaler to running queries."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rheostat.clock import WallClock
from rheostat.engine.spark.checks import check_attach
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.offsets import OffsetCounter
from rheostat.job.decision import Decision
from rheostat.job.guards import Guards
from rheostat.job.slo import Slo
from rheostat.journal import open_journal
from rheostat.loop import Controller, Step
from rheostat.policy.base import BasePolicy
from rheostat.policy.registry import make_policy
from rheostat.ports import Journal

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

KEPT_STEPS = 1000


class Scaler:
    """A running scaler: look at it, pause it, stop it. The queries go on without it."""

    def __init__(
        self, controller: Controller[Any], engine: MicroBatchEngine, clock: WallClock, interval_s: float
    ) -> None:
        self._controller, self._engine, self._clock, self._interval_s = controller, engine, clock, interval_s
        self._steps: deque[Step] = deque(maxlen=KEPT_STEPS)
        self._error: Exception | None = None
        controller.start()
        self._thread = threading.Thread(target=self._work, name="rheostat-scaler", daemon=True)
        self._thread.start()

    @property
    def status(self) -> str:
        """One of running, paused, stopped, or failed with the reason."""
        if self._error is not None:
            return f"failed: {self._error}"
        if not self._thread.is_alive():
            return "stopped"
        return "paused" if self._controller.paused else "running"

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

    def stop(self) -> None:
        """End the scaler; doing it again changes nothing."""
        self._controller.halt()
        self._clock.wake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Scaler:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self) -> None:
        for part in (self._run, self._controller.stop, self._engine.close):
            try:
                part()
            except Exception as error:  # noqa: BLE001 - the scaler may die, also of a stopped Spark; queries must not
                self._error = self._error or error

    def _run(self) -> None:
        self._controller.run(self._interval_s, each=self._keep)

    def _keep(self, step: Step) -> None:
        self._steps.append(step)
        if not any(query.isActive for query in self._engine.queries):
            self._controller.halt()


def autoscale(
    queries: StreamingQuery | Sequence[StreamingQuery],
    *,
    slo: Slo | None = None,
    executors: tuple[int, int],
    policy: str | BasePolicy[Any] = "ds2",
    journal: str | Journal = ":memory:",
    guards: Guards | None = None,
    apply: bool = True,
    interval_s: float = 10.0,
    window_s: float = 30.0,
    counters: Mapping[str, OffsetCounter] | None = None,
    seed: int = 0,
) -> Scaler:
    """Keep the executors of running micro-batch queries at the size that the policy decides."""
    listed = list(queries) if isinstance(queries, Sequence) else [queries]
    session = check_attach(listed, executors)
    # What can be refused comes first: the engine already listens to Spark.
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    book = open_journal(journal) if isinstance(journal, str) else journal
    clock = WallClock()
    engine = MicroBatchEngine(session, listed, executors, clock, window_s=window_s, counters=counters)
    rules = guards or Guards(shrink_over_slo=False)
    controller = Controller(
        engine,
        chosen,
        book,
        clock,
        slo=slo,
        guards=rules if apply else replace(rules, shadow=True),
        seed=seed,
        settings={"engine": "spark", "interval_s": interval_s, "window_s": window_s},
    )
    return Scaler(controller, engine, clock, interval_s)
