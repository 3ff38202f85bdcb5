"""Asks Delta and Iceberg tables for their newest version, while their streaming sources run.

Delta: the commits of the table's log after the source's own version, read by the table's file system, each once.
Iceberg: the snapshots of the table that the source has loaded. What is read is bounded; beyond it the window says so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rheostat.engine.batches.present import Waiting
from rheostat.engine.batches.tables import DeltaCounter, IcebergCounter, parse_commit, parse_summary
from rheostat.engine.spark.telemetry.reflect import read_field
from rheostat.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_VERSIONS = 500
"""Versions to read in one request: the rest comes with the next ones."""
MOST_BYTES = 64 * 2**20
"""Largest commit to read."""
MOST_SNAPSHOTS = 4000
"""Snapshots to walk back from the newest to the source's own."""


class DeltaEnds:
    """Reads the log of one running Delta source's table."""

    def __init__(self, spark: SparkSession, execution: Any, source: Any) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._execution, self._source = execution, source
        self.path = str(source.toString()).removeprefix("DeltaSource[").removesuffix("]")
        self._log = jvm.org.apache.hadoop.fs.Path(f"{self.path}/_delta_log")
        session: Any = spark._jsparkSession
        self._files = self._log.getFileSystem(session.sessionState().newHadoopConf())
        self.counter = DeltaCounter()

    @property
    def name(self) -> str:
        """The table, for messages."""
        return f"the log of {self.path}"

    def ask(self) -> tuple[Any, Waiting] | None:
        """Return the newest offset and what waits; None before a first batch."""
        planned = planned_json(self._execution, self._source)
        if planned is None:
            return None
        version, counter = int(planned["reservoirVersion"]), self.counter
        following = counter.next_version if counter.next_version is not None else version
        for _ in range(MOST_VERSIONS):
            text = self._commit(following)
            if text is None:
                break
            counter.enter(following, parse_commit(text))
            following += 1
        waiting = counter.behind(version, int(planned.get("index", -1)) + 1)
        newest = {"reservoirVersion": following, "index": -1, "isStartingVersion": False}
        return (newest, waiting) if len(counter) else None

    def _commit(self, version: int) -> str | None:
        """Return a commit of the log; None if there is none yet."""
        file = self._jvm.org.apache.hadoop.fs.Path(self._log, f"{version:020d}.json")
        if not self._files.exists(file):
            return None
        if int(self._files.getFileStatus(file).getLen()) > MOST_BYTES:
            raise EngineError(f"commit {version} of {self.path} is larger than {MOST_BYTES >> 20} MB, and is not read")
        stream = self._files.open(file)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()


class IcebergEnds:
    """Reads the snapshots of one running Iceberg source's table."""

    def __init__(self, execution: Any, source: Any) -> None:
        self._execution, self._source = execution, source
        self._table = read_field(source, "table")
        self.counter = IcebergCounter()

    @property
    def name(self) -> str:
        """The table, for messages."""
        return f"the snapshots of {self._table.name()}"

    def ask(self) -> tuple[Any, Waiting] | None:
        """Return the newest offset and what waits; None before a first batch."""
        planned = planned_json(self._execution, self._source)
        if planned is None:
            return None
        self._table.refresh()
        newest = self._table.currentSnapshot()
        if newest is None:
            return None
        own, fresh = int(planned["snapshot_id"]), []
        snapshot = newest
        while snapshot is not None and int(snapshot.snapshotId()) not in self.counter:
            fresh.append(snapshot)
            parent = snapshot.parentId()
            if int(snapshot.snapshotId()) == own or parent is None:
                break
            if len(fresh) > MOST_SNAPSHOTS:
                raise EngineError(f"{self._table.name()} is more than {MOST_SNAPSHOTS} snapshots ahead, not counted")
            snapshot = self._table.snapshot(parent)
        for one in reversed(fresh):
            summary = {str(key): str(value) for key, value in one.summary().items()}
            self.counter.enter(int(one.snapshotId()), parse_summary({**summary, "operation": str(one.operation())}))
        waiting = self.counter.behind(own, int(planned.get("position", 0)))
        added = parse_summary({str(key): str(value) for key, value in newest.summary().items()})
        last = {"snapshot_id": int(newest.snapshotId()), "position": added.files, "scan_all_files": False}
        return last, waiting


def planned_json(execution: Any, source: Any) -> Any:
    """Return the offset that a query has planned for a source; None before its first batch."""
    offset = execution.availableOffsets().get(source)
    return json.loads(str(offset.get().json())) if offset.isDefined() else None
