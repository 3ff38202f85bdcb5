"""A Kafka broker for development and tests: one process on loopback, ready in seconds, gone with this process.

    with Broker() as broker:
        broker.create("events", partitions=4)
        ...  # bootstrap.servers is broker.bootstrap

It retains every record whatever its timestamp, and creates no topic by itself: a misspelt topic is an error, as in
production.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from rheostat.engine.spark.session.embedded import LOCALHOST
from rheostat.engine.spark.session.ivy import Notify, ignore
from rheostat.engine.spark.session.java_process import SMALL, classpath, end_process, start_java
from rheostat.errors import EngineError
from rheostat.job.frozen import check_number
from rheostat.kafka import client as kafka_client
from rheostat.kafka.jars import broker_jars

CLUSTER_ID = "cmhlb3N0YXQtZGV2ZWxvcA"
"""The cluster id, sixteen bytes in base64 as Kafka requires: `rheostat-develop`."""
PORTS = range(20_000, 32_000)
"""Ports to listen on, below the range of outgoing connections: while the broker is down, a client that reconnects to a
port of that range can end up connected to itself, and the broker does not get its port back."""
HEAP = "-Xmx512m"
READY_WITHIN_S = 90.0
"""Seconds for a broker or a topic to become ready."""
STOP_WITHIN_S = 15.0
"""Seconds for an orderly shutdown, before the process is killed."""
POLL_S = 0.05
"""Seconds between two checks whether the broker is ready."""
APPEND_TIME: Mapping[str, str] = {"message.timestamp.type": "LogAppendTime"}
"""Topic setting under which a record's timestamp is its arrival by the broker's clock."""


class Broker:
    """A broker on 127.0.0.1. It runs inside a `with` block, or from `start` to `close`."""

    def __init__(self, folder: Path | None = None, *, port: int | None = None, notify: Notify = ignore) -> None:
        check_number("port", port, least=1, most=65_535)
        free, self._controller_port = _free_ports(2)
        self._port = free if port is None else port
        self._jars = broker_jars(notify)
        self._temporary = folder is None
        self._folder = Path(tempfile.mkdtemp(prefix="rheostat-kafka-")) if folder is None else folder.absolute()
        self._child: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        """The value of bootstrap.servers; a restart does not change it."""
        return f"{LOCALHOST}:{self._port}"

    @property
    def log(self) -> Path:
        """The broker's log file."""
        return self._folder / "broker.log"

    @property
    def pid(self) -> int | None:
        """The process id; None while the broker is down."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    def __enter__(self) -> Broker:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the broker with its existing data, and wait until it serves all of its topics."""
        if self.pid is not None:
            return
        self._end(0.0)
        _check_free(self._port)
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = self._folder / "server.properties"
        settings.write_text(_properties(self._port, self._controller_port, self._folder / "data"))
        if not (self._folder / "data" / "meta.properties").exists():
            self._format(settings)
        self._child = self._java("kafka.Kafka", str(settings))
        self._wait()

    def create(self, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
        """Create a topic, and wait until it has leaders."""
        client = kafka_client.admin(self.bootstrap)
        from confluent_kafka import KafkaException
        from confluent_kafka.cimpl import NewTopic

        check_number("partitions", partitions, least=1)
        new_topic = NewTopic(topic, partitions, 1, config=dict(settings or {}))
        try:
            client.create_topics([new_topic], operation_timeout=READY_WITHIN_S)[topic].result()
        except KafkaException as error:
            why = kafka_client.reason(error)
            raise EngineError(f"Kafka refuses topic {topic!r} with {partitions} partitions: {why}") from error
        self._await_leaders(time.monotonic() + READY_WITHIN_S)

    def stop(self) -> None:
        """Shut the broker down in order; kill it if that takes too long."""
        self._end(STOP_WITHIN_S)

    def kill(self) -> None:
        """Kill the broker, as a crash does; `start` brings it back with its data."""
        self._end(0.0)

    def close(self) -> None:
        """Shut the broker down, and delete its folder if that is a temporary one."""
        self._end(0.0 if self._temporary else STOP_WITHIN_S)
        if self._temporary:
            shutil.rmtree(self._folder, ignore_errors=True)

    def last_error(self) -> str:
        """Return the last error in the log, or its last line."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        bad = [line for line in lines[-200:] if "ERROR" in line or "Exception" in line]
        where = "" if self._temporary else f" (see {self.log})"
        return f"{(bad or lines or ['its log is empty'])[-1].strip()[:400]}{where}"

    def _end(self, patience_s: float) -> None:
        if self._child is not None:
            end_process(self._child, patience_s)
            self._child = None

    def _java(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        with self.log.open("a") as log:
            return start_java([*SMALL, HEAP, "-cp", classpath(self._jars), program, *arguments], log)

    def _format(self, settings: Path) -> None:
        child = self._java("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(settings))
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(READY_WITHIN_S)
        if end_process(child) != 0:
            raise EngineError(f"the broker cannot store its data in {self._folder}: {self.last_error()}")

    def _wait(self) -> None:
        """Wait until the broker listens, and then until every partition has a leader."""
        until_s = time.monotonic() + READY_WITHIN_S
        while True:
            # A bare connection first: Kafka's client logs every refused one.
            with contextlib.suppress(OSError), socket.create_connection((LOCALHOST, self._port), 1.0):
                break
            self._pause(until_s)
        self._await_leaders(until_s)

    def _await_leaders(self, until_s: float) -> None:
        client = kafka_client.admin(self.bootstrap)
        from confluent_kafka import KafkaException

        while True:
            with contextlib.suppress(KafkaException):
                topics = client.list_topics(timeout=5.0).topics.values()
                if all(part.leader >= 0 for topic in topics for part in topic.partitions.values()):
                    return
            self._pause(until_s)

    def _pause(self, until_s: float) -> None:
        """Wait a moment; raise if the broker is dead or the deadline has passed."""
        if self.pid is None:
            raise EngineError(f"the broker's process ended: {self.last_error()}")
        if time.monotonic() > until_s:
            raise EngineError(f"the broker was not ready within {READY_WITHIN_S:.0f} s: {self.last_error()}")
        time.sleep(POLL_S)


def _free_ports(number: int) -> list[int]:
    """Return free ports. They are not reserved, but few programs choose from this range."""
    free: list[int] = []
    # Not the global generator: if that is seeded, every process chooses the same ports.
    for port in random.SystemRandom().sample(PORTS, 100):
        with contextlib.suppress(EngineError):
            _check_free(port)
            free.append(port)
        if len(free) == number:
            return free
    raise EngineError(
        f"of 100 ports of {LOCALHOST} between {PORTS.start} and {PORTS.stop} only {len(free)} are free, and {number} "
        "are needed: end other programs"
    )


def _check_free(port: int) -> None:
    with socket.socket() as trial:
        # As Kafka does: connections of a dead broker do not block the port.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((LOCALHOST, port))
        except OSError as error:
            raise EngineError(f"port {port} of {LOCALHOST} is not free ({error}): choose another port") from error


def _properties(port: int, controller_port: int, data: Path) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{LOCALHOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{LOCALHOST}:{port},CONTROLLER://{LOCALHOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOCALHOST}:{port}",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        # One broker holds one replica.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        # Recorded event times may be years away from now.
        "log.retention.ms": -1,
        "log.message.timestamp.after.max.ms": 2**63 - 1,
        # A killed broker may come back after its session has timed out; the default is 9 s.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        "group.initial.rebalance.delay.ms": 0,
        # 128 MB of the heap by default, for compacted topics.
        "log.cleaner.dedupe.buffer.size": 8 * 2**20,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())
