"""`rheostat.start`: start a pipeline under a scaler, which may then restart it."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

from rheostat.api.checks import check_attach, refuse_second
from rheostat.api.launch import Begin, Opening, Request, launch
from rheostat.api.options import Options
from rheostat.api.scaler import Scaler
from rheostat.api.takeover import begin, begin_realtime
from rheostat.clock import WallClock
from rheostat.control.controller import Controller
from rheostat.engine.spark.executors.local import in_one_process
from rheostat.engine.spark.executors.pool import Executors
from rheostat.engine.spark.executors.slots import ExecutorSlots, FixedSlots, Slots
from rheostat.engine.spark.lifecycle.application import SparkApplication
from rheostat.engine.spark.lifecycle.restart import Pipeline, Start, build_at_start
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.pipeline import PipelineFunction, Staged
from rheostat.engine.spark.realtime import RealTimeEngine
from rheostat.engine.spark.session.settings import check_application, checked_executors
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO
from rheostat.ports import Journal, Policy, RunningJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODES = ("micro-batch", "realtime")


def start(
    pipeline: Start | Staged | PipelineFunction,
    *,
    mode: Literal["micro-batch", "realtime"] = "micro-batch",
    initial: Allocation | None = None,
    min_executors: int = 1,
    max_executors: int | None = None,
    slo: SLO | None = None,
    policy: str | Mapping[str, Any] | Policy[Any] = "ds2",
    journal: str | Journal = ":memory:",
    dry_run: bool = False,
    options: Options | None = None,
) -> Scaler:
    """Start a pipeline at the size that its journal last had, scale it, and return the running scaler.

    `pipeline` is a `rheostat.pipeline`, or a function that builds and starts a query for an `Allocation` and returns
    it. Rheostat restarts the query when its partitions are too few for the slots that it needs. In real-time mode
    only a `rheostat.pipeline` can be scaled: its stages have tasks of their own. `initial` is the size of the very
    first start. `max_executors` is left out on a master of one process (`local[4]`), whose slots are fixed. The other
    arguments are those of `autoscale`.
    """
    if mode not in MODES:
        raise InvalidValue(f"mode is {mode!r}: it is 'micro-batch' or 'realtime'")
    staged = _staged(pipeline)
    if staged is None and not callable(pipeline):
        raise InvalidValue(
            f"start takes a rheostat.pipeline or a function that starts a query, not {type(pipeline).__name__}: "
            "rheostat.autoscale(query, ...) scales a query that runs"
        )
    if mode == "realtime" and staged is None:
        raise InvalidValue("real-time mode needs a pipeline that names its stages: see rheostat.pipeline")
    request = Request.of(slo, policy, journal, dry_run, options)
    if mode == "realtime" and staged is not None:
        executors = None if max_executors is None else (min_executors, max_executors)
        return launch(request, mode, _realtime(staged, request, executors, initial))
    bounds = checked_executors(min_executors, max_executors)
    return launch(request, mode, _microbatch(pipeline, staged, request, bounds, initial))


def _staged(pipeline: Start | Staged | PipelineFunction) -> Staged | None:
    if isinstance(pipeline, PipelineFunction):
        return pipeline.define()
    return pipeline if isinstance(pipeline, Staged) else None


def _microbatch(
    pipeline: Any,
    staged: Staged | None,
    request: Request,
    bounds: tuple[int, int],
    initial: Allocation | None,
) -> Opening:
    """Check what starts a micro-batch query; return what makes its engine and begins it."""
    session = _active()
    check_application(str(session.sparkContext.master), dict(session.sparkContext.getConf().getAll()))
    build = pipeline if staged is None else lambda allocation: staged.start(_active(), allocation, realtime=False)
    if not request.dry_run:
        refuse_second()
    options = request.options
    name = options.name or (_name(pipeline) if staged is None else staged.name)

    def opening(clock: WallClock) -> tuple[RunningJob, Begin]:
        restartable = Pipeline(SparkApplication(session), build_at_start(build))
        engine = MicroBatchEngine(
            session, restartable, bounds, clock, name=name, window_s=options.window_s, counters=options.counters
        )

        def begin_query(controller: Controller[Any]) -> None:
            known = None if staged is None else staged.checkpoint
            begin(restartable, engine, controller, initial, resize=not request.dry_run, checkpoint=known)
            check_attach(engine.queries, request)

        return engine, begin_query

    return opening


def _realtime(
    staged: Staged, request: Request, executors: tuple[int, int] | None, initial: Allocation | None
) -> Opening:
    """Check the slots of a real-time pipeline; return what makes its engine and begins it."""
    session, options = _active(), request.options
    refuse_without_realtime(session)
    slots = slots_of(session, executors)
    if not request.dry_run:
        refuse_second()

    def opening(clock: WallClock) -> tuple[RunningJob, Begin]:
        engine = RealTimeEngine(session, staged, slots, clock, name=options.name or "", window_s=options.window_s)
        return engine, lambda controller: begin_realtime(engine, controller, initial, rename_state=options.rename_state)

    return opening


def refuse_without_realtime(session: SparkSession) -> None:
    """Refuse a Spark whose queries have no real-time trigger."""
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    if "realTime" not in signature(DataStreamWriter.trigger).parameters:
        raise InvalidValue(
            f"Spark {session.version} has no real-time mode: use Spark 4.3 or newer, or mode='micro-batch'"
        )


def _active() -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        raise InvalidValue("there is no Spark session in this process to start the query in: call rheostat.session")
    return session


def slots_of(spark: SparkSession, executors: tuple[int, int] | None) -> Slots:
    """Return the slots of a session's application; `executors` is None where there are none to count."""
    context, master = spark.sparkContext, str(spark.sparkContext.master)
    if in_one_process(context):
        if executors is not None:
            raise InvalidValue(f"master {master!r} has no executors: leave max_executors out, its slots are fixed")
        return FixedSlots(int(context.defaultParallelism))
    least, most = checked_executors(*(executors or (1, None)))
    check_application(master, dict(context.getConf().getAll()))
    return ExecutorSlots(Executors.of(context), least, most)


def _name(build: object) -> str:
    name = getattr(build, "__name__", "")
    if not name.isidentifier():
        raise InvalidValue(
            "the function that starts the query has no name: give one, as in options=Options(name='clicks')"
        )
    return str(name)
