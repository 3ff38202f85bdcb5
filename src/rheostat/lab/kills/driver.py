"""The drivers of the kills, each in its own process: they prepare, repartition, undo and check."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rheostat.engine.spark.session.log4j import quiet
from rheostat.errors import EngineError, describe
from rheostat.lab.experiment.processes import await_true, silence
from rheostat.lab.kills.evidence import has_note, is_unfinished
from rheostat.lab.kills.job import KEYS, SLOW_MS, Counting, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = 3
"""Batches before the driver that is killed."""
AT_ONCE = 3
"""Queries that are checked at the same time: a claim on a killed driver's checkpoint waits for seconds."""
UNFINISHED_S = 60.0
"""Seconds within which a batch must have begun."""


@dataclass(frozen=True)
class Check:
    """What a driver has found in a place."""

    keys_wrong: int
    problem: str = ""
    """Why the query did not run; then every key counts as wrong."""


def prepare(places: Sequence[Place], scratch: Path) -> None:
    """Create the queries and their state, and stop them in order."""
    silence()
    with _open_session(scratch) as spark:
        for place in places:
            job = Counting(spark, place)
            job.begin()
            job.process(BEFORE)
            job.end()


def move(place: Place, scratch: Path) -> None:
    """Start the query and repartition its state; then wait for the kill."""
    silence()
    with _open_session(scratch) as spark, _report_to(place):
        job = Counting(spark, place)
        job.begin()
        job.process()
        if not place.format.exactly_once:
            place.send(pause_ms=SLOW_MS)
            if not await_true(lambda: is_unfinished(place.checkpoint), UNFINISHED_S):
                raise EngineError(f"no batch began within {UNFINISHED_S:g} s")
        job.restart(place.format.slots[1])
        threading.Event().wait()


def undo(place: Place, scratch: Path) -> None:
    """Start the query on what a killed driver has left; then wait for the kill."""
    silence()
    with _open_session(scratch) as spark, _report_to(place):
        Counting(spark, place).begin()
        threading.Event().wait()


def check(places: Sequence[Place], scratch: Path, again: bool) -> list[Check]:
    """Continue in every place, load the state again, and compare all counts.

    The first time the query restarts as it is; `again` also repartitions its state.
    """

    def continue_in(place: Place) -> Check:
        job = Counting(spark, place)
        try:
            job.begin()
            job.process(2)
            wrong = job.wrong_keys()
            if again:
                job.restart(place.format.slots[2])
                job.process()
                wrong |= job.wrong_keys()
            job.restart()
            job.process()
            wrong |= job.wrong_keys()
            job.end()
        except Exception as error:  # noqa: BLE001 - a query that does not run is a result
            return Check(KEYS, describe(error))
        left = "the note of the repartition is left" if has_note(place.checkpoint) else ""
        return Check(len(wrong), left)

    silence()
    with _open_session(scratch) as spark, ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(continue_in, places))


@contextmanager
def _open_session(scratch: Path) -> Iterator[SparkSession]:
    from rheostat.engine.spark.session.session import start_session

    scratch.mkdir(parents=True, exist_ok=True)
    spark = start_session(
        {
            "spark.app.name": "rheostat-kills",
            "spark.master": "local[4]",
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            **quiet(scratch),
        }
    )
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _report_to(place: Place) -> Iterator[None]:
    """Leave the error of a driver that ends before it is killed in its folder."""
    try:
        yield
    except Exception as error:
        (place.folder / "error").write_text(describe(error))
        raise
