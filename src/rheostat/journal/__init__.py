"""The journal: an append-only log of every job, in a SQLite file or a PostgreSQL database.

`open_journal` opens one. SQLAlchemy is loaded only for a journal in a database.

| file | what |
|---|---|
| `sql.py`, `schema.py`, `database.py` | the SQL journal, its tables, its connections |
| `migrations.py` | steps from older tables and older records to the present ones |
| `stall.py` | a deadline for calls that PostgreSQL does not answer |
| `memory.py` | a journal in memory with the same rules |
| `lease.py` | the lease that allows one controller to write about a job |
| `failure.py` | readable messages for database errors |
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rheostat.ports import Journal

__all__ = ["open_journal"]


def open_journal(url_or_path: str | Path, *, wall: Callable[[], float] | None = None) -> Journal:
    """Open the journal at a path, at `sqlite:///...` or `postgresql://...`; `:memory:` is lost with the process.

    A journal of an older schema version is migrated, also when it is opened only to be read. `wall` replaces the clock
    of the leases, for tests.
    """
    if str(url_or_path) in (":memory:", "sqlite://", "sqlite:///:memory:"):
        from rheostat.journal.memory import MemoryJournal

        return MemoryJournal() if wall is None else MemoryJournal(wall=wall)
    from rheostat.journal.sql import SqlJournal

    return SqlJournal(url_or_path, wall=wall)
