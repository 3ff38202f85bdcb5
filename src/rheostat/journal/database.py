"""The connection to a journal's database: URL, SQLAlchemy engine, settings, and its name in error messages."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from rheostat.errors import InvalidValue, JournalError
from rheostat.journal.stall import CallLimit

BUSY_S = 10
"""Seconds that a write in SQLite waits for a write of another process."""

# PostgreSQL: a call returns within 15 s, whatever happens, and a dead holder blocks no take-over for longer.
CALL_S = 12.0
"""Seconds after which a call that the database does not answer is given up."""
PING_S = 3.0
"""Seconds after which a connection from the pool that does not answer is replaced."""
CONNECT_S = 4
"""Seconds for each address of the server."""
LOCK_S = 5
"""Seconds that a write waits for a write of another process."""
STATEMENT_S = 10
"""Seconds after which the server ends a statement."""
IDLE_S = 5
"""Seconds after which the server ends a transaction whose client is silent. A batch is encoded before it begins."""


@dataclass(frozen=True, slots=True)
class Database:
    """An engine whose write transactions exclude each other, and its location without any password."""

    engine: Engine
    place: str
    limit: Callable[[], AbstractContextManager[None]] = nullcontext
    """A context that ends the calls in it when the database does not answer them."""

    @property
    def writer(self) -> Engine:
        """The engine for transactions that write."""
        return self.engine.execution_options(writes=True)


def prepare_database(url_or_path: str | Path) -> Database:
    """Create the engine for a path, `sqlite:///...` or `postgresql://...`; it connects at the first use."""
    text = str(url_or_path)
    if "://" not in text:
        return _sqlite(URL.create("sqlite", database=str(Path(text).expanduser())))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Neither the text nor the cause is shown: the unreadable part may be a password.
        raise InvalidValue(
            "cannot read the journal's URL: write postgresql://user:password@host:5432/database, "
            "with @ : / ? # inside a password written as %40 %3A %2F %3F %23"
        ) from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite(url)
    if url.drivername in ("postgresql", "postgresql+psycopg"):
        return _postgres(url)
    raise InvalidValue(
        f"{url.drivername}://... cannot hold a journal: give a path, sqlite:///path, or postgresql://host/database"
    )


def _sqlite(url: URL) -> Database:
    place = url.database or ""
    if place in ("", ":memory:"):
        raise InvalidValue("an SQL journal needs a file: give a path, or use MemoryJournal for a journal in memory")
    if not place.startswith("file:"):
        path = Path(place)
        if path.is_dir():
            raise JournalError(f"journal {place}: this is a folder: give the path of a file in it")
        if not path.parent.is_dir():
            raise JournalError(f"journal {place}: the folder {path.parent} does not exist: create it first")
        _create_private(path)
    # With isolation_level None, sqlite3 begins no transactions on its own; `begin` below does.
    settings = {"timeout": BUSY_S, "isolation_level": None}
    engine = create_engine(url, connect_args=settings, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        _use_wal(connection)
        # FULL: a committed record survives a power failure, not only a killed process. Measured: 0.3 ms per commit.
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # IMMEDIATE: a transaction that first reads the lease could not become a write transaction later.
        if connection.get_execution_options().get("writes"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return Database(engine, place)


def _create_private(path: Path) -> None:
    """Create a missing file for its owner only: a journal says what a job does, and a controller obeys it."""
    with suppress(OSError):  # an existing file keeps its mode; one that cannot be created fails when it is opened
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _use_wal(connection: sqlite3.Connection) -> None:
    """Use write-ahead logging, so that readers and the writer do not block each other. The file stores the mode."""
    deadline_s = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # The switch needs exclusive access, and SQLite does not wait for it as it does for a write: of several
            # processes that open a new journal at once, all but one fail for a moment.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(0.01)


def _postgres(url: URL) -> Database:
    if "@" in (url.host or ""):
        raise InvalidValue("cannot read the journal's URL: an @ inside a password must be written as %40")
    defaults: dict[str, Any] = {
        "connect_timeout": CONNECT_S,
        "keepalives_idle": 10,
        "tcp_user_timeout": 10_000,  # the kernel's own is 15 minutes
        "options": f"-c lock_timeout={LOCK_S}s -c statement_timeout={STATEMENT_S}s "
        f"-c idle_in_transaction_session_timeout={IDLE_S}s",
    }
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args={name: value for name, value in defaults.items() if name not in url.query},
            hide_parameters=True,
            pool_timeout=CONNECT_S,
        )
    except ImportError as error:
        raise JournalError("a journal in PostgreSQL needs psycopg: pip install 'rheostat[postgres]'") from error
    # The query string may contain a password, too.
    place = url.set(drivername="postgresql", password=None, query={}).render_as_string()
    return Database(engine, place, CallLimit(engine, place, CALL_S, PING_S).limit)
