"""Journals on the command line: a new one for a simulation, an old one to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rheostat.errors import InvalidValue, JournalError, nearest

if TYPE_CHECKING:
    from rheostat.ports import Journal


def any_journal(url: str) -> Journal:
    """Open a journal, which may be there or not; one that cannot be opened is a wrong argument."""
    from rheostat.journal import open_journal

    try:
        return open_journal(url)
    except JournalError as error:
        raise InvalidValue(str(error)) from error


def new_journal(url: str, job: str) -> Journal:
    """Open a journal for a simulation of a job that it does not know yet."""
    journal = any_journal(url)
    # What was only planned is no run: a controller begins with what the plan measured.
    if journal.latest(job, "run") is not None:
        journal.close()
        # Simulated time starts at zero: beside older records every window would look stale.
        raise InvalidValue(f"the journal already holds a run of {job!r}: give a new file, a simulation starts afresh")
    return journal


def old_journal(url: str) -> Journal:
    """Open a journal that must be there already; opening alone would make an empty one."""
    from rheostat.journal import open_journal

    file = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else url
    if "://" not in file and not Path(file).expanduser().is_file():
        raise InvalidValue(f"there is no journal {url!r}")
    return open_journal(url)


def journaled_jobs(journal: Journal, job: str | None) -> tuple[str, ...]:
    """Return the named job, or all of the journal's."""
    known = journal.jobs()
    if not known:
        raise InvalidValue("the journal is empty: no job has written to it")
    if job is None:
        return known
    if job not in known:
        raise InvalidValue(f"the journal has no job {job!r}, {nearest(job, known)}")
    return (job,)
