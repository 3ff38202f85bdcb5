"""Which driver committed which batch, and when: seen from outside, in the checkpoint of a query on this disk.

Spark's commit files do not name their writer. So every driver gets a umask of its own (`marking`), and the mode of a
file in `commits/` is the mark of the driver whose JVM wrote it: nothing that a frozen, late or dead process reports can
change it. A commit counts from the moment at which its file appears under its name, by this process's clock. Spark's
rename onto an existing commit is not refused by every file system, so a file that replaces another one is a second
commit of its batch.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.05
"""Seconds between two looks at the folder."""
WHOLE_MODE = 0o666
"""Mode of a new file before the umask; a mark has no other bits."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit file."""

    batch: int
    umask: int
    """The umask of the driver that wrote it."""
    at_s: float
    """When it appeared, seconds since the epoch."""


def marking(umask: int) -> dict[str, str]:
    """Return the Spark settings under which a driver's files carry its mark."""
    return {"spark.hadoop.fs.permissions.umask-mode": f"{umask:03o}"}


class CommitWatch:
    """Notes every commit file of a checkpoint as it appears, in a thread of its own."""

    def __init__(self, checkpoint: Path) -> None:
        self._folder = checkpoint / "commits"
        self._commits: list[Commit] = []
        self._seen: set[tuple[str, int]] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rheostat-commits", daemon=True)

    def __enter__(self) -> CommitWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def of(self, umask: int, after_s: float = 0.0) -> list[Commit]:
        """Return a driver's commits that appeared after a moment, oldest first."""
        return [commit for commit in tuple(self._commits) if commit.umask == umask and commit.at_s > after_s]

    def replaced(self) -> set[int]:
        """Return the batches whose commit file was replaced by another one."""
        return repeated(commit.batch for commit in tuple(self._commits))

    def _watch(self) -> None:
        while not self._over.wait(POLL_S):
            self.look()

    def look(self) -> None:
        """Note the files that are new."""
        with suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                file = entry.name, entry.inode()
                if not entry.name.isdigit() or file in self._seen:
                    continue
                with suppress(FileNotFoundError):  # Spark has just deleted an old one
                    umask = WHOLE_MODE & ~stat.S_IMODE(entry.stat().st_mode)
                    self._commits.append(Commit(int(entry.name), umask, time.time()))
                    self._seen.add(file)


def repeated(batches: Iterable[int]) -> set[int]:
    """Return the batches that occur more than once."""
    return {batch for batch, count in Counter(batches).items() if count > 1}
