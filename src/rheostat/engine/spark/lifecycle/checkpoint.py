"""A query's checkpoint: its batches, the partitions of its state, and the repair of an interrupted repartition.

A checkpoint has two logs: `offsets/N` is written when batch N begins, `commits/N` when it ends. A repartition of the
state is a batch of its own, N+1, which reads no data. It only adds files. So deleting the files after N undoes it,
commits first: a commit without its offsets is an error for Spark.

All access goes through Hadoop's file system API in the JVM, so it works wherever Spark writes its checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rheostat.errors import EngineError, first_line
from rheostat.job.frozen import from_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = "spark.sql.shuffle.partitions"
STORE = "spark.sql.streaming.stateStore.providerClass"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
REALTIME_NAMES: Mapping[str, str] = {"StatefulStreamlineAggregate": "stateStoreSave"}
"""Real-time mode's name of a stateful operator -> micro-batch mode's name of the same one."""
RENAMED_IN = ("4.3.",)
"""Versions of Spark for which renaming state is tested."""
GONE = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")
"""Errors when a file is deleted before it is read."""
STEP = "repartition "
"""Beginning of a journaled repartition."""
SAME = "SHUFFLE_PARTITIONS_ALREADY_MATCH"
"""Spark's error class when the state has the requested number of partitions already."""


@dataclass(frozen=True, slots=True)
class Repartition:
    """A repartition of the state, with all that finishing or undoing it needs. It is journaled before it begins."""

    checkpoint: str
    batch: int
    """The last finished batch before it."""
    old: int
    new: int

    def __str__(self) -> str:
        return STEP + json.dumps(asdict(self))

    @staticmethod
    def read(step: str) -> Repartition | None:
        """Read a journaled step; return None if it is not a repartition, InvalidValue if it cannot be read."""
        return from_json(Repartition, step.removeprefix(STEP)) if step.startswith(STEP) else None


@dataclass(frozen=True, slots=True)
class StateStore:
    """The state store of a query."""

    partitions: int
    provider: str
    """Name of the provider class without its package."""

    @property
    def movable(self) -> bool:
        """Whether Spark can repartition it."""
        return self.provider == "RocksDBStateStoreProvider"


class Checkpoint:
    """The checkpoint of one query. The query must be stopped before a call that changes it."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark, self.location = spark, location
        jvm: Any = spark._jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._text: Any = jvm.org.apache.commons.io.IOUtils
        self._conf_of_files: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._files: Any = self._path(location).getFileSystem(self._conf_of_files)
        # Spark's own manager writes atomically on every store that Spark supports.
        self._manager: Any = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

    @classmethod
    def of(cls, spark: SparkSession, query: StreamingQuery) -> Checkpoint:
        """Return the checkpoint of a running or stopped query."""
        return cls(spark, str(query._jsq.streamingQuery().resolvedCheckpointRoot()))

    @property
    def resolved(self) -> tuple[str, str, str]:
        """Scheme, authority and path of the location: the same for all ways to write it."""
        uri = self._files.makeQualified(self._path(self.location)).toUri()
        return str(uri.getScheme()), str(uri.getAuthority() or ""), str(uri.getPath())

    @property
    def begun(self) -> int:
        """The last batch that has begun; -1 before the first."""
        return max(self._batches("offsets"), default=-1)

    @property
    def done(self) -> int:
        """The last batch that has finished; -1 before the first."""
        return max(self._batches("commits"), default=-1)

    def state(self) -> StateStore | None:
        """Return the state store; None if the query has no state or has not begun a batch."""
        last = self.begun
        if last < 0 or not self._files.exists(self._at("state")):
            return None
        conf = self._conf(last)
        return StateStore(int(conf[PARTITIONS]), conf[STORE].rpartition(".")[2])

    def immovable_reason(self) -> str:
        """Return why Spark would refuse to repartition this state; "" if it would not."""
        state = self.state()
        if state is None:
            return ""
        if not state.movable:
            return f"{state.provider} cannot repartition the state: RocksDB can"
        if realtime := [name for name in self.operators() if name in REALTIME_NAMES]:
            return (
                f"the state was created by real-time mode ({realtime[0]}), and Spark refuses to repartition it under "
                "that name: start on a new checkpoint, which Rheostat creates with a micro-batch, or rename the state "
                "(docs/realtime.md)"
            )
        return ""

    def rename(self, spark_version: str) -> tuple[str, ...]:
        """Rename state of real-time mode so that it can be repartitioned; return the old names.

        Each file is replaced atomically. The query must be stopped.
        """
        if not spark_version.startswith(RENAMED_IN):
            tested = " or ".join(f"{version}x" for version in RENAMED_IN)
            raise EngineError(f"renaming state is tested on Spark {tested} only, not on {spark_version}")
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
        """Return the text of a file of Rheostat's; None if there is none. Another driver may write it meanwhile."""
        from py4j.protocol import Py4JJavaError

        file, files = self._at(*names), self._files
        if str(files.getScheme()) == "file":
            # The local file system replaces a file and its checksum one after the other: in between they do not match.
            files = files.getRawFileSystem()
        try:
            return self._read(file, files) if files.exists(file) else None
        except Py4JJavaError as error:
            if str(error.java_exception.getClass().getName()) in GONE:
                return None
            raise

    def write(self, text: str, *names: str) -> None:
        """Write a file of Rheostat's atomically."""
        self._files.mkdirs(self._at(*names[:-1]))
        self._replace(self._at(*names), text)

    def delete(self, *names: str) -> None:
        """Delete a file of Rheostat's."""
        self._files.delete(self._at(*names), False)

    def operators(self) -> tuple[str, ...]:
        """Return the names of the stateful operators in their metadata."""
        return tuple(str(operator["operatorName"]) for _, operator in self._metadata())

    def _metadata(self) -> list[tuple[Any, dict[str, Any]]]:
        """Return the metadata file of every stateful operator, with its content."""
        folder, metadata = self._at("state"), []
        for entry in self._files.listStatus(folder) if self._files.exists(folder) else ():
            file = self._at("state", str(entry.getPath().getName()), "_metadata", "metadata")
            if self._files.exists(file):
                metadata.append((file, json.loads(self._read(file).splitlines()[-1])["operatorInfo"]))
        return metadata

    def repartition(self, change: Repartition, *, exactly_once: bool = True) -> None:
        """Repartition the state; do nothing if it has the new number already.

        `exactly_once` refuses a checkpoint whose last batch has not finished. Without it Spark drops that batch, and a
        sink that deduplicates by batch id gets its records twice.
        """
        # The format must be that of the commit log, not the session's default.
        version = self._read(self._at("commits", str(change.batch))).splitlines()[0].removeprefix("v")
        try:
            with temporary_settings(self._spark, {FORMAT: version}):
                self._spark._streamingCheckpointManager.repartition(self.location, change.new, exactly_once)
        except Exception as error:
            if SAME not in str(error):
                raise EngineError(f"the state cannot be repartitioned: {_first_line(error)}") from error

    def roll_back(self, batch: int) -> None:
        """Make this finished batch the last one: delete all later ones."""
        if batch not in self._batches("commits"):
            raise EngineError(f"{self.location}: batch {batch} has not finished, nothing was rolled back")
        for log in ("commits", "offsets"):
            for number in sorted(self._batches(log), reverse=True):
                if number > batch:
                    # Spark's local file systems delete the checksum file, too.
                    self._files.delete(self._at(log, str(number)), False)

    def is_interrupted(self, change: Repartition) -> bool:
        """Whether this repartition was interrupted; Spark itself repeats any other batch without a commit."""
        begun = self.begun
        interrupted = begun == change.batch + 1 and self.done == change.batch
        return interrupted and self._conf(begun).get(PARTITIONS) == str(change.new)

    def repair(self, change: Repartition, *, exactly_once: bool = True) -> str:
        """Finish an interrupted repartition, or else undo it; return the action, "" for none."""
        if not self.is_interrupted(change):
            return ""
        try:
            # Spark accepts only the same number.
            self.repartition(change, exactly_once=exactly_once)
        except EngineError as error:
            self.roll_back(change.batch)
            return f"rolled back to batch {change.batch} and {change.old} partitions: {error}"
        return f"finished the repartition from {change.old} to {change.new} partitions"

    def _batches(self, log: str) -> list[int]:
        folder = self._at(log)
        if not self._files.exists(folder):
            return []
        names = [str(entry.getPath().getName()) for entry in self._files.listStatus(folder)]
        return [int(name) for name in names if name.isdigit()]

    def _conf(self, batch: int) -> dict[str, str]:
        """Return the settings that the checkpoint fixes: the second line of a batch's offsets."""
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
        """Replace a file atomically."""
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
def temporary_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set these settings while a query starts, which copies them; then restore the session's own."""
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
    """Return the first line of a Java exception's message, without Py4J's stack trace."""
    java: Any = getattr(error, "java_exception", None)
    return first_line(error if java is None else str(java.getMessage() or type(error).__name__))
