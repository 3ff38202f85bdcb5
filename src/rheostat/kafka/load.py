"""An open-loop load into a Kafka topic: plays a schedule, exact to the record, from a process of its own.

The rows are those of `engine.testbed.source` over the same seconds. A record's value is the row's number, or a text
with it; its timestamp is the millisecond at which it was due, even if it was sent later. Number n goes to partition n
modulo the partitions.
No record is sent before it is due. While the broker is down records wait; then each arrives once, in order, and the
report says how late.

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
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import EngineError, RheostatError
from rheostat.job.frozen import check_number
from rheostat.kafka import client as kafka_client

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

TICK_S = 0.01
"""Seconds between two rounds of sending."""
READY_WITHIN_S = 60.0
"""Seconds for the child process to become ready."""
FLUSH_WITHIN_S = 60.0
"""Seconds for the broker to acknowledge the last records."""
REPORT_EVERY_S = 0.5
"""Seconds between two reports of the child process."""
NUMBER = "%(number)d"
"""Text of a record's value, by default; `%(at_ms)d` stands for the millisecond at which it was due."""
STOP = b"stop"
"""Message that ends the load."""
LOG_APPEND_TIME = 2
"""Kafka's timestamp type for a time that the broker sets itself."""
GONE = 3
"""Exit code of a child whose parent is gone."""
SETTINGS: dict[str, str | int | bool] = {
    "enable.idempotence": True,
    "linger.ms": 2,
    # Wait without limit for a broker that is down, and buffer 50 s of the largest load meanwhile.
    "message.timeout.ms": 0,
    "queue.buffering.max.messages": 1_000_000,
    "reconnect.backoff.max.ms": 500,
}


@dataclass(frozen=True, slots=True)
class Sent:
    """Records sent so far: the numbers from `first` on, without gaps."""

    start_s: float
    """Wall-clock time of the schedule's second 0."""
    first: int
    count: int = 0
    """Records handed to Kafka's client."""
    delivered: int = 0
    """Records that the broker acknowledged."""
    worst_late_ms: float = 0.0
    """Longest time from when a record was due to when it was handed over."""
    worst_delivery_ms: float = 0.0
    """Longest time from when a record was due to its acknowledgement."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the child process plays: which seconds of which schedule, into which topic."""

    bootstrap: str
    topic: str
    schedule: Schedule
    start_s: float | None
    first_s: int
    last_s: int | None
    value: str = NUMBER
    acknowledged: Path | None = None


def start_load(
    bootstrap: str,
    topic: str,
    schedule: Schedule,
    *,
    start_s: float | None = None,
    first_s: int = 0,
    last_s: int | None = None,
    value: str = NUMBER,
    acknowledged: Path | None = None,
) -> KafkaLoad:
    """Play the seconds of a schedule from `first_s` up to `last_s`, or until it is stopped.

    `start_s` is the wall-clock time of second 0; without it, second `first_s` begins as soon as the child is ready. If
    it is in the past, overdue records are sent at once. `value` is the text of a record, such as
    `{"id": %(number)d, "at": %(at_ms)d}`. The file `acknowledged` gets a line whenever the broker has acknowledged
    records: seconds since the epoch, and the records so far, those before `first_s` included.
    """
    check_number("first_s", first_s)
    check_number("last_s", last_s, least=first_s)
    return KafkaLoad(Assignment(bootstrap, topic, schedule, start_s, first_s, last_s, value, acknowledged))


class KafkaLoad:
    """A running load; see `start_load`."""

    def __init__(self, assignment: Assignment) -> None:
        # Not `multiprocessing`: that imports the caller's main module a second time.
        self._child = subprocess.Popen(
            [sys.executable, "-m", "rheostat.kafka.load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._last_report: Sent | None = None
        self._error = ""
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, name="rheostat-kafka-load", daemon=True)
        self._reader.start()
        try:
            self._write(pickle.dumps(assignment))
            if not self._ready.wait(READY_WITHIN_S):
                raise EngineError(f"the load into {assignment.topic!r} was not ready within {READY_WITHIN_S:.0f} s")
            _ = self.sent
        except BaseException:
            self.close()
            raise

    @property
    def sent(self) -> Sent:
        """The child's last report; raises its error if it has failed."""
        if self._error or self._last_report is None:
            raise EngineError(self._error or "the load's process ended before its first report")
        return self._last_report

    @property
    def pid(self) -> int:
        """The id of the child process."""
        return self._child.pid

    def __enter__(self) -> KafkaLoad:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait(self) -> Sent:
        """Wait until the last second is sent and acknowledged; return the final report."""
        self._reader.join()
        code = self._child.wait()
        sent = self.sent
        if code != 0:
            raise EngineError(f"the load's process ended with exit code {code} after {sent.count} records")
        if sent.delivered < sent.count:
            raise EngineError(
                f"{sent.count - sent.delivered} of {sent.count} records were not acknowledged within "
                f"{FLUSH_WITHIN_S:.0f} s: is the broker up?"
            )
        return sent

    def stop(self) -> Sent:
        """Stop sending, wait for the last acknowledgement, and return the final report."""
        self._write(STOP)
        return self.wait()

    def close(self) -> None:
        """Kill the child process."""
        self._child.kill()
        self._child.wait()
        self._reader.join()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _write(self, message: bytes) -> None:
        if self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.write(message)
                self._child.stdin.flush()

    def _read(self) -> None:
        for line in self._child.stdout or ():
            report: dict[str, Any] = json.loads(line)
            if "error" in report:
                self._error = report["error"]
            else:
                self._last_report = Sent(**report)
            self._ready.set()
        self._ready.set()


def replaces_time(kind: int) -> bool:
    """Return whether the broker replaced a record's timestamp; a record acknowledged twice has none at all."""
    return kind == LOG_APPEND_TIME


class _Player:
    """The child process: sends the records that are due, and reports."""

    def __init__(self, assignment: Assignment, reports: IO[str]) -> None:
        self._assignment = assignment
        self._reports = reports
        self._partitions = kafka_client.partitions(assignment.bootstrap, assignment.topic)
        self._producer = kafka_client.producer(assignment.bootstrap, SETTINGS)
        start_s = time.time() - assignment.first_s if assignment.start_s is None else assignment.start_s
        # In whole milliseconds, as timestamps are, so that each lies in its second.
        self._start_us = round(start_s * 1000) * 1000
        self._sent = Sent(self._start_us / 1_000_000, assignment.schedule.due(assignment.first_s))
        self._count = self._delivered = self._worst_late_us = self._worst_delivery_us = 0
        self._failure = ""
        self._stopped = False
        self._noted = 0
        # Line by line, so that a reader never waits for the end of the load.
        self._notes = None if assignment.acknowledged is None else assignment.acknowledged.open("a", buffering=1)

    def play(self) -> None:
        """Send until the last second is over or the parent sends stop; then wait for the last acknowledgements."""
        schedule, next_report_s = self._assignment.schedule, 0.0
        second, nth = self._assignment.first_s, 0
        while not self._stopped and second != self._assignment.last_s:
            gone_us = time.time_ns() // 1000 - self._start_us - second * 1_000_000
            # Never backwards, even if the clock jumps.
            upto = max(nth, due_by(schedule.due(second + 1) - schedule.due(second), gone_us))
            for number, due_us in rows(schedule, second, nth, upto):
                self._send(number, self._start_us + due_us)
            self._producer.poll(0)
            self._note()
            if time.monotonic() > next_report_s:
                self._report()
                next_report_s = time.monotonic() + REPORT_EVERY_S
            over = gone_us >= 1_000_000
            second, nth = (second + 1, 0) if over else (second, upto)
            self._listen(0.0 if over else TICK_S)
        until_s = time.monotonic() + FLUSH_WITHIN_S
        while self._producer.flush(TICK_S) and time.monotonic() < until_s:
            self._note()
            self._listen(0.0)
        self._note()
        self._report()

    def _send(self, number: int, due_us: int) -> None:
        """Hand one record to Kafka's client, as soon as its buffer has room."""
        while not self._stopped:
            try:
                self._producer.produce(
                    self._assignment.topic,
                    (self._assignment.value % {"number": number, "at_ms": due_us // 1000}).encode(),
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
            self._failure = f"Kafka refused a record of topic {self._assignment.topic!r}: {error.str()}"
        elif self._delivered == 0 and replaces_time(message.timestamp()[0]):
            # The first one decides. Kafka acknowledges a batch that is sent twice (after a broker's restart) with the
            # time of the first copy, as if the broker had set it.
            self._failure = (
                f"topic {self._assignment.topic!r} replaces the records' timestamps by the broker's: create it with "
                "message.timestamp.type=CreateTime"
            )
        self._delivered += 1
        self._worst_delivery_us = max(self._worst_delivery_us, time.time_ns() // 1000 - due_us)

    def _note(self) -> None:
        """Write down how many records the broker has acknowledged by now, if there are new ones."""
        if self._notes is not None and self._delivered > self._noted:
            self._noted = self._delivered
            self._notes.write(f"{time.time():.4f} {self._sent.first + self._noted}\n")

    def _listen(self, wait_s: float) -> None:
        """Wait for a message from the parent; exit if the parent is gone."""
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
        print(json.dumps(asdict(sent)), file=self._reports, flush=True)
        if self._failure:
            raise EngineError(self._failure)


def rows(schedule: Schedule, second: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the number and due time (microseconds since the start) of a second's rows from `first` up to `last`."""
    before = schedule.due(second)
    count = schedule.due(second + 1) - before
    for nth in range(first, last):
        yield before + nth, second * 1_000_000 + nth * 1_000_000 // count


def due_by(count: int, gone_us: int) -> int:
    """Return how many of a second's `count` records are due `gone_us` microseconds after it began."""
    # The number of r with r * 1000000 // count <= gone_us: see `rows`.
    return min(count, max(0, -(-(gone_us + 1) * count // 1_000_000)))


def main() -> None:
    """Play the assignment on standard input; exit with the process that holds its other end."""
    assignment: Assignment = pickle.load(sys.stdin.buffer)
    try:
        _Player(assignment, sys.stdout).play()
    except RheostatError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
