"""A real broker for tests, and topics that no other test uses."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from confluent_kafka import TopicPartition

from rheostat.kafka import client as kafka_client
from rheostat.kafka.broker import Broker

_counter = count()


@contextmanager
def running_broker() -> Iterator[Broker]:
    """A broker with a temporary folder; the very first time, its jars are fetched, which is told on stderr."""
    with Broker(notify=lambda text: print(text, file=sys.stderr)) as broker:
        yield broker


def new_topic(broker: Broker, partitions: int, settings: Mapping[str, str] | None = None) -> str:
    """Create a topic with a name of its own."""
    name = f"topic-{next(_counter)}"
    broker.create(name, partitions, settings)
    return name


@dataclass(frozen=True)
class Record:
    """What a topic holds."""

    partition: int
    at_ms: int
    value: str
    key: str = ""


def records(broker: Broker, topic: str) -> list[Record]:
    """Everything that a topic holds now, each partition in its order."""
    ends = kafka_client.end_offsets(broker.bootstrap, topic)
    consumer = kafka_client.consumer(broker.bootstrap)
    consumer.assign([TopicPartition(topic, part, 0) for part in ends])
    found: list[Record] = []
    try:
        while len(found) < sum(ends.values()):
            for message in consumer.consume(1000, 0.1):
                assert message.error() is None, message.error()
                key, value = message.key() or b"", message.value() or b""
                place, at_ms = message.partition() or 0, message.timestamp()[1]
                found.append(Record(place, at_ms, value.decode(), key.decode()))
    finally:
        consumer.close()
    return sorted(found, key=lambda record: record.partition)


def wait_until_gone(pid: int) -> None:
    """Wait for the end of a process that is nobody's child any more."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = select.select([process], [], [], 60)[0]
    os.close(process)
    assert ended, f"process {pid} still runs"
