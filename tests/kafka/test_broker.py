"""A broker that is there, comes back with its data, says what is wrong, and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_world import new_topic, records, wait_until_gone
from project import ROOT

from rheostat.errors import EngineError, InvalidValue
from rheostat.kafka import client as kafka_client
from rheostat.kafka.broker import Broker

ORPHANED = """
import os, signal, threading
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import start_load
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule

broker = Broker()
starter = threading.Thread(target=broker.start)  # the end of this thread must not be the end of the broker
starter.start()
starter.join()
broker.create("events", 1)
load = start_load(broker.bootstrap, "events", Schedule(Constant(1.0), 100.0, 60))
print(broker.pid, load.pid, broker.log.parent, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def write(broker: Broker, topic: str, *values: str) -> None:
    producer = kafka_client.producer(broker.bootstrap, {})
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(60) == 0


def test_a_killed_broker_comes_back_where_it_was_with_its_data(broker: Broker) -> None:
    topic, bootstrap = new_topic(broker, 3), broker.bootstrap
    write(broker, topic, "one", "two")
    broker.kill()
    assert broker.pid is None
    with pytest.raises(EngineError, match=f"Kafka at {bootstrap} does not answer .*is the broker up"):
        kafka_client.partitions(bootstrap, topic, timeout_s=0.5)
    broker.start()
    assert broker.bootstrap == bootstrap
    assert kafka_client.partitions(bootstrap, topic) == 3
    write(broker, topic, "three")
    assert [record.value for record in records(broker, topic)] == ["one", "two", "three"]
    assert kafka_client.end_offsets(bootstrap, topic) == {0: 3, 1: 0, 2: 0}


def test_topics_are_created_only_on_purpose_and_once(broker: Broker) -> None:
    with pytest.raises(EngineError, match=r"has no topic 'misspelt': create it"):
        kafka_client.partitions(broker.bootstrap, "misspelt")
    topic = new_topic(broker, 1)
    with pytest.raises(EngineError, match=rf"refuses topic '{topic}' with 2 partitions: .*already exists"):
        broker.create(topic, 2)
    with pytest.raises(InvalidValue, match="partitions"):
        broker.create("none", 0)


def test_what_keeps_it_from_starting_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=f"port {port} of 127.0.0.1 is not free .*choose another"):
            Broker(tmp_path / "broker", port=port).start()
    with pytest.raises(InvalidValue, match="port"):
        Broker(port=70_000)
    (tmp_path / "broker" / "data").mkdir(parents=True)
    (tmp_path / "broker" / "data" / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=7\n")
    with (
        pytest.raises(EngineError, match=r"the broker's process ended: .*node.id.*see .*broker\.log"),
        Broker(tmp_path / "broker"),
    ):
        pass


def test_it_ends_with_the_process_that_started_it() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHANED], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    broker, load, folder = done.stdout.split()
    wait_until_gone(int(broker))
    wait_until_gone(int(load))
    subprocess.run(["rm", "-r", folder], check=True)


def test_the_command_runs_one_until_it_is_told_to_end(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "rheostat", "kafka", "run", "--port", str(port), "--topic", "clicks:3"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == f"bootstrap.servers is 127.0.0.1:{port}; Ctrl-C ends the broker\n"
            assert kafka_client.partitions(f"127.0.0.1:{port}", "clicks") == 3
        finally:
            # Ctrl-C does the same, but a test run in the background would have it ignored.
            child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_page_s_example_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "realtime.md").read_text()
    code = page.partition("## Kafka for development")[2].partition("```python\n")[2].partition("```")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "first=0, count=1000, delivered=1000" in done.stdout
    assert done.stdout.endswith("[]\n")
