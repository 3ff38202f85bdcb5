"""The counting query under kills: its formats of state, its files, and its counts beside those of a batch query.

A file of the input holds one number, and stands for a record of every key and a second one of some keys. So all counts
change with every file, and differ by key. A folder can be copied with its query.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rheostat.engine.spark.lifecycle.application import SparkApplication
from rheostat.engine.spark.lifecycle.checkpoint import FORMAT, STORE, StateStore
from rheostat.engine.spark.lifecycle.restart import Pipeline, build_at_start
from rheostat.engine.spark.lifecycle.shape import JOB, MicroBatch, Shape
from rheostat.job.allocation import Allocation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = 5_000
"""Keys in the state: a repartition takes more than a second."""
STEP = 7919
"""Coprime with `KEYS`: the keys with a second record differ from file to file."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
SLOW_MS = 1500
"""Milliseconds that a batch is held up so that a stop finds it unfinished."""


class Keyed(MicroBatch):
    """State with one partition per slot, as in real-time mode, which also shrinks; an unfinished batch is dropped."""

    exactly_once = False

    def stop_wait_s(self) -> float:
        """Return 0: a stop interrupts the batch."""
        return 0.0

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return the slots."""
        return allocation.slots

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return the slots."""
        return allocation.slots

    def with_state_partitions(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return the allocation with a slot per partition."""
        return Allocation({JOB: partitions})


@dataclass(frozen=True)
class Format:
    """How state is written, and whether a repartition waits for a whole batch."""

    version: int
    changelog: bool
    exactly_once: bool

    def __str__(self) -> str:
        changelog = "changelog" if self.changelog else "snapshots"
        return f"format {self.version}, {changelog}, {'exactly once' if self.exactly_once else 'unfinished batch'}"

    @property
    def shape(self) -> Shape:
        """The shape of the query."""
        return MicroBatch() if self.exactly_once else Keyed()

    @property
    def slots(self) -> tuple[int, int, int]:
        """Slots at the start, of the repartition that is interrupted, and of one afterwards."""
        return (2, 5, 6) if self.exactly_once else (10, 4, 6)

    @property
    def new_partitions(self) -> int:
        """Partitions that the interrupted repartition makes."""
        return self.shape.shuffle_partitions(Allocation({JOB: self.slots[1]}))


@dataclass(frozen=True)
class Place:
    """The folder of one query: input and checkpoint."""

    folder: Path
    format: Format

    @property
    def checkpoint(self) -> Path:
        """The checkpoint."""
        return self.folder / "checkpoint"

    @property
    def input(self) -> Path:
        """The files that were sent."""
        return self.folder / "input"

    def copy_to(self, folder: Path) -> Place:
        """Copy the folder, and give the copied query an id of its own: Spark runs one query per id."""
        shutil.copytree(self.folder, folder)
        copy = replace(self, folder=folder)
        (copy.checkpoint / ".metadata.crc").unlink(missing_ok=True)
        (copy.checkpoint / "metadata").write_text(json.dumps({"id": str(uuid4())}))
        return copy

    def send(self, files: int = 1, pause_ms: int = 0) -> None:
        """Send records of all keys; a pause holds up their batch."""
        self.input.mkdir(parents=True, exist_ok=True)
        for _ in range(files):
            number = len(list(self.input.glob("*.txt")))
            draft = self.folder / "draft"
            draft.write_text(f"{number} {pause_ms}")
            draft.rename(self.input / f"{number:04}.txt")


class Counting:
    """One driver's query in a place, in a session of its own."""

    def __init__(self, spark: SparkSession, place: Place) -> None:
        self.place, self._spark = place, spark.newSession()
        self._table = f"counts_{place.folder.name}"
        settings = {STORE: ROCKSDB, FORMAT: str(place.format.version), CHANGELOG: str(place.format.changelog).lower()}
        for name, value in settings.items():
            self._spark.conf.set(name, value)
        self.pipeline = Pipeline(SparkApplication(self._spark), build_at_start(self._start), shape=place.format.shape)

    def begin(self, slots: int | None = None) -> None:
        """Start the query, after what a killed driver has left is undone."""
        self.pipeline.begin(Allocation({JOB: slots or self.place.format.slots[0]}))
        self._await_pipeline()

    def restart(self, slots: int | None = None) -> None:
        """Restart the query, with the same slots unless others are given."""
        target = Allocation({JOB: slots or self.pipeline.slots})
        self.pipeline.restart(lambda: target, lambda _: None)
        self._await_pipeline()

    def process(self, files: int = 1) -> None:
        """Send records of all keys, a batch per file, and process them."""
        self.place.send(files)
        self.pipeline.query.processAllAvailable()

    def wrong_keys(self) -> set[str]:
        """Return the keys with wrong counts after the last batch."""
        counted = ((row["key"], row["count"]) for row in self._spark.table(self._table).collect())
        sent = _count(self._spark.read.text(str(self.place.input)))
        return wrong_keys(counted, ((row["key"], row["count"]) for row in sent.collect()))

    def end(self) -> None:
        """Stop the query, and give the checkpoint back."""
        self.pipeline.query.stop()
        self.pipeline.finish()

    def _await_pipeline(self) -> None:
        self.pipeline.wait()
        if self.pipeline.failure is not None:
            raise self.pipeline.failure

    def _start(self, _: Allocation) -> Any:
        from rheostat.lab.kills.source import NumberedFiles

        self.place.input.mkdir(parents=True, exist_ok=True)
        self._spark.dataSource.register(NumberedFiles)
        lines = self._spark.readStream.format(NumberedFiles.name()).load(str(self.place.input))
        # The text is what Spark makes of a method without a result.
        files = lines.where("reflect('java.lang.Thread', 'sleep', cast(split_part(value, ' ', 2) as bigint)) = 'null'")
        writer = _count(files).writeStream.outputMode("complete").format("memory")
        return writer.queryName(self._table).option("checkpointLocation", str(self.place.checkpoint)).start()


def _count(files: DataFrame) -> DataFrame:
    """Count the records of every key in the files, of a stream or of a batch query."""
    number = "cast(split_part(value, ' ', 1) as int)"
    records = files.selectExpr(f"explode(sequence(0, {KEYS} + {number} * {STEP} % {KEYS} - 1)) as record")
    return records.selectExpr(f"concat('key-', record % {KEYS}) as key").groupBy("key").count()


def wrong_keys(counted: Iterable[tuple[str, int]], sent: Iterable[tuple[str, int]]) -> set[str]:
    """Return the keys whose count is not what was sent, also those that are missing, twice there or never sent."""
    rows, wanted = Counter(counted), dict(sent)
    right = {key for (key, count), times in rows.items() if times == 1 and wanted.get(key) == count}
    several = {key for key, times in Counter(key for key, _ in rows).items() if times > 1}
    return (wanted.keys() | {key for key, _ in rows}) - (right - several)
