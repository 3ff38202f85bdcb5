"""Asks the sources of one query for their ends, at any moment, whatever batch runs.

A source may be slow or down. One thread asks, and `read` waits for it only for a moment: then it returns the last
answers, each with its own moment, and says which source has not answered. Between two steps the thread asks every
second where that is cheap: so a load that jumps shows with its new rate, not averaged with the old one.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rheostat.engine.batches.arrivals import HISTORY
from rheostat.engine.batches.present import SourceEnd
from rheostat.engine.spark.telemetry.readers import Answer, EndReader, Inside, describe_failure
from rheostat.engine.spark.telemetry.topic import NoAnswer
from rheostat.ports import Clock

WAIT_S = 0.5
"""Seconds for which a step waits for the sources: a broker answers in milliseconds, on a loaded machine within this."""
SAMPLE_S = 1.0
"""Seconds between two requests to sources that may be asked between two steps."""

FindReaders = Callable[[], Sequence[tuple[str, EndReader]]]
"""Returns Spark's description and a reader of each source; nothing as long as they are unknown."""


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

    def __init__(self, find: FindReaders, clock: Clock) -> None:
        self._find, self._clock = find, clock
        self._sources: list[_Source] = []
        self._round: Round | None = None
        self._gap_s = 0.0
        """Seconds between the last two rounds."""
        self.samples: deque[tuple[SourceEnd, ...]] = deque(maxlen=HISTORY)
        """The ends of all sources between two steps, oldest first; who reads them takes them out."""
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
            begun_s = self._clock.monotonic()
            self._gap_s = begun_s - self._round.begun_s if self._round is not None else 0.0
            self._round = Round(begun_s)
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
        elif source.unanswered_s is not None and now_s - source.unanswered_s >= WAIT_S:
            problem = f"{source.reader.name} has not answered for {now_s - source.unanswered_s:.1f} s"
        return replace(end, problem=problem) if end is not None else SourceEnd(self._clock.now(), problem=problem)

    # -- the worker's thread ----------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closed:
            asked = self._wanted.wait(SAMPLE_S if self._may_sample() else None)
            under_way = self._round
            if self._closed or under_way is None:
                continue
            # Without its sources the query cannot be asked: the JVM is gone, or it is another Spark.
            with contextlib.suppress(Exception):
                if asked:
                    self._wanted.clear()
                    self._ask_all(under_way)
                elif self._may_sample():
                    self._sample()
            if asked:
                under_way.done.set()
        for source in self._sources:
            _close(source.reader)

    def _may_sample(self) -> bool:
        """Whether to ask between two steps: only for the usual gap, so that a paused scaler asks nothing."""
        under_way = self._round
        recent = under_way is not None and self._clock.monotonic() - under_way.begun_s < self._gap_s
        return recent and bool(self._sources) and all(source.reader.sample for source in self._sources)

    def _sample(self) -> None:
        for source in self._sources:
            if (sample := source.reader.sample) is not None:
                self._ask(source, sample)
        ends = tuple(source.end for source in self._sources if source.end is not None and not source.problem)
        if len(ends) == len(self._sources):
            self.samples.append(ends)

    def _ask_all(self, under_way: Round) -> None:
        if not self._sources:
            self._sources = [_Source(description, reader) for description, reader in self._find()]
        # A source that cannot hang is asked before one that can.
        under_way.waiting = sorted(self._sources, key=lambda source: not isinstance(source.reader, Inside))
        for source in tuple(under_way.waiting):
            if self._closed:
                return
            under_way.asking = source
            self._ask(source, source.reader.ask)
            under_way.waiting.remove(source)

    def _ask(self, source: _Source, request: Callable[[], Answer | None]) -> None:
        begun_s = self._clock.monotonic()
        if source.unanswered_s is None:
            source.unanswered_s = begun_s
        try:
            answer = request()
        except NoAnswer:
            return
        except Exception as error:  # noqa: BLE001 - of Java, py4j or the user's counter
            source.problem = describe_failure(source.reader.name, error)
        else:
            if answer is not None:
                source.problem = ""
                source.end = SourceEnd(
                    self._clock.now(), answer.offset, answer.files, answer.waiting, counter=answer.counter
                )
        source.unanswered_s = None


def _close(reader: EndReader) -> None:
    with contextlib.suppress(Exception):  # the JVM may be gone
        reader.close()
