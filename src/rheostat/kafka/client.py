"""Clients of a Kafka cluster beside Spark: whether it answers, whether it has a topic, where that topic ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rheostat.errors import EngineError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient

ANSWER_WITHIN_S = 10.0
"""Seconds for a cluster to answer."""
QUIET: Mapping[str, str | int] = {"log_level": 2}
"""Setting that silences the client, which else logs every refused connection while a broker restarts."""


def admin(bootstrap: str) -> AdminClient:
    """Return a client that lists and creates topics."""
    try:
        from confluent_kafka.admin import AdminClient
    except ImportError as error:
        raise _not_installed(error) from error
    return AdminClient({**QUIET, "bootstrap.servers": bootstrap})


def producer(bootstrap: str, settings: Mapping[str, str | int | bool]) -> Producer:
    """Return a client that writes records."""
    try:
        from confluent_kafka import Producer
    except ImportError as error:
        raise _not_installed(error) from error
    return Producer({**QUIET, "bootstrap.servers": bootstrap, **settings})


def consumer(bootstrap: str) -> Consumer:
    """Return a client that reads the partitions assigned to it; it joins no group and commits nothing."""
    try:
        from confluent_kafka import Consumer
    except ImportError as error:
        raise _not_installed(error) from error
    settings = {"group.id": "rheostat", "enable.auto.commit": False, "auto.offset.reset": "error"}
    return Consumer({**QUIET, "bootstrap.servers": bootstrap, **settings})


def partitions(bootstrap: str, topic: str, timeout_s: float = ANSWER_WITHIN_S) -> int:
    """Return the number of partitions of a topic; raises if the cluster does not answer or has no such topic."""
    client = admin(bootstrap)
    from confluent_kafka import KafkaException

    try:
        topics = client.list_topics(timeout=timeout_s).topics
    except KafkaException as error:
        raise EngineError(f"Kafka at {bootstrap} does not answer ({reason(error)}): is the broker up?") from error
    if topic not in topics:
        raise EngineError(f"Kafka at {bootstrap} has no topic {topic!r}: create it, or correct its name")
    return len(topics[topic].partitions)


def end_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    """Return partition -> the offset of its next record."""
    parts = partitions(bootstrap, topic)
    from confluent_kafka import KafkaException, TopicPartition

    client = consumer(bootstrap)
    try:
        ends = {
            part: client.get_watermark_offsets(TopicPartition(topic, part), ANSWER_WITHIN_S) for part in range(parts)
        }
    except KafkaException as error:
        raise EngineError(
            f"Kafka at {bootstrap} does not return the end offsets of {topic!r} ({reason(error)}): is the broker up?"
        ) from error
    finally:
        client.close()
    return {part: end[1] for part, end in ends.items()}


def reason(error: KafkaException) -> str:
    """Return Kafka's own message."""
    return str(error.args[0].str())


def _not_installed(error: ImportError) -> EngineError:
    return EngineError(f"Kafka's client is not installed ({error}): pip install 'rheostat[kafka]'")
