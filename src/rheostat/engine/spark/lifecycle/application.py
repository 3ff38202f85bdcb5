"""What a pipeline needs of its Spark application: to build and start a query, its checkpoint, its processes.

Where the user's function builds and starts a query in one step, the checkpoint is only known once the query has
started. Spark announces a new query to its listeners on the query's own thread, before it reads the checkpoint, and
waits for them. That is where the query is admitted, or stopped before it has done anything.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rheostat.engine.spark.lifecycle.checkpoint import FORMAT, PARTITIONS, Checkpoint
from rheostat.engine.spark.lifecycle.files import HadoopFiles
from rheostat.engine.spark.lifecycle.owner import Driver, Process
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.02
"""Seconds between two checks that a refused query has ended."""

log = logging.getLogger(__name__)

Admit = Callable[[str], None]
"""Takes the checkpoint of a query that is about to begin; raises if the query must not run."""


class Query(Protocol):
    """The part of Spark's StreamingQuery that a pipeline uses."""

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it runs."""

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - Spark's name
        """The last progress event; None before the first."""

    @property
    def status(self) -> Mapping[str, Any]:
        """What it does now."""

    def exception(self) -> Exception | None:
        """Return why it failed; None if it did not."""

    def stop(self) -> None:
        """Stop it, and return when it has ended."""


StartQuery = Callable[[], Query]
Build = Callable[[Allocation], StartQuery]
"""Builds a query for an allocation, while another one may run, and returns the function that starts it."""


class Application(Protocol):
    """The application in which a pipeline runs."""

    def ended(self) -> bool:
        """Whether no query can be started in it any more."""

    def driver(self) -> Driver:
        """Return this driver, with a token of its own for every call."""

    def checkpoint(self, location: str) -> Checkpoint:
        """Return the checkpoint at a location."""

    def same(self, one: str, other: str) -> bool:
        """Whether two texts name the same location."""

    def location(self, query: Any) -> str:
        """Return the location of a query's checkpoint."""

    def build(self, build: Build, allocation: Allocation) -> StartQuery:
        """Build a query for an allocation."""

    def start(self, start: StartQuery, partitions: int, admit: Admit) -> Query:
        """Start a query with a number of shuffle partitions; `admit` is asked before it begins its first batch."""


class SparkApplication:
    """The application of a SparkSession."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        jvm: Any = spark._jvm
        self._jvm = Process.of(int(jvm.java.lang.ProcessHandle.current().pid()))
        self._query: StreamingQuery | None = None

    def ended(self) -> bool:
        """Whether the JVM has ended, or the user has stopped the context."""
        context: Any = self.spark.sparkContext._jsc
        return context is None or self._jvm.has_ended or bool(context.sc().isStopped())

    def driver(self) -> Driver:
        """Return this process with its JVM."""
        return Driver.here(self._jvm)

    def checkpoint(self, location: str) -> Checkpoint:
        """Return a checkpoint on any store that Spark can use."""
        return spark_checkpoint(self.spark, location)

    def same(self, one: str, other: str) -> bool:
        """Compare scheme, authority and path."""
        return one == other or HadoopFiles(self.spark, one).resolve() == HadoopFiles(self.spark, other).resolve()

    def location(self, query: Any) -> str:
        """Ask the query itself."""
        return str(query._jsq.streamingQuery().resolvedCheckpointRoot())

    def build(self, build: Build, allocation: Allocation) -> StartQuery:
        """Build a query with this session as the active one."""
        self._activate()
        return build(allocation)

    def start(self, start: StartQuery, partitions: int, admit: Admit) -> Query:
        """Start a query under a listener that holds it back until it is admitted; stop the one before it."""
        from pyspark.sql.streaming.query import StreamingQuery

        if self._query is not None:
            # It runs if the answer of its start was lost. Spark starts no second query with the same name.
            self._query.stop()
        self._activate()
        gate = _gate(self.spark, admit)
        self.spark.streams.addListener(gate)
        try:
            with temporary_settings(self.spark, {PARTITIONS: str(partitions)}):
                query: Any = start()
                self._query = query if isinstance(query, StreamingQuery) else None
        finally:
            self.spark.streams.removeListener(gate)
        if not isinstance(query, StreamingQuery):
            kind = f"{type(query).__module__}.{type(query).__name__}"
            raise InvalidValue(f"the function that starts the query must return it, and returned a {kind}")
        if not query._jsq.streamingQuery().sparkSession().equals(self.spark._jsparkSession):
            query.stop()
            raise InvalidValue("the query was started by another session: use SparkSession.active()")
        if not gate.asked.is_set():
            log.warning("Spark has not announced query %s before it began: it is admitted late", query.id)
            gate.ask(query)
        gate.answered.wait()
        if gate.refusal is not None:
            query.stop()  # `isActive` is False from the beginning of a stop on: this waits for its end
            raise gate.refusal
        return query

    def _activate(self) -> None:
        from pyspark.sql import SparkSession

        # The active session is a thread-local, and the user's function may read it.
        SparkSession._get_j_spark_session_class(self.spark._jvm).setActiveSession(self.spark._jsparkSession)


def spark_checkpoint(spark: SparkSession, location: str) -> Checkpoint:
    """Return the checkpoint at a location, with Spark's own tool for its state."""

    def repartition(location: str, partitions: int, exactly_once: bool, version: str) -> None:
        with temporary_settings(spark, {FORMAT: version}):
            spark._streamingCheckpointManager.repartition(location, partitions, exactly_once)

    has_tool = hasattr(type(spark), "_streamingCheckpointManager")
    return Checkpoint(HadoopFiles(spark, location), repartition, can_repartition=has_tool)


def _gate(spark: SparkSession, admit: Admit) -> Any:
    """Return a listener that asks `admit` about every query before it begins, and stops one that is refused."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Gate(StreamingQueryListener):
        def __init__(self) -> None:
            super().__init__()
            self.asked, self.answered = threading.Event(), threading.Event()
            self.answered.set()
            self.refusal: Exception | None = None

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            self.ask(spark.streams.get(str(event.id)))

        def ask(self, query: Any) -> None:
            # An exception would only be logged by Spark, and the query would go on.
            self.answered.clear()
            self.asked.set()
            try:
                admit(str(query._jsq.streamingQuery().resolvedCheckpointRoot()))
            except Exception as refusal:  # noqa: BLE001 - raised by the start of the query
                self.refusal = refusal
                # `stop` waits for the query's thread, which waits for this call to return.
                threading.Thread(target=query.stop, name="rheostat-refused", daemon=True).start()
                while query.isActive:
                    threading.Event().wait(POLL_S)
            finally:
                self.answered.set()

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            pass

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            pass

    return Gate()


@contextmanager
def temporary_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set these settings while a query starts, which copies them; then restore the session's own."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
