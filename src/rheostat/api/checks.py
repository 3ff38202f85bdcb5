"""What `autoscale` refuses, and what it warns of, before anything is touched."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from rheostat.engine.spark.session.settings import check_application
from rheostat.engine.spark.session.versions import refuse_old
from rheostat.errors import InvalidValue, RheostatError, RheostatWarning, nearest
from rheostat.job.slo import SLO

if TYPE_CHECKING:
    from rheostat.api.launch import Request

LEAST_LATENCY_S = 0.1
"""Seconds that the fastest micro-batch takes: planning and commits alone."""
HOUR_S = 3600.0
NO_TRIGGERS: Mapping[str, str] = {
    "OneTime": "runs one batch and ends: use a ProcessingTime trigger to have it scaled",
    "AvailableNow": "ends when it has caught up: use a ProcessingTime trigger to have it scaled",
    "Continuous": "has no batches, and its tasks keep their slots: use a ProcessingTime trigger to have it scaled",
    "RealTime": "is real-time mode: start it with rheostat.start(pipeline, mode='realtime', ...) to have it scaled",
}
"""Triggers, as Spark names them, of queries that cannot be scaled."""
ATTACHED: WeakSet[Any] = WeakSet()
"""Scalers that resize executors. Executors belong to the application, of which a process has one: so only one may."""


def check_attach(queries: Sequence[Any], request: Request) -> Any:
    """Refuse what cannot be scaled, warn of what hardly can, and return the session of the queries.

    A dry run changes nothing, so it looks at any application.
    """
    check_queries(queries)
    options, slo = request.options, request.slo
    triggers_s = [refuse_trigger(name_of(query), str(query._jsq.streamingQuery().trigger())) for query in queries]
    check_counters(queries, options.counters)
    session = session_of(queries)
    refuse_old(str(session.version))
    conf = dict(session.sparkContext.getConf().getAll())
    if not request.dry_run:
        check_application(session.sparkContext.master, conf)
        refuse_second()
    refuse_latency(slo, max(triggers_s))
    local = conf.get("spark.submit.deployMode") == "cluster" and is_local(request.journal)
    for doubt in doubts(slo, max(triggers_s), options.window_s, local):
        warnings.warn(doubt, RheostatWarning, stacklevel=3)  # the line that calls autoscale
    return session


def refuse_second() -> None:
    """Refuse to resize executors that another scaler resizes."""
    if holder := next((scaler for scaler in ATTACHED if scaler.holds), None):
        raise InvalidValue(
            f"a scaler resizes the executors of this application already, for {holder.job}: stop it first "
            "(scaler.stop()), give all queries in one list, or only look (dry_run=True)"
        )


def name_of(query: Any) -> str:
    """Return the name under which a query reports its progress."""
    return str(query.name or query.id)


def check_counters(queries: Sequence[Any], counters: Mapping[str, object] | None) -> None:
    """Refuse counters of queries that are not given."""
    names = [name_of(query) for query in queries]
    for name in counters or {}:
        if name not in names:
            raise InvalidValue(f"counters has the query {name!r}, which is not given: {nearest(name, names)}")


def check_queries(queries: Sequence[Any], who: str = "autoscale") -> None:
    """Refuse what is no running query of this process."""
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    if not queries:
        raise InvalidValue(f"{who} needs at least one running query")
    seen = set()
    for query in queries:
        kind = f"{type(query).__module__}.{type(query).__name__}"
        if ".connect." in kind:
            raise InvalidValue(
                f"a {kind} is of Spark Connect, which cannot resize executors: call autoscale in the driver"
            )
        if isinstance(query, DataFrame):
            raise InvalidValue(f"{who} takes the query that writeStream...start() returned, not a DataFrame")
        if not isinstance(query, StreamingQuery):
            raise InvalidValue(f"{who} takes a StreamingQuery, not a {kind}")
        if not query.isActive:
            raise InvalidValue(f"query {name_of(query)} is not active: query.exception() says whether it failed")
        if query.runId in seen:
            raise InvalidValue(f"query {name_of(query)} is given twice: its records would count twice")
        seen.add(query.runId)


def refuse_trigger(query: str, trigger: str) -> float:
    """Return the interval of a trigger as Spark writes it, in seconds; refuse one whose query cannot be scaled."""
    found = re.fullmatch(r"(\w+)Trigger(?:\((\d+)\))?", trigger)
    if found is None or (found[1] != "ProcessingTime" and found[1] not in NO_TRIGGERS):
        raise InvalidValue(f"query {query} has the unknown trigger {trigger}: use a ProcessingTime trigger")
    if why := NO_TRIGGERS.get(found[1]):
        raise InvalidValue(f"query {query} has the trigger {trigger}, which {why}")
    return int(found[2] or 0) / 1000


def refuse_live(queries: Sequence[Any]) -> None:
    """Refuse queries without micro-batches: their tasks run all the time, so their run time says nothing about work."""
    for query in queries:
        trigger = str(query._jsq.streamingQuery().trigger())
        if trigger.startswith(("RealTime", "Continuous")):
            raise InvalidValue(
                f"query {name_of(query)} has the trigger {trigger}: give the scaler of rheostat.start instead"
            )


def session_of(queries: Sequence[Any]) -> Any:
    """Return the one session that started all queries: progress is only reported there."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        raise RheostatError(f"query {name_of(queries[0])} has no SparkContext here: call autoscale in its driver")
    first, *others = (query._jsq.streamingQuery().sparkSession() for query in queries)
    for query, session in zip(queries[1:], others, strict=True):
        if not session.equals(first):
            raise InvalidValue(
                f"queries {name_of(queries[0])} and {name_of(query)} were started by different sessions, and each "
                "session only reports its own: start them from the same session"
            )
    known = SparkSession._instantiatedSession
    return known if known is not None and first.equals(known._jsparkSession) else SparkSession(context, first)


def refuse_latency(slo: SLO, trigger_s: float) -> None:
    """Refuse a latency that no number of executors can bring: a record waits for its batch to begin."""
    for name in ("max_latency_s", "max_lag_s"):
        value = getattr(slo, name)
        if value is not None and value < LEAST_LATENCY_S:
            raise InvalidValue(
                f"slo.{name} is {value:g} s, and a micro-batch takes {LEAST_LATENCY_S:g} s and more whatever its size: "
                "allow more, or use real-time mode"
            )
        if value is not None and value < trigger_s:
            raise InvalidValue(
                f"slo.{name} is {value:g} s, and records wait up to {trigger_s:g} s for the trigger alone: "
                "allow more than that, or trigger more often"
            )


def doubts(slo: SLO, trigger_s: float, window_s: float | None, journal_is_lost: bool) -> Iterator[str]:
    """Yield a warning for each setting that works, but hardly as it was meant."""
    if journal_is_lost:
        yield (
            "the journal is on the driver's own disk or in its memory, and in cluster mode a restarted driver may run "
            "elsewhere, where it finds no journal: give the URL of a PostgreSQL database"
        )
    if window_s is not None and window_s < trigger_s:
        yield (
            f"window_s is {window_s:g} s and the trigger interval {trigger_s:g} s: most windows hold no batch and "
            "nothing can be decided from them: make window_s several trigger intervals"
        )
    for name in ("max_latency_s", "max_lag_s", "max_recovery_s"):
        value = getattr(slo, name)
        if value is not None and value > max(HOUR_S, 10 * trigger_s):
            hours = f"slo.{name} is {value / HOUR_S:.1f} hours"
            yield f"{hours}: it is given in seconds; for {value:g} ms write {value / 1000:g}"


def is_local(journal: object) -> bool:
    """Whether a journal, given by its path or URL, is lost with the machine or the process."""
    return isinstance(journal, str | Path) and not str(journal).startswith("postgresql")
