"""What `autoscale` refuses, before anything is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rheostat.engine.spark.settings import check_master, missing_settings
from rheostat.errors import InvalidValue, RheostatError


def check_attach(queries: Sequence[Any], executors: tuple[int, int]) -> Any:
    """Refuse what cannot be scaled, before anything is touched."""
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    least, most = executors
    if not 1 <= least <= most:
        raise InvalidValue(f"executors=({least}, {most}): the first must be at least 1 and not above the second")
    if not queries:
        raise InvalidValue("autoscale needs at least one running query")
    for query in queries:
        if isinstance(query, DataFrame):
            raise InvalidValue("autoscale takes the query that writeStream...start() returned, not a DataFrame")
        if not isinstance(query, StreamingQuery):
            kind = f"{type(query).__module__}.{type(query).__name__}"
            hint = ": Spark Connect has no lever on executors" if ".connect." in kind else ""
            raise InvalidValue(f"autoscale takes a StreamingQuery, not a {kind}{hint}")
        if not query.isActive:
            raise InvalidValue(f"query {query.name or query.id} is not active")
    session = _session_of(queries[0])
    context = session.sparkContext
    if problem := check_master(context.master):
        raise InvalidValue(problem)
    if missing := missing_settings(dict(context.getConf().getAll())):
        lines = "\n".join(f"  {item}" for item in missing)
        raise InvalidValue(f"Spark settings that live resizing needs are missing:\n{lines}\nrheostat.session sets them")
    return session


def _session_of(query: Any) -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        raise RheostatError(f"query {query.id} has no Spark session in this process")
    return session
