"""Counts the records of Delta and Iceberg tables before an offset of their streaming sources (pure).

A version of a table adds files, and says how many records they have: a commit of Delta in the statistics of each file,
a snapshot of Iceberg in its summary. An offset names a version and how many of its files were taken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rheostat.engine.batches.offsets import ByReport, decode_offset
from rheostat.engine.batches.present import Waiting

RETAINED = 4096
"""Versions to remember: more than a source falls behind within the log that tables keep."""


@dataclass(frozen=True, slots=True)
class Added:
    """What one version of a table added."""

    files: int
    bytes: int
    records: tuple[float, ...]
    """Records before each of its files, and after the last one."""


class VersionLog(ByReport):
    """The versions of a table in their order, with all that was added before each."""

    def __init__(self) -> None:
        self._added: dict[Any, Added] = {}
        self._before: dict[Any, tuple[int, int, float]] = {}
        """Version -> files, bytes and records before it."""
        self._total = (0, 0, 0.0)
        self._place: dict[Any, int] = {}
        """Version -> versions before it."""
        self._versions = 0

    def __contains__(self, version: Any) -> bool:
        return version in self._added

    def __len__(self) -> int:
        return len(self._added)

    def enter(self, version: Any, added: Added) -> None:
        """Add the next version."""
        files, size, records = self._total
        self._before[version], self._added[version] = self._total, added
        self._place[version] = self._versions
        self._versions += 1
        self._total = files + added.files, size + added.bytes, records + added.records[-1]
        while len(self._added) > RETAINED:
            first = next(iter(self._added))
            del self._added[first], self._before[first], self._place[first]

    def behind(self, version: Any, taken: int) -> Waiting:
        """Return what is beyond a number of files of a version."""
        if version not in self._added:
            return Waiting(0, 0, 0)
        files, size, _ = self._before[version]
        added = self._added[version]
        share = min(taken, added.files) / added.files if added.files else 1.0
        return Waiting(
            self._total[0] - files - min(taken, added.files),
            round(self._total[1] - size - share * added.bytes),
            self._versions - self._place[version] - (taken >= added.files),
        )

    def before(self, version: Any, taken: int) -> float | None:
        """Return the records before a number of files of a version; None for one that is not known."""
        if version not in self._added:
            return None
        records = self._added[version].records
        return self._before[version][2] + records[min(max(taken, 0), len(records) - 1)]

    @property
    def records_in_all(self) -> float:
        """Records of all versions."""
        return self._total[2]


class DeltaCounter(VersionLog):
    """Delta: {"reservoirVersion": version, "index": last file taken of it, "isStartingVersion": of the first snapshot}.

    While the table's first snapshot is read, its files have no place in the log, and nothing is counted.
    """

    def records(self, offset: Any) -> float | None:
        """Return the records before an offset."""
        value = decode_offset(offset)
        if not isinstance(value, Mapping) or value.get("isStartingVersion"):
            return None
        version = value.get("reservoirVersion")
        if version == self.next_version:
            return self.records_in_all
        return self.before(version, int(value.get("index", -1)) + 1)

    @property
    def next_version(self) -> int | None:
        """The version after the newest one; None before the first."""
        return max(self._added) + 1 if self._added else None


def parse_commit(text: str) -> Added:
    """Read a commit of Delta's log: the files that it adds as new data, with their statistics.

    Files without statistics are taken to have as many records per byte as the others of the commit.
    """
    actions = (json.loads(line) for line in text.splitlines() if line.strip())
    adds = [action["add"] for action in actions if "add" in action and action["add"].get("dataChange", True)]
    sizes = [int(add.get("size", 0)) for add in adds]
    counts = [_num_records(add) for add in adds]
    known = [(size, count) for size, count in zip(sizes, counts, strict=True) if count is not None]
    per_byte = sum(count for _, count in known) / max(1, sum(size for size, _ in known))
    records = [0.0]
    for size, count in zip(sizes, counts, strict=True):
        records.append(records[-1] + (per_byte * size if count is None else count))
    return Added(len(adds), sum(sizes), tuple(records))


def _num_records(add: Mapping[str, Any]) -> float | None:
    stats = add.get("stats")
    try:
        count = json.loads(stats).get("numRecords") if isinstance(stats, str) else None
    except ValueError:
        return None
    return float(count) if isinstance(count, int | float) else None


class IcebergCounter(VersionLog):
    """Iceberg: {"snapshot_id": id, "position": files taken of it, "scan_all_files": of a first snapshot}.

    Files of a snapshot are taken to have equally many records: its summary has only their sum.
    """

    def records(self, offset: Any) -> float | None:
        """Return the records before an offset."""
        value = decode_offset(offset)
        if not isinstance(value, Mapping) or value.get("scan_all_files"):
            return None
        return self.before(value.get("snapshot_id"), int(value.get("position", 0)))


def parse_summary(summary: Mapping[str, str]) -> Added:
    """Read the summary of an Iceberg snapshot. Only appends are streamed."""
    if summary.get("operation", "append") != "append":
        return Added(0, 0, (0.0,))
    files = int(summary.get("added-data-files", 0))
    records = float(summary.get("added-records", 0))
    each = records / files if files else 0.0
    return Added(files, int(summary.get("added-files-size", 0)), tuple(each * k for k in range(files + 1)))
