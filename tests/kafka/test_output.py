"""Reading an output topic: all of it once, or as it comes."""

import json

import pytest
from kafka_world import new_topic

from rheostat.errors import EngineError
from rheostat.kafka import client as kafka_client
from rheostat.kafka.broker import APPEND_TIME, Broker
from rheostat.kafka.output import Follower, Output, last_values, read


def parse(key: bytes | None, value: bytes | None) -> tuple[str, int, int]:
    told = json.loads(value or b"")
    return (key or b"").decode(), told["count"], told["event_ms"]


def write(broker: Broker, topic: str, counts: dict[str, int]) -> None:
    producer = kafka_client.producer(broker.bootstrap, {})
    for key, count in counts.items():
        producer.produce(topic, json.dumps({"count": count, "event_ms": 1000}).encode(), key.encode())
    assert producer.flush(60) == 0


def test_a_topic_is_read_from_any_offset_to_its_end(broker: Broker) -> None:
    topic = new_topic(broker, 3, APPEND_TIME)
    write(broker, topic, {"a": 1, "b": 1, "c": 1})
    start = kafka_client.end_offsets(broker.bootstrap, topic)
    write(broker, topic, {"a": 2, "b": 2})
    everything = read(broker.bootstrap, topic, parse)
    assert len(everything) == 5
    assert last_values(everything) == {"a": 2, "b": 2, "c": 1}
    assert {(one.key, one.number) for one in read(broker.bootstrap, topic, parse, start)} == {("a", 2), ("b", 2)}
    assert all(one.latency_ms == one.at_ms - 1000 > 1_000_000_000_000 for one in everything)


def test_a_follower_brings_what_comes_also_after_a_broker_s_restart(broker: Broker) -> None:
    topic = new_topic(broker, 2, APPEND_TIME)
    write(broker, topic, {"before": 1})
    with Follower(broker.bootstrap, topic, parse) as follower:
        write(broker, topic, {"a": 1})
        assert [one.key for one in drained(follower, 1)] == ["a"]
        broker.kill()
        broker.start()
        write(broker, topic, {"b": 1, "c": 1})
        assert sorted(one.key for one in drained(follower, 2)) == ["b", "c"]


def drained(follower: Follower, number: int) -> list[Output]:
    found: list[Output] = []
    while len(found) < number:
        came = follower.drain(patience_s=60)
        assert came, f"nothing more came after {found}"
        found += came
    return found


def test_what_cannot_be_understood_is_named(broker: Broker) -> None:
    topic = new_topic(broker, 1, APPEND_TIME)
    write(broker, topic, {"a": 1})
    producer = kafka_client.producer(broker.bootstrap, {})
    producer.produce(topic, b"poison")
    assert producer.flush(60) == 0
    with pytest.raises(EngineError, match=rf"record 1 of partition 0 of topic '{topic}' cannot be .*poison"):
        read(broker.bootstrap, topic, parse)
    with (
        Follower(broker.bootstrap, topic, parse, {0: 1}) as follower,
        pytest.raises(EngineError, match="poison"),
    ):
        follower.drain(patience_s=60)


def test_times_must_be_the_broker_s(broker: Broker) -> None:
    topic = new_topic(broker, 1)
    write(broker, topic, {"a": 1})
    with pytest.raises(EngineError, match=r"message\.timestamp\.type=LogAppendTime"):
        read(broker.bootstrap, topic, parse)
    with pytest.raises(EngineError, match="has no topic 'misspelt'"):
        read(broker.bootstrap, "misspelt", parse)
