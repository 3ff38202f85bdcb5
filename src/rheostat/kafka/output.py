"""The results of a job in a Kafka topic: latencies, last values, repetitions and silences.

A record's timestamp must be the broker's (`message.timestamp.type=LogAppendTime`): the moment at which consumers can
read the result. The event time is a field of the record, which the caller's function parses. Only `read` and `Follower`
talk to Kafka; the rest is computation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING

from rheostat.errors import EngineError, InvalidValue
from rheostat.kafka import client as kafka_client

if TYPE_CHECKING:
    from confluent_kafka import Consumer

Parse = Callable[[bytes | None, bytes | None], tuple[str, int, int]]
"""Parses a record's key and value into (key, number, event time in ms)."""
SILENT_WITHIN_S = 30.0
"""Seconds without a record before the end offset after which a topic counts as unreadable."""
AFTER_CHANGE_S = 30.0
"""Seconds after a change in which its downtime is searched."""
BATCH_RECORDS = 1000
"""Most records of one poll."""
POLL_S = 0.1
"""Seconds that a poll waits for records."""
APPEND_TIME_TYPE = 2
"""Kafka's timestamp type for a time that the broker set."""


@dataclass(frozen=True, slots=True)
class Output:
    """One record of an output topic."""

    key: str
    number: int
    """The job's result for the key, such as a running count."""
    event_ms: int
    """When the newest input of this result was due."""
    at_ms: int
    """When the result arrived at the broker."""
    partition: int = 0
    offset: int = 0

    @property
    def latency_ms(self) -> int:
        """Milliseconds from the event to its result."""
        return self.at_ms - self.event_ms


@dataclass(frozen=True, slots=True)
class Latency:
    """End-to-end latency of some outputs."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    worst_ms: float


@dataclass(frozen=True, slots=True)
class Silence:
    """A span without output, from one output to the next."""

    start_ms: int
    end_ms: int
    over: bool
    """Whether an output ended it; if not, it lasted until the end of the search."""

    @property
    def length_ms(self) -> int:
        """Its length in milliseconds."""
        return self.end_ms - self.start_ms


def latency(outputs: Iterable[Output]) -> Latency | None:
    """Return the quantiles of the outputs' latencies; None without outputs."""
    import numpy as np

    waits = np.array([output.latency_ms for output in outputs], dtype=float)
    if not waits.size:
        return None
    p50, p95, p99 = np.quantile(waits, (0.5, 0.95, 0.99))
    return Latency(waits.size, float(p50), float(p95), float(p99), float(waits.max()))


def between(outputs: Iterable[Output], first_ms: int, last_ms: int) -> list[Output]:
    """Return the outputs that arrived from `first_ms` up to `last_ms`."""
    return [output for output in outputs if first_ms <= output.at_ms < last_ms]


def last_values(outputs: Iterable[Output]) -> dict[str, int]:
    """Return each key's last number, by arrival and then by offset; a key has one partition."""
    last: dict[str, Output] = {}
    for output in outputs:
        before = last.get(output.key)
        if before is None or (output.at_ms, output.offset) > (before.at_ms, before.offset):
            last[output.key] = output
    return {key: output.number for key, output in last.items()}


def repetitions(outputs: Iterable[Output]) -> int:
    """Count the outputs that repeat an earlier number of their key, as an at-least-once sink writes them."""
    numbers = [(output.key, output.number) for output in outputs]
    return len(numbers) - len(set(numbers))


def largest_silence(outputs: Iterable[Output], first_ms: int, last_ms: int) -> Silence:
    """Return the longest span without output that overlaps the span from `first_ms` to `last_ms`.

    Around a change, this is its downtime. Pass all outputs: the silence may begin before `first_ms` and end after
    `last_ms`.
    """
    if last_ms < first_ms:
        raise InvalidValue(f"last_ms must be at least first_ms={first_ms}, not {last_ms}")
    times = sorted({output.at_ms for output in outputs})
    if not times:
        return Silence(first_ms, last_ms, over=False)
    gaps = [
        Silence(sooner, later, over=True)
        for sooner, later in pairwise(times)
        if sooner <= last_ms and later >= first_ms
    ]
    if times[0] > first_ms:
        # The output before the first one is unknown: the silence counts from the start of the search.
        gaps.append(Silence(first_ms, times[0], over=True))
    if times[-1] < last_ms:
        gaps.append(Silence(times[-1], last_ms, over=False))
    return max(gaps, key=lambda gap: gap.length_ms) if gaps else Silence(first_ms, last_ms, over=True)


def downtimes_s(outputs: Sequence[Output], changes_s: Sequence[float], end_s: float) -> tuple[float, ...]:
    """Return the longest silence after each of these changes, up to the next change or the end of the load."""
    ends_s = (*changes_s, end_s)[1:]
    return tuple(
        largest_silence(outputs, int(at_s * 1e3), int(max(at_s, min(next_s, at_s + AFTER_CHANGE_S)) * 1e3)).length_ms
        / 1e3
        for at_s, next_s in zip(changes_s, ends_s, strict=True)
    )


def read(bootstrap: str, topic: str, parse: Parse, start: Mapping[int, int] | None = None) -> list[Output]:
    """Return the present records of a topic, from these offsets on, or from the beginning."""
    ends = kafka_client.end_offsets(bootstrap, topic)
    reader = _Reader(bootstrap, topic, parse, {part: (start or {}).get(part, 0) for part in ends})
    outputs: list[Output] = []
    silent_from_s = time.monotonic()
    try:
        while any(reader.next[part] < end for part, end in ends.items()):
            if batch := reader.poll():
                silent_from_s = time.monotonic()
                outputs += batch
            elif time.monotonic() - silent_from_s > SILENT_WITHIN_S:
                raise EngineError(
                    f"no record of topic {topic!r} arrived for {SILENT_WITHIN_S:.0f} s: is the broker up?"
                )
    finally:
        reader.close()
    return [output for output in outputs if output.offset < ends[output.partition]]


class Follower:
    """Reads a topic in a thread of its own, from these offsets on, or from its present end."""

    def __init__(self, bootstrap: str, topic: str, parse: Parse, start: Mapping[int, int] | None = None) -> None:
        offsets = kafka_client.end_offsets(bootstrap, topic)
        self._reader = _Reader(bootstrap, topic, parse, {**offsets, **(start or {})})
        self._outputs: list[Output] = []
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="rheostat-kafka-output", daemon=True)
        self._thread.start()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def drain(self, patience_s: float = 0.0) -> list[Output]:
        """Return the outputs since the last call; wait at most `patience_s` for the first one."""
        with self._changed:
            self._changed.wait_for(lambda: self._outputs or self._error, patience_s)
            outputs, self._outputs = self._outputs, []
        if not outputs and self._error is not None:
            raise self._error
        return outputs

    def close(self) -> None:
        """Stop reading."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        try:
            while not self._stopped.is_set():
                outputs = self._reader.poll()
                with self._changed:
                    self._outputs += outputs
                    self._changed.notify_all()
        except Exception as error:  # noqa: BLE001 - `drain` raises it
            with self._changed:
                self._error = error
                self._changed.notify_all()
        finally:
            self._reader.close()


class _Reader:
    """A consumer of all partitions of a topic."""

    def __init__(self, bootstrap: str, topic: str, parse: Parse, offsets: Mapping[int, int]) -> None:
        self._consumer: Consumer = kafka_client.consumer(bootstrap)
        from confluent_kafka import TopicPartition

        self._topic = topic
        self._parse = parse
        self.next = dict(offsets)
        """Partition -> the next offset to read."""
        self._consumer.assign([TopicPartition(topic, part, offset) for part, offset in offsets.items()])

    def poll(self) -> list[Output]:
        """Return the records of a moment; while the broker is down there are none."""
        outputs = []
        for message in self._consumer.consume(BATCH_RECORDS, POLL_S):
            if (error := message.error()) is not None:
                if error.retriable():
                    continue
                raise EngineError(f"topic {self._topic!r} cannot be read: {error.str()}")
            partition, offset = message.partition() or 0, message.offset() or 0
            kind, at_ms = message.timestamp()
            where = f"record {offset} of partition {partition} of topic {self._topic!r}"
            if kind != APPEND_TIME_TYPE:
                raise EngineError(
                    f"the timestamp of {where} is not the broker's: create the topic with "
                    "message.timestamp.type=LogAppendTime"
                )
            try:
                key, number, event_ms = self._parse(message.key(), message.value())
            except Exception as error:
                raise EngineError(f"{where} cannot be parsed ({message.value()!r}): {error}") from error
            self.next[partition] = offset + 1
            outputs.append(Output(key, number, event_ms, at_ms, partition, offset))
        return outputs

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
