"""What is asked of a Kafka cluster directly, not through Spark: is it there, has it this topic, where does it end?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rheostat.errors import EngineError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient

ANSWER_WITHIN_S = 10.0
QUIET: Mapping[str, str | int] = {"log_level": 2}
"""Kafka's client would write a line to stderr for each connection that is refused while a broker restarts."""


def admin(bootstrap: str) -> AdminClient:
    """Return a client that asks and creates."""
    try:
        from confluent_kafka.admin import AdminClient
    except ImportError as error:
        raise _not_installed(error) from error
    return AdminClient({**QUIET, "bootstrap.servers": bootstrap})


def producer(bootstrap: str, settings: Mapping[str, str | int | bool]) -> Producer:
    """Return a client that writes."""
    try:
        from confluent_kafka import Producer
    except ImportError as error:
        raise _not_installed(error) from error
    return Producer({**QUIET, "bootstrap.servers": bootstrap, **settings})


def consumer(bootstrap: str) -> Consumer:
    """Return a client that reads what it is assigned to; it takes part in no group and commits nothing."""
    try:
        from confluent_kafka import Consumer
    except ImportError as error:
        raise _not_installed(error) from error
    settings = {"group.id": "rheostat", "enable.auto.commit": False, "auto.offset.reset": "error"}
    return Consumer({**QUIET, "bootstrap.servers": bootstrap, **settings})


def partitions(bootstrap: str, topic: str, timeout_s: float = ANSWER_WITHIN_S) -> int:
    """Return how many partitions a topic has; say so where the cluster does not answer or has no such topic."""
    client = admin(bootstrap)
    from confluent_kafka import KafkaException

    try:
        found = client.list_topics(timeout=timeout_s).topics
    except KafkaException as error:
        raise EngineError(f"Kafka at {bootstrap} does not answer ({reason(error)}): is the broker up?") from error
    if topic not in found:
        raise EngineError(f"Kafka at {bootstrap} has no topic {topic!r}: create it, or correct its name")
    return len(found[topic].partitions)


def end_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    """Return, for each partition of a topic, the offset that its next record will have."""
    parts = partitions(bootstrap, topic)
    from confluent_kafka import KafkaException, TopicPartition

    client = consumer(bootstrap)
    try:
        ends = {
            part: client.get_watermark_offsets(TopicPartition(topic, part), ANSWER_WITHIN_S) for part in range(parts)
        }
    except KafkaException as error:
        raise EngineError(f"Kafka at {bootstrap} does not say where {topic!r} ends ({reason(error)})") from error
    finally:
        client.close()
    return {part: end[1] for part, end in ends.items()}


def reason(error: KafkaException) -> str:
    """Return what Kafka said, in its words."""
    return str(error.args[0].str())


def _not_installed(error: ImportError) -> EngineError:
    return EngineError(f"{error}: Kafka's client is not installed; pip install 'rheostat[kafka]'")
