"""`rheostat.serve_metrics`: what Rheostat sees and decides, for Prometheus.

Of queries, a window is made when Prometheus asks for it. Of a scaler, its own windows and counts are shown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rheostat.api.checks import check_counters, check_queries, refuse_live, session_of
from rheostat.api.exposition import Counts, families
from rheostat.api.scaler import Scaler
from rheostat.clock import WallClock
from rheostat.deadline import Deadline
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.errors import EngineError, InvalidValue, describe
from rheostat.job.frozen import check_number
from rheostat.job.observation import Observation
from rheostat.ports import Clock

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from pyspark.sql.streaming.query import StreamingQuery

LATE_S = 8.0
"""A window that takes longer than this is given up: Prometheus itself waits for 10 s."""


class Collector:
    """Makes a window when it is asked, and shows it again when asked within the interval."""

    def __init__(
        self,
        observe: Callable[[], Observation],
        job: str,
        counts: Callable[[], Counts],
        clock: Clock,
        interval_s: float = 0.0,
    ) -> None:
        self._observe, self._job, self._counts = observe, job, counts
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
            return self._deadline.call("scrape", self._observe)
        except Exception as error:  # noqa: BLE001 - of Spark's JVM anything may come, and the endpoint stays up
            return Observation.blind(now_s, describe(error))


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


def serve_metrics(
    source: StreamingQuery | Sequence[StreamingQuery] | Scaler,
    *,
    port: int,
    host: str = "127.0.0.1",
    counters: Mapping[str, OffsetCounter] | None = None,
    interval_s: float = 5.0,
    window_s: float = 30.0,
) -> Exporter:
    """Serve what is seen of running queries, or of a scaler's job, at http://host:port/metrics.

    Queries are looked at on any master and in any cluster, and nothing is scaled: a window of the last `window_s` is
    made at most every `interval_s`, when it is asked for. A scaler also shows its changes and its policy's failures.
    `port` 0 takes a free one.
    """
    check_number("interval_s", interval_s)
    check_number("window_s", window_s, least=1e-3)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InvalidValue(f"port is {port!r}: a whole number from 0 (any free one) to 65535")
    start = _client()
    clock = WallClock()
    if isinstance(source, Scaler):
        return _serve(
            start, Collector(_last_window(source), source.job, _counts_of(source), clock), _nothing, host, port
        )
    queries = list(source) if isinstance(source, Sequence) else [source]
    engine = _engine(queries, counters, window_s, clock)

    def counts() -> Counts:
        ended = engine.telemetry.ended.values()
        return Counts(engine.telemetry.batches_done, engine.executors_seen, sum(bool(why) for why in ended))

    try:
        collector = Collector(engine.observe, engine.name, counts, clock, interval_s)
        return _serve(start, collector, engine.close, host, port)
    except BaseException:
        engine.close()
        raise


def _last_window(scaler: Scaler) -> Callable[[], Observation]:
    """Return what reads the window of a scaler's last step."""

    def window() -> Observation:
        steps = scaler.steps
        return steps[-1].observation if steps else Observation.blind(0.0, "no window yet")

    return window


def _counts_of(scaler: Scaler) -> Callable[[], Counts]:
    """Return what counts a scaler's failed queries, changes and policy failures."""

    def counts() -> Counts:
        failed = int(bool(scaler.query_failure))
        return Counts(failed=failed, changes=scaler.changes, policy_failures=scaler.policy_failures)

    return counts


def _nothing() -> None:
    """Close nothing: a scaler goes on without its exporter."""


def _client() -> Any:
    try:
        from prometheus_client import start_http_server
    except ImportError as error:
        raise EngineError(f"{error}: metrics need it; pip install 'rheostat[metrics]'") from error
    return start_http_server


def _engine(
    queries: list[StreamingQuery], counters: Mapping[str, OffsetCounter] | None, window_s: float, clock: WallClock
) -> MicroBatchEngine:
    check_queries(queries, "serve_metrics")
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
