"""Running sources say what waits while a batch runs: Kafka, files, rate, memory; and a source that does not answer."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.cimpl import NewPartitions
from kafka_world import new_topic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from spark_jars import add_jars

from rheostat.clock import WallClock
from rheostat.engine.batches.present import SourceEnd
from rheostat.engine.spark.telemetry import folder
from rheostat.engine.spark.telemetry.ends import SAMPLE_S, SourceEnds
from rheostat.engine.spark.telemetry.readers import find_readers
from rheostat.engine.spark.telemetry.topic import FEW, TopicEnds
from rheostat.errors import EngineError
from rheostat.kafka import client as kafka_client
from rheostat.kafka.broker import Broker
from rheostat.kafka.jars import connector_jars

pytestmark = pytest.mark.cluster

DEADLINE_S = 60.0
V1 = "spark.sql.streaming.disabledV2MicroBatchReaders"
BY_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


@pytest.fixture(scope="module")
def kafka_spark(spark: SparkSession) -> SparkSession:
    """The session of all tests, with Kafka's connector."""
    add_jars(spark, connector_jars(), {})
    return spark


class LongBatch:
    """A sink whose batch lasts until it is released."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self, frame: DataFrame, number: int) -> None:
        self.begun.set()
        self.released.wait(DEADLINE_S)


@contextmanager
def in_a_batch(frame: DataFrame) -> Iterator[StreamingQuery]:
    """Run a query that is in the middle of its first batch."""
    batch = LongBatch()
    query = frame.writeStream.foreachBatch(batch).start()
    try:
        assert batch.begun.wait(DEADLINE_S), query.exception()
        yield query
    finally:
        batch.released.set()
        query.stop()


@contextmanager
def ends_of(spark: SparkSession, query: StreamingQuery, counter: object = None) -> Iterator[SourceEnds]:
    clock = WallClock()
    ends = SourceEnds(lambda: find_readers(spark, query, clock, counter), clock)
    try:
        yield ends
    finally:
        ends.close()


def until(ends: SourceEnds, enough: Callable[[tuple[SourceEnd, ...]], Any]) -> tuple[SourceEnd, ...]:
    """Read until the ends are as expected; no read takes long."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        begun_s = time.monotonic()
        read = ends.read()
        assert time.monotonic() - begun_s < 5.0
        if read and enough(read):
            return read
        assert time.monotonic() < deadline_s, read
        time.sleep(0.05)


def write(broker: Broker, topic: str, count: int, partition: int = 0) -> None:
    producer = kafka_client.producer(broker.bootstrap, {})
    for number in range(count):
        producer.produce(topic, str(number), partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def consumer_groups(broker: Broker) -> set[str]:
    admin = kafka_client.admin(broker.bootstrap)  # a client that is forgotten meanwhile never answers
    listed = admin.list_consumer_groups().result(DEADLINE_S)
    return {group.group_id for group in listed.valid}


def kafka(spark: SparkSession, broker: Broker, **options: str) -> DataFrame:
    named = {"kafka.bootstrap.servers": broker.bootstrap, "startingOffsets": "earliest", **options}
    return spark.readStream.format("kafka").options(**named).load().selectExpr("cast(value as string) as value")


def put(path: Path, name: str) -> None:
    (path / f".{name}").write_text("a\nb\n")
    (path / f".{name}").rename(path / name)  # atomic, as Spark requires


@pytest.mark.parametrize("conf", [{}, {V1: "org.apache.spark.sql.kafka010.KafkaSourceProvider", BY_CONSUMER: "true"}])
def test_kafka_grows_while_a_batch_runs(kafka_spark: SparkSession, broker: Broker, conf: dict[str, str]) -> None:
    topic = new_topic(broker, 2)
    write(broker, topic, 10)
    for key, value in conf.items():
        kafka_spark.conf.set(key, value)
    admin = kafka_client.admin(broker.bootstrap)
    try:
        frame = kafka(kafka_spark, broker, subscribe=topic)
        with in_a_batch(frame) as query, ends_of(kafka_spark, query) as ends:
            before_s, groups = time.time(), consumer_groups(broker)
            end = until(ends, lambda read: read[0].offset)[0]
            assert end.offset == {topic: {"0": 10, "1": 0}}
            assert before_s <= end.at_s <= time.time()
            write(broker, topic, 7, partition=1)
            until(ends, lambda read: read[0].offset == {topic: {"0": 10, "1": 7}} and not read[0].problem)
            admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
            until(ends, lambda read: read[0].offset == {topic: {"0": 10, "1": 7, "2": 0}})
            admin.create_partitions([NewPartitions(topic, FEW + 1)])[topic].result()  # another way to read the answer
            many = {"0": 10, "1": 7} | {str(number): 0 for number in range(2, FEW + 1)}
            until(ends, lambda read: read[0].offset == {topic: many})
            admin.delete_topics([topic])[topic].result()
            missing = f"topic '{topic}' is not on {broker.bootstrap}: create it first"
            gone = until(ends, lambda read: read[0].problem == missing)[0]
            assert gone.offset == {topic: many}
            assert gone.at_s < time.time()
            assert consumer_groups(broker) == groups
    finally:
        for key in conf:
            kafka_spark.conf.unset(key)


def test_a_topic_is_counted_between_two_steps_as_long_as_there_are_steps(
    kafka_spark: SparkSession, broker: Broker
) -> None:
    topic = new_topic(broker, 1)
    write(broker, topic, 1)
    with in_a_batch(kafka(kafka_spark, broker, subscribe=topic)) as query, ends_of(kafka_spark, query) as ends:
        until(ends, lambda read: read[0].offset)
        deadline_s, samples = time.monotonic() + DEADLINE_S, list[tuple[SourceEnd, ...]]()
        while not samples:
            assert time.monotonic() < deadline_s
            time.sleep(2.5 * SAMPLE_S)
            ends.read()
            samples = list(ends.samples)
        assert all(sample[0].offset == {topic: {"0": 1}} for sample in samples)
        moments_s = [sample[0].at_s for sample in samples]
        assert moments_s == sorted(set(moments_s))
        assert ends.read()[0].at_s > moments_s[-1]
        ends.read()  # two steps in no time: nothing is asked after that
        ends.samples.clear()
        time.sleep(2.5 * SAMPLE_S)
        assert not ends.samples


def test_a_broker_that_stops_is_a_problem_until_it_is_back(kafka_spark: SparkSession, broker: Broker) -> None:
    topic = new_topic(broker, 1)
    write(broker, topic, 1)
    query = kafka(kafka_spark, broker, subscribe=topic)
    with in_a_batch(query) as running, ends_of(kafka_spark, running) as ends:
        fresh = until(ends, lambda read: read[0].offset)[0]
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            late = until(ends, lambda read: read[0].problem)[0]
            assert f"the Kafka broker at {broker.bootstrap}, asked about topic '{topic}'" in late.problem
            assert "has not answered for" in late.problem
            assert late.offset == {topic: {"0": 1}}
            # Beyond the timeout of one request it is still the same problem.
            until(ends, lambda read: float(read[0].problem.split()[-2]) > 3.5)
        finally:
            broker.kill()
            broker.start()
        write(broker, topic, 1)
        back = until(ends, lambda read: not read[0].problem and read[0].offset == {topic: {"0": 2}})[0]
        assert back.at_s > fresh.at_s


def test_closing_does_not_wait_for_a_broker(kafka_spark: SparkSession) -> None:
    topics = TopicEnds.of_topic(kafka_spark, "127.0.0.1:1", "lines")
    failures: list[Exception] = []

    def ask() -> None:
        try:
            topics.offsets()
        except EngineError as error:
            failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.5)
    topics.close()
    asking.join(5.0)
    assert failures


def test_the_clients_settings_are_the_querys_own(kafka_spark: SparkSession, broker: Broker) -> None:
    topic = new_topic(broker, 1)
    write(broker, topic, 10)
    frame = kafka(kafka_spark, broker, subscribe=topic, **{"kafka.isolation.level": "read_committed"})
    with in_a_batch(frame) as query, ends_of(kafka_spark, query) as ends:
        producer = kafka_client.producer(broker.bootstrap, {"transactional.id": "open"})
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        producer.produce(topic, "open")
        assert producer.flush(DEADLINE_S) == 0
        # An open transaction does not count; the marker at its end has an offset of its own.
        assert until(ends, lambda read: read[0].offset)[0].offset == {topic: {"0": 10}}
        producer.commit_transaction(DEADLINE_S)
        until(ends, lambda read: read[0].offset == {topic: {"0": 12}})


def test_refused_credentials_are_named_without_the_password(kafka_spark: SparkSession, broker: Broker) -> None:
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="hunter2";'
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login,
    }
    topics = TopicEnds.of_topic(kafka_spark, broker.bootstrap, new_topic(broker, 1), options)
    try:
        # This broker has no logins.
        with pytest.raises(EngineError, match=r"refuses: IllegalSaslStateException") as refused:
            topics.offsets()
    finally:
        topics.close()
    assert "hunter2" not in str(refused.value)


def test_every_source_of_a_query_has_its_end_in_the_order_of_progress(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    spark, topic = kafka_spark, new_topic(broker, 2)
    write(broker, topic, 3)
    for number in range(5):
        put(tmp_path, f"taken-{number}")
    frames = [
        kafka(spark, broker, subscribePattern=f"{topic[:-1]}[{topic[-1]}]"),
        spark.readStream.format("rate").option("rowsPerSecond", 5).load().selectExpr("cast(value as string) as value"),
        kafka(spark, broker, assign=f'{{"{topic}": [0]}}'),
        spark.readStream.format("text").option("maxFilesPerTrigger", "2").load(str(tmp_path)),
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 4)
        .load()
        .selectExpr("cast(value as string) as value"),
    ]
    union = frames[0]
    for frame in frames[1:]:
        union = union.union(frame)
    with in_a_batch(union) as query, ends_of(spark, query) as ends:
        put(tmp_path, "waiting")
        read = until(ends, lambda read: not any(end.problem for end in read) and read[3].files)
        pattern, rate, assigned, files, virtual = read
        assert pattern.offset == {topic: {"0": 3, "1": 0}}
        assert assigned.offset == {topic: {"0": 3}}
        assert files.waiting is not None
        assert (files.files, files.waiting.files, files.waiting.versions) == (6, 4, None)
        assert files.waiting.bytes == files.offset["waiting"]
        assert files.offset["waiting"] == 2 * files.offset["taken"] > 0
        assert virtual.offset["offset"] == 4
        assert 0 <= rate.offset < DEADLINE_S
        until(ends, lambda read: read[1].offset > rate.offset)


def test_a_memory_stream_shows_its_last_offset(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    package = jvm.org.apache.spark.sql.execution.streaming.runtime
    stream = package.MemoryStream.apply(jvm.org.apache.spark.sql.Encoders.STRING(), spark._jsparkSession)
    rows = jvm.PythonUtils.toSeq(["a", "b"])
    stream.addData(rows)
    with in_a_batch(DataFrame(stream.toDF(), spark)) as query, ends_of(spark, query) as ends:
        assert until(ends, lambda read: read[0].offset is not None)[0].offset == 0
        stream.addData(rows)
        until(ends, lambda read: read[0].offset == 1)


class Latest:
    """A counter of the user's own that knows the end of its source."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def latest(self) -> Any:
        if not self.answers:
            raise ConnectionError("no route, password=hunter2")
        return self.answers[-1]


def test_another_source_is_asked_through_its_counter(spark: SparkSession) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
        query = lines.writeStream.format("noop").start()
        connection = server.accept()[0]
        counter = Latest()
        try:
            with ends_of(spark, query) as ends:
                assert until(ends, lambda read: True)[0].offset is None
            with ends_of(spark, query, counter) as ends:
                failed = until(ends, lambda read: "ConnectionError: no route" in read[0].problem)[0]
                assert "hunter2" not in failed.problem
                counter.answers.append(7)
                assert until(ends, lambda read: not read[0].problem)[0].offset == 7
        finally:
            query.stop()
            connection.close()


def test_a_large_folder_is_not_listed(spark: SparkSession, tmp_path: Path) -> None:
    tmp_path = tmp_path / "50%25 of #1"
    tmp_path.mkdir()
    for number in range(6):
        put(tmp_path, f"file-{number}")
    with in_a_batch(spark.readStream.format("text").load(str(tmp_path))) as query:
        source = query._jsq.streamingQuery().sources().apply(0)
        small = folder.FolderEnds(spark, source, most_files=5)
        with pytest.raises(EngineError, match="has more than 5 files, and is not listed"):
            small.count()
        # As on a store that lists in pages.
        assert small._count_remote(f"file:{tmp_path}") == (6, 0)
        assert folder.FolderEnds(spark, source)._count_remote(f"file:{tmp_path}") == (6, 1)
        for number in range(folder.MOST_FOLDERS):
            (tmp_path / f"day-{number}").mkdir()
        with ends_of(spark, query) as ends:
            refused = until(ends, lambda read: "more than 32 folders" in read[0].problem)[0]
            assert refused.files is None
            # A listing pauses in proportion to its duration, and the reason stays.
            assert all(ends.read()[0].problem for _ in range(3))


def test_a_source_with_other_internals_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "LISTING", "listEverything")
    put(tmp_path, "one")
    with in_a_batch(spark.readStream.format("text").load(str(tmp_path))) as query, ends_of(spark, query) as ends:
        missing = "FileStreamSource has no method listEverything"
        unknown = until(ends, lambda read: missing in read[0].problem)[0]
    assert unknown.files is None
