"""A running query as its checkpoint on this disk tells it, from outside: also while its driver is dead.

For queries that read `engine.testbed.source`: its offsets are whole seconds since it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outside:
    """The checkpoint of a query with one source."""

    checkpoint: Path

    def start_s(self) -> float | None:
        """Return when the source's first second began, since the epoch; None before that."""
        kept = self.checkpoint / "sources" / "0" / "0"
        return int(kept.read_text().split()[-1]) / 1e3 if kept.exists() else None

    def committed(self) -> int:
        """Return the last batch that was finished; -1 before the first."""
        return max((int(file.name) for file in (self.checkpoint / "commits").glob("[0-9]*")), default=-1)

    def read_until(self, batch: int) -> int:
        """Return the second up to which a batch has read; 0 for a batch that there is not."""
        offsets = self.checkpoint / "offsets" / str(batch)
        return int(offsets.read_text().split()[-1]) if offsets.exists() else 0
