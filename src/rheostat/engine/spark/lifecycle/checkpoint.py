"""A query's checkpoint: its batches, the partitions of its state, and the undoing of an interrupted repartition.

A checkpoint has two logs: `offsets/N` is written when batch N begins, `commits/N` when it ends. State of batch N is
version N+1 in `state/OPERATOR/PARTITION/`. Spark's tool repartitions state in a batch of its own, which reads no data.
Without exactly-once it first gives every batch that has begun and not ended an empty commit. The tool only adds files,
so deleting what it added undoes it. A kill can leave any part of that behind.

Therefore a note in the checkpoint (`rheostat/repartition`) says what was there before, from before the tool begins
until it has committed or is undone. While there is a note, all that is newer belongs to the tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rheostat.engine.spark.lifecycle.files import Files
from rheostat.errors import EngineError, InvalidValue, first_line
from rheostat.job.frozen import from_json

PARTITIONS = "spark.sql.shuffle.partitions"
STORE = "spark.sql.streaming.stateStore.providerClass"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
REALTIME_NAMES: Mapping[str, str] = {"StatefulStreamlineAggregate": "stateStoreSave"}
"""Real-time mode's name of a stateful operator -> micro-batch mode's name of the same one."""
RENAMED_IN = ("4.3.",)
"""Versions of Spark for which renaming state is tested."""
NOTE = ("rheostat", "repartition")
"""The file that says that a repartition is under way."""
SAME = "SHUFFLE_PARTITIONS_ALREADY_MATCH"
"""Spark's error class when the state has the requested number of partitions already."""
NO_TOOL = "this Spark cannot repartition state: 4.2 and newer can"
VERSION = re.compile(r"(\d+)(?:_[\w-]+)?\.(?:zip|changelog|delta|snapshot)(?:\.|$)")
"""Name of a file with one version of a partition's state, in state formats 1 and 2."""

Tool = Callable[[str, int, bool, str], None]
"""Spark's repartitioning: checkpoint, new number, whether exactly once, version of the state format."""


@dataclass(frozen=True, slots=True)
class Repartition:
    """A repartition of the state, with all that undoing it needs."""

    batch: int
    """The last batch before it that has finished."""
    begun: int
    """The last batch before it that has begun."""
    old: int
    new: int

    def __str__(self) -> str:
        unfinished = f", without batch {self.begun}, which has not finished" if self.begun > self.batch else ""
        return f"repartition the state of batch {self.batch} from {self.old} to {self.new} partitions{unfinished}"


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

    def __init__(self, files: Files, tool: Tool, *, can_repartition: bool = True) -> None:
        self.files, self._tool, self.can_repartition = files, tool, can_repartition
        """Whether this Spark has that tool."""

    @property
    def location(self) -> str:
        """The checkpoint's folder."""
        return self.files.location

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
        if last < 0 or not self.files.entries("state"):
            return None
        conf = self._conf(last)
        return StateStore(int(conf[PARTITIONS]), conf[STORE].rpartition(".")[2])

    def check(self) -> None:
        """Raise EngineError if the newest file of a log is half written, as a kill leaves it where renames copy."""
        for log, last in (("offsets", self.begun), ("commits", self.done)):
            text = self.files.text(log, str(last)) if last >= 0 else None
            if text is not None and not _is_whole(text):
                raise EngineError(
                    f"{log}/{last} in {self.location} is half written, and Spark cannot read it: this store does not "
                    f"rename atomically; stop all drivers and delete {log}/{last}, then batch {last} is repeated"
                )

    def immovable_reason(self) -> str:
        """Return why Spark would refuse to repartition this state; "" if it would not."""
        state = self.state()
        if state is None:
            return ""
        if not self.can_repartition:
            return NO_TOOL
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
        for file, text in self._metadata():
            old = _operator_name(text)
            if (new := REALTIME_NAMES.get(old)) is None:
                continue
            self.files.replace(text.replace(f'"operatorName":"{old}"', f'"operatorName":"{new}"'), *file)
            renamed.append(old)
        return tuple(renamed)

    def operators(self) -> tuple[str, ...]:
        """Return the names of the stateful operators in their metadata."""
        return tuple(_operator_name(text) for _, text in self._metadata())

    # -- repartition ---------------------------------------------------------------------------------------------

    def plan(self, partitions: int) -> Repartition:
        """Return the repartition of the present state to a number of partitions."""
        state = self.state()
        if state is None:
            raise EngineError(f"{self.location} has no state to repartition")
        return Repartition(self.done, self.begun, state.partitions, partitions)

    def repartition(self, change: Repartition, *, exactly_once: bool = True) -> None:
        """Repartition the state; if Spark cannot, undo what it has begun and raise EngineError.

        `exactly_once` refuses a checkpoint whose last batch has not finished. Without it Spark drops that batch, and a
        sink that deduplicates by batch id gets its records twice.
        """
        # The format must be that of the commit log, not the session's default.
        commit = self.files.text("commits", str(change.batch)) or ""
        version = (commit.splitlines() or [""])[0].removeprefix("v")
        self.files.replace(json.dumps(asdict(change)), *NOTE)
        try:
            self._tool(self.location, change.new, exactly_once, version)
        except Exception as error:
            if SAME not in str(error):
                self.settle()
                raise EngineError(f"the state cannot be repartitioned: {_first_line(error)}") from error
        self.files.delete(*NOTE)

    def settle(self) -> str:
        """Undo a repartition that was interrupted, and forget one that has committed; return the action, "" for none.

        Only the driver that owns the checkpoint may call it, while no query runs.
        """
        text = self.files.text(*NOTE)
        if text is None:
            return ""
        try:
            change = from_json(Repartition, text)
        except InvalidValue as error:
            raise EngineError(
                f"{'/'.join(NOTE)} in {self.location} cannot be read, so whether a repartition was interrupted is "
                f"unknown: {error}; delete it if you are sure that none was"
            ) from error
        action = ""
        # The tool's commit is that of the batch after the last one that had begun.
        if self.done <= change.begun:
            self._undo(change)
            action = f"undone: {change}"
        self.files.delete(*NOTE)
        return action

    def _undo(self, change: Repartition) -> None:
        """Delete all that is newer than a repartition's beginning: commits first, the logs of its batch last."""
        if change.batch not in self._batches("commits"):
            raise EngineError(
                f"{self.location}: batch {change.batch} has no commit, so the repartition after it cannot be undone"
            )
        self._delete_newer("commits", change.batch)  # a commit without its offsets is an error for Spark
        # Otherwise Spark may load a snapshot of the new partitions later: in state format 1 it takes the newest one.
        for operator in self._numbered("state"):
            for partition in self._numbered("state", operator):
                self._delete_state("state", operator, partition, version=change.batch + 1)
            metadata = ("state", operator, "_metadata", "v2")
            for batch in self._numbered(*metadata):
                if int(batch) > change.batch:
                    self.files.delete(*metadata, batch)
        self._delete_newer("offsets", change.begun)

    def _delete_state(self, *folder: str, version: int) -> None:
        for name, entry in self.files.entries(*folder).items():
            found = VERSION.match(name)
            if entry.is_folder:
                self._delete_state(*folder, name, version=version)
            elif found is not None and int(found[1]) > version:
                self.files.delete(*folder, name)

    def _delete_newer(self, log: str, batch: int) -> None:
        for number in sorted(self._batches(log), reverse=True):
            if number > batch:
                self.files.delete(log, str(number))

    # -- the files -----------------------------------------------------------------------------------------------

    def _metadata(self) -> list[tuple[tuple[str, ...], str]]:
        """Return the metadata file of every stateful operator, with its text."""
        files = [("state", operator, "_metadata", "metadata") for operator in self._numbered("state")]
        return [(file, text) for file in files if (text := self.files.text(*file)) is not None]

    def _batches(self, log: str) -> list[int]:
        return [int(name) for name in self._numbered(log)]

    def _numbered(self, *folder: str) -> list[str]:
        return [name for name in self.files.entries(*folder) if name.isdigit()]

    def _conf(self, batch: int) -> dict[str, str]:
        """Return the settings that the checkpoint fixes: the second line of a batch's offsets."""
        text = self.files.text("offsets", str(batch))
        if text is None:
            raise EngineError(f"{self.location}: offsets/{batch} has been deleted")
        conf: dict[str, str] = json.loads(text.splitlines()[1])["conf"]
        return conf


def _is_whole(text: str) -> bool:
    """Whether a file of a log is complete: a version, a line of JSON, then offsets, which are JSON or plain."""
    version, *lines = text.splitlines() or [""]
    if not version.startswith("v") or not lines:
        return False
    try:
        for place, line in enumerate(lines):
            if place == 0 or line.startswith(("{", "[")):
                json.loads(line)
    except ValueError:
        return False
    return True


def _operator_name(metadata: str) -> str:
    return str(json.loads(metadata.splitlines()[-1])["operatorInfo"]["operatorName"])


def _first_line(error: Exception) -> str:
    """Return the first line of a Java exception's message, without Py4J's stack trace."""
    java: Any = getattr(error, "java_exception", None)
    return first_line(error if java is None else str(java.getMessage() or type(error).__name__))
