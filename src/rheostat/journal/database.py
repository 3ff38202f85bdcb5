"""How a journal's database is reached: URL, engine, settings, and the name by which error messages call it."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from rheostat.errors import InvalidValue, JournalError

BUSY_S = 10
"""How long a write waits for another process's write."""

# A connection that silently went away must be noticed before the lease runs out, not after the kernel's 15 minutes.
POSTGRES_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "tcp_user_timeout": 20_000,
    "options": f"-c lock_timeout={BUSY_S}s",
}


@dataclass(frozen=True, slots=True)
class Database:
    """An engine whose writing transactions exclude each other, and its place without any password."""

    engine: Engine
    place: str

    @property
    def writer(self) -> Engine:
        """The engine for transactions that write."""
        return self.engine.execution_options(writes=True)


def reach(url_or_path: str | Path) -> Database:
    """Prepare the engine for a path, `sqlite:///...` or `postgresql://...`; nothing is connected yet."""
    text = str(url_or_path)
    if "://" not in text:
        return _sqlite(URL.create("sqlite", database=str(Path(text).expanduser())))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text is not repeated, and the cause is cut off: a part of a password may be what cannot be read.
        raise InvalidValue(
            "cannot read the journal's URL: write postgresql://user:password@host:5432/database, "
            "with @ : / ? # inside a password written as %40 %3A %2F %3F %23"
        ) from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite(url)
    if url.drivername in ("postgresql", "postgresql+psycopg"):
        return _postgres(url)
    raise InvalidValue(
        f"a journal cannot live in {url.drivername}://...: give a path, sqlite:///path, or postgresql://host/database"
    )


def _sqlite(url: URL) -> Database:
    place = url.database or ""
    if place in ("", ":memory:"):
        raise InvalidValue("an SQL journal needs a file: give a path, or use MemoryJournal to keep nothing")
    if not place.startswith("file:"):
        path = Path(place)
        if path.is_dir():
            raise JournalError(f"journal {place}: this is a folder: give the path of a file in it")
        if not path.parent.is_dir():
            raise JournalError(f"journal {place}: the folder {path.parent} does not exist: create it first")
    # isolation_level None keeps sqlite3 from beginning transactions by its own rules; `begin` below does it by ours.
    settings = {"timeout": BUSY_S, "isolation_level": None}
    engine = create_engine(url, connect_args=settings, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def settle(connection: Any, _: object) -> None:
        _use_wal(connection)
        # FULL: a committed record survives a power cut, not only a killed process. Measured: 0.3 ms per commit.
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # IMMEDIATE: a transaction that reads the lease first could otherwise not become a writer later.
        if connection.get_execution_options().get("writes"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return Database(engine, place)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Let readers not hold up the writer, nor it them. The file remembers it, so only the first one changes it."""
    deadline_s = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # The change needs the file for itself, and SQLite does not wait for that as it does for writing:
            # of several that open a new journal at once all but one are turned away for a moment.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(0.01)


def _postgres(url: URL) -> Database:
    if "@" in (url.host or ""):
        raise InvalidValue("cannot read the journal's URL: an @ inside a password must be written as %40")
    defaults = {name: value for name, value in POSTGRES_DEFAULTS.items() if name not in url.query}
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=defaults,
            hide_parameters=True,
            pool_pre_ping=True,  # a connection that was lost between two calls is replaced before it is used
        )
    except ImportError as error:
        raise JournalError("a journal in PostgreSQL needs psycopg: pip install 'rheostat[postgres]'") from error
    # The query may hold a password too, so it is left out.
    place = url.set(drivername="postgresql", password=None, query={}).render_as_string()
    return Database(engine, place)
