"""Real-time mode when things around it go wrong: topics, a second driver, a broker that dies, a poisoned record."""

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


def test_what_goes_wrong_is_named_and_costs_nothing(tmp_path: Path) -> None:
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
                    tell = reader(child, tmp_path / "stderr")
                    assert tell("note")["unlike"] == []
                    told = tell("refused")
                    assert "topic 'misspelt' is not on" in told["missing"]
                    assert f"{spark_realtime_edges.SLOTS} tasks of the source need" in told["wide"]
                    assert told["active"] == 0

                    told = tell("running")
                    assert "another driver (process" in told["twice"]
                    assert told["active"] == 1
                    assert told["status"].startswith("running")

                    broker.kill()
                    child.stdin.write("dead\n")  # type: ignore[union-attr]
                    told = tell("blind")
                    assert told["problem"]
                    assert told["held"]

                    broker.start()
                    with start_load(broker.bootstrap, source, schedule, start_s=0.0, first_s=5, last_s=SECONDS) as load:
                        load.wait()
                    child.stdin.write("back\n")  # type: ignore[union-attr]
                    assert tell("back")["records"] == 3 * RECORDS * SECONDS  # three words a line, all counted

                    status = tell("poisoned")["status"]
                    assert status.startswith("failed: given up after 3 failures")
                    assert child.wait(60) == 0
                finally:
                    child.kill()


def reader(child: "subprocess.Popen[str]", errors: Path) -> Callable[[str], dict[str, Any]]:
    """Return a function that reads the child's next line, which must be about this."""

    def tell(event: str) -> dict[str, Any]:
        line = child.stdout.readline() if child.stdout else ""
        if not line:
            child.kill()
        assert line, errors.read_text()[-3000:]
        told: dict[str, Any] = json.loads(line)
        assert told["event"] == event
        return told

    return tell
