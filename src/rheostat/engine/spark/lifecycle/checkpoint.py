"""A query's checkpoint: how far it is, how its state is partitioned, and repairing a repartition that was cut off.

A checkpoint has two logs: `offsets/N` is written when batch N begins, `commits/N` when it is done. Changing the number
of the state's partitions is a batch of its own, N+1, which reads no data. It only adds files, so it can be undone by
deleting what came after N, commits first: a commit without its offsets is an error for Spark.

Everything goes through the file system's own API in the JVM, so that it works wherever Spark writes its checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rheostat.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = "spark.sql.shuffle.partitions"
STORE = "spark.sql.streaming.stateStore.providerClass"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
REALTIME_NAMES: Mapping[str, str] = {"StatefulStreamlineAggregate": "stateStoreSave"}
"""What real-time mode calls a stateful operator, and what a micro-batch calls the same one."""
RENAMED_IN = ("4.3.",)
"""Versions of Spark under which renaming state was tried."""
GONE = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")
"""What reading a file says that was deleted meanwhile."""
WORD = "repartition "
SAME = "SHUFFLE_PARTITIONS_ALREADY_MATCH"
"""Spark's name for asking for the number that is there already."""


@dataclass(frozen=True, slots=True)
class Repartition:
    """A change of the state's partitions: all that is needed to finish or undo it. Journaled before it is made."""

    checkpoint: str
    batch: int
    """The last finished batch before it."""
    old: int
    new: int

    def __str__(self) -> str:
        return WORD + json.dumps(asdict(self))

    @staticmethod
    def read(step: str) -> Repartition | None:
        """Read the step of a change as it was journaled; None when it is another one."""
        return Repartition(**json.loads(step.removeprefix(WORD))) if step.startswith(WORD) else None


@dataclass(frozen=True, slots=True)
class StateStore:
    """How a query keeps its state."""

    partitions: int
    provider: str
    """The class, without its package."""

    @property
    def movable(self) -> bool:
        """Whether Spark can give it another number of partitions."""
        return self.provider == "RocksDBStateStoreProvider"


class Checkpoint:
    """The checkpoint of one query. What changes it needs the query stopped."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark, self.location = spark, location
        jvm: Any = spark._jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._text: Any = jvm.org.apache.commons.io.IOUtils
        self._conf_of_files: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._files: Any = self._path(location).getFileSystem(self._conf_of_files)
        # Spark's own: what it writes appears as a whole or not at all, on every store that it supports.
        self._manager: Any = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

    @classmethod
    def of(cls, spark: SparkSession, query: StreamingQuery) -> Checkpoint:
        """Return the checkpoint of a query that runs, or that ran."""
        return cls(spark, str(query._jsq.streamingQuery().resolvedCheckpointRoot()))

    @property
    def begun(self) -> int:
        """The last batch that was begun; -1 before the first."""
        return max(self._batches("offsets"), default=-1)

    @property
    def done(self) -> int:
        """The last batch that was finished; -1 before the first."""
        return max(self._batches("commits"), default=-1)

    def state(self) -> StateStore | None:
        """Return how the state is kept; None when the query has none, or has not begun a batch."""
        last = self.begun
        if last < 0 or not self._files.exists(self._at("state")):
            return None
        conf = self._conf(last)
        return StateStore(int(conf[PARTITIONS]), conf[STORE].rpartition(".")[2])

    def immovable(self) -> str:
        """Say why Spark would refuse to repartition this state; "" where it can be done."""
        state = self.state()
        if state is None:
            return ""
        if not state.movable:
            return f"its state is kept by {state.provider}, which cannot be repartitioned: RocksDB can"
        if made := [name for name in self.operators() if name in REALTIME_NAMES]:
            return (
                f"its state was made by real-time mode ({made[0]}), whose name for it Spark refuses to repartition: "
                "start it on a new checkpoint, which Rheostat lets a micro-batch make, or rename it (docs/realtime.md)"
            )
        return ""

    def rename(self, spark_version: str) -> tuple[str, ...]:
        """Give state that real-time mode made the name that can be repartitioned; return what was renamed.

        Each file is written anew beside the old one and takes its place in one step. The query must be stopped.
        """
        if not spark_version.startswith(RENAMED_IN):
            raise EngineError(
                f"state is only renamed under Spark {' or '.join(RENAMED_IN)}, where it was tried, not {spark_version}"
            )
        renamed = []
        for file, operator in self._metadata():
            old = str(operator["operatorName"])
            if (new := REALTIME_NAMES.get(old)) is None:
                continue
            text = self._read(file).replace(f'"operatorName":"{old}"', f'"operatorName":"{new}"')
            self._replace(file, text)
            renamed.append(old)
        return tuple(renamed)

    def text(self, *names: str) -> str | None:
        """Return what a file beside Spark's own says; None where there is none. Another one may be writing it."""
        from py4j.protocol import Py4JJavaError

        file, files = self._at(*names), self._files
        if str(files.getScheme()) == "file":
            # Here a file and its checksum are replaced one after the other: between the two they do not match.
            files = files.getRawFileSystem()
        try:
            return self._read(file, files) if files.exists(file) else None
        except Py4JJavaError as error:
            if str(error.java_exception.getClass().getName()) in GONE:
                return None
            raise

    def write(self, text: str, *names: str) -> None:
        """Write a file beside Spark's own, as a whole or not at all."""
        self._files.mkdirs(self._at(*names[:-1]))
        self._replace(self._at(*names), text)

    def delete(self, *names: str) -> None:
        """Delete a file beside Spark's own."""
        self._files.delete(self._at(*names), False)

    def operators(self) -> tuple[str, ...]:
        """Return the names of the stateful operators, as their metadata has them."""
        return tuple(str(found["operatorName"]) for _, found in self._metadata())

    def _metadata(self) -> list[tuple[Any, dict[str, Any]]]:
        """Return, of every stateful operator, the file with its metadata and what that says."""
        folder, found = self._at("state"), []
        for entry in self._files.listStatus(folder) if self._files.exists(folder) else ():
            file = self._at("state", str(entry.getPath().getName()), "_metadata", "metadata")
            if self._files.exists(file):
                found.append((file, json.loads(self._read(file).splitlines()[-1])["operatorInfo"]))
        return found

    def repartition(self, change: Repartition, *, exactly_once: bool = True) -> None:
        """Move the state to the new number of partitions; when it has that number already, all is well.

        `exactly_once` refuses a checkpoint whose last batch was not finished; without it Spark gives up that batch,
        and a sink that goes by batch numbers gets its records twice.
        """
        # The format is the commit log's, whatever this session would write.
        version = self._read(self._at("commits", str(change.batch))).splitlines()[0].removeprefix("v")
        try:
            with set_for_now(self._spark, {FORMAT: version}):
                self._spark._streamingCheckpointManager.repartition(self.location, change.new, exactly_once)
        except Exception as error:
            if SAME not in str(error):
                raise EngineError(f"the state cannot be repartitioned: {_first_line(error)}") from error

    def roll_back(self, batch: int) -> None:
        """Make this the last batch, which must be finished; whatever began later is forgotten."""
        if batch not in self._batches("commits"):
            raise EngineError(f"{self.location}: batch {batch} is not among the finished ones, nothing was undone")
        for log in ("commits", "offsets"):
            for number in sorted(self._batches(log), reverse=True):
                if number > batch:
                    # Spark's local file systems take the checksum file along.
                    self._files.delete(self._at(log, str(number)), False)

    def unfinished(self, change: Repartition) -> bool:
        """Whether this repartition was cut off; any other batch without a commit is repeated by Spark itself."""
        begun = self.begun
        cut_off = begun == change.batch + 1 and self.done == change.batch
        return cut_off and self._conf(begun).get(PARTITIONS) == str(change.new)

    def repair(self, change: Repartition, *, exactly_once: bool = True) -> str:
        """Finish a repartition that was cut off, or else undo it; return what was done, "" for nothing."""
        if not self.unfinished(change):
            return ""
        try:
            # Only the same number is accepted.
            self.repartition(change, exactly_once=exactly_once)
        except EngineError as error:
            self.roll_back(change.batch)
            return f"rolled back to batch {change.batch} and {change.old} partitions: {error}"
        return f"finished the change from {change.old} to {change.new} partitions"

    def _batches(self, log: str) -> list[int]:
        folder = self._at(log)
        if not self._files.exists(folder):
            return []
        names = [str(entry.getPath().getName()) for entry in self._files.listStatus(folder)]
        return [int(name) for name in names if name.isdigit()]

    def _conf(self, batch: int) -> dict[str, str]:
        """Return the settings that the checkpoint holds fast: the second line of a batch's offsets."""
        lines = self._read(self._at("offsets", str(batch))).splitlines()
        conf: dict[str, str] = json.loads(lines[1])["conf"]
        return conf

    def _read(self, file: Any, files: Any = None) -> str:
        stream = (files or self._files).open(file)
        try:
            return str(self._text.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _replace(self, file: Any, text: str) -> None:
        """Write a file anew; it takes the place of the old one in one step."""
        stream = self._manager.create(file.getParent(), self._conf_of_files).createAtomic(file, True)
        try:
            stream.write(bytearray(text.encode()))
        except BaseException:
            stream.cancel()
            raise
        stream.close()

    def _at(self, *names: str) -> Any:
        return self._path("/".join((self.location, *names)))


@contextmanager
def set_for_now(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Let a query start under these settings, of which it takes a copy; other work in the session goes on as before."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _first_line(error: Exception) -> str:
    """Return what a Java exception says, without the stack that Py4J puts around it."""
    java: Any = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage())
    return text.splitlines()[0] if text else type(error).__name__
