"""An observation as Prometheus metrics: every number that was measured, and none that was not."""

import pytest

pytest.importorskip("prometheus_client")

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from py4j.protocol import Py4JError

from rheostat.api.exposition import NO_COUNTS, Counts, families
from rheostat.api.metrics import Collector
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.graph import JobSpec
from rheostat.job.observation import Latency, Observation, OperatorReading, SourceReading, Status
from rheostat.job.record import Intent
from rheostat.ports import Note

WINDOW = Observation(
    at_s=100.0,
    start_s=70.0,
    end_s=100.0,
    running=Allocation({"job": 4}),
    wanted=Allocation({"job": 4}),
    sources=(SourceReading("job", 120.0, 600.0, 5.0),),
    operators=(
        OperatorReading("job", 4, 118.0, 0.25, 118.0, cpu_share=0.1, state_bytes=2048.0),
        OperatorReading("parse", 4, 118.0, 0.05, 590.0),
        OperatorReading("count", 4, 118.0),
    ),
    overloaded=("job",),
    overdue_s=1.5,
    latency=Latency(2.0, 2.5, 3.0, 4.0, 5.0, 6.0),
    downtime_s=0.75,
)

Samples = dict[tuple[str, str], float]


def samples(window: Observation, counts: Counts = NO_COUNTS) -> Samples:
    """Return name and second label -> value, as a scrape would read them."""
    found: Samples = {}
    for family in families("clicks", window, counts):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("job") == "clicks"
            found[sample.name, "".join(labels.values())] = sample.value
    return found


def test_every_reading_has_its_metric() -> None:
    found = samples(WINDOW, Counts({"clicks": 17}, 2, 1))
    assert found == {
        ("rheostat_up", ""): 1.0,
        ("rheostat_failed_queries", ""): 1.0,
        ("rheostat_window_usable", ""): 1.0,
        ("rheostat_window_seconds", ""): 30.0,
        ("rheostat_source_records_per_second", "job"): 120.0,
        ("rheostat_source_backlog_records", "job"): 600.0,
        ("rheostat_source_lag_seconds", "job"): 5.0,
        ("rheostat_overdue_seconds", ""): 1.5,
        ("rheostat_batch_seconds", "0.5"): 2.0,
        ("rheostat_batch_seconds", "0.95"): 2.5,
        ("rheostat_batch_seconds", "0.99"): 3.0,
        ("rheostat_event_latency_seconds", "0.5"): 4.0,
        ("rheostat_event_latency_seconds", "0.95"): 5.0,
        ("rheostat_event_latency_seconds", "0.99"): 6.0,
        ("rheostat_batches_total", "clicks"): 17.0,
        ("rheostat_operator_tasks", "job"): 4.0,
        ("rheostat_operator_tasks", "parse"): 4.0,
        ("rheostat_operator_tasks", "count"): 4.0,
        ("rheostat_operator_records_per_second", "job"): 118.0,
        ("rheostat_operator_records_per_second", "parse"): 118.0,
        ("rheostat_operator_records_per_second", "count"): 118.0,
        ("rheostat_operator_useful_share", "job"): 0.25,
        ("rheostat_operator_useful_share", "parse"): 0.05,
        ("rheostat_operator_true_rate", "job"): 118.0,
        ("rheostat_operator_true_rate", "parse"): 590.0,
        ("rheostat_operator_cpu_share", "job"): 0.1,
        ("rheostat_operator_state_bytes", "job"): 2048.0,
        ("rheostat_operator_overloaded", "job"): 1.0,
        ("rheostat_operator_overloaded", "parse"): 0.0,
        ("rheostat_operator_overloaded", "count"): 0.0,
        ("rheostat_slots", ""): 4.0,
        ("rheostat_executors", ""): 2.0,
        ("rheostat_downtime_seconds", ""): 0.75,
    }


def test_what_waits_in_files_and_versions_of_a_table_is_shown() -> None:
    table = SourceReading("job", 120.0, 600.0, 5.0, files_waiting=3, bytes_waiting=4096, versions_waiting=2)
    found = samples(replace(WINDOW, sources=(table,)))
    assert found["rheostat_source_waiting_files", "job"] == 3
    assert found["rheostat_source_waiting_bytes", "job"] == 4096
    assert found["rheostat_source_waiting_versions", "job"] == 2


def test_what_was_not_measured_is_left_out() -> None:
    down = replace(
        WINDOW, status=Status.DOWN, sources=(), operators=(), latency=None, downtime_s=None, problem="no query"
    )
    found = samples(down)
    assert (found["rheostat_up", ""], found["rheostat_window_usable", ""]) == (0.0, 0.0)
    names = {name for name, _ in found}
    assert not any(name.startswith(("rheostat_source", "rheostat_operator", "rheostat_batch")) for name in names)
    unknown = replace(WINDOW, sources=(SourceReading("job", None, None, 3.0),))
    assert ("rheostat_source_backlog_records", "job") not in samples(unknown)
    assert samples(unknown)["rheostat_source_lag_seconds", "job"] == 3.0
    blind = samples(Observation.blind(5.0, "engine gone"))
    assert (blind["rheostat_up", ""], ("rheostat_overdue_seconds", "") in blind) == (0.0, False)


class Watched:
    """An engine that counts how often it is looked at."""

    name = "clicks"

    def __init__(self) -> None:
        self.looks = 0
        self.error: Exception | None = None

    def describe(self) -> JobSpec:
        raise NotImplementedError

    def apply(self, intent: Intent, note: Note) -> None:
        raise NotImplementedError

    def observe(self) -> Observation:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return WINDOW


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        raise NotImplementedError


def test_a_window_is_made_when_it_is_asked_for_and_at_most_once_per_interval() -> None:
    engine, clock = Watched(), Hand()
    collector = Collector(engine.observe, engine.name, Counts, clock, 5.0)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    assert engine.looks == 0
    for now_s, looks in ((0.0, 1), (4.0, 1), (5.0, 2)):
        clock.now_s = now_s
        text = generate_latest(registry).decode()
        assert engine.looks == looks
    (rate,) = (f for f in text_string_to_metric_families(text) if f.name == "rheostat_source_records_per_second")
    assert (rate.samples[0].labels, rate.samples[0].value) == ({"job": "clicks", "source": "job"}, 120.0)


@pytest.mark.parametrize("error", [EngineError("the SparkContext is stopped"), Py4JError("the JVM is gone")])
def test_an_engine_that_fails_is_down_and_the_scrape_goes_on(error: Exception) -> None:
    engine = Watched()
    engine.error = error
    shown = {
        family.name: family.samples[0].value
        for family in Collector(engine.observe, engine.name, Counts, Hand(), 5.0).collect()
    }
    assert (shown["rheostat_up"], shown["rheostat_window_usable"]) == (0.0, 0.0)
