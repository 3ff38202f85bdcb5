"""The journal: append-only memory of every job, in a SQLite file or a PostgreSQL database.

`open_journal` is the way in. SQLAlchemy is only loaded for a journal that needs it.

| file | what |
|---|---|
| `sql.py`, `schema.py`, `database.py` | the SQL journal, its tables, how its database is reached |
| `memory.py` | the same rules without a file |
| `lease.py` | who may write about a job |
| `failure.py` | database errors in sentences |
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rheostat.ports import Journal

__all__ = ["open_journal"]


def open_journal(url_or_path: str | Path, *, wall: Callable[[], float] = time.time) -> Journal:
    """Open the journal at a path, at `sqlite:///...` or `postgresql://...`; `:memory:` keeps nothing."""
    if str(url_or_path) in (":memory:", "sqlite://", "sqlite:///:memory:"):
        from rheostat.journal.memory import MemoryJournal

        return MemoryJournal(wall=wall)
    from rheostat.journal.sql import SqlJournal

    return SqlJournal(url_or_path, wall=wall)
