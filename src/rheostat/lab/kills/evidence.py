"""What a killed driver has left of a repartition, or of its undoing: read from the files of a checkpoint on this disk.

Nothing here asks the driver. The note in the checkpoint says what was there before the repartition; all that is newer
was added by Spark's tool (`engine/spark/lifecycle/checkpoint.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rheostat.engine.spark.lifecycle.checkpoint import NOTE, VERSION, Repartition
from rheostat.job.frozen import from_json


class Stage(StrEnum):
    """How far a repartition had come, in the order of its files."""

    NOTE = "before the first file"
    EMPTY_COMMIT = "an empty commit for the unfinished batch"
    OFFSETS = "offsets, no state"
    STATE = "state, no commit"
    COMMITTED = "committed"
    OVER = "after the move"


class Undo(StrEnum):
    """How far an undoing had come, in the order of its deletions."""

    BEGUN = "before the first deletion"
    COMMITS = "commits deleted, no state"
    STATE = "some state deleted"
    OFFSETS = "all but the offsets deleted"
    NOTE = "all but the note deleted"
    OVER = "after the roll-back"


@dataclass(frozen=True)
class Left:
    """What is left of a repartition in a checkpoint."""

    change: Repartition | None
    """The note; None where there is none."""
    commits: frozenset[str] = frozenset()
    state: frozenset[str] = frozenset()
    """Files with newer versions of the state, and their metadata."""
    offsets: frozenset[str] = frozenset()

    @property
    def added(self) -> frozenset[str]:
        """All that the tool has added."""
        return self.commits | self.state | self.offsets

    @property
    def stage(self) -> Stage:
        """How far the repartition had come."""
        if self.change is None:
            return Stage.OVER
        if f"commits/{self.change.begun + 1}" in self.commits:
            return Stage.COMMITTED
        if self.state:
            return Stage.STATE
        if self.offsets:
            return Stage.OFFSETS
        return Stage.EMPTY_COMMIT if self.commits else Stage.NOTE

    @property
    def needs_undo(self) -> bool:
        """Whether the next driver must undo it."""
        return self.stage not in (Stage.COMMITTED, Stage.OVER)

    def undo_since(self, before: Left) -> Undo:
        """Return how far its undoing had come, compared with what was left `before`."""
        if self.change is None:
            return Undo.OVER
        if self.added == before.added:
            return Undo.BEGUN
        if self.commits:
            return Undo.COMMITS
        if self.state:
            return Undo.STATE if self.state < before.state else Undo.COMMITS
        return Undo.OFFSETS if self.offsets else Undo.NOTE


def has_note(checkpoint: Path) -> bool:
    """Whether a repartition is under way, or was interrupted."""
    return checkpoint.joinpath(*NOTE).exists()


def read_left(checkpoint: Path) -> Left:
    """Read what is left of a repartition."""
    try:
        change = from_json(Repartition, checkpoint.joinpath(*NOTE).read_text())
    except FileNotFoundError:
        return Left(None)
    return Left(
        change,
        frozenset(f"commits/{batch}" for batch in _batches(checkpoint / "commits") if batch > change.batch),
        frozenset(_newer_state(checkpoint, change.batch)),
        frozenset(f"offsets/{batch}" for batch in _batches(checkpoint / "offsets") if batch > change.begun),
    )


def count_left(checkpoint: Path, files: frozenset[str]) -> int:
    """Count the files that still exist."""
    return sum((checkpoint / file).exists() for file in files)


def is_unfinished(checkpoint: Path) -> bool:
    """Whether a batch has begun and not finished."""
    offsets, commits = (max(_batches(checkpoint / log), default=-1) for log in ("offsets", "commits"))
    return offsets > commits


def _newer_state(checkpoint: Path, batch: int) -> Iterator[str]:
    for operator in _names(checkpoint / "state"):
        for part in _names(checkpoint / "state" / operator):
            folder = f"state/{operator}/{part}"
            if part == "_metadata":
                folder += "/v2"
                yield from (f"{folder}/{found}" for found in _batches(checkpoint / folder) if found > batch)
                continue
            for name in _names(checkpoint / folder):
                version = VERSION.match(name)
                if version is not None and int(version[1]) > batch + 1:
                    yield f"{folder}/{name}"


def _batches(log: Path) -> list[int]:
    return [int(name) for name in _names(log) if name.isdigit()]


def _names(folder: Path) -> list[str]:
    """Return what a folder holds, without drafts and checksums; nothing where it is missing."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    return []
