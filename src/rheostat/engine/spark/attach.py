"""`rheostat.autoscale`: one line to attach a scaler to running queries, or to start one under a scaler."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rheostat.clock import WallClock
from rheostat.engine.spark.begin import begin
from rheostat.engine.spark.checks import ATTACHED, check_application, check_attach, refuse_second
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.offsets import OffsetCounter
from rheostat.engine.spark.restart import Pipeline, Start
from rheostat.engine.spark.settings import checked_executors
from rheostat.errors import InvalidValue, LeaseRefused, RheostatError
from rheostat.job.decision import Decision
from rheostat.job.guards import Guards
from rheostat.job.slo import Slo
from rheostat.journal import open_journal
from rheostat.loop import Controller, Pace, Step
from rheostat.policy.base import BasePolicy
from rheostat.policy.registry import make_policy
from rheostat.ports import Journal

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

KEPT_STEPS = 1000
MOST_LEASE_S = 60.0


class Scaler:
    """A running scaler: look at it, pause it, stop it. The queries go on without it."""

    def __init__(
        self,
        controller: Controller[Any],
        engine: MicroBatchEngine,
        clock: WallClock,
        interval_s: float,
        own_journal: bool = False,
    ) -> None:
        self._controller, self._engine, self._clock, self._interval_s = controller, engine, clock, interval_s
        self._steps: deque[Step] = deque(maxlen=KEPT_STEPS)
        self._error: BaseException | None = None
        self._refusal: LeaseRefused | None = None
        self._own_journal = own_journal
        if engine.pipeline is None:  # a pipeline's controller has the lease before its query starts
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
            kind = "" if isinstance(self._error, RheostatError) else f"{type(self._error).__name__}: "
            return f"failed: {kind}{self._error}"
        if not self._thread.is_alive():
            return "stopped"
        if self._refusal is not None:
            return f"waiting: {self._refusal}"
        if self._controller.paused:
            return "paused"
        problem = self._steps[-1].problem if self._steps else None
        return f"running, but {problem}" if problem else "running"

    @property
    def job(self) -> str:
        """The job's name, under which it is journaled."""
        return self._engine.name

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """The queries that run now; a restart replaces them."""
        return self._engine.queries

    @property
    def holds(self) -> bool:
        """Whether it looks after a query that runs."""
        return self._thread.is_alive() and not self._engine.over

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
        parts = [self._run, self._engine.finish, self._controller.stop, self._engine.close]
        if self._own_journal:
            parts.append(self._controller.journal.close)
        for part in parts:
            try:
                part()
            except BaseException as error:  # noqa: BLE001 - whatever the scaler dies of, it gives back what it holds
                self._error = self._error or error

    def _run(self) -> None:
        patience_s = self._clock.now() + self._controller.pace.lease_s + self._interval_s
        while self._refusal is not None and not self._clock.wake.is_set():
            self._clock.sleep_until(self._clock.now() + 1.0)
            try:
                self._controller.start()
            except LeaseRefused as refusal:
                self._refusal = refusal
                if self._clock.now() > patience_s:
                    # A dead controller's lease has run out by now: this one is alive.
                    raise
            else:
                self._refusal = None
        self._controller.run(self._interval_s, each=self._keep)
        if self._engine.over and self._engine.pipeline is not None and self._engine.pipeline.failure is not None:
            raise self._engine.pipeline.failure

    def _keep(self, step: Step) -> None:
        self._steps.append(step)
        if self._engine.over:
            self._controller.halt()


def autoscale(
    queries: StreamingQuery | Sequence[StreamingQuery] | Start,
    *,
    name: str | None = None,
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
    """Keep the executors of micro-batch queries at the size that the policy decides.

    Instead of running queries, `queries` may be a function that builds and starts one for an `Allocation` and returns
    it. Then Rheostat starts it, where the journal says that it stopped, and builds it anew when its partitions are too
    few for the slots that it needs. `name` is the job's name in the journal: by default the queries' names, or the
    function's.
    """
    pipeline = _pipeline(queries, executors) if callable(queries) else None
    listed = [] if callable(queries) else list(queries) if isinstance(queries, Sequence) else [queries]
    asked: dict[str, Any] = {
        "slo": slo,
        "journal": journal,
        "interval_s": interval_s,
        "window_s": window_s,
        "counters": counters,
        "apply": apply,
    }
    session = check_attach(listed, executors, **asked) if pipeline is None else pipeline.spark
    if pipeline is not None:
        name = name or _name(queries)
        if apply:
            refuse_second()
    # What can be refused comes first: the engine already listens to Spark.
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    book = open_journal(journal) if isinstance(journal, str) else journal
    clock = WallClock()
    engine = MicroBatchEngine(
        session, pipeline or listed, executors, clock, name=name or "", window_s=window_s, counters=counters
    )
    rules = guards or Guards(shrink_over_slo=False)
    controller: Controller[Any] | None = None
    try:
        controller = Controller(
            engine,
            chosen,
            book,
            clock,
            slo=slo,
            guards=rules if apply else replace(rules, shadow=True),
            seed=seed,
            # After three silent turns a controller is taken for dead; a restarted driver is locked out for as long.
            pace=Pace(lease_s=min(MOST_LEASE_S, 3 * interval_s + 10.0)),
            settings={"engine": "spark", "interval_s": interval_s, "window_s": window_s},
        )
        if pipeline is not None:
            begin(pipeline, engine, controller, resize=apply)
            check_attach(engine.queries, executors, **asked)
        scaler = Scaler(controller, engine, clock, interval_s, own_journal=book is not journal)
    except BaseException:
        for query in () if pipeline is None else engine.queries:
            query.stop()
        if controller is not None:
            controller.stop()
        engine.close()
        if book is not journal:
            book.close()
        raise
    if apply:
        ATTACHED.add(scaler)
    return scaler


def _pipeline(start: Start, executors: tuple[int, int]) -> Pipeline:
    """Return a pipeline that is not started, in a Spark that can be resized."""
    from pyspark.sql import SparkSession

    checked_executors(executors)
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        raise InvalidValue("there is no Spark session in this process to start the query in: call rheostat.session")
    check_application(str(session.sparkContext.master), dict(session.sparkContext.getConf().getAll()))
    return Pipeline(session, start)


def _name(start: object) -> str:
    name = getattr(start, "__name__", "")
    if not name.isidentifier():
        raise InvalidValue("the function that starts the query has no name of its own: give one, as in name='clicks'")
    return str(name)
