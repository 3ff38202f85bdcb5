"""A driver of the freeze bench, in its own process: it starts the counting query through `rheostat.start`.

It opens its Spark session at once, as a stand-by does, and starts the query when it is let go. A refused start is
repeated, as a service manager does. What happens to it goes into its diary, a file that outlives it.
"""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rheostat.engine.batches.progress import parse_progress
from rheostat.engine.spark.session.log4j import quiet
from rheostat.errors import RheostatError, describe, first_line
from rheostat.job.allocation import Allocation
from rheostat.kafka.jars import connector_jars
from rheostat.lab.experiment.processes import silence
from rheostat.lab.experiment.realtime_run import SINK, SOURCE, local_session
from rheostat.lab.freeze.commits import marking
from rheostat.lab.workload.counting import counting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from rheostat.api.scaler import Scaler

Mode = Literal["microbatch", "realtime"]
KEYS = 200
SLOTS = 6
"""Slots of real-time mode: two partitions of the topic, and `TASKS`."""
TASKS = Allocation({"key": 1, "count": 2})
INTERVAL_S = 5.0
"""Seconds between two decisions, of which there are none: the policy is static."""
LEASE_S = 3 * INTERVAL_S + 10.0
"""The journal's lease at this interval."""
RETRY_S = 1.0
"""Seconds before a refused start is repeated."""
POLL_S = 0.05
"""Seconds between two looks at the query, and for the signal to go."""


@dataclass(frozen=True)
class Driver:
    """One driver on the checkpoint of a round."""

    name: str
    """Name that ends each of its results in the output topic."""
    umask: int
    """Mark of its commits."""
    journal: str
    """Name of its journal's file."""
    mode: Mode
    servers: str
    folder: Path
    """The round's folder, with the checkpoint."""

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of its query, which other drivers of the round use, too."""
        return self.folder / "checkpoint"

    @property
    def diary(self) -> Diary:
        """Its diary."""
        return Diary(self.folder / f"{self.name}.jsonl")

    def let_go(self) -> None:
        """Let it start its query."""
        (self.folder / f"{self.name}.go").touch()

    @property
    def is_let_go(self) -> bool:
        """Whether it may start its query."""
        return (self.folder / f"{self.name}.go").exists()


@dataclass(frozen=True)
class Diary:
    """What happened to a driver, one JSON object per line."""

    file: Path

    def note(self, event: str, text: str = "", batch: int | None = None) -> None:
        """Add a line."""
        with self.file.open("a") as lines:
            lines.write(json.dumps({"at_s": time.time(), "event": event, "text": text, "batch": batch}) + "\n")

    def entries(self, event: str) -> list[dict[str, Any]]:
        """Return the entries of one kind; a line that is being written is left out."""
        if not self.file.exists():
            return []
        lines = self.file.read_text().rpartition("\n")[0].splitlines()
        return [entry for entry in map(json.loads, lines) if entry["event"] == event]


def drive(driver: Driver) -> None:
    """Run a driver until SIGTERM, or until its query has ended."""
    from rheostat.engine.spark.telemetry.feed import Feed

    silence()
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    spark, diary, feed = _open_session(driver), driver.diary, Feed()
    spark.streams.addListener(feed)
    diary.note("ready")
    scaler: Scaler | None = None
    while not ending and scaler is None:
        if not driver.is_let_go:
            time.sleep(POLL_S)
            continue
        try:
            scaler = _start(driver)
        except Exception as error:  # noqa: BLE001 - Spark's errors, too, are an answer to a start
            diary.note("refused", str(error) if isinstance(error, RheostatError) else describe(error))
            time.sleep(RETRY_S)
    if scaler is not None:
        diary.note("started")
        while not ending and (scaler.holds or any(query.isActive for query in scaler.queries)):
            _note_batches(diary, feed)
            time.sleep(POLL_S)
        diary.note("ended", first_line(scaler.status))
        scaler.stop()
        for query in scaler.queries:
            query.stop()
    _note_batches(diary, feed)
    spark.stop()


def _note_batches(diary: Diary, feed: Any) -> None:
    """Note the batches that Spark reports as finished, which it does after their commit."""
    for text in feed.drain():
        if (batch := parse_progress(text)) is not None:
            diary.note("batch", batch.run_id, batch.number)


def _open_session(driver: Driver) -> SparkSession:
    from rheostat.engine.spark.session.session import session

    place = driver.folder / driver.name
    place.mkdir()
    conf = {**quiet(place), **marking(driver.umask)}
    if driver.mode == "realtime":
        return local_session(SLOTS, conf)
    jars = ",".join(map(str, connector_jars()))
    conf |= {"spark.jars": jars, "spark.sql.session.timeZone": "UTC"}
    return session("rheostat-freeze", min_executors=1, max_executors=1, cores=2, conf=conf)


def _start(driver: Driver) -> Scaler:
    from pyspark.sql import SparkSession

    from rheostat.api.options import Options
    from rheostat.api.start import start

    staged = counting(driver.servers, SOURCE, SINK, str(driver.checkpoint), KEYS, driver.name)
    journal = str(driver.folder / driver.journal)
    options = Options(name="counting", interval_s=INTERVAL_S)
    if driver.mode == "realtime":
        return start(staged, mode="realtime", initial=TASKS, policy="static", journal=journal, options=options)

    def count_numbers(allocation: Allocation) -> StreamingQuery:
        return staged.start(SparkSession.active(), allocation, realtime=False)

    return start(count_numbers, max_executors=1, policy="static", journal=journal, options=options)
