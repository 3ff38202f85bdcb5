"""A query's checkpoint: how far it is, how its state is partitioned, and repairing a repartition that was cut off.

A checkpoint has two logs: `offsets/N` is written when batch N begins, `commits/N` when it is done. Changing the number
of the state's partitions is a batch of its own, N+1, which reads no data. It only adds files, so it can be undone by
deleting what came after N, commits first: a commit without its offsets is an error for Spark.

Everything goes through the file system's own API in the JVM, so that it works wherever Spark writes its checkpoints.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rheostat.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = "spark.sql.shuffle.partitions"
STORE = "spark.sql.streaming.stateStore.providerClass"
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
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._files: Any = self._path(location).getFileSystem(conf)

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

    def repartition(self, change: Repartition, *, exactly_once: bool = True) -> None:
        """Move the state to the new number of partitions; when it has that number already, all is well.

        `exactly_once` refuses a checkpoint whose last batch was not finished; without it Spark gives up that batch,
        and a sink that goes by batch numbers gets its records twice.
        """
        try:
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
        stream = self._files.open(self._at("offsets", str(batch)))
        try:
            lines = str(self._text.toString(stream, "UTF-8")).splitlines()
        finally:
            stream.close()
        conf: dict[str, str] = json.loads(lines[1])["conf"]
        return conf

    def _at(self, *names: str) -> Any:
        return self._path("/".join((self.location, *names)))


def _first_line(error: Exception) -> str:
    """Return what a Java exception says, without the stack that Py4J puts around it."""
    java: Any = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage())
    return text.splitlines()[0] if text else type(error).__name__
