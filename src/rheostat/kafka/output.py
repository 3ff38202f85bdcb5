"""What came out of a job into a Kafka topic, and when: latencies, last values, repetitions and silences.

A record's own time must be the broker's (`message.timestamp.type=LogAppendTime`): the moment at which the result was
there for everybody. The event time is a field of the record, which the caller's function reads. Only `read` and
`Follower` talk to Kafka; the rest computes.
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
"""From a record's key and value to (key, number, event time in ms)."""
SILENT_WITHIN_S = 30.0
"""A topic that brings nothing for so long before its end is not to be read."""
LOOKED_S = 30.0
"""So long after a change its downtime is looked for."""
AT_ONCE = 1000
POLL_S = 0.1
APPEND_TIME_TYPE = 2
"""How Kafka marks a time stamp that the broker set."""


@dataclass(frozen=True, slots=True)
class Output:
    """One record of an output topic."""

    key: str
    number: int
    """What the job says about the key: a running count, say."""
    event_ms: int
    """When the newest input behind it was due."""
    at_ms: int
    """When the broker had it."""
    partition: int = 0
    offset: int = 0

    @property
    def latency_ms(self) -> int:
        """From the event to its result."""
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
    """A time without output, from the last output before it to the first one after it."""

    start_ms: int
    end_ms: int
    over: bool
    """Whether an output ended it; else it lasted as long as was looked."""

    @property
    def length_ms(self) -> int:
        """How long it was."""
        return self.end_ms - self.start_ms


def latency(outputs: Iterable[Output]) -> Latency | None:
    """Return the quantiles of the outputs' latencies; None where there is no output."""
    import numpy as np

    waits = np.array([output.latency_ms for output in outputs], dtype=float)
    if not waits.size:
        return None
    p50, p95, p99 = np.quantile(waits, (0.5, 0.95, 0.99))
    return Latency(waits.size, float(p50), float(p95), float(p99), float(waits.max()))


def between(outputs: Iterable[Output], first_ms: int, last_ms: int) -> list[Output]:
    """Return the outputs that came from `first_ms` up to `last_ms`."""
    return [output for output in outputs if first_ms <= output.at_ms < last_ms]


def last_values(outputs: Iterable[Output]) -> dict[str, int]:
    """Return each key's last number: the latest in its partition, where a key has but one partition."""
    last: dict[str, Output] = {}
    for output in outputs:
        known = last.get(output.key)
        if known is None or (output.at_ms, output.offset) > (known.at_ms, known.offset):
            last[output.key] = output
    return {key: output.number for key, output in last.items()}


def repetitions(outputs: Iterable[Output]) -> int:
    """Return how many outputs say of their key what another one said before: what an at-least-once sink wrote twice."""
    said = [(output.key, output.number) for output in outputs]
    return len(said) - len(set(said))


def largest_silence(outputs: Iterable[Output], first_ms: int, last_ms: int) -> Silence:
    """Return the longest time without output that touches the time from `first_ms` to `last_ms`.

    With the time of a change, this is its downtime. Give all outputs: the silence may begin before `first_ms` and end
    after `last_ms`.
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
        # Nobody knows when the one before the first output was: it counts from where was looked.
        gaps.append(Silence(first_ms, times[0], over=True))
    if times[-1] < last_ms:
        gaps.append(Silence(times[-1], last_ms, over=False))
    return max(gaps, key=lambda gap: gap.length_ms) if gaps else Silence(first_ms, last_ms, over=True)


def downtimes_s(outputs: Sequence[Output], changes_s: Sequence[float], end_s: float) -> tuple[float, ...]:
    """Return the longest time without output after each of these changes, before the next one or the load's end."""
    ends_s = (*changes_s, end_s)[1:]
    return tuple(
        largest_silence(outputs, int(at_s * 1e3), int(max(at_s, min(next_s, at_s + LOOKED_S)) * 1e3)).length_ms / 1e3
        for at_s, next_s in zip(changes_s, ends_s, strict=True)
    )


def read(bootstrap: str, topic: str, parse: Parse, start: Mapping[int, int] | None = None) -> list[Output]:
    """Return what a topic has now, from these offsets on, or from the beginning."""
    ends = kafka_client.end_offsets(bootstrap, topic)
    reader = _Reader(bootstrap, topic, parse, {part: (start or {}).get(part, 0) for part in ends})
    outputs: list[Output] = []
    silent_from_s = time.monotonic()
    try:
        while any(reader.next[part] < end for part, end in ends.items()):
            if found := reader.poll():
                silent_from_s = time.monotonic()
                outputs += found
            elif time.monotonic() - silent_from_s > SILENT_WITHIN_S:
                raise EngineError(f"topic {topic!r} brought nothing for {SILENT_WITHIN_S:.0f} s: is the broker up?")
    finally:
        reader.close()
    return [output for output in outputs if output.offset < ends[output.partition]]


class Follower:
    """Reads a topic in a thread of its own, from these offsets on, or from its end as it is now."""

    def __init__(self, bootstrap: str, topic: str, parse: Parse, start: Mapping[int, int] | None = None) -> None:
        offsets = kafka_client.end_offsets(bootstrap, topic)
        self._reader = _Reader(bootstrap, topic, parse, {**offsets, **(start or {})})
        self._outputs: list[Output] = []
        self._error: Exception | None = None
        self._came = threading.Condition()
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
        """Return what came since the last call; wait so long for the first of it."""
        with self._came:
            self._came.wait_for(lambda: self._outputs or self._error, patience_s)
            found, self._outputs = self._outputs, []
        if not found and self._error is not None:
            raise self._error
        return found

    def close(self) -> None:
        """Stop to read."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        try:
            while not self._stopped.is_set():
                found = self._reader.poll()
                with self._came:
                    self._outputs += found
                    self._came.notify_all()
        except Exception as error:  # noqa: BLE001 - it is raised by `drain`
            with self._came:
                self._error = error
                self._came.notify_all()
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
        """Where each partition is read on."""
        self._consumer.assign([TopicPartition(topic, part, offset) for part, offset in offsets.items()])

    def poll(self) -> list[Output]:
        """Return what came within a moment; a broker that is away is waited for."""
        found = []
        for message in self._consumer.consume(AT_ONCE, POLL_S):
            if (error := message.error()) is not None:
                if error.retriable():
                    continue
                raise EngineError(f"topic {self._topic!r} cannot be read: {error.str()}")
            partition, offset = message.partition() or 0, message.offset() or 0
            kind, at_ms = message.timestamp()
            where = f"record {offset} of partition {partition} of topic {self._topic!r}"
            if kind != APPEND_TIME_TYPE:
                raise EngineError(
                    f"{where} has no time of the broker's: create the topic with message.timestamp.type=LogAppendTime"
                )
            try:
                key, number, event_ms = self._parse(message.key(), message.value())
            except Exception as error:
                raise EngineError(f"{where} cannot be understood ({message.value()!r}): {error}") from error
            self.next[partition] = offset + 1
            found.append(Output(key, number, event_ms, at_ms, partition, offset))
        return found

    def close(self) -> None:
        """Leave."""
        self._consumer.close()
