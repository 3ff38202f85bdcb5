"""`rheostat.autoscale`: attach a scaler to streaming queries that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rheostat.api.checks import check_attach
from rheostat.api.launch import Request, launch
from rheostat.api.options import Options
from rheostat.api.scaler import Scaler
from rheostat.clock import WallClock
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.session.settings import checked_executors
from rheostat.errors import InvalidValue
from rheostat.job.slo import SLO
from rheostat.ports import Journal, Policy, RunningJob

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def autoscale(
    queries: StreamingQuery | Sequence[StreamingQuery],
    *,
    min_executors: int = 1,
    max_executors: int,
    slo: SLO | None = None,
    policy: str | Mapping[str, Any] | Policy[Any] = "ds2",
    journal: str | Journal = ":memory:",
    dry_run: bool = False,
    options: Options | None = None,
) -> Scaler:
    """Keep the executors of running micro-batch queries at what the policy decides, and return the running scaler.

    Executors belong to the application: queries that share it are given together. `policy` is a name with options
    (`"conttune:big=false"`), a path of a .py file, or a Policy. `journal` is a path or a URL; in memory by default.
    A `dry_run` decides and journals but changes nothing. Queries that Rheostat shall start, and restart where their
    partitions are too few, are started by `rheostat.start`.
    """
    if callable(queries) and not isinstance(queries, Sequence):
        name = getattr(queries, "__name__", "start")
        raise InvalidValue(
            f"autoscale takes queries that run; {name!r} is a function: rheostat.start({name}, ...) starts it"
        )
    request = Request.of(slo, policy, journal, dry_run, options)
    bounds = checked_executors(min_executors, max_executors)
    listed = list(queries) if isinstance(queries, Sequence) else [queries]
    session = check_attach(listed, request)

    def opening(clock: WallClock) -> tuple[RunningJob, None]:
        name, window_s, counters = request.options.name or "", request.options.window_s, request.options.counters
        return MicroBatchEngine(session, listed, bounds, clock, name=name, window_s=window_s, counters=counters), None

    return launch(request, "micro-batch", opening)
