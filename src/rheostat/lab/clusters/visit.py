"""One job on one cluster: grow, shrink, an executor killed, the driver killed and back; then every count is checked."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rheostat.errors import EngineError
from rheostat.job.record import IntentEnd
from rheostat.journal import open_journal
from rheostat.kafka.jars import connector_jars
from rheostat.lab.clusters.cluster import Cluster
from rheostat.lab.clusters.driver import KEYS, NAME, ROWS, Place, drive, write_whole
from rheostat.lab.clusters.sparks import version_of
from rheostat.lab.clusters.stock import CONF, RATE_PER_S, play_load, records_taken, start_stock, stock_errors
from rheostat.lab.experiment.processes import Child, await_true, executors_below
from rheostat.lab.experiment.trial import Progress

CHANGE_S = 120.0
"""Seconds that a change, a replacement or a start may take."""
BATCHES = 3
"""Batches that must end before the next thing happens."""


@dataclass(frozen=True)
class Visit:
    """What happened on one cluster."""

    spark: str
    grow_s: float
    shrink_s: float
    replaced_s: float
    """From the kill of an executor until another one takes tasks."""
    back_s: float
    """From the kill of the driver to the next finished batch."""
    batches: int
    rows_lost: int
    rows_repeated: int
    words: tuple[str, ...]
    """Problems that windows named, and how changes ended."""


class Visitor:
    """Directs a driver by its files, and looks at what it reports."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.child: Child | None = None
        self.words: dict[str, None] = {}

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Run a driver; one that is killed inside may be started again."""
        try:
            yield
        finally:
            if self.child is not None:
                self.child.end()

    def start(self, batches: int = BATCHES) -> None:
        """Start a driver, and wait for its first batches."""
        first = self.batch
        self.child = Child(drive, self.place)
        self.wait(lambda: self.batch >= first + batches, "no batch ends")

    def kill(self) -> None:
        """Kill the driver with its JVM, and its executors where it has started them itself."""
        assert self.child is not None
        (self.place.folder / "status.json").unlink(missing_ok=True)
        self.child.kill()

    def stop(self) -> None:
        """Have the driver stop its query and end."""
        assert self.child is not None
        child = self.child
        (self.place.folder / "stop").write_text("")
        if not await_true(lambda: child.exitcode is not None, CHANGE_S):
            raise EngineError(f"the driver does not stop: {self.log_tail()}")

    def resize(self, executors: int) -> float:
        """Have a number of executors, and return the seconds until they run."""
        began_s = time.monotonic()
        write_whole(self.place.folder / "wanted", str(executors))
        self.wait(lambda: self.status.get("executors") == executors, f"not {executors} executors")
        took_s = time.monotonic() - began_s
        self.pass_batches()
        return took_s

    def pass_batches(self, batches: int = BATCHES) -> None:
        """Wait until some batches have ended."""
        first = self.batch
        self.wait(lambda: self.batch >= first + batches, "no batch ends")

    def wait(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Wait for a condition while the driver lives."""

        def met() -> bool:
            if self.child is not None and self.child.exitcode is not None:
                raise EngineError(f"the driver has ended: {self.log_tail()}")
            if problem := self.status.get("problem"):
                self.words[str(problem)] = None
            return condition()

        if not await_true(met, CHANGE_S):
            raise EngineError(f"{otherwise} after {CHANGE_S:g} s, the driver says {self.status}: {self.log_tail()}")

    @property
    def status(self) -> dict[str, Any]:
        """What the driver last reported."""
        file = self.place.folder / "status.json"
        try:
            report: dict[str, Any] = json.loads(file.read_text())
        except FileNotFoundError:
            return {}
        return report

    @property
    def batch(self) -> int:
        """The last batch that was committed."""
        commits = self.place.folder / "checkpoint" / "commits"
        return max((int(file.name) for file in commits.glob("*") if file.name.isdigit()), default=-1)

    def log_tail(self) -> str:
        """Return the end of the driver's log."""
        log = self.place.folder / "driver.log"
        return log.read_text(errors="replace")[-1500:] if log.exists() else "no log"


def visit(folder: Path, cluster: Cluster, pyspark: Path | None, progress: Progress, most: int = 3) -> Visit:
    """Take our job through everything, and check every count of every batch."""
    folder.mkdir(parents=True, exist_ok=True)
    visitor = Visitor(Place(folder, cluster.master, cluster.conf, cluster.environment, pyspark, most))
    return _tour(visitor, progress, lambda: count_errors(folder / "output", visitor.batch))


def visit_stock(folder: Path, cluster: Cluster, pyspark: Path | None, progress: Progress, most: int = 3) -> Visit:
    """Take the stock job through everything, with the connector of this Spark, and check every count."""
    folder.mkdir(parents=True, exist_ok=True)
    jars = connector_jars(progress, version_of(pyspark))
    conf = {**cluster.conf, **CONF, "spark.jars": ",".join(map(str, jars))}
    with play_load(folder, progress) as (bootstrap, load):
        start = partial(start_stock, bootstrap=bootstrap)
        visitor = Visitor(Place(folder, cluster.master, conf, cluster.environment, pyspark, most, start=start))

        def drain() -> None:
            visitor.wait(lambda: "load_per_s" in visitor.status, "no load is seen")
            visitor.words[f"{visitor.status['load_per_s']:.0f} records/s seen of {RATE_PER_S}"] = None
            sent = load.stop()
            visitor.wait(lambda: records_taken(folder, visitor.batch) >= sent.count, "records wait")
            visitor.wait(lambda: visitor.status.get("backlog") == 0, "a backlog is seen")

        return _tour(visitor, progress, lambda: stock_errors(folder, visitor.batch, load.sent), drain)


def _tour(
    visitor: Visitor, progress: Progress, errors: Callable[[], tuple[int, int]], drain: Callable[[], None] | None = None
) -> Visit:
    """Grow, shrink, lose an executor and the driver; then `drain` ends the load, and `errors` counts lost and
    repeated rows.
    """
    place = visitor.place
    (place.folder / "wanted").write_text("1")
    with visitor.driving():
        progress("start")
        visitor.start()
        spark = str(visitor.status["spark"])
        progress("grow")
        grow_s = visitor.resize(place.most)
        progress("shrink")
        shrink_s = visitor.resize(1)
        visitor.resize(2)
        progress("kill an executor")
        replaced_s = kill_executor(visitor)
        progress("kill the driver")
        began_s, before = time.monotonic(), visitor.batch
        visitor.kill()
        visitor.start()
        back_s = time.monotonic() - began_s
        visitor.wait(lambda: visitor.status.get("executors") == 2, "not 2 executors again")
        visitor.pass_batches()
        assert visitor.batch > before
        if drain is not None:
            drain()
        visitor.stop()
    lost, repeated = errors()
    words = (*visitor.words, *endings(place.folder))
    return Visit(spark, grow_s, shrink_s, replaced_s, back_s, visitor.batch + 1, lost, repeated, words)


def kill_executor(visitor: Visitor, executors: int = 2) -> float:
    """Kill the newest of some executors, and return the seconds until its replacement takes tasks."""
    began_s = time.monotonic()
    os.kill(max(executors_below(os.getpid())), signal.SIGKILL)
    visitor.wait(
        lambda: visitor.status.get("executors") != executors or "lost" in str(visitor.status.get("problem")), "no loss"
    )
    visitor.wait(
        lambda: visitor.status.get("executors") == executors and not visitor.status.get("problem"),
        f"not {executors} executors",
    )
    took_s = time.monotonic() - began_s
    visitor.pass_batches()
    return took_s


def notice_executor(visitor: Visitor, executors: int = 2) -> float:
    """Have the newest of some executors decommissioned as a spot notice does, by the signal that Spark listens to.

    Return the seconds until its replacement takes tasks.
    """
    began_s, noticed = time.monotonic(), max(executors_below(os.getpid()))
    os.kill(noticed, signal.SIGPWR)
    visitor.wait(lambda: visitor.status.get("executors") != executors, "the notice is not seen")
    visitor.wait(
        lambda: visitor.status.get("executors") == executors and noticed not in executors_below(os.getpid()),
        f"not {executors} executors",
    )
    took_s = time.monotonic() - began_s
    visitor.pass_batches()
    return took_s


def count_errors(output: Path, last: int) -> tuple[int, int]:
    """Return rows that the counts of all batches lack, and rows that they have too often."""
    lost = repeated = 0
    for number in range(last + 1):
        counts = json.loads((output / f"{number}.json").read_text())
        right = ROWS * (number + 1) // KEYS
        for key in map(str, range(KEYS)):
            lost += max(0, right - counts.get(key, 0))
            repeated += max(0, counts.get(key, 0) - right)
    return lost, repeated


def endings(folder: Path) -> list[str]:
    """Return how the journaled changes ended, where not as wanted."""
    journal = open_journal(str(folder / "journal.db"))
    try:
        ends = [entry.record for entry in journal.read(NAME, kinds=("intent_end",))]
    finally:
        journal.close()
    return [f"{end.ending}: {end.why}" for end in ends if isinstance(end, IntentEnd) and end.why]
