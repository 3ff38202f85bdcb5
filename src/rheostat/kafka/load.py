"""An open-loop load into a Kafka topic: plays a schedule, exact to the record, from a process of its own.

The rows are those of `engine.testbed.source` over the same seconds: a record's value is the row's number, its time
stamp the millisecond at which it was due, whenever it was really sent. Number n goes to partition n modulo their count.
A record is never sent before it is due. While the broker is down records wait, and then arrive once each and in order;
how late that was is part of the report.

    with start_load(bootstrap, "events", schedule) as load:
        ...
        sent = load.stop()
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import EngineError, RheostatError
from rheostat.job.frozen import check_number
from rheostat.kafka import client as kafka_client

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

TICK_S = 0.01
"""How often what became due is sent."""
READY_WITHIN_S = 60.0
FLUSH_WITHIN_S = 60.0
TOLD_EVERY_S = 0.5
STOP = b"stop"
LOG_APPEND_TIME = 2
"""Kafka's word for a time that the broker sets itself."""
GONE = 3
"""Exit code of a child whose parent is gone."""
SETTINGS: dict[str, str | int | bool] = {
    "enable.idempotence": True,
    "linger.ms": 2,
    # Wait for a broker that is down for as long as it takes, and hold 50 s of the largest load meanwhile.
    "message.timeout.ms": 0,
    "queue.buffering.max.messages": 1_000_000,
    "reconnect.backoff.max.ms": 500,
}


@dataclass(frozen=True, slots=True)
class Sent:
    """What a load has sent so far: the numbers from `first` on, without gaps."""

    start_s: float
    """Wall-clock time of the schedule's second 0."""
    first: int
    count: int = 0
    """Handed to Kafka's client."""
    delivered: int = 0
    """Acknowledged by the broker."""
    worst_late_ms: float = 0.0
    """The longest time from a record's being due to its being handed over."""
    worst_delivery_ms: float = 0.0
    """The longest time from a record's being due to its acknowledgement."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the child is asked for."""

    bootstrap: str
    topic: str
    schedule: Schedule
    start_s: float | None
    first_s: int
    last_s: int | None


def start_load(
    bootstrap: str,
    topic: str,
    schedule: Schedule,
    *,
    start_s: float | None = None,
    first_s: int = 0,
    last_s: int | None = None,
) -> KafkaLoad:
    """Start to play the seconds of a schedule from `first_s` up to `last_s`, or until it is stopped.

    `start_s` is the wall-clock time of second 0; without it, second `first_s` begins as soon as all is ready. Where it
    is in the past, what is overdue is sent at once.
    """
    check_number("first_s", first_s)
    check_number("last_s", last_s, least=first_s)
    return KafkaLoad(Suggestion(bootstrap, topic, schedule, start_s, first_s, last_s))


class KafkaLoad:
    """A load that runs; see `start_load`."""

    def __init__(self, suggestion: Suggestion) -> None:
        # Not `multiprocessing`: that would import the caller's main module once more.
        self._child = subprocess.Popen(
            [sys.executable, "-m", "rheostat.kafka.load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._told: Sent | None = None
        self._error = ""
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, name="rheostat-kafka-load", daemon=True)
        self._reader.start()
        try:
            self._say(pickle.dumps(suggestion))
            if not self._ready.wait(READY_WITHIN_S):
                raise EngineError(f"the load into {suggestion.topic!r} was not ready within {READY_WITHIN_S:.0f} s")
            _ = self.sent
        except BaseException:
            self.close()
            raise

    @property
    def sent(self) -> Sent:
        """What was sent when the child last said so; raises what went wrong there."""
        if self._error or self._told is None:
            raise EngineError(self._error or "the load's process ended before it began")
        return self._told

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._child.pid

    def __enter__(self) -> KafkaLoad:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait(self) -> Sent:
        """Wait until the last second was sent and acknowledged; return what was sent."""
        self._reader.join()
        code = self._child.wait()
        sent = self.sent
        if code != 0:
            raise EngineError(f"the load's process ended with {code}, after {sent.count} records")
        if sent.delivered < sent.count:
            raise EngineError(
                f"{sent.count - sent.delivered} of {sent.count} records were not acknowledged within "
                f"{FLUSH_WITHIN_S:.0f} s: is the broker up?"
            )
        return sent

    def stop(self) -> Sent:
        """Send no more, wait until all that was sent is acknowledged, and return it."""
        self._say(STOP)
        return self.wait()

    def close(self) -> None:
        """End the process, whatever it does."""
        self._child.kill()
        self._child.wait()
        self._reader.join()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _say(self, words: bytes) -> None:
        if self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.write(words)
                self._child.stdin.flush()

    def _read(self) -> None:
        for line in self._child.stdout or ():
            told: dict[str, Any] = json.loads(line)
            if "error" in told:
                self._error = told["error"]
            else:
                self._told = Sent(**told)
            self._ready.set()
        self._ready.set()


def replaces_time(kind: int) -> bool:
    """Whether the broker put its own time in the place of a record's; one acknowledged again has no time at all."""
    return kind == LOG_APPEND_TIME


class _Player:
    """The child's side: sends what is due and tells what it did."""

    def __init__(self, suggestion: Suggestion, tell: IO[str]) -> None:
        self._suggestion = suggestion
        self._tell = tell
        self._partitions = kafka_client.partitions(suggestion.bootstrap, suggestion.topic)
        self._producer = kafka_client.producer(suggestion.bootstrap, SETTINGS)
        start_s = time.time() - suggestion.first_s if suggestion.start_s is None else suggestion.start_s
        # In whole milliseconds, as time stamps are: so none of them is outside of its second.
        self._start_us = round(start_s * 1000) * 1000
        self._sent = Sent(self._start_us / 1_000_000, suggestion.schedule.due(suggestion.first_s))
        self._count = self._delivered = self._worst_late_us = self._worst_delivery_us = 0
        self._failure = ""
        self._stopped = False

    def play(self) -> None:
        """Send until the last second is over or somebody says stop, and wait for what is under way."""
        schedule, told_s = self._suggestion.schedule, 0.0
        second, nth = self._suggestion.first_s, 0
        while not self._stopped and second != self._suggestion.last_s:
            gone_us = time.time_ns() // 1000 - self._start_us - second * 1_000_000
            # Never back, whatever the clock does.
            upto = max(nth, due_by(schedule.due(second + 1) - schedule.due(second), gone_us))
            for number, due_us in rows(schedule, second, nth, upto):
                self._send(number, self._start_us + due_us)
            self._producer.poll(0)
            if time.monotonic() > told_s:
                self._report()
                told_s = time.monotonic() + TOLD_EVERY_S
            over = gone_us >= 1_000_000
            second, nth = (second + 1, 0) if over else (second, upto)
            self._listen(0.0 if over else TICK_S)
        until_s = time.monotonic() + FLUSH_WITHIN_S
        while self._producer.flush(TICK_S) and time.monotonic() < until_s:
            self._listen(0.0)
        self._report()

    def _send(self, number: int, due_us: int) -> None:
        """Hand one record over, as soon as there is room for it."""
        while not self._stopped:
            try:
                self._producer.produce(
                    self._suggestion.topic,
                    str(number).encode(),
                    partition=number % self._partitions,
                    timestamp=due_us // 1000,
                    on_delivery=partial(self._on_delivery, due_us),
                )
            except BufferError:
                self._listen(0.0)
                self._producer.poll(0.1)
            else:
                self._count += 1
                self._worst_late_us = max(self._worst_late_us, time.time_ns() // 1000 - due_us)
                return

    def _on_delivery(self, due_us: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = f"Kafka refused a record of topic {self._suggestion.topic!r}: {error.str()}"
        elif replaces_time(message.timestamp()[0]):
            self._failure = (
                f"topic {self._suggestion.topic!r} replaces the due times of records by its own: create it with "
                "message.timestamp.type=CreateTime"
            )
        self._delivered += 1
        self._worst_delivery_us = max(self._worst_delivery_us, time.time_ns() // 1000 - due_us)

    def _listen(self, wait_s: float) -> None:
        """Wait for a word from the parent; end where it is gone."""
        if not self._stopped and select.select([sys.stdin], [], [], wait_s)[0]:
            if not os.read(sys.stdin.fileno(), len(STOP)):
                sys.exit(GONE)
            self._stopped = True

    def _report(self) -> None:
        sent = replace(
            self._sent,
            count=self._count,
            delivered=self._delivered,
            worst_late_ms=self._worst_late_us / 1000,
            worst_delivery_ms=self._worst_delivery_us / 1000,
        )
        print(json.dumps(asdict(sent)), file=self._tell, flush=True)
        if self._failure:
            raise EngineError(self._failure)


def rows(schedule: Schedule, second: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield number and due time (microseconds after the start) of a second's rows from the `first` up to the `last`."""
    before = schedule.due(second)
    count = schedule.due(second + 1) - before
    for nth in range(first, last):
        yield before + nth, second * 1_000_000 + nth * 1_000_000 // count


def due_by(count: int, gone_us: int) -> int:
    """Return how many of a second's `count` records are due so long after it began, the last one included."""
    # How many r there are with r * 1000000 // count <= gone_us: see `rows`.
    return min(count, max(0, -(-(gone_us + 1) * count // 1_000_000)))


def main() -> None:
    """Play what standard input asks for; end with the process that holds its other end."""
    suggestion: Suggestion = pickle.load(sys.stdin.buffer)
    try:
        _Player(suggestion, sys.stdout).play()
    except RheostatError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
