"""Readable messages for database errors: callers never get an error of SQLAlchemy or of a driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from rheostat.errors import JournalError, first_line

LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code for a lock that was not given back within `lock_timeout`."""

SQLITE_MESSAGES = {
    sqlite3.SQLITE_FULL: "the disk is full: make room; nothing of this batch was written",
    sqlite3.SQLITE_NOTADB: "this file is not a SQLite database: give another path",
    sqlite3.SQLITE_CORRUPT: "this SQLite file is corrupt: restore it from a copy, or give another path",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened or created: check the path and its permissions",
    sqlite3.SQLITE_READONLY: "the file cannot be written: check the permissions of the file and of its folder",
    sqlite3.SQLITE_PERM: "access is denied: check the permissions of the file and of its folder",
    sqlite3.SQLITE_BUSY: "another process has been writing for too long: nothing was written, try again",
    sqlite3.SQLITE_IOERR: "the disk failed: check it; nothing of this batch was written",
}


@contextmanager
def translate_errors(place: str) -> Iterator[None]:
    """Turn a database error into a JournalError with the location, the cause and the remedy."""
    try:
        yield
    except SQLAlchemyError as error:
        raise JournalError(f"journal {place}: {describe_error(error)}") from error


def is_lock_timeout(error: BaseException | None) -> bool:
    """Whether a lock of another process was not given back in time."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    busy = getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
    return busy or getattr(cause, "sqlstate", None) == LOCK_NOT_AVAILABLE


def describe_error(error: SQLAlchemyError) -> str:
    """Return a readable message; for an unknown error, the first line of the driver's message."""
    if not isinstance(error, DBAPIError) or error.orig is None:
        return first_line(error)
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the higher bits hold the extended code
        return SQLITE_MESSAGES.get(code, first_line(cause))
    if error.connection_invalidated:
        # If the connection breaks during COMMIT, only the database knows whether it succeeded.
        return (
            "the connection to the database was lost: the batch was written completely or not at all; "
            "the next call connects again"
        )
    if getattr(cause, "sqlstate", None) is None:
        return f"the database cannot be reached: {first_line(cause)}"
    return first_line(cause)
