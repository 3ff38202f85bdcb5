"""A running query, read from its checkpoint on this disk: from another process, and also while its driver is dead.

`start_s` and `read_until` are for queries that read `engine.testbed.source`, whose offsets are whole seconds since its
start; `read_from_kafka` is for those that read a topic from its beginning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CheckpointReader:
    """The checkpoint of a query with one source."""

    checkpoint: Path

    def start_s(self) -> float | None:
        """Return the epoch time of the source's first second; None before it."""
        metadata = self.checkpoint / "sources" / "0" / "0"
        return int(metadata.read_text().split()[-1]) / 1e3 if metadata.exists() else None

    def committed(self) -> int:
        """Return the last committed batch; -1 before the first."""
        return max((int(file.name) for file in (self.checkpoint / "commits").glob("[0-9]*")), default=-1)

    def read_until(self, batch: int) -> int:
        """Return the second up to which a batch has read; 0 for a batch that does not exist."""
        offsets = self.checkpoint / "offsets" / str(batch)
        return int(offsets.read_text().split()[-1]) if offsets.exists() else 0

    def read_from_kafka(self, batch: int) -> int:
        """Return the records of a topic up to which a batch has read; 0 for a batch that does not exist."""
        offsets = self.checkpoint / "offsets" / str(batch)
        if not offsets.exists():
            return 0
        by_topic = json.loads(offsets.read_text().splitlines()[-1])
        return sum(offset for partitions in by_topic.values() for offset in partitions.values())
