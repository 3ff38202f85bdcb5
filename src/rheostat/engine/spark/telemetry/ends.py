"""Asks the sources of one running query for their ends, at any moment, whatever batch runs.

| source | its end |
|---|---|
| Kafka | the end offsets of its partitions, from the brokers (`topic.py`) |
| files | the files that wait, by a bounded listing (`folder.py`) |
| `rate` | whole seconds since its creation, by the clock |
| `rate-micro-batch` | the planned offset: it makes its rows when a batch asks for them |
| memory stream | its last offset |
| other | what `latest()` of the user's own counter returns, else nothing |

A source may be slow or down. One thread per query asks, and `read` waits for it only for a moment: then it returns the
last answers, each with its own moment, and says which source has not answered.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from rheostat.engine.batches.offsets import LatestOffset
from rheostat.engine.batches.present import SourceEnd
from rheostat.engine.spark.telemetry.folder import FolderEnds
from rheostat.engine.spark.telemetry.topic import NoAnswer, TopicEnds
from rheostat.errors import RheostatError, first_line
from rheostat.ports import Clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WAIT_S = 0.5
"""Seconds for which a step waits for the sources: a broker answers in milliseconds, on a loaded machine within this."""
LISTING_PAUSE = 10.0
"""Pause after a listing, in durations of that listing: listings take at most a tenth of a thread."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a source says about its end."""

    offset: Any = None
    files: int | None = None
    files_waiting: int | None = None


class EndReader(Protocol):
    """Asks one source. `ask` may take long or raise; it is called by one thread at a time."""

    @property
    def name(self) -> str:
        """What is asked, for messages."""

    def ask(self) -> Answer | None:
        """Return the present end; None if the last answer still stands."""

    def close(self) -> None:
        """Release what it holds, from any thread."""


@dataclass(eq=False)
class _Source:
    """One source with its last answer."""

    description: str
    """Spark's description of it, as in progress events."""
    reader: EndReader
    end: SourceEnd | None = None
    problem: str = ""
    unanswered_s: float | None = None
    """Start of the oldest request without an answer, by the monotonic clock."""


@dataclass
class Round:
    """One request to every source."""

    begun_s: float
    asking: _Source | None = None
    waiting: list[_Source] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    read: bool = False
    """Whether `read` has waited for it."""


class SourceEnds:
    """The ends of all sources of one running query. A restarted query needs a new one."""

    def __init__(self, spark: SparkSession, query: StreamingQuery, clock: Clock, counter: object = None) -> None:
        """Take the user's own counter of the query, if there is one: its `latest` is asked about other sources."""
        self._spark, self._query, self._clock, self._counter = spark, query, clock, counter
        self._sources: list[_Source] = []
        self._round: Round | None = None
        self._wanted = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def descriptions(self) -> tuple[str, ...]:
        """Spark's descriptions of the sources, in the order of progress events; none before the first batch."""
        return tuple(source.description for source in self._sources)

    def begin(self) -> Round:
        """Start to ask, unless a request is under way; begin with every query before you read the first."""
        if self._round is None or (self._round.read and self._round.done.is_set()):
            self._round = Round(self._clock.monotonic())
            if self._closed:
                self._round.done.set()
            elif self._thread is None:
                self._thread = threading.Thread(target=self._work, name="rheostat-ends", daemon=True)
                self._thread.start()
            self._wanted.set()
        return self._round

    def read(self) -> tuple[SourceEnd, ...]:
        """Ask, wait for a moment, and return the last end of every source, in the order of progress events.

        It is empty as long as the query has not planned its first batch.
        """
        under_way = self.begin()
        under_way.read = True
        under_way.done.wait(max(0.0, WAIT_S - (self._clock.monotonic() - under_way.begun_s)))
        return tuple(self._last(source, under_way) for source in self._sources)

    def close(self) -> None:
        """End the thread and close the connections; it waits for neither."""
        self._closed = True
        self._wanted.set()
        for source in self._sources:
            _close(source.reader)

    def _last(self, source: _Source, under_way: Round) -> SourceEnd:
        end, problem, now_s = source.end, source.problem, self._clock.monotonic()
        asking = under_way.asking
        if not under_way.done.is_set() and asking is not None and source in under_way.waiting:
            since_s = asking.unanswered_s if asking.unanswered_s is not None else under_way.begun_s
            late = f"{asking.reader.name} has not answered for {now_s - since_s:.1f} s"
            problem = late if source is asking else f"not asked: {late}"
        elif source.unanswered_s is not None:
            problem = f"{source.reader.name} has not answered for {now_s - source.unanswered_s:.1f} s"
        return replace(end, problem=problem) if end is not None else SourceEnd(self._clock.now(), problem=problem)

    # -- the worker's thread ----------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                break
            under_way = self._round
            if under_way is not None:
                # Without its sources the query cannot be asked: the JVM is gone, or it is another Spark.
                with contextlib.suppress(Exception):
                    self._ask_all(under_way)
                under_way.done.set()
        for source in self._sources:
            _close(source.reader)

    def _ask_all(self, under_way: Round) -> None:
        if not self._sources:
            self._sources = self._find_sources()
        # A source that cannot hang is asked before one that can.
        under_way.waiting = sorted(self._sources, key=lambda source: not isinstance(source.reader, Inside))
        for source in tuple(under_way.waiting):
            if self._closed:
                return
            under_way.asking = source
            self._ask(source)
            under_way.waiting.remove(source)

    def _ask(self, source: _Source) -> None:
        begun_s = self._clock.monotonic()
        if source.unanswered_s is None:
            source.unanswered_s = begun_s
        try:
            answer = source.reader.ask()
        except NoAnswer:
            return
        except Exception as error:  # noqa: BLE001 - of Java, py4j or the user's counter
            source.problem = describe_failure(source.reader.name, error)
        else:
            if answer is not None:
                source.problem = ""
                source.end = SourceEnd(self._clock.now(), answer.offset, answer.files, answer.files_waiting)
        source.unanswered_s = None

    def _find_sources(self) -> list[_Source]:
        """Return the sources of the query; none before its first batch is planned."""
        execution = self._query._jsq.streamingQuery()
        # A source that is used twice is reported once.
        listed = execution.sources().distinct()
        sources = [listed.apply(index) for index in range(int(listed.size()))]
        named = [(source, str(source.toString())) for source in sources]
        return [_Source(text, self._reader(execution, source, text)) for source, text in named]

    def _reader(self, execution: Any, source: Any, description: str) -> EndReader:
        try:
            match str(source.getClass().getSimpleName()):
                case "KafkaMicroBatchStream" | "KafkaSource":
                    return Topics(TopicEnds.of_source(self._spark, source))
                case "FileStreamSource":
                    return Folder(FolderEnds(self._spark, source), self._clock)
                case "RateStreamMicroBatchStream":
                    return Inside(description, lambda: seconds_since_creation(source))
                case "RatePerMicroBatchStream":
                    return Inside(description, lambda: planned_offset(execution, source))
                case "MemoryStream":
                    return Inside(description, lambda: memory_offset(source))
        except Exception as error:  # noqa: BLE001 - another Spark may have other internals
            return Broken(describe_failure(description, error))
        if isinstance(self._counter, LatestOffset):
            return Own(description, self._counter)
        return Inside(description, lambda: None)


# -- one reader per kind of source ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Topics:
    """A Kafka source."""

    ends: TopicEnds

    @property
    def name(self) -> str:
        """The brokers and topics."""
        return self.ends.name

    def ask(self) -> Answer:
        """Ask the brokers."""
        return Answer(self.ends.offsets())

    def close(self) -> None:
        """Close the connection."""
        self.ends.close()


class Folder:
    """A file source."""

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
        return Answer(offset, count.taken + count.waiting, count.waiting)

    def close(self) -> None:
        """Do nothing: there is no connection."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A source that lives in the driver: asking it cannot hang."""

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

    name: str

    def ask(self) -> Answer:
        """Raise the reason."""
        raise RheostatError(self.name)

    def close(self) -> None:
        """Do nothing: there is no connection."""


def seconds_since_creation(source: Any) -> int:
    """Return the end of a `rate` source, by its own clock; its `latestOffset` would also move its state."""
    return max(0, (int(source.clock().getTimeMillis()) - int(source.creationTimeMs())) // 1000)


def planned_offset(execution: Any, source: Any) -> Any:
    """Return the offset that the query has planned for a source; None before the first batch."""
    offset = execution.availableOffsets().get(source)
    return json.loads(str(offset.get().json())) if offset.isDefined() else None


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


def _close(reader: EndReader) -> None:
    with contextlib.suppress(Exception):  # the JVM may be gone
        reader.close()
