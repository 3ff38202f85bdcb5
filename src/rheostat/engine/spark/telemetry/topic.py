"""Reads the end offsets of Kafka topics from the brokers: a progress event shows them only when a batch ends.

There is one reader for both modes. It asks through Kafka's admin client, which joins no consumer group, and it takes
the client from the connector that Spark itself has loaded. Spark's own subscription object (`subscribe`,
`subscribePattern` or `assign`) names the partitions and adds delegation tokens. So new and deleted partitions are seen,
and every security setting of the query applies. With `isolation.level=read_committed` the end of a partition is its
last stable offset, as for Spark: records of open transactions do not count.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rheostat.engine.spark.telemetry.reflect import class_of, new_instance, read_field
from rheostat.errors import EngineError, first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER_MS = 3000
"""Timeout of a request in ms: a broker that takes longer counts as down."""
FIRST_ANSWER_MS = 20_000
"""Timeout of the first request in ms: broker and driver may have just started."""
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
NOT_OURS = ("group.id", "client.id")
"""Settings of the query's client that ours leaves out: it joins no group, and two clients of one name log warnings."""
RESULT = r"ListOffsetsResultInfo\(offset=(-?\d+)[^)]*\)"
"""The client's text for one end."""
FEW = 40
"""Partitions whose text is read as it is. That of more is cut in the JVM: py4j needs 40 ms more for 8 KB."""
_RESULT = re.compile(RESULT)
_END = re.compile(r"([A-Za-z0-9._-]+)-(\d+)=(-?\d+)")


class NoAnswer(EngineError):  # noqa: N818 - named after what happened
    """The brokers did not answer in time."""


class TopicEnds:
    """Asks the brokers of one subscription. One thread at a time may ask; `close` ends a request that waits."""

    def __init__(self, spark: SparkSession, strategy: Any, settings: Any) -> None:
        """Take a subscription and the settings of its client, both as objects of the JVM."""
        gateway: Any = spark.sparkContext._gateway
        self._gateway, self._jvm = gateway, gateway.jvm
        self._strategy = strategy
        self._settings = self._jvm.java.util.HashMap(settings)
        self.servers = str(settings.get("bootstrap.servers"))
        subscription = str(strategy.toString())
        single = re.fullmatch(r"Subscribe\[([A-Za-z0-9._-]+)\]", subscription)
        self.topic = f"topic {single[1]!r}" if single else subscription
        isolation = str(settings.get("isolation.level") or "read_uncommitted").upper()
        for key in NOT_OURS:
            self._settings.remove(key)
        # Kafka refuses a timeout of all tries below that of one.
        for key in ("request.timeout.ms", "default.api.timeout.ms"):
            self._settings.put(key, str(FIRST_ANSWER_MS))
        kafka = class_of(self._jvm, strategy, "org.apache.kafka.clients.admin.ListOffsetsOptions")
        level = class_of(self._jvm, strategy, "org.apache.kafka.common.IsolationLevel")
        self._latest = class_of(self._jvm, strategy, "org.apache.kafka.clients.admin.OffsetSpec$LatestSpec")
        self._options = new_instance(self._gateway, kafka, level.getField(isolation).get(None))
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._new_text = self._jvm.java.lang.StringBuilder
        self._result = self._jvm.java.util.regex.Pattern.compile(RESULT)
        self._lock = threading.Lock()
        self._admin: Any = None
        self._closed = self._answered = False
        self._partitions: Any = None
        self._specs: Any = None
        self._count = 0

    @classmethod
    def of_source(cls, spark: SparkSession, source: Any) -> TopicEnds:
        """Read the ends of a running source, with its own subscription and settings."""
        v2 = str(source.getClass().getSimpleName()) == "KafkaMicroBatchStream"
        reader = source.kafkaOffsetReader() if v2 else read_field(source, "kafkaReader")
        return cls(spark, read_field(reader, "consumerStrategy"), reader.driverKafkaParams())

    @classmethod
    def of_topic(
        cls, spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None
    ) -> TopicEnds:
        """Read the ends of one topic, with a source's options."""
        from py4j.protocol import Py4JJavaError

        jvm: Any = spark._jvm
        try:
            kind = class_of(jvm, None, "org.apache.spark.sql.kafka010.SubscribeStrategy")
        except Py4JJavaError as error:
            raise EngineError(
                f"Spark has no Kafka connector: name {CONNECTOR}:<your Spark version> in spark.jars.packages, or "
                "its jars in spark.jars"
            ) from error
        topics = jvm.PythonUtils.toSeq([topic])
        settings = jvm.java.util.HashMap()
        # Spark's options for a secured broker have the client's names with the prefix `kafka.`.
        for key, value in {"kafka.bootstrap.servers": servers, **(options or {})}.items():
            if key.startswith("kafka."):
                settings.put(key.removeprefix("kafka."), value)
        return cls(spark, new_instance(spark.sparkContext._gateway, kind, topics), settings)

    @property
    def name(self) -> str:
        """The brokers and the subscription, for messages."""
        return f"the Kafka broker at {self.servers}, asked about {self.topic},"

    def partitions(self) -> int:
        """Return the number of partitions, which is the number of the source's tasks."""
        self._refresh()
        return self._count

    def offsets(self, refresh: bool = True) -> dict[str, dict[str, int]]:
        """Return the end offset of every partition that exists now, in the form of progress events.

        Without `refresh` these are the partitions of the last refresh, which saves a request.
        """
        if refresh or self._specs is None:
            self._refresh()
        return self._ends()

    def close(self) -> None:
        """Close the connection, from any thread; a request that waits fails at once."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def _ends(self) -> dict[str, dict[str, int]]:
        timeout_ms = ANSWER_MS if self._answered else FIRST_ANSWER_MS
        ends = self._ask(lambda admin: admin.listOffsets(self._specs, self._options).all().get(timeout_ms, self._unit))
        self._answered = True
        if self._count <= FEW:
            answer = _RESULT.sub(r"\1", str(ends.toString()))
        else:
            answer = str(self._result.matcher(self._new_text().append(ends)).replaceAll("$1"))
        topics: dict[str, dict[str, int]] = {}
        for topic, partition, offset in _END.findall(answer):
            topics.setdefault(topic, {})[partition] = int(offset)
        if sum(map(len, topics.values())) != self._count:
            raise EngineError(f"{self.name} answers in an unknown way: {answer[:200]}")
        return topics

    def _refresh(self) -> None:
        """Ask for the partitions that exist now."""
        partitions = self._ask(lambda admin: self._strategy.assignedTopicPartitions(admin))
        # One call per partition is slow, and they seldom change.
        if self._partitions is None or not partitions.equals(self._partitions):
            latest = new_instance(self._gateway, self._latest)
            specs = self._jvm.java.util.HashMap()
            each = partitions.iterator()
            while each.hasNext():
                specs.put(each.next(), latest)
            self._partitions, self._specs, self._count = partitions, specs, int(specs.size())

    def _ask(self, request: Callable[[Any], Any]) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return request(self._connect())
        except Py4JJavaError as error:
            cause = error.java_exception
            while (deeper := cause.getCause()) is not None:
                cause = deeper
            kind = str(cause.getClass().getSimpleName())
            if kind == "UnknownTopicOrPartitionException":
                raise EngineError(f"{self.topic} is not on {self.servers}: create it first") from error
            if kind in ("TimeoutException", "DisconnectException"):
                raise NoAnswer(
                    f"the Kafka broker at {self.servers} does not answer about {self.topic} ({kind})"
                ) from error
            with self._lock:
                # Another client gets renewed credentials and tokens.
                self._disconnect()
            raise EngineError(f"{self.name} refuses: {kind}: {first_line(cause.getMessage())}") from error

    def _connect(self) -> Any:
        with self._lock:
            if self._closed:
                raise EngineError(f"the connection to {self.servers} is closed")
            if self._admin is None:
                self._admin = self._strategy.createAdmin(self._settings)
            return self._admin

    def _disconnect(self) -> None:
        if self._admin is not None:
            self._admin.close(self._jvm.java.time.Duration.ofMillis(0))
            self._admin = None
