"""A Spark-free double of an application, its queries and the repartition tool, over a real folder.

The query counts records by key, as Spark would: offsets when a batch begins, state per partition, the sink, the commit.
Every call that a pipeline makes, and every file that the double writes, goes through `Faults`, which can make the k-th
one fail. `test_application.py` holds the double against a real Spark.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from step_clock import StepClock

from rheostat.engine.spark.lifecycle.application import Admit, Application, Build, Query, StartQuery
from rheostat.engine.spark.lifecycle.checkpoint import PARTITIONS, STORE, Checkpoint
from rheostat.engine.spark.lifecycle.files import Entry, Files
from rheostat.engine.spark.lifecycle.owner import Driver, Process
from rheostat.engine.spark.lifecycle.shape import MicroBatch, Shape
from rheostat.job.allocation import Allocation

T = TypeVar("T")
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SNAPSHOT_EVERY = 3
"""Versions between two snapshots of a state with changelogs. Spark's maintenance thread uploads one now and then."""
EMPTY_COMMIT = {"nextBatchWatermarkMs": 0}
"""What a commit says about a query without watermarks."""


class CallError(RuntimeError):
    """What a call that fails raises: an error that no code expects, as Py4J's are."""


@dataclass
class Faults:
    """Counts calls, and makes the k-th one fail: before it has an effect, after it, or by killing the process."""

    at: int = 0
    """Number of the call that fails; 0 for none."""
    how: str = "raise"
    calls: list[str] = field(default_factory=list)

    def call(self, what: str, function: Callable[[], T]) -> T:
        self.calls.append(what)
        if len(self.calls) != self.at:
            return function()
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "lost":
            function()
        raise CallError(f"call {self.at} failed ({self.how}): {what}")


class FolderFiles:
    """Files in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def location(self) -> str:
        return str(self._folder)

    def entries(self, *names: str) -> Mapping[str, Entry]:
        listed: dict[str, Entry] = {}
        with suppress(FileNotFoundError), os.scandir(self._at(*names)) as found:
            for file in found:
                if not file.name.endswith(".draft"):
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        listed[file.name] = Entry(file.is_dir(), file.stat().st_mtime)
        return listed

    def text(self, *names: str) -> str | None:
        try:
            return self._at(*names).read_text()
        except FileNotFoundError:
            return None

    def create(self, text: str, *names: str) -> bool:
        file = self._at(*names)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{os.urandom(4).hex()}.draft")
        draft.write_text(text)
        try:
            os.link(draft, file)
        except FileExistsError:
            return self.text(*names) == text  # as HadoopFiles: the answer of an earlier call may have been lost
        finally:
            draft.unlink()
        return True

    def replace(self, text: str, *names: str) -> None:
        file = self._at(*names)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{os.urandom(4).hex()}.draft")
        draft.write_text(text)
        draft.replace(file)

    def delete(self, *names: str) -> None:
        self._at(*names).unlink(missing_ok=True)

    def _at(self, *names: str) -> Path:
        return self._folder.joinpath(*names)


class FaultyFiles:
    """Files whose calls may fail."""

    def __init__(self, files: Files, faults: Faults, who: str) -> None:
        self._files, self._faults, self._who = files, faults, who

    @property
    def location(self) -> str:
        return self._files.location

    def entries(self, *names: str) -> Mapping[str, Entry]:
        return self._faults.call(self._what("list", names), lambda: self._files.entries(*names))

    def text(self, *names: str) -> str | None:
        return self._faults.call(self._what("read", names), lambda: self._files.text(*names))

    def create(self, text: str, *names: str) -> bool:
        return self._faults.call(self._what("create", names), lambda: self._files.create(text, *names))

    def replace(self, text: str, *names: str) -> None:
        self._faults.call(self._what("replace", names), lambda: self._files.replace(text, *names))

    def delete(self, *names: str) -> None:
        self._faults.call(self._what("delete", names), lambda: self._files.delete(*names))

    def _what(self, what: str, names: tuple[str, ...]) -> str:
        return f"{self._who}: {what} {'/'.join(names)}"


@dataclass(frozen=True)
class Format:
    """How state is written."""

    version: int = 1
    changelog: bool = False


class JobQuery(Query, Protocol):
    """A query of a counting job."""

    def process_all(self) -> None:
        """Run batches until every record has been counted; raise what the query fails with."""


class JobApplication(Application, Protocol):
    """An application in which calls fail on demand."""

    faults: Faults
    has_ended: bool

    @property
    def query(self) -> JobQuery | None:
        """The query that was started last, without faults."""


class CountingJob(Protocol):
    """A query that counts records by key, with its input, its checkpoint and its result."""

    format: Format

    @property
    def files(self) -> Files:
        """The checkpoint."""

    def application(
        self, faults: Faults | None = None, *, unfinished_at_stop: bool = False, tool_fails_at: int = -1
    ) -> JobApplication:
        """Return an application for the job: a driver of its own."""

    def start(self) -> Any:
        """Start the query, as a user's function does."""

    def feed(self, records: int) -> None:
        """Add records to the input."""

    def paused(self) -> AbstractContextManager[None]:
        """Return a context in which a batch begins, and does not end."""

    def resume(self) -> None:
        """Let the batch that runs end."""

    def results(self) -> dict[int, int]:
        """Return the count of every key in the sink."""

    def expected(self) -> dict[int, int]:
        """Return the count of every key in the input."""


def key_of(record: int) -> int:
    """Return the key by which a record is counted."""
    return record * record % 11


def count_by_key(records: int) -> dict[int, int]:
    """Count as a batch computation does."""
    return dict(Counter(key_of(record) for record in range(records)))


class Job:
    """A counting job: its input is a number of records, its sink a folder with one file per batch."""

    shape: Shape = MicroBatch()

    def __init__(self, folder: Path, written: Format) -> None:
        self.folder, self.format = folder, written
        self.files = FolderFiles(folder / "checkpoint")
        self.is_paused = False

    def application(self, faults: Faults | None = None, **behaviour: Any) -> FolderApplication:
        return FolderApplication(self, faults, **behaviour)

    def start(self) -> None:
        """Do nothing: the application creates the query."""

    def clock(self) -> StepClock:
        """Return the clock of a driver."""
        return StepClock()

    @property
    def arrived(self) -> int:
        file = self.folder / "arrived"
        return int(file.read_text()) if file.exists() else 0

    def feed(self, records: int) -> None:
        (self.folder / "arrived").write_text(str(self.arrived + records))

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.is_paused = True
        try:
            yield
        finally:
            self.resume()

    def resume(self) -> None:
        self.is_paused = False

    def results(self) -> dict[int, int]:
        """Return every key's count in the sink, which replaces a batch that is written again."""
        counts: dict[int, int] = {}
        files = (self.folder / "sink").glob("[0-9]*")
        for file in sorted(files, key=lambda file: int(file.name)):
            counts.update({int(key): count for key, count in json.loads(file.read_text()).items()})
        return counts

    def expected(self) -> dict[int, int]:
        return count_by_key(self.arrived)


class State:
    """State as RocksDB's provider writes it: a snapshot per version, or changelogs and a snapshot now and then.

    In format 2 every file has a name of its own. The commit names the last one, and a changelog the one before it.
    """

    def __init__(self, files: Files, written: Format) -> None:
        self._files, self._format = files, written

    def load(self, version: int, partitions: int, ids: list[str]) -> dict[int, int]:
        counts: dict[int, int] = {}
        for partition in range(partitions):
            counts.update(self._load(partition, version, ids[partition] if ids else ""))
        return {int(key): count for key, count in counts.items()}

    def _load(self, partition: int, version: int, unique: str) -> dict[Any, int]:
        if version == 0:
            return {}
        folder, name = ("state", "0", str(partition)), f"{version}_{unique}" if unique else str(version)
        # A snapshot of this version is read even where there is a changelog, too.
        if (snapshot := self._files.text(*folder, f"{name}.zip")) is not None:
            return dict(json.loads(snapshot))
        changelog = self._files.text(*folder, f"{name}.changelog")
        if changelog is None:
            raise RuntimeError(f"[CANNOT_LOAD_STATE_STORE] {'/'.join((*folder, name))} is missing")
        delta = json.loads(changelog)
        return {**self._load(partition, version - 1, delta["before"]), **delta["changes"]}

    def save(
        self,
        version: int,
        partitions: int,
        counts: dict[int, int],
        changed: dict[int, int] | None,
        before: list[str],
        fails_at: int = -1,
    ) -> list[str]:
        """Write a version after the one whose ids are `before`; without changes it is written whole, as by the tool."""
        ids = []
        for partition in range(partitions):
            if partition == fails_at:
                raise RuntimeError("STATE_REWRITER_FAILED: a task failed four times")
            mine = {key: count for key, count in counts.items() if key % partitions == partition}
            delta = {key: count for key, count in (changed or {}).items() if key % partitions == partition}
            unique = os.urandom(4).hex() if self._format.version == 2 else ""
            name = f"{version}_{unique}" if unique else str(version)
            folder = ("state", "0", str(partition))
            if self._format.changelog and changed is not None:
                link = {"before": before[partition] if before else "", "changes": delta}
                self._files.replace(json.dumps(link), *folder, f"{name}.changelog")
            if not self._format.changelog or changed is None or version % SNAPSHOT_EVERY == 0:
                self._files.replace(json.dumps(mine), *folder, f"{name}.zip")
            ids.append(unique)
        return [one for one in ids if one]

    def describe(self, partitions: int) -> None:
        """Write the operator's metadata, which the first batch does."""
        operator = {"operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"}}
        stores = {"stateStoreInfo": [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}]}
        text = json.dumps({**operator, **stores}, separators=(",", ":"))
        self._files.replace(f"v1\n{text}", "state", "0", "_metadata", "metadata")


class Log:
    """The offset and the commit log."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def last(self, log: str) -> int:
        return max((int(name) for name in self.files.entries(log) if name.isdigit()), default=-1)

    def offsets(self, batch: int) -> tuple[int, int]:
        """Return the end offset and the shuffle partitions of a batch."""
        lines = (self.files.text("offsets", str(batch)) or "").splitlines()
        return int(lines[2]), int(json.loads(lines[1])["conf"][PARTITIONS])

    def begin(self, batch: int, end: int, partitions: int) -> None:
        conf = {"conf": {PARTITIONS: str(partitions), STORE: ROCKSDB}}
        self._add("offsets", batch, f"v1\n{json.dumps(conf)}\n{end}")

    def commit(self, batch: int, version: int, ids: list[str]) -> None:
        unique = {"stateUniqueIds": {"0": [[one] for one in ids]}} if ids else {}
        self._add("commits", batch, f"v{version}\n{json.dumps({**EMPTY_COMMIT, **unique}, separators=(',', ':'))}")

    def _add(self, log: str, batch: int, text: str) -> None:
        if str(batch) in self.files.entries(log) or not self.files.create(text, log, str(batch)):
            raise RuntimeError(f"[CONCURRENT_STREAM_LOG_UPDATE] {log}/{batch}")

    def ids(self, batch: int) -> list[str]:
        """Return the unique ids of a batch's state by partition; none in format 1, and none of a dropped batch."""
        lines = (self.files.text("commits", str(batch)) or "").splitlines()
        found = json.loads(lines[1]).get("stateUniqueIds", {}) if len(lines) > 1 else {}
        return [store for (store,) in found.get("0", [])]


@dataclass
class Batch:
    """A batch that runs."""

    number: int
    since: int
    end: int
    partitions: int


class FolderQuery:
    """A query that runs a batch whenever its progress is looked at; it reads the logs once, when it begins."""

    def __init__(self, job: Job, files: Files, partitions: int, unfinished_at_stop: bool) -> None:
        self._job, self._log, self._state = job, Log(files), State(files, job.format)
        self._session_partitions, self._unfinished_at_stop = partitions, unfinished_at_stop
        self._active = True
        self._progress: dict[str, Any] | None = None
        self._error: RuntimeError | None = None
        self._runs = False
        self._last: Batch | None = None
        """The last batch that has ended; None before the first one."""
        self._running: Batch | None = None
        self._recovered = False

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self._active

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        self._attempt()
        return self._progress

    @property
    def status(self) -> Mapping[str, Any]:
        if not self._active:
            return {"message": "Stopped"}
        if self._job.is_paused:
            self._attempt()
        self._runs = self._running is not None or not self._runs
        return {"message": "Processing new data" if self._runs else "Waiting for data to arrive"}

    def exception(self) -> Exception | None:
        return self._error

    def stop(self) -> None:
        if self._active and self._unfinished_at_stop:
            self._recover()
            if self._last is not None and self._running is None:
                self._begin()
        self._active = False

    def process_all(self) -> None:
        """Run batches until every record has been counted."""
        while self._active and self._attempt():
            pass
        if self._error is not None:
            raise self._error

    def _attempt(self) -> bool:
        try:
            return self._active and self._batch()
        except RuntimeError as error:
            self._active, self._error = False, error
            return False

    def _recover(self) -> None:
        """Read where the last query ended, once: from then on the query knows its batches itself."""
        if self._recovered:
            return
        done, begun = self._log.last("commits"), self._log.last("offsets")
        if done >= 0:
            self._last = Batch(done, 0, *self._log.offsets(done))
        if begun > done:
            end, partitions = self._log.offsets(begun)
            if self._last is not None and partitions != self._last.partitions:
                raise RuntimeError("[STREAMING_UNFINISHED_REPARTITION_DETECTED]")
            self._running = Batch(begun, 0 if self._last is None else self._last.end, end, partitions)
        self._recovered = True

    def _begin(self) -> None:
        last = self._last or Batch(-1, 0, 0, self._session_partitions)
        batch = Batch(last.number + 1, last.end, self._job.arrived, last.partitions)
        self._log.begin(batch.number, batch.end, batch.partitions)
        self._running = batch

    def _batch(self) -> bool:
        """Run one batch; return whether there was one that has ended."""
        self._recover()
        if self._running is None:
            if self._job.arrived == (0 if self._last is None else self._last.end):
                # Spark reports a trigger without a batch at once after a start, and then every ten seconds.
                number = 0 if self._last is None else self._last.number + 1
                self._progress = self._progress or {"batchId": number, "numInputRows": 0}
                return False
            self._begin()
        batch = self._running
        assert batch is not None
        if batch.number == 0:
            self._state.describe(batch.partitions)
        if self._job.is_paused:
            return False
        before = self._log.ids(batch.number - 1) if batch.number else []
        counts = self._state.load(batch.number, batch.partitions, before)
        changed: dict[int, int] = {}
        for record in range(batch.since, batch.end):
            key = key_of(record)
            changed[key] = counts[key] = counts.get(key, 0) + 1
        ids = self._state.save(batch.number + 1, batch.partitions, counts, changed, before)
        sink = FolderFiles(self._job.folder / "sink")
        sink.replace(json.dumps(changed), str(batch.number))
        self._log.commit(batch.number, self._job.format.version, ids)
        self._progress = {"batchId": batch.number, "numInputRows": batch.end - batch.since}
        self._last, self._running = batch, None
        return True


class FolderApplication:
    """An application whose queries run in this process; of one checkpoint, one at a time, as Spark does it."""

    def __init__(
        self, job: Job, faults: Faults | None = None, *, unfinished_at_stop: bool = False, tool_fails_at: int = -1
    ) -> None:
        self.job, self.faults = job, faults or Faults()
        self.unfinished_at_stop, self._tool_fails_at = unfinished_at_stop, tool_fails_at
        self.query: FolderQuery | None = None
        self.has_ended = False
        self.files = FaultyFiles(job.files, self.faults, "rheostat")
        self.spark_files = FaultyFiles(job.files, self.faults, "spark") if self.faults.how == "kill" else job.files

    def ended(self) -> bool:
        return self.faults.call("has the application ended", lambda: self.has_ended)

    def driver(self) -> Driver:
        # A process that has ended is not seen to have: that the next driver waits belongs to what is tested.
        return Driver(os.urandom(8).hex(), "here", "", Process(os.getpid(), ""), Process(os.getpid(), ""))

    def checkpoint(self, location: str) -> Checkpoint:
        assert location == self.job.files.location
        return Checkpoint(self.files, self._tool)

    def same(self, one: str, other: str) -> bool:
        return one == other

    def location(self, query: Any) -> str:
        return self.faults.call("location of the query", lambda: self.job.files.location)

    def build(self, build: Build, allocation: Allocation) -> StartQuery:
        return self.faults.call(f"build {allocation}", lambda: build(allocation))

    def start(self, start: StartQuery, partitions: int, admit: Admit) -> Query:
        def begin() -> FolderQuery:
            if self.query is not None:
                self.query._active = False
            start()
            admit(self.job.files.location)
            self.query = FolderQuery(self.job, self.spark_files, partitions, self.unfinished_at_stop)
            return self.query

        return FaultyQuery(self.faults.call("start the query", begin), self.faults)

    def _tool(self, location: str, partitions: int, exactly_once: bool, version: str) -> None:
        """Repartition the state step by step, as Spark's OfflineStateRepartitionRunner does."""
        log, state = Log(self.spark_files), State(self.spark_files, self.job.format)
        self.faults.call("call the tool", lambda: None)
        done, begun = log.last("commits"), log.last("offsets")
        if done < 0:
            raise RuntimeError("[STATE_REPARTITION_INVALID_CHECKPOINT.NO_COMMITTED_BATCH]")
        target = begun + 1
        if begun > done and log.offsets(begun)[1] != log.offsets(begun - 1)[1]:
            if log.offsets(begun)[1] != partitions:
                raise RuntimeError("[STATE_REPARTITION_INVALID_CHECKPOINT.LAST_BATCH_ABANDONED_REPARTITION]")
            target = begun
        else:
            if begun > done and exactly_once:
                raise RuntimeError("[STATE_REPARTITION_INVALID_CHECKPOINT.LAST_BATCH_FAILED]")
            for batch in range(done + 1, begun + 1):
                log.commit(batch, 1, [])
            end, before = log.offsets(done)
            if before == partitions:
                raise RuntimeError("[STATE_REPARTITION_INVALID_CHECKPOINT.SHUFFLE_PARTITIONS_ALREADY_MATCH]")
            log.begin(target, end, partitions)
        counts = state.load(done + 1, log.offsets(done)[1], log.ids(done))
        ids = state.save(target + 1, partitions, counts, None, [], self._tool_fails_at)
        log.commit(target, self.job.format.version, ids)


class FaultyQuery:
    """A query whose calls may fail."""

    def __init__(self, query: Query, faults: Faults) -> None:
        self.query, self._faults = query, faults

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self._faults.call("query: isActive", lambda: self.query.isActive)

    @property
    def lastProgress(self) -> Any:  # noqa: N802
        return self._faults.call("query: lastProgress", lambda: self.query.lastProgress)

    @property
    def status(self) -> Mapping[str, Any]:
        return self._faults.call("query: status", lambda: self.query.status)

    def exception(self) -> Exception | None:
        return self._faults.call("query: exception", self.query.exception)

    def stop(self) -> None:
        self._faults.call("query: stop", self.query.stop)
