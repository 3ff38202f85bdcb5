"""Failures around real-time mode: missing topics, a second driver, a dead broker, a poisoned record."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spark_realtime_edges
from kafka_world import new_topic, running_broker

from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.kafka.load import start_load

pytestmark = pytest.mark.cluster

RECORDS, SECONDS = 300, 10


def test_failures_are_named_and_lose_no_record(tmp_path: Path) -> None:
    schedule = Schedule(Constant(1.0), RECORDS, SECONDS)
    with running_broker() as broker:
        source, sink = new_topic(broker, 2), new_topic(broker, 2, {"message.timestamp.type": "LogAppendTime"})
        wide = new_topic(broker, spark_realtime_edges.SLOTS)
        with start_load(broker.bootstrap, source, schedule, start_s=0.0, last_s=5) as load:
            load.wait()
        topics = json.dumps({"source": source, "sink": sink, "wide": wide})
        command = [sys.executable, spark_realtime_edges.__file__, broker.bootstrap, str(tmp_path), topics]
        with (tmp_path / "stderr").open("w") as errors:
            popen = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
            )
            with popen as child:
                try:
                    read = reader(child, tmp_path / "stderr")
                    assert read("note")["unlike"] == []
                    event = read("refused")
                    assert "topic 'misspelt' is not on" in event["missing"]
                    assert f"{spark_realtime_edges.SLOTS} tasks of the source need" in event["wide"]
                    assert event["active"] == 0

                    event = read("running")
                    assert "another driver (process" in event["twice"]
                    assert event["active"] == 1
                    assert event["status"].startswith("running")

                    broker.kill()
                    child.stdin.write("dead\n")  # type: ignore[union-attr]
                    event = read("blind")
                    assert event["problem"]
                    assert event["held"]

                    broker.start()
                    with start_load(broker.bootstrap, source, schedule, start_s=0.0, first_s=5, last_s=SECONDS) as load:
                        load.wait()
                    child.stdin.write("back\n")  # type: ignore[union-attr]
                    assert read("back")["records"] == 3 * RECORDS * SECONDS  # three words per line, all counted

                    status = read("poisoned")["status"]
                    assert status.startswith("failed: given up after 3 failures")
                    assert child.wait(60) == 0
                finally:
                    child.kill()


def reader(child: "subprocess.Popen[str]", errors: Path) -> Callable[[str], dict[str, Any]]:
    """Return a function that reads the child's next event, which must have this name."""

    def read(name: str) -> dict[str, Any]:
        line = child.stdout.readline() if child.stdout else ""
        if not line:
            child.kill()
        assert line, errors.read_text()[-3000:]
        event: dict[str, Any] = json.loads(line)
        assert event["event"] == name
        return event

    return read
