"""What `rheostat.autoscale` refuses and warns of, on a real Spark; nothing has been touched by then."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rheostat
from rheostat import Options
from rheostat.api.checks import check_queries, doubts, is_local, refuse_latency, refuse_trigger, session_of
from rheostat.engine.batches.offsets import RowCounter
from rheostat.engine.spark.session.settings import check_application
from rheostat.errors import InvalidValue
from rheostat.job.slo import SLO

pytestmark = pytest.mark.cluster


def start(spark: SparkSession, folder: Path, name: str | None = None, **trigger: Any) -> Any:
    writer = spark.readStream.format("rate").option("rowsPerSecond", 10).load().writeStream.format("noop")
    writer = writer.trigger(**trigger) if trigger else writer
    writer = writer.queryName(name) if name else writer
    return writer.option("checkpointLocation", str(folder)).start()


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    running = start(spark, tmp_path / "checkpoint", "clicks", processingTime="2 seconds")
    yield running
    running.stop()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_executors": 5, "max_executors": 2}, "min_executors is 5 and max_executors is 2: the minimum must not"),
        ({"min_executors": 0, "max_executors": 3}, "min_executors must be a whole number of at least 1, not 0"),
        ({"max_executors": 2.5}, "max_executors must be a whole number of at least 1, not 2.5"),
        ({"options": {"interval_s": 0}}, "interval_s must be a finite number.* it is 0"),
        ({"options": {"window_s": -30.0}}, "window_s must be a finite number.* it is -30"),
        ({"options": {"window_s": "30"}}, "window_s must be a number, not '30'"),
        ({"options": {"seed": -1}}, "seed must be a whole number of at least 0, not -1"),
        ({"options": {"counters": {"click": RowCounter()}}}, "'click', which is not given: did you mean 'clicks'"),
        ({"policy": "ds3"}, "unknown policy 'ds3', did you mean 'ds2'"),
        ({"policy": "conttune:bgi=false"}, "unknown key 'policy conttune: bgi', did you mean 'big'"),
        ({"policy": 3}, "policy must be a name such as 'ds2', or a rheostat.Policy, not 3"),
        ({}, r"local\[4\].*no executors to add or remove"),
        ({"policy": "conttune:big=false"}, r"local\[4\].*no executors to add or remove"),
    ],
)
def test_impossible_arguments_are_refused_by_name(query: Any, given: dict[str, Any], message: str) -> None:
    def attach() -> None:
        options = Options(**given.pop("options", {}))
        rheostat.autoscale(query, **{"max_executors": 2, "options": options, **given})

    with pytest.raises(InvalidValue, match=message):
        attach()


def test_each_way_in_names_the_other(query: Any) -> None:
    with pytest.raises(InvalidValue, match=r"'start' is a function: rheostat\.start\(start, \.\.\.\) starts it"):
        rheostat.autoscale(start, max_executors=2)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"not StreamingQuery: rheostat\.autoscale\(query, \.\.\.\) scales"):
        rheostat.start(query, max_executors=2)


def test_what_is_no_running_query_is_refused(spark: SparkSession, query: Any) -> None:
    query.stop()
    with pytest.raises(InvalidValue, match="query clicks is not active"):
        rheostat.autoscale(query, max_executors=2)
    with pytest.raises(InvalidValue, match="not a DataFrame"):
        rheostat.autoscale(spark.range(3), max_executors=2)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="StreamingQuery, not a builtins"):
        rheostat.autoscale("ysb", max_executors=2)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="at least one"):
        rheostat.autoscale([], max_executors=2)


@pytest.mark.parametrize("name", ["streaming.query.StreamingQuery", "dataframe.DataFrame", "session.SparkSession"])
def test_whatever_comes_from_spark_connect_is_refused(name: str) -> None:
    # Its classes cannot be imported without grpc; what tells them apart is where they come from.
    module, _, cls = f"pyspark.sql.connect.{name}".rpartition(".")
    thing = type(cls, (), {"__module__": module})()
    with pytest.raises(InvalidValue, match="Spark Connect, which cannot resize executors"):
        check_queries([thing])


def test_the_same_query_twice_is_refused(query: Any) -> None:
    with pytest.raises(InvalidValue, match="query clicks is given twice"):
        rheostat.autoscale([query, query], max_executors=2)


def test_queries_of_two_sessions_are_refused(spark: SparkSession, query: Any, tmp_path: Path) -> None:
    elsewhere = spark.newSession()
    other = start(elsewhere, tmp_path / "other", "orders")
    try:
        with pytest.raises(InvalidValue, match="clicks and orders were started by different sessions"):
            rheostat.autoscale([query, other], max_executors=2)
        assert session_of([query]) is spark
        # A listener on any other session would hear nothing of it.
        assert [heard.name for heard in session_of([other]).streams.active] == ["orders"]
    finally:
        other.stop()


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        ({"availableNow": True}, "AvailableNowTrigger, which ends when it has caught up"),
        ({"once": True}, "OneTimeTrigger, which runs one batch"),
        ({"continuous": "1 second"}, r"ContinuousTrigger\(1000\), which has no batches"),
    ],
)
def test_triggers_that_leave_nothing_to_scale_are_refused(
    spark: SparkSession, tmp_path: Path, trigger: dict[str, Any], message: str
) -> None:
    refused = threading.Event()

    def wait(_frame: Any, _number: int) -> None:
        refused.wait(60)

    writer = spark.readStream.format("rate").load().writeStream.trigger(**trigger)
    writer = writer.option("checkpointLocation", str(tmp_path))
    # These end by themselves: the first batch waits until it has been looked at.
    slow = writer.format("noop") if "continuous" in trigger else writer.foreachBatch(wait)
    running = slow.start()
    try:
        with pytest.raises(InvalidValue, match=message):
            rheostat.autoscale(running, max_executors=2)
    finally:
        refused.set()
        running.stop()


def test_real_time_mode_needs_another_engine(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    trigger = jvm.org.apache.spark.sql.execution.streaming.RealTimeTrigger.apply("5 seconds")
    with pytest.raises(InvalidValue, match=r"RealTimeTrigger\(5000\), which is real-time mode"):
        refuse_trigger("clicks", str(trigger))
    assert refuse_trigger("clicks", "ProcessingTimeTrigger(2500)") == 2.5
    with pytest.raises(InvalidValue, match="unknown trigger MoonTrigger"):
        refuse_trigger("clicks", "MoonTrigger")


def test_missing_settings_are_listed() -> None:
    with pytest.raises(InvalidValue) as refused:
        check_application("spark://here:7077", {})
    message = str(refused.value)
    assert "spark.stage.maxConsecutiveAttempts is not set" in message
    assert message.endswith(":\n--conf spark.stage.maxConsecutiveAttempts=100 \\\n--conf spark.executor.cores=1")


@pytest.mark.parametrize(
    ("slo", "message"),
    [
        (SLO(max_latency_s=0.05), "max_latency_s is 0.05 s, and a micro-batch takes 0.1 s"),
        (SLO(max_latency_s=1.5), "max_latency_s is 1.5 s, and records wait up to 2 s"),
        (SLO(max_lag_s=1.5), "max_lag_s is 1.5 s, and records wait up to 2 s"),
    ],
)
def test_objectives_that_no_size_can_meet_are_refused(slo: SLO, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        refuse_latency(slo, trigger_s=2.0)
    refuse_latency(SLO(max_latency_s=2.0, max_lag_s=2.0, max_recovery_s=1.0), trigger_s=2.0)


def test_what_hardly_works_as_it_was_meant_is_named() -> None:
    quiet = (SLO(max_latency_s=3600), 2.0, 30.0, False)
    assert list(doubts(*quiet)) == []
    (milliseconds,) = doubts(SLO(max_latency_s=15_000), *quiet[1:])
    assert milliseconds == "slo.max_latency_s is 4.2 hours: it is given in seconds; for 15000 ms write 15"
    (empty,) = doubts(quiet[0], 60.0, 30.0, False)
    assert "window_s is 30 s and the trigger interval 60 s" in empty
    (lost,) = doubts(*quiet[:3], True)
    assert "in cluster mode a restarted driver may run elsewhere" in lost


@pytest.mark.parametrize(
    ("journal", "local"),
    [(":memory:", True), ("clicks.db", True), ("sqlite:////tmp/a.db", True), ("postgresql://db/rheostat", False)],
)
def test_a_journal_on_the_drivers_disk_is_known(journal: str, local: bool) -> None:
    assert is_local(journal) is local
