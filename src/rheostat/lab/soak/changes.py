"""Changes and restarts of a job, read from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rheostat.errors import PolicyError
from rheostat.job.decision import Decision, Reason
from rheostat.job.record import IntentEnd, IntentStep
from rheostat.journal import open_journal
from rheostat.ports import Entry

START, REPARTITION = "start with ", "repartition "
"""Beginnings of the journaled steps that start a query, and that repartition its state."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a journal says about a job's changes."""

    done: int
    """Changes that were finished."""
    restarts: int
    """Starts of a new query by a change."""
    repartitions: int
    """Repartitions of state that began."""


def count_changes(journal: Path, job: str) -> Changes:
    """Count a job's changes."""
    ends = [entry.record for entry in _read(journal, job, ["intent_end"])]
    names = [
        step.name for entry in _read(journal, job, ["intent_step"]) if isinstance(step := entry.record, IntentStep)
    ]
    return Changes(
        done=sum(isinstance(end, IntentEnd) and str(end.ending) == "done" for end in ends),
        restarts=sum(name.startswith(START) for name in names),
        repartitions=sum(name.startswith(REPARTITION) for name in names),
    )


def raise_failure(journal: Path, job: str) -> None:
    """Raise the first failure of the policy in the journal."""
    for entry in _read(journal, job, ["decision"]):
        if isinstance(entry.record, Decision) and entry.record.reason is Reason.NO_POLICY:
            raise PolicyError(f"{entry.record.sentence} (step {entry.step})")


def journal_mb(journal: Path) -> float:
    """Return the size of a SQLite journal with its write-ahead log."""
    return sum(file.stat().st_size for file in journal.parent.glob(f"{journal.name}*")) / 1e6


def _read(journal: Path, job: str, kinds: Sequence[str]) -> list[Entry]:
    if not journal.exists():
        return []
    book = open_journal(str(journal))
    try:
        return list(book.read(job, kinds=kinds))
    finally:
        book.close()
