"""Real-time mode on a real Spark and a real broker: restarts lose no record, even with a kill before every step."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spark_realtime
from kafka_world import new_topic, running_broker
from pyspark.sql import SparkSession
from spark_jars import without_added_jars

from rheostat.engine.spark.telemetry.topic import TopicEnds
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import EngineError
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import start_load

pytestmark = pytest.mark.cluster

RECORDS, SECONDS = 300, 10
START, TARGET = {"split": 1, "count": 2}, {"split": 2, "count": 3}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with running_broker() as started:
        yield started


def child(options: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, spark_realtime.__file__, json.dumps(options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)


def world(broker: Broker, folder: Path) -> dict[str, Any]:
    """Create topics with a few thousand lines."""
    source, sink = new_topic(broker, 2), new_topic(broker, 2, {"message.timestamp.type": "LogAppendTime"})
    with start_load(
        broker.bootstrap, source, Schedule(Constant(1.0), RECORDS, SECONDS), start_s=0.0, last_s=SECONDS
    ) as load:
        load.wait()
    options = {"servers": broker.bootstrap, "source": source, "sink": sink, "folder": str(folder)}
    return {**options, "start": START, "target": TARGET}


def story(options: dict[str, Any]) -> dict[str, Any]:
    done = child(options)
    assert done.returncode == 0, done.stderr[-12000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_one_restart_changes_both_stages_and_a_failed_query_recovers(broker: Broker, tmp_path: Path) -> None:
    end = story({**world(broker, tmp_path), "fail": True})
    assert end["records"] == 3 * RECORDS * SECONDS  # three words per line, all counted
    assert end["partitions"] == 3
    assert end["endings"] == ["done"]
    assert [step.split()[0] for step in end["steps"]] == ["stop", "repartition", "start"]
    assert end["downtimes"]
    # Without a probe, Spark's own counts show every stage: a line has three words.
    with_rows = [window for window in end["seen"] if window["records"][0]]
    assert with_rows
    for window in with_rows:
        lines, split, count = window["records"]
        assert (split, count) == pytest.approx((lines, 3 * lines))
        assert all(rate > 0 for rate in window["true_rates"])
        inside_s, event_s = window["latency"]
        assert 0 < inside_s < event_s  # the lines had waited in the topic
    assert None not in end["backlogs"][-10:]  # a restart hides nothing that the topic shows
    assert end["backlogs"][-1] == 0


def test_executors_come_first_state_is_renamed_and_a_killed_executor_loses_no_record(
    broker: Broker, tmp_path: Path
) -> None:
    end = story({**world(broker, tmp_path), "executors": [3, 4], "rename": True, "fail": True})
    assert "created by real-time mode" in end["immovable"]
    assert end["records"] == 3 * RECORDS * SECONDS
    assert end["partitions"] == 3  # Spark refuses to repartition the state under its old name
    assert end["endings"] == ["done"]
    assert [step.split()[0] for step in end["steps"]] == ["request", "stop", "repartition", "start"]
    assert end["slots"] == 8
    assert end["downtimes"]


def test_drivers_killed_before_every_step_are_taken_over_exactly(broker: Broker, tmp_path: Path) -> None:
    options = world(broker, tmp_path)
    for step in ("stop after", "repartition", "start with"):
        done = child({**options, "kill_at": step})
        assert done.returncode == -signal.SIGKILL, done.stderr[-12000:]
    end = story(options)
    assert end["records"] == 3 * RECORDS * SECONDS
    assert end["partitions"] == 3
    assert end["endings"] == ["done"]
    words = [step.split()[0] for step in end["steps"]]
    # Each driver repeats the change from its start; the last one finds the state repartitioned, and only starts.
    assert words == ["stop", "stop", "repartition", "stop", "repartition", "start"]


def test_without_the_connector_or_the_broker_there_is_a_clear_error(spark: SparkSession) -> None:
    named = pytest.raises(EngineError, match=r"Spark has no Kafka connector: name org.apache.spark:spark-sql-kafka")
    with without_added_jars(spark), named:
        TopicEnds.of_topic(spark, "127.0.0.1:1", "lines")
