"""Journals on the command line: a new one for a simulation, an existing one to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rheostat.errors import InvalidValue, JournalError, nearest

if TYPE_CHECKING:
    from rheostat.ports import Journal


def any_journal(url: str) -> Journal:
    """Open a journal, or create it; one that cannot be opened is a wrong argument."""
    from rheostat.journal import open_journal

    try:
        return open_journal(url)
    except JournalError as error:
        raise InvalidValue(str(error)) from error


def new_journal(url: str, job: str) -> Journal:
    """Open a journal for a simulation of a job; refuse one that has a run of the job."""
    journal = any_journal(url)
    # A plan is not a run: a controller begins with its measurements.
    if journal.latest(job, "run") is not None:
        journal.close()
        # Simulated time starts at zero: beside older records every window would be stale.
        raise InvalidValue(f"journal {url!r} already has a run of {job!r}: give a new file")
    return journal


def old_journal(url: str) -> Journal:
    """Open an existing journal; refuse a path without one instead of creating it."""
    from rheostat.journal import open_journal

    file = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else url
    if "://" not in file and not Path(file).expanduser().is_file():
        raise InvalidValue(f"there is no journal {url!r}: give the path or URL of an existing one")
    return open_journal(url)


def journaled_jobs(journal: Journal, job: str | None) -> tuple[str, ...]:
    """Return the named job, or all jobs of the journal."""
    names = journal.jobs()
    if not names:
        raise InvalidValue("the journal is empty: give one that a job has written to")
    if job is None:
        return names
    if job not in names:
        raise InvalidValue(f"the journal has no job {job!r}, {nearest(job, names)}")
    return (job,)
