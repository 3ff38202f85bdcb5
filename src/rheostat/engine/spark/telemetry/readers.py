"""One reader per kind of source: it asks a running source for its end, whatever batch runs.

| source | its end |
|---|---|
| Kafka | the end offsets of its partitions, from the brokers (`topic.py`) |
| files | the files that wait, by a bounded listing (`folder.py`) |
| `rate` | whole seconds since its creation, by the clock |
| `rate-micro-batch` | the planned offset: it makes its rows when a batch asks for them |
| memory stream | its last offset |
| Delta, Iceberg | the newest version of the table (`tables.py`) |
| other | what `latest()` of the user's own counter returns, else nothing |
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from rheostat.engine.batches.offsets import LatestOffset, OffsetCounter
from rheostat.engine.batches.present import Waiting
from rheostat.engine.spark.telemetry.folder import FolderEnds
from rheostat.engine.spark.telemetry.tables import DeltaEnds, IcebergEnds, planned_json
from rheostat.engine.spark.telemetry.topic import TopicEnds
from rheostat.errors import RheostatError, first_line
from rheostat.ports import Clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LISTING_PAUSE = 10.0
"""Pause after a listing, in durations of that listing: listings take at most a tenth of a thread."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a source says about its end."""

    offset: Any = None
    files: int | None = None
    waiting: Waiting | None = None
    counter: OffsetCounter | None = None
    """What counts the offsets of this source, where it learns from what is read."""


class EndReader(Protocol):
    """Asks one source. `ask` may take long or raise; it is called by one thread at a time."""

    @property
    def name(self) -> str:
        """What is asked, for messages."""

    @property
    def sample(self) -> Callable[[], Answer] | None:
        """A cheaper request for every second between two steps, where the load may jump; None where there is none."""

    def ask(self) -> Answer | None:
        """Return the present end; None if the last answer still stands."""

    def close(self) -> None:
        """Release what it holds, from any thread."""


def find_readers(
    spark: SparkSession, query: StreamingQuery, clock: Clock, counter: object = None
) -> list[tuple[str, EndReader]]:
    """Return Spark's description and a reader of each source, in the order of progress events; [] before a first batch.

    `counter` is the user's own counter of the query, if there is one: its `latest` is asked about other sources.
    """
    execution = query._jsq.streamingQuery()
    # A source that is used twice is reported once.
    listed = execution.sources().distinct()
    sources = [listed.apply(index) for index in range(int(listed.size()))]
    named = [(source, str(source.toString())) for source in sources]
    return [(text, _reader(spark, execution, source, text, clock, counter)) for source, text in named]


def _reader(
    spark: SparkSession, execution: Any, source: Any, description: str, clock: Clock, counter: object
) -> EndReader:
    try:
        match str(source.getClass().getSimpleName()):
            case "KafkaMicroBatchStream" | "KafkaSource":
                return Topics(TopicEnds.of_source(spark, source))
            case "FileStreamSource":
                return Folder(FolderEnds(spark, source), clock)
            case "RateStreamMicroBatchStream":
                return Inside(description, lambda: seconds_since_creation(source))
            case "RatePerMicroBatchStream":
                return Inside(description, lambda: planned_json(execution, source))
            case "MemoryStream":
                return Inside(description, lambda: memory_offset(source))
            case "DeltaSource":
                return Table(DeltaEnds(spark, execution, source))
            case "SparkMicroBatchStream" if "iceberg" in str(source.getClass().getName()):
                return Table(IcebergEnds(execution, source))
    except Exception as error:  # noqa: BLE001 - another Spark may have other internals
        return Broken(describe_failure(description, error))
    if isinstance(counter, LatestOffset):
        return Own(description, counter)
    return Inside(description, lambda: None)


@dataclass(frozen=True, slots=True)
class Topics:
    """A Kafka source."""

    ends: TopicEnds

    @property
    def name(self) -> str:
        """The brokers and topics."""
        return self.ends.name

    def ask(self) -> Answer:
        """Ask the brokers for the partitions and their ends."""
        return Answer(self.ends.offsets())

    def sample(self) -> Answer:
        """Ask for the ends of the partitions that were there at the last step."""
        return Answer(self.ends.offsets(refresh=False))

    def close(self) -> None:
        """Close the connection."""
        self.ends.close()


class Folder:
    """A file source."""

    sample: ClassVar[None] = None

    def __init__(self, ends: FolderEnds, clock: Clock) -> None:
        self._ends, self._clock = ends, clock
        self._next_s = 0.0

    @property
    def name(self) -> str:
        """The folder."""
        return self._ends.name

    def ask(self) -> Answer | None:
        """List the folder, unless a slow listing has just ended."""
        begun_s = self._clock.monotonic()
        if begun_s < self._next_s:
            return None
        try:
            count = self._ends.count()
        finally:
            now_s = self._clock.monotonic()
            self._next_s = now_s + LISTING_PAUSE * (now_s - begun_s)
        if count is None:
            return None
        offset = {"logOffset": count.log_offset, "taken": count.bytes_taken, "waiting": count.bytes_waiting}
        return Answer(offset, count.taken + count.waiting, Waiting(count.waiting, count.bytes_waiting))

    def close(self) -> None:
        """Do nothing: there is no connection."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of versions: Delta or Iceberg."""

    sample: ClassVar[None] = None
    ends: DeltaEnds | IcebergEnds

    @property
    def name(self) -> str:
        """The table."""
        return self.ends.name

    def ask(self) -> Answer | None:
        """Read the versions that are new."""
        if (found := self.ends.ask()) is None:
            return None
        offset, waiting = found
        return Answer(offset, waiting=waiting, counter=self.ends.counter)

    def close(self) -> None:
        """Do nothing: there is no connection."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A source that lives in the driver: asking it cannot hang."""

    sample: ClassVar[None] = None
    name: str
    offset: Callable[[], Any]

    def ask(self) -> Answer:
        """Read its end."""
        return Answer(self.offset())

    def close(self) -> None:
        """Do nothing: there is no connection."""


@dataclass(frozen=True, slots=True)
class Own:
    """A source of another kind, whose end the user's own counter knows."""

    sample: ClassVar[None] = None
    name: str
    counter: LatestOffset

    def ask(self) -> Answer:
        """Ask the counter."""
        return Answer(self.counter.latest())

    def close(self) -> None:
        """Do nothing: the counter is the user's."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A source whose internals are not as expected."""

    sample: ClassVar[None] = None
    name: str

    def ask(self) -> Answer:
        """Raise the reason."""
        raise RheostatError(self.name)

    def close(self) -> None:
        """Do nothing: there is no connection."""


def seconds_since_creation(source: Any) -> int:
    """Return the end of a `rate` source, by its own clock; its `latestOffset` would also move its state."""
    return max(0, (int(source.clock().getTimeMillis()) - int(source.creationTimeMs())) // 1000)


def memory_offset(source: Any) -> int | None:
    """Return the last offset of a memory stream; None while it is empty."""
    offset = int(source.currentOffset().offset())
    return offset if offset >= 0 else None


def describe_failure(name: str, error: Exception) -> str:
    """Return one line about a failed request, without secrets."""
    from py4j.protocol import Py4JJavaError

    if isinstance(error, RheostatError):
        return first_line(error)
    if isinstance(error, Py4JJavaError):
        with contextlib.suppress(Exception):
            return f"{name}: {first_line(error.java_exception.toString())}"
    return f"{name}: {type(error).__name__}: {first_line(error)}"
