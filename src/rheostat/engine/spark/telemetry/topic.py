"""Reads the end offsets of a Kafka topic from the broker: a progress event shows them only when a batch ends."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rheostat.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER_MS = 3000
"""Timeout of a request in ms: a broker that takes longer counts as down."""
FIRST_ANSWER_MS = 20_000
"""Timeout of the first request in ms: broker and driver may have just started."""
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"


class TopicEnds:
    """Asks a broker through the Kafka client in Spark's connector."""

    def __init__(self, spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> None:
        self.servers, self.topic = servers, topic
        self._jvm: Any = spark._jvm
        self._lock = threading.Lock()
        self._consumer: Any = None
        self._parts: Any = None
        self._properties = {
            "bootstrap.servers": servers,
            "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
            "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
            # Spark's options for a secured broker have the client's names with the prefix `kafka.`.
            **{key.removeprefix("kafka."): value for key, value in (options or {}).items() if key.startswith("kafka.")},
        }

    def partitions(self) -> int:
        """Return the number of the topic's partitions, which is the number of the source's tasks."""
        with self._lock:
            self._parts = None
            return len(self._partitions())

    def end(self) -> float:
        """Return the number of records ever written: the sum of the end offsets."""
        with self._lock:
            ends = self._ask(lambda consumer: consumer.endOffsets(self._partitions(), self._within(ANSWER_MS)))
            return float(sum(int(value) for value in ends.values()))

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None

    def _partitions(self) -> Any:
        """Return the topic's partitions as objects of the client."""
        if self._parts is None:
            infos = self._ask(lambda consumer: consumer.partitionsFor(self.topic, self._within(FIRST_ANSWER_MS)))
            if infos is None or not len(infos):
                raise EngineError(f"topic {self.topic!r} is not on {self.servers}: create it first")
            parts = self._jvm.java.util.ArrayList()
            for info in infos:
                parts.append(self._jvm.org.apache.kafka.common.TopicPartition(self.topic, info.partition()))
            self._parts = parts
        return self._parts

    def _within(self, milliseconds: int) -> Any:
        return self._jvm.java.time.Duration.ofMillis(milliseconds)

    def _ask(self, request: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return request(self._connect())
        except Py4JJavaError as error:
            name = str(error.java_exception.getClass().getSimpleName())
            if name == "UnknownTopicOrPartitionException":
                raise EngineError(f"topic {self.topic!r} is not on {self.servers}: create it first") from error
            raise EngineError(
                f"the Kafka broker at {self.servers} does not answer about topic {self.topic!r} ({name})"
            ) from error

    def _connect(self) -> Any:
        if self._consumer is None:
            properties = self._jvm.java.util.Properties()
            for key, value in self._properties.items():
                properties.setProperty(key, value)
            try:
                self._consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
            except TypeError as error:  # py4j takes a missing class for a package, which cannot be called
                raise EngineError(
                    f"Spark has no Kafka connector: name {CONNECTOR}:<your Spark version> in spark.jars.packages, or "
                    "its jars in spark.jars"
                ) from error
        return self._consumer
