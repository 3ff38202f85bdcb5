"""The micro-batch job of a soak: counts by key with state in RocksDB, on `local-cluster` with 1 to 3 executors.

Each batch writes the counts that it has changed into a file under its number: a repeated batch replaces its file. The
source numbers its records without gaps, so the offsets of the last finished batch say what every count must be.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.job.guards import UNGUARDED
from rheostat.lab.experiment.processes import Child, enclose
from rheostat.lab.query_checkpoint import CheckpointReader
from rheostat.lab.soak.driver import serve
from rheostat.lab.soak.faults import Kind
from rheostat.lab.soak.restless import Restless
from rheostat.lab.workload.counting import due

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rheostat.job.allocation import Allocation

JOB = "soak"
"""The names of the job in the journal and of the query."""
KEYS, EXECUTORS = 1000, (1, 3)
SCHEDULE = Schedule(Constant(1.0), 500.0, 3600)
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
REST = Restless(most=EXECUTORS[1], chance=0.4)
"""A change every few steps: executors come and go, and live for a while."""
BEHIND = 200
"""Batches after which a file is folded: twice those that a checkpoint retains, so that none is repeated any more."""


class MicroBatchCount:
    """The job, seen from outside through its checkpoint and the files that it writes."""

    job, name = JOB, "microbatch"
    kinds: tuple[Kind, ...] = (Kind.DRIVER, Kind.JVM, Kind.EXECUTOR, Kind.STOP)

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed, self._counts = folder, seed, dict[str, int]()
        self._checkpoint = CheckpointReader(folder / "checkpoint")
        (folder / "out").mkdir()

    def close(self) -> None:
        """Do nothing: source and sink belong to the driver."""

    def start_driver(self, log_file: Path) -> Child:
        """Start a driver in its own process."""
        return Child(drive, str(self._folder), REST, self._seed, str(log_file))

    def records_due(self) -> int:
        """Return the records that the source has released; 0 before the first start."""
        with suppress(OSError, ValueError, IndexError):  # the file may be half written
            start_s = self._checkpoint.start_s()
            return 0 if start_s is None else SCHEDULE.due(max(0, int(time.time() - start_s)))
        return 0

    def records_finished(self) -> int:
        """Return the records that finished batches have read."""
        with suppress(OSError, ValueError, IndexError):
            return SCHEDULE.due(self._checkpoint.read_until(self._checkpoint.committed()))
        return 0

    def fold(self) -> None:
        """Fold the counts of old batches, and delete their files."""
        self._fold(self._checkpoint.committed() - BEHIND)

    def compare(self, end_driver: Callable[[], None]) -> tuple[int, int]:
        """End the driver, and return the keys that are wrong after the last finished batch, and its records."""
        end_driver()
        finished = self.records_finished()
        self._fold(self._checkpoint.committed())
        wanted = due(KEYS, {"source": finished})
        wrong = sum(self._counts.get(key) != wanted.get(key) for key in self._counts.keys() | wanted.keys())
        return wrong, finished

    def _fold(self, last: int) -> None:
        files = {int(file.stem): file for file in (self._folder / "out").glob("*.json")}
        for number in sorted(number for number in files if number <= last):
            self._counts.update(json.loads(files[number].read_text()))
            files[number].unlink()


class CountQuery:
    """Starts the query for an allocation, as a user's function does."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def start(self, allocation: Allocation) -> Any:
        """Start the query with a source task per slot."""
        from rheostat.engine.testbed.source import stream

        return (
            stream(self._spark, SCHEDULE, partitions=allocation.slots)
            .selectExpr(f"cast(pmod(value, {KEYS}) as string) as key")
            .groupBy("key")
            .count()
            .writeStream.outputMode("update")
            .foreachBatch(self._write)
            .queryName(JOB)
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(processingTime="1 second")
            .start()
        )

    def _write(self, frame: DataFrame, number: int) -> None:
        counts = {row["key"]: row["count"] for row in frame.collect()}
        draft = self._folder / "out" / f"{number}.new"
        draft.write_text(json.dumps(counts))
        draft.rename(draft.with_suffix(".json"))


def drive(folder: str, policy: Restless, seed: int, log_file: str) -> None:
    """Run a driver until SIGTERM."""
    from rheostat.api.options import Options
    from rheostat.api.start import start
    from rheostat.engine.spark.session.session import session
    from rheostat.engine.testbed.source import ScheduleCounter

    place = Path(folder)
    enclose(place, log_file)
    least, most = EXECUTORS
    conf = {**quiet(place), "spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    spark = session("rheostat-soak", min_executors=least, max_executors=most, conf=conf)
    scaler = start(
        CountQuery(spark, place).start,
        min_executors=least,
        max_executors=most,
        policy=policy,
        journal=str(place / "journal.db"),
        options=Options(
            name=JOB,
            interval_s=2.0,
            window_s=8.0,
            counters={JOB: ScheduleCounter(SCHEDULE)},
            guards=UNGUARDED,
            seed=seed,
        ),
    )
    serve(scaler, spark, place)
    spark.stop()
