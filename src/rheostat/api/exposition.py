"""One observation as Prometheus metrics. Pure: what an engine saw in, metric families out.

What was not measured is left out, never shown as 0. The names are listed in docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rheostat.job.observation import Observation, Status

if TYPE_CHECKING:
    from prometheus_client.core import Metric

QUANTILES = ("0.5", "0.95", "0.99")


@dataclass(frozen=True, slots=True)
class Counts:
    """What an engine knows beside its window."""

    batches: Mapping[str, int] = field(default_factory=dict)
    """Query -> batches that it has finished since its checkpoint was made."""
    executors: int | None = None
    failed: int = 0
    """Queries that ended with an exception."""
    changes: int | None = None
    """Changes of size, where a scaler makes them."""
    policy_failures: int | None = None
    """Steps in which a scaler's policy raised an exception."""


NO_COUNTS = Counts()


def families(job: str, window: Observation, counts: Counts = NO_COUNTS) -> Iterator[Metric]:
    """Yield the metric families of one job."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    def gauge(name: str, about: str, values: Mapping[str, float | None], label: str = "") -> Iterator[Metric]:
        known = {key: value for key, value in values.items() if value is not None}
        if not known:
            return
        family = GaugeMetricFamily(f"rheostat_{name}", about, labels=["job", *([label] if label else [])])
        for key, value in known.items():
            family.add_metric([job, *([key] if label else [])], float(value))
        yield family

    seen = window.running is not None or bool(window.sources)
    up = window.status is not Status.DOWN and (seen or window.problem is None)
    yield from gauge("up", "Whether the job runs.", {"": float(up)})
    yield from gauge("failed_queries", "Queries that ended with an exception.", {"": counts.failed})
    yield from gauge("window_usable", "Whether the window may be learned from.", {"": float(window.usable)})
    yield from gauge("window_seconds", "Seconds that the window covers.", {"": window.end_s - window.start_s})

    sources = window.sources
    rates = {s.name: s.rate_per_s for s in sources}
    yield from gauge("source_records_per_second", "Records that arrive at a source.", rates, "source")
    backlogs = {s.name: s.backlog for s in sources}
    yield from gauge("source_backlog_records", "Records that have come and have no result.", backlogs, "source")
    lags = {s.name: s.lag_s for s in sources}
    yield from gauge("source_lag_seconds", "Age of the oldest record without a result.", lags, "source")
    for kind, about, waiting in (
        ("files", "Files that no batch has taken.", {s.name: s.files_waiting for s in sources}),
        ("bytes", "Size of the files that no batch has taken.", {s.name: s.bytes_waiting for s in sources}),
        ("versions", "Versions of a table beyond the source.", {s.name: s.versions_waiting for s in sources}),
    ):
        yield from gauge(f"source_waiting_{kind}", about, waiting, "source")

    late = window.overdue_s if seen else None
    yield from gauge("overdue_seconds", "Seconds that a running batch is past its time.", {"": late})
    if window.latency is not None:
        of = window.latency
        through = dict(zip(QUANTILES, (of.p50_s, of.p95_s, of.p99_s), strict=True))
        yield from gauge("batch_seconds", "Time through the job: how long batches take.", through, "quantile")
        event = dict(zip(QUANTILES, (of.event_p50_s, of.event_p95_s, of.event_p99_s), strict=True))
        yield from gauge("event_latency_seconds", "Time from an event to its result.", event, "quantile")
    for name, about, number in (
        ("changes", "Changes of size.", counts.changes),
        ("policy_failures", "Steps in which the policy raised an exception.", counts.policy_failures),
    ):
        if number is not None:
            counter = CounterMetricFamily(f"rheostat_{name}", about, labels=["job"])
            counter.add_metric([job], number)
            yield counter
    if counts.batches:
        batches = CounterMetricFamily("rheostat_batches", "Batches finished.", labels=["job", "query"])
        for query, number in counts.batches.items():
            batches.add_metric([job, query], number)
        yield batches

    operators = window.present_operators
    for name, about, read in (
        ("tasks", "Tasks, or slots, of an operator.", {o.name: float(o.tasks) for o in operators}),
        ("records_per_second", "Records into an operator.", {o.name: o.records_in_per_s for o in operators}),
        ("useful_share", "Useful seconds per second of one task.", {o.name: o.useful_share for o in operators}),
        ("true_rate", "Records per useful second of one task.", {o.name: o.true_rate_per_s for o in operators}),
        ("cpu_share", "CPU seconds per second of one task.", {o.name: o.cpu_share for o in operators}),
        ("state_bytes", "State of an operator.", {o.name: o.state_bytes for o in operators}),
        ("overloaded", "Whether it is overloaded.", {o.name: float(o.name in window.overloaded) for o in operators}),
    ):
        yield from gauge(f"operator_{name}", about, read, "operator")
    slots = window.running.slots if window.running is not None else None
    yield from gauge("slots", "Slots that the job holds.", {"": slots})
    yield from gauge("executors", "Executors of the application.", {"": counts.executors})
    yield from gauge("downtime_seconds", "Seconds without output in the last change.", {"": window.downtime_s})
