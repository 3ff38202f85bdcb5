"""`rheostat.autoscale`: attach a scaler to streaming queries that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rheostat.api.checks import check_attach
from rheostat.api.launch import Request, launch
from rheostat.api.options import Options
from rheostat.api.scaler import Scaler
from rheostat.clock import WallClock
from rheostat.engine.spark.executors.pool import Executors
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.session.settings import application_needs, checked_executors
from rheostat.errors import InvalidValue
from rheostat.job.slo import SLO
from rheostat.ports import Journal, Policy, RunningJob

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql.streaming.query import StreamingQuery

MOST_DYNAMIC = "spark.dynamicAllocation.maxExecutors"
UNBOUNDED = 2**31 - 1
"""Spark's default of it."""
SHADOW_FACTOR, LEAST_SHADOW = 4, 4
"""Without a bound, a dry run may ask for this multiple of what runs, and for at least this number of executors."""


def autoscale(
    queries: StreamingQuery | Sequence[StreamingQuery],
    *,
    min_executors: int = 1,
    max_executors: int | None = None,
    slo: SLO | None = None,
    policy: str | Mapping[str, Any] | Policy[Any] = "ds2",
    journal: str | Journal = ":memory:",
    dry_run: bool = False,
    options: Options | None = None,
) -> Scaler:
    """Keep the executors of running micro-batch queries at what the policy decides, and return the running scaler.

    Executors belong to the application: queries that share it are given together. `policy` is a name with options
    (`"conttune:big=false"`), a path of a .py file, or a Policy. `journal` is a path or a URL; in memory by default.
    A `dry_run` decides and journals but changes nothing: it needs no setting and no master, `scaler.needs` says what
    resizing would need, and without `max_executors` it may ask for four times what runs. Queries that Rheostat shall
    start, and restart where their partitions are too few, are started by `rheostat.start`.
    """
    if callable(queries) and not isinstance(queries, Sequence):
        name = getattr(queries, "__name__", "start")
        raise InvalidValue(
            f"autoscale takes queries that run; {name!r} is a function: rheostat.start({name}, ...) starts it"
        )
    request = Request.of(slo, policy, journal, dry_run, options)
    if max_executors is not None or not dry_run:
        checked_executors(min_executors, max_executors)
    listed = list(queries) if isinstance(queries, Sequence) else [queries]
    session = check_attach(listed, request)
    context = session.sparkContext
    if dry_run:
        request = replace(request, needs=application_needs(str(context.master), dict(context.getConf().getAll())))
    bounds = checked_executors(min_executors, max_executors or shadow_executors(context, min_executors))

    def opening(clock: WallClock) -> tuple[RunningJob, None]:
        name, window_s, counters = request.options.name or "", request.options.window_s, request.options.counters
        return MicroBatchEngine(session, listed, bounds, clock, name=name, window_s=window_s, counters=counters), None

    return launch(request, "micro-batch", opening)


def shadow_executors(context: SparkContext, least: int) -> int:
    """Return the most executors of a dry run: dynamic allocation's bound, else a multiple of what runs."""
    bound = str(context.getConf().get(MOST_DYNAMIC) or "")
    if bound.isdigit() and least <= int(bound) < UNBOUNDED:
        return int(bound)
    executors = Executors.of(context)
    slots = sum(executor.cores for executor in executors.running())
    return max(least, LEAST_SHADOW, SHADOW_FACTOR * slots // executors.cores_per_executor)
