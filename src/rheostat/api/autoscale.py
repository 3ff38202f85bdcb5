"""`rheostat.autoscale`: one line to attach a scaler to running queries, or to start one under a scaler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from rheostat.api.checks import ATTACHED, check_attach, executors_pair, refuse_second
from rheostat.api.scaler import Scaler
from rheostat.api.start import begin, begin_realtime
from rheostat.clock import WallClock
from rheostat.control.controller import Controller, Pace
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.spark.executors.local import in_one_process
from rheostat.engine.spark.executors.pool import Executors
from rheostat.engine.spark.executors.slots import ExecutorSlots, FixedSlots, Slots
from rheostat.engine.spark.lifecycle.restart import Pipeline, Start, at_once
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.pipeline import PipelineFunction, Staged
from rheostat.engine.spark.realtime import RealTimeEngine
from rheostat.engine.spark.session.settings import check_application, checked_executors
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.guards import Guards
from rheostat.job.slo import SLO
from rheostat.journal import open_journal
from rheostat.policy.registry import make_policy
from rheostat.ports import Journal, Policy, RunningJob, Testbed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOST_LEASE_S = 60.0


def autoscale(
    queries: StreamingQuery | Sequence[StreamingQuery] | Start | Staged | PipelineFunction,
    *,
    name: str | None = None,
    slo: SLO | None = None,
    executors: tuple[int, int] | None = None,
    policy: str | Policy[Any] = "ds2",
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
    it. Then Rheostat starts it, where the journal says that it stopped, and restarts it when its partitions are too
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
    asked: dict[str, Any] = {
        "slo": slo,
        "journal": journal,
        "interval_s": interval_s,
        "window_s": window_s,
        "counters": counters,
        "apply": apply,
    }
    opening: Opening
    if mode == "realtime" and staged is not None:
        opening = _open_realtime(staged, name, executors, window_s, start, rename_state, apply)
    elif staged is not None or callable(queries):
        opening = _open_pipeline(queries, staged, name, executors, asked)
    else:
        opening = _open_attached(queries, name, executors, asked)
    # What can be refused comes first: the engine already listens to Spark.
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    book = open_journal(journal) if isinstance(journal, str) else journal
    clock = WallClock()
    undo = ExitStack()
    with undo:
        if book is not journal:
            undo.callback(book.close)
        job, begin = opening(clock)
        undo.callback(job.close)
        rules = guards or Guards(shrink_over_slo=False)
        controller = Controller(
            job,
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
        undo.callback(controller.stop)
        if begin is not None:
            undo.callback(lambda: [query.stop() for query in job.queries])
            begin(controller)
        scaler = Scaler(controller, job, clock, interval_s, own_journal=book is not journal)
        undo.pop_all()
    if apply:
        ATTACHED.add(scaler)
    return scaler


Begin = Callable[[Controller[Any]], None]
"""Starts the query under a controller."""
Opening = Callable[[WallClock], tuple[RunningJob, Begin | None]]
"""Makes the engine of a job that was checked; the second part is None where its queries run already."""


def _open_attached(queries: Any, name: str | None, executors: tuple[int, int] | None, asked: dict[str, Any]) -> Opening:
    """Check running queries and say how their engine is made."""
    bounds = checked_executors(*executors_pair(executors))
    listed = list(queries) if isinstance(queries, Sequence) else [queries]
    session = check_attach(listed, bounds, **asked)
    window_s, counters = asked["window_s"], asked["counters"]

    def opening(clock: WallClock) -> tuple[RunningJob, None]:
        made = MicroBatchEngine(session, listed, bounds, clock, name=name or "", window_s=window_s, counters=counters)
        return made, None

    return opening


def _open_pipeline(
    queries: Any, staged: Staged | None, name: str | None, executors: tuple[int, int] | None, asked: dict[str, Any]
) -> Opening:
    """Check what starts a micro-batch query, and say how its engine is made and how it begins."""
    bounds, session = checked_executors(*executors_pair(executors)), _active()
    check_application(str(session.sparkContext.master), dict(session.sparkContext.getConf().getAll()))
    start = queries if staged is None else lambda allocation: staged.start(_active(), allocation, realtime=False)
    if asked["apply"]:
        refuse_second()
    called = name or (_name(queries) if staged is None else staged.name)
    window_s, counters = asked["window_s"], asked["counters"]

    def opening(clock: WallClock) -> tuple[RunningJob, Begin]:
        pipeline = Pipeline(session, at_once(start))
        made = MicroBatchEngine(session, pipeline, bounds, clock, name=called, window_s=window_s, counters=counters)

        def start_under(controller: Controller[Any]) -> None:
            begin(pipeline, made, controller, resize=asked["apply"])
            check_attach(made.queries, bounds, **asked)

        return made, start_under

    return opening


def _open_realtime(
    staged: Staged,
    name: str | None,
    executors: tuple[int, int] | None,
    window_s: float,
    start: Allocation | None,
    rename_state: bool,
    apply: bool,
) -> Opening:
    """Check the slots of a real-time pipeline, and say how its engine is made and how it begins."""
    session = _active()
    slots = slots_of(session, executors)
    if apply:
        refuse_second()

    def opening(clock: WallClock) -> tuple[RunningJob, Begin]:
        made = RealTimeEngine(session, staged, slots, clock, name=name or "", window_s=window_s)
        return made, lambda controller: begin_realtime(made, controller, start, rename_state=rename_state)

    return opening


def _active() -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        raise InvalidValue("there is no Spark session in this process to start the query in: call rheostat.session")
    return session


def slots_of(spark: SparkSession, executors: tuple[int, int] | None) -> Slots:
    """Return the slots of a session's application; `executors` is left out where there are none to count."""
    context, master = spark.sparkContext, str(spark.sparkContext.master)
    if in_one_process(context):
        if executors is not None:
            raise InvalidValue(f"master {master!r} has no executors: leave executors=... out, its slots are fixed")
        return FixedSlots(int(context.defaultParallelism))
    least, most = checked_executors(*executors_pair(executors))
    check_application(master, dict(context.getConf().getAll()))
    return ExecutorSlots(Executors.of(context), least, most)


def _name(start: object) -> str:
    name = getattr(start, "__name__", "")
    if not name.isidentifier():
        raise InvalidValue("the function that starts the query has no name of its own: give one, as in name='clicks'")
    return str(name)
