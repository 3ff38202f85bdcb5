"""`rheostat.autoscale`: one line to attach a scaler to running queries, or to start one under a scaler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from rheostat.api.checks import ATTACHED, check_attach, refuse_second
from rheostat.api.scaler import Scaler
from rheostat.api.start import begin
from rheostat.api.start_realtime import begin_realtime
from rheostat.clock import WallClock
from rheostat.control.controller import Controller, Pace
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.spark.executors.slots import slots_of
from rheostat.engine.spark.lifecycle.restart import Pipeline, Start, at_once
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.pipeline import PipelineFunction, Staged
from rheostat.engine.spark.realtime import RealTimeEngine
from rheostat.engine.spark.session.settings import check_application, checked_executors
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.guards import Guards
from rheostat.job.slo import Slo
from rheostat.journal import open_journal
from rheostat.policy.base import BasePolicy
from rheostat.policy.registry import make_policy
from rheostat.ports import Journal, Testbed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOST_LEASE_S = 60.0


def autoscale(
    queries: StreamingQuery | Sequence[StreamingQuery] | Start | Staged | PipelineFunction,
    *,
    name: str | None = None,
    slo: Slo | None = None,
    executors: tuple[int, int] | None = None,
    policy: str | BasePolicy[Any] = "ds2",
    journal: str | Journal = ":memory:",
    guards: Guards | None = None,
    apply: bool = True,
    interval_s: float = 10.0,
    window_s: float = 30.0,
    counters: Mapping[str, OffsetCounter] | None = None,
    seed: int = 0,
    mode: Literal["micro-batch", "realtime"] = "micro-batch",
    start: Allocation | None = None,
    rename_state: bool = False,
    testbed: Testbed | None = None,
) -> Scaler:
    """Keep the executors of micro-batch queries, or the tasks of a real-time pipeline, at what the policy decides.

    Instead of running queries, `queries` may be a function that builds and starts one for an `Allocation` and returns
    it. Then Rheostat starts it, where the journal says that it stopped, and builds it anew when its partitions are too
    few for the slots that it needs. `name` is the job's name in the journal: by default the queries' names, or the
    function's.

    With `mode="realtime"` it must be a `rheostat.pipeline`, whose stages then have tasks of their own: `start` says how
    many at the very first start. `executors` is left out on a master of one process. `rename_state` lets a checkpoint
    that real-time mode itself made be repartitioned (docs/realtime.md). Policies that ask for trials make them on the
    `testbed`.
    """
    if mode not in ("micro-batch", "realtime"):
        raise InvalidValue(f"mode is {mode!r}: it is 'micro-batch' or 'realtime'")
    staged = (
        queries.define() if isinstance(queries, PipelineFunction) else queries if isinstance(queries, Staged) else None
    )
    if mode == "realtime" and staged is None:
        raise InvalidValue("real-time mode needs a pipeline that says what its stages are: see rheostat.pipeline")
    made: Any = _micro_batch(staged) if staged is not None else queries
    asked: dict[str, Any] = {
        "slo": slo,
        "journal": journal,
        "interval_s": interval_s,
        "window_s": window_s,
        "counters": counters,
        "apply": apply,
    }
    pipeline: Pipeline | None = None
    listed: list[StreamingQuery] = []
    if mode == "realtime":
        session = _active()
        slots = slots_of(session, executors)
    else:
        bounds = checked_executors(executors)
        pipeline = _pipeline(made) if callable(made) else None
        listed = [] if callable(made) else list(made) if isinstance(made, Sequence) else [made]
        session = check_attach(listed, bounds, **asked) if pipeline is None else pipeline.spark
    if apply and not listed:
        refuse_second()
    if pipeline is not None:
        name = name or (staged.name if staged is not None else _name(queries))
    # What can be refused comes first: the engine already listens to Spark.
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    book = open_journal(journal) if isinstance(journal, str) else journal
    clock = WallClock()
    engine: MicroBatchEngine | RealTimeEngine | None = None
    controller: Controller[Any] | None = None
    try:
        if staged is not None and mode == "realtime":
            engine = RealTimeEngine(session, staged, slots, clock, name=name or "", window_s=window_s)
        else:
            engine = MicroBatchEngine(
                session,
                pipeline or listed,
                checked_executors(executors),
                clock,
                name=name or "",
                window_s=window_s,
                counters=counters,
            )
        rules = guards or Guards(shrink_over_slo=False)
        controller = Controller(
            engine,
            chosen,
            book,
            clock,
            slo=slo,
            guards=rules if apply else replace(rules, shadow=True),
            testbed=testbed,
            seed=seed,
            # After three silent turns a controller is taken for dead; a restarted driver is locked out for as long.
            pace=Pace(lease_s=min(MOST_LEASE_S, 3 * interval_s + 10.0)),
            settings={"engine": "spark", "mode": mode, "interval_s": interval_s, "window_s": window_s},
        )
        if isinstance(engine, RealTimeEngine):
            begin_realtime(engine, controller, start, rename_state=rename_state)
        elif pipeline is not None:
            begin(pipeline, engine, controller, resize=apply)
            check_attach(engine.queries, checked_executors(executors), **asked)
        scaler = Scaler(controller, engine, clock, interval_s, own_journal=book is not journal)
    except BaseException:
        if engine is not None:
            for query in engine.queries if not listed else ():
                query.stop()
        if controller is not None:
            controller.stop()
        if engine is not None:
            engine.close()
        if book is not journal:
            book.close()
        raise
    if apply:
        ATTACHED.add(scaler)
    return scaler


def _active() -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        raise InvalidValue("there is no Spark session in this process to start the query in: call rheostat.session")
    return session


def _micro_batch(staged: Staged) -> Start:
    """Return what starts a pipeline of stages as a micro-batch query."""
    return lambda allocation: staged.start(_active(), allocation, realtime=False)


def _pipeline(start: Start) -> Pipeline:
    """Return a pipeline that is not started, in a Spark that can be resized."""
    session = _active()
    check_application(str(session.sparkContext.master), dict(session.sparkContext.getConf().getAll()))
    return Pipeline(session, at_once(start))


def _name(start: object) -> str:
    name = getattr(start, "__name__", "")
    if not name.isidentifier():
        raise InvalidValue("the function that starts the query has no name of its own: give one, as in name='clicks'")
    return str(name)
