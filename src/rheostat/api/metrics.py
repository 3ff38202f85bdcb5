"""`rheostat.metrics`: what Rheostat sees of running queries, for Prometheus; nothing is scaled.

Nothing runs by itself: Spark's progress is collected as it comes, and the window is made when somebody asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rheostat.api.checks import check_counters, check_queries, refuse_live, session_of
from rheostat.api.exposition import Counts, families
from rheostat.clock import WallClock
from rheostat.control.deadline import Deadline
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.errors import EngineError, InvalidValue, RheostatError
from rheostat.job.frozen import check_number
from rheostat.job.observation import Observation
from rheostat.ports import Clock, Engine

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from pyspark.sql.streaming.query import StreamingQuery

LATE_S = 8.0
"""A window that takes longer than this is given up: Prometheus itself waits for 10 s."""


class Collector:
    """Makes a window when it is asked, and shows it again when asked within the interval."""

    def __init__(self, engine: Engine, job: str, counts: Callable[[], Counts], clock: Clock, interval_s: float) -> None:
        self._engine, self._job, self._counts = engine, job, counts
        self._clock, self._interval_s = clock, interval_s
        self._deadline = Deadline(LATE_S)
        self._lock = threading.Lock()
        self._seen_s = -interval_s
        self._shown: list[Metric] = []

    def collect(self) -> Iterator[Metric]:
        """Return the metrics, as the client library asks for them."""
        with self._lock:
            now_s = self._clock.now()
            if not self._shown or now_s - self._seen_s >= self._interval_s:
                window = self._window(now_s)
                self._shown, self._seen_s = list(families(self._job, window, self._counts())), now_s
            return iter(self._shown)

    def describe(self) -> Iterator[Metric]:
        """Say nothing before the first scrape: what there is to see is not known yet."""
        return iter(())

    def _window(self, now_s: float) -> Observation:
        try:
            return self._deadline.call("scrape", self._engine.observe)
        except RheostatError as error:
            return Observation.blind(now_s, str(error))


class Exporter:
    """A running exporter: its address, and its end. The queries go on without it."""

    def __init__(self, server: Any, thread: threading.Thread, close: Callable[[], None], host: str) -> None:
        self._server, self._thread, self._close = server, thread, close
        self.port = int(server.server_port)
        self.url = f"http://{host}:{self.port}/metrics"

    def stop(self) -> None:
        """Close the port and stop listening to Spark; doing it again changes nothing."""
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._close()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def metrics(
    queries: StreamingQuery | Sequence[StreamingQuery] | Engine,
    *,
    port: int,
    host: str = "127.0.0.1",
    counters: Mapping[str, OffsetCounter] | None = None,
    interval_s: float = 5.0,
    window_s: float = 30.0,
) -> Exporter:
    """Serve what is seen of running queries at http://host:port/metrics, on any master, without scaling anything.

    `port` 0 takes a free one. A window of the last `window_s` is made at most every `interval_s`, when it is asked for.
    Instead of queries an engine may be given.
    """
    check_number("interval_s", interval_s)
    check_number("window_s", window_s, least=1e-3)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InvalidValue(f"port is {port!r}: a whole number from 0 (any free one) to 65535")
    start = _client()
    clock = WallClock()
    if hasattr(queries, "observe"):
        given: Any = queries
        job = getattr(given, "name", "") or "job"
        return _serve(start, Collector(given, job, Counts, clock, interval_s), lambda: None, host, port)
    engine = _engine(list(queries) if isinstance(queries, Sequence) else [queries], counters, window_s, clock)

    def counts() -> Counts:
        ended = engine.telemetry.ended.values()
        return Counts(engine.telemetry.batches_done, engine.executors_seen, sum(bool(why) for why in ended))

    try:
        return _serve(start, Collector(engine, engine.name, counts, clock, interval_s), engine.close, host, port)
    except BaseException:
        engine.close()
        raise


def _client() -> Any:
    try:
        from prometheus_client import start_http_server
    except ImportError as error:
        raise EngineError(f"{error}: metrics need it; pip install 'rheostat[metrics]'") from error
    return start_http_server


def _engine(
    queries: list[StreamingQuery], counters: Mapping[str, OffsetCounter] | None, window_s: float, clock: WallClock
) -> MicroBatchEngine:
    check_queries(queries, "metrics")
    refuse_live(queries)
    check_counters(queries, counters)
    return MicroBatchEngine(session_of(queries), queries, (1, 1), clock, window_s=window_s, counters=counters)


def _serve(start: Any, collector: Collector, close: Callable[[], None], host: str, port: int) -> Exporter:
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = start(port, host, registry)
    except OSError as error:
        raise InvalidValue(
            f"port {port} of {host} cannot be used ({error.strerror or error}): give another one, or 0 for any free one"
        ) from error
    return Exporter(server, thread, close, host)
