"""One round of the freeze bench: two drivers on one checkpoint, of which the first is frozen.

What is conclusive about a round:

- The second driver has begun when `rheostat.start` has returned, when a commit carries its mark, or when a result in
  the output topic ends with its name, whichever is first. The last two do not depend on what it says about itself.
- A commit belongs to the driver whose mark its file carries, and to the moment at which the file appeared
  (`commits.py`). The woken run commits after a take-over if such a file appears after the second
  driver has begun.
- A batch is committed twice if its commit file was replaced, or if two runs report it as finished: Spark reports a
  batch after its commit, and a run whose commit is refused fails instead.
- A key is wrong if its last count is not that of the numbers that the broker acknowledged. If no driver has brought it
  there, a third one continues from the checkpoint before the keys count: what is wrong then stays wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rheostat.clock import WallClock
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import EngineError
from rheostat.kafka import output as kafka_output
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import KafkaLoad, start_load
from rheostat.lab.experiment.processes import Child, await_true
from rheostat.lab.experiment.realtime_run import SINK, SOURCE, await_output, keys_wrong, open_topics
from rheostat.lab.freeze.commits import Commit, CommitWatch, repeated
from rheostat.lab.freeze.driver import KEYS, LEASE_S, Driver, Mode, drive
from rheostat.lab.workload.counting import due

LOAD_PER_S = 200.0
PARTITIONS = 2
BEFORE = 2
"""Commits of the first driver before it is frozen, and with frozen Python before the second driver is let go."""
START_S = 180.0
"""Seconds for a driver to start and commit."""
LATE_S = LEASE_S + 10.0
"""Seconds within which a frozen or dead driver is replaced."""
AFTER_S = 20.0
"""Seconds for which a woken driver is watched: several batches of real-time mode."""
DRAIN_S, HEIR_S = 30.0, 120.0
"""Seconds to wait for the last results, and for those of a third driver."""


@dataclass(frozen=True)
class Round:
    """The result of a round."""

    take_over_s: float | None
    """Seconds from the freeze, or from the kill of a driver with frozen Python, until the second driver began."""
    late: bool
    woken_commits: int
    committed_twice: int
    keys_wrong: int
    started_beside: bool
    text: str
    """What happened, in words."""


def freeze_python(mode: Mode, hold_s: float, *, killed: bool) -> Round:
    """Freeze the first driver's Python over its living JVM, and then thaw it, or kill the whole driver."""
    with _open_pair(mode, same_journal=False) as pair:
        first, second = pair.first, pair.second
        first.process.freeze(whole=False)
        frozen_s = time.time()
        if not await_true(lambda: len(pair.commits_of(first, frozen_s)) >= BEFORE, START_S):
            raise EngineError(f"the JVM of a frozen Python commits nothing within {START_S:g} s: nothing to test")
        second.driver.let_go()
        time.sleep(hold_s)
        if killed:
            alive_s = time.time()
            first.process.kill()
            await_true(lambda: second.has_started, START_S)
        else:
            first.process.thaw()
            time.sleep(AFTER_S)
            alive_s = time.time()
        began_s = pair.began_s(second)
        beside = began_s is not None and began_s < alive_s
        after_s = began_s - alive_s if killed and began_s is not None and not beside else None
        late = killed and not beside and (after_s is None or after_s > LATE_S)
        if beside:
            text = f"the second driver began while the first one committed: {_batches(pair, began_s)}"
        elif killed:
            text = f"killed, the second driver {_began(after_s)}"
        else:
            text = "thawed, the second driver did not begin"
            second.process.kill()
        wrong = pair.settle()
        return Round(after_s, late, 0, pair.committed_twice(), wrong, beside, f"{text}; {second.answer}")


def freeze_driver(
    mode: Mode, freeze_s: float, *, same_journal: bool, wake_s: float | None = None, after_s: float = AFTER_S
) -> Round:
    """Freeze the whole first driver, and watch it for `after_s` seconds after it has woken.

    With `wake_s` it wakes that many seconds after the second driver has begun, often before that one's first commit:
    the smallest gap that there is. It wakes after `freeze_s` seconds at the latest.
    """
    with _open_pair(mode, same_journal=same_journal) as pair:
        first, second = pair.first, pair.second
        frozen_s = time.time()
        first.process.freeze(whole=True)
        second.driver.let_go()
        if wake_s is None:
            time.sleep(freeze_s)
        elif await_true(lambda: second.has_started, freeze_s):
            time.sleep(wake_s)
        first.process.thaw()
        freeze_s = time.time() - frozen_s
        time.sleep(after_s)
        began_s = pair.began_s(second)
        wait_s = None if began_s is None else began_s - frozen_s
        late = freeze_s > LEASE_S and (freeze_s >= LATE_S if wait_s is None else wait_s > LATE_S)
        wrong = pair.settle()
        woken = 0 if began_s is None else len(pair.commits_of(first, began_s))
        journal = "the same journal" if same_journal else "another journal"
        text = f"frozen for {freeze_s:.0f} s, {journal}: the second driver {_began(wait_s)}"
        if began_s is not None:
            text += f"; then {_batches(pair, began_s)}, {len(pair.results_of(first, began_s))} results of the woken one"
        text += f"; {first.answer}; {second.answer}"
        return Round(wait_s, late, woken, pair.committed_twice(), wrong, False, text)


def _began(after_s: float | None) -> str:
    return "did not begin" if after_s is None else f"began after {after_s:.1f} s"


def _batches(pair: _Pair, since_s: float | None) -> str:
    counts = (len(pair.commits_of(driver, since_s or 0.0)) for driver in (pair.first, pair.second))
    return "{} batches of the first and {} of the second driver".format(*counts)


@dataclass(frozen=True)
class _Running:
    """A driver and its process."""

    driver: Driver
    process: Child

    @property
    def has_started(self) -> bool:
        return bool(self.driver.diary.entries("started"))

    @property
    def answer(self) -> str:
        """The driver's own last word about its query."""
        refused, ended = self.driver.diary.entries("refused"), self.driver.diary.entries("ended")
        name = f"the {self.driver.name} driver"
        if ended:
            return f"{name} ended: {ended[-1]['text']}"
        return f"{name} was refused {len(refused)} times: {refused[-1]['text']}" if refused else f"{name} runs or waits"


class _Pair:
    """Two drivers under load."""

    def __init__(
        self, first: _Running, second: _Running, watch: CommitWatch, load: KafkaLoad, after: ExitStack
    ) -> None:
        self.first, self.second = first, second
        self._watch, self._load, self._after = watch, load, after

    def began_s(self, running: _Running) -> float | None:
        """Return when a driver began, by its own word, its commits or its results; None if it has not."""
        signs = [entry["at_s"] for entry in running.driver.diary.entries("started")]
        signs += [commit.at_s for commit in self.commits_of(running)]
        signs += self.results_of(running)
        return min(signs, default=None)

    def commits_of(self, running: _Running, since_s: float = 0.0) -> list[Commit]:
        """Return a driver's commits after a moment."""
        return self._watch.of(running.driver.umask, since_s)

    def results_of(self, running: _Running, since_s: float = 0.0) -> list[float]:
        """Return the moments after `since_s` at which a driver's results reached the output topic."""
        outputs = kafka_output.read(running.driver.servers, SINK, _parse_writer)
        times_s = [output.at_ms / 1e3 for output in outputs if output.key == running.driver.name]
        return [at_s for at_s in times_s if at_s > since_s]

    def committed_twice(self) -> int:
        """Count the batches with two commits."""
        drivers = (self.first.driver, self.second.driver)
        runs = {(entry["text"], entry["batch"]) for driver in drivers for entry in driver.diary.entries("batch")}
        return len(self._watch.replaced() | repeated(batch for _, batch in runs))

    def settle(self) -> int:
        """End the load and wait for its last results; return the number of wrong keys."""
        clock, servers = WallClock(), self.first.driver.servers
        wanted = due(KEYS, {"load": self._load.stop().delivered})
        wrong = keys_wrong(await_output(servers, wanted, clock, DRAIN_S), wanted)
        if wrong:
            for running in (self.first, self.second):
                running.process.kill()
            heir = replace(self.first.driver, name="third", umask=0o066)
            heir.let_go()
            self._after.callback(Child(drive, heir).kill)
            wrong = keys_wrong(await_output(servers, wanted, clock, HEIR_S), wanted)
        return wrong


@contextmanager
def _open_pair(mode: Mode, *, same_journal: bool) -> Iterator[_Pair]:
    """Start both drivers; the first one runs its query, the second one has its session."""
    with ExitStack() as after:
        folder = Path(after.enter_context(TemporaryDirectory(prefix="rheostat-freeze-")))
        broker = after.enter_context(Broker())
        open_topics(broker, PARTITIONS)
        schedule = Schedule(Constant(1.0), LOAD_PER_S, 3600)
        load = after.enter_context(start_load(broker.bootstrap, SOURCE, schedule))
        driver = Driver("first", 0o022, "first.db", mode, broker.bootstrap, folder)
        watch = after.enter_context(CommitWatch(driver.checkpoint))
        drivers = (
            driver,
            replace(driver, name="second", umask=0o026, journal="first.db" if same_journal else "second.db"),
        )
        driver.let_go()
        running = []
        for each in drivers:
            running.append(_Running(each, Child(drive, each)))
            after.callback(running[-1].process.kill)
        pair = _Pair(running[0], running[1], watch, load, after)
        ready = lambda: len(pair.commits_of(pair.first)) >= BEFORE and bool(drivers[1].diary.entries("ready"))  # noqa: E731
        if not await_true(ready, START_S):
            raise EngineError(f"the drivers were not ready within {START_S:g} s: {pair.first.answer}")
        yield pair


def _parse_writer(key: bytes | None, value: bytes | None) -> tuple[str, int, int]:
    number, event_ms, writer = (value or b"0 0 ?").decode().split()
    return writer, int(number), int(event_ms)
