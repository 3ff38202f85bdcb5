"""The counting job of `folder_spark.py` on a real Spark, with the same faults around its calls.

The input is a stream in the JVM's memory, which outlives a query and reads again what a batch has dropped. A system
property of the JVM holds tasks back: a batch then begins and does not end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from folder_spark import CallError, Faults, FaultyFiles, FaultyQuery, Format, JobQuery, count_by_key
from pyspark.sql import DataFrame, SparkSession
from step_clock import StepClock

from rheostat.engine.spark.lifecycle.application import Admit, Build, Query, SparkApplication, StartQuery
from rheostat.engine.spark.lifecycle.checkpoint import FORMAT, STORE, Checkpoint, StateStore, Tool
from rheostat.engine.spark.lifecycle.files import HadoopFiles
from rheostat.engine.spark.lifecycle.shape import MicroBatch, Shape
from rheostat.job.allocation import Allocation

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
PAUSE = "rheostat.tests.pause.ms"
PAUSE_MS = "2000"
"""Milliseconds that a task waits before each record: a batch of twenty records in two tasks takes twenty seconds."""
POLL_S = 0.01
PATIENCE_S = 120.0


class KilledError(BaseException):
    """The driver was killed: nothing that it still does has an effect."""


class DeadlyFaults(Faults):
    """Faults in a process that must survive: a kill fails this call and all later ones, whatever catches them.

    A wait asks the same again and again, as often as the machine is slow. It counts as one call.
    """

    def __init__(self, at: int = 0, how: str = "raise") -> None:
        super().__init__(at, how)
        self.killed = False
        self._asked: set[str] = set()

    def call(self, what: str, function: Any) -> Any:
        if self.killed:
            raise KilledError(what)
        if what.startswith("query: ") and what != "query: stop":
            if what in self._asked:
                return function()
            self._asked.add(what)
        else:
            self._asked.clear()
        if self.how == "kill" and len(self.calls) + 1 == self.at:
            self.calls.append(what)
            self.killed = True
            raise KilledError(what)
        return super().call(what, function)


class HurriedClock(StepClock):
    """Time that moves as far as a driver sleeps, while Spark gets a moment to work."""

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, POLL_S))
        super().sleep(seconds)


class Whole(MicroBatch):
    """State with one partition per slot, which moves only after a whole batch: fewer tasks than by default."""

    def shuffle_partitions(self, allocation: Allocation) -> int:
        return allocation.slots

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        return allocation.slots


class SparkJob:
    """A counting job: its input is a stream in memory, its sink a table in memory."""

    shape: Shape = Whole()

    def __init__(self, spark: SparkSession, folder: Path, written: Format) -> None:
        self.spark, self.folder, self.format = spark, folder, written
        self.files = HadoopFiles(spark, str(folder / "checkpoint"))
        self.arrived = 0
        jvm: Any = spark._jvm
        self._jvm = jvm
        streams = jvm.org.apache.spark.sql.execution.streaming.runtime.MemoryStream
        session: Any = spark._jsparkSession
        self._stream = streams.apply(2, jvm.org.apache.spark.sql.Encoders.INT(), session.sqlContext())
        self._table = "counts_" + "".join(letter if letter.isalnum() else "_" for letter in folder.name)

    @staticmethod
    def settings(written: Format) -> dict[str, str]:
        """Return what the session needs for a state format."""
        return {STORE: ROCKSDB, FORMAT: str(written.version), CHANGELOG: str(written.changelog).lower()}

    def application(self, faults: Faults | None = None, **behaviour: Any) -> FaultySparkApplication:
        return FaultySparkApplication(self, faults or DeadlyFaults(), **behaviour)

    def clock(self) -> HurriedClock:
        """Return the clock of a driver."""
        return HurriedClock()

    def start(self) -> Any:
        rows = DataFrame(self._stream.toDF(), self.spark)
        pause = f"cast(java_method('java.lang.System', 'getProperty', '{PAUSE}', '0') as bigint)"
        slept = rows.selectExpr("value", f"java_method('java.lang.Thread', 'sleep', {pause}) as slept")
        counted = slept.where("slept is not null").selectExpr("value * value % 11 as key").groupBy("key").count()
        writer = counted.writeStream.outputMode("complete").format("memory").queryName(self._table)
        return writer.option("checkpointLocation", self.files.location).start()

    def feed(self, records: int) -> None:
        new = list(range(self.arrived, self.arrived + records))
        self._stream.addData(self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(new))
        self.arrived += records

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._jvm.java.lang.System.setProperty(PAUSE, PAUSE_MS)
        try:
            yield
        finally:
            self.resume()

    def resume(self) -> None:
        self._jvm.java.lang.System.clearProperty(PAUSE)

    def results(self) -> dict[int, int]:
        return {int(row["key"]): int(row["count"]) for row in self.spark.table(self._table).collect()}

    def expected(self) -> dict[int, int]:
        return count_by_key(self.arrived)

    def begins_batch(self) -> None:
        """Wait until a batch has begun and not ended."""
        checkpoint, deadline_s = Checkpoint(self.files, lambda *_: None), time.monotonic() + PATIENCE_S
        while checkpoint.begun == checkpoint.done:
            assert time.monotonic() < deadline_s, "no batch begins"
            time.sleep(POLL_S)

    def end_queries(self) -> None:
        """Stop what runs on the checkpoint, as the end of a driver does."""
        for query in self.spark.streams.active:
            if query.name == self._table:
                query.stop()


class SparkQuery:
    """A query of Spark that may be stopped inside a batch."""

    def __init__(self, job: SparkJob, query: Any, unfinished_at_stop: bool) -> None:
        self.query, self._job, self._unfinished_at_stop = query, job, unfinished_at_stop

    @property
    def isActive(self) -> bool:  # noqa: N802
        return bool(self.query.isActive)

    @property
    def lastProgress(self) -> Any:  # noqa: N802
        return self.query.lastProgress

    @property
    def status(self) -> Any:
        return self.query.status

    def exception(self) -> Exception | None:
        error: Exception | None = self.query.exception()
        return error

    def stop(self) -> None:
        if not self._unfinished_at_stop or not self.isActive:
            self.query.stop()
            return
        with self._job.paused():
            self._job.feed(20)
            self._job.begins_batch()
            self.query.stop()

    def process_all(self) -> None:
        self.query.processAllAvailable()


class FaultySparkApplication(SparkApplication):
    """The application of a SparkSession, whose calls may fail."""

    def __init__(
        self, job: SparkJob, faults: Faults, *, unfinished_at_stop: bool = False, tool_fails_at: int = -1
    ) -> None:
        super().__init__(job.spark)
        self.job, self.faults, self.has_ended = job, faults, False
        self.unfinished_at_stop, self._tool_fails_at = unfinished_at_stop, tool_fails_at
        self.query: JobQuery | None = None

    def ended(self) -> bool:
        return self.faults.call("has the application ended", super().ended)

    def checkpoint(self, location: str) -> Checkpoint:
        real = super().checkpoint(location)
        return Checkpoint(FaultyFiles(real.files, self.faults, "rheostat"), self._faulty(real._tool))

    def location(self, query: Any) -> str:
        real = super().location
        return self.faults.call("location of the query", lambda: real(_raw(query)))

    def build(self, build: Build, allocation: Allocation) -> StartQuery:
        real = super().build
        return self.faults.call(f"build {allocation}", lambda: real(build, allocation))

    def start(self, start: StartQuery, partitions: int, admit: Admit) -> Query:
        real = super().start

        def ask(location: str) -> None:
            try:
                admit(location)
            except KilledError as killed:
                raise CallError("the driver was killed") from killed  # Spark calls from a thread of its own

        def begin() -> SparkQuery:
            try:
                self.query = query = SparkQuery(self.job, real(start, partitions, ask), self.unfinished_at_stop)
            except CallError as error:
                raise error.__cause__ or error from None
            return query

        return FaultyQuery(self.faults.call("start the query", begin), self.faults)

    def _faulty(self, tool: Tool) -> Tool:
        def run(location: str, partitions: int, exactly_once: bool, version: str) -> None:
            with self._obstacle(partitions):
                tool(location, partitions, exactly_once, version)

        return lambda *call: self.faults.call("call the tool", lambda: run(*call))

    @contextmanager
    def _obstacle(self, partitions: int) -> Iterator[None]:
        """Put a file where the tool needs the folder of its last partition: the task that writes it fails."""
        if self._tool_fails_at < 0:
            yield
            return
        file = self.job.folder / "checkpoint" / "state" / "0" / str(partitions - 1)
        file.write_text("")
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                file.unlink()


def _raw(query: Any) -> Any:
    """Return Spark's own query."""
    while isinstance(query, FaultyQuery | SparkQuery):
        query = query.query
    return query
