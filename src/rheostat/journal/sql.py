"""A journal in a SQL database: a SQLite file by default, PostgreSQL by URL.

A batch is one transaction, which first extends the writer's lease. That one UPDATE is the fence: it finds no row once
the lease was taken over, and it locks the row, so two writers of one job exclude each other until they commit. So a
job's numbers become visible in their order, and a reader that goes on after the last number it saw misses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import BindParameter, Connection, Row, bindparam, delete, exists, func, insert, select, text, update

from rheostat.errors import InvalidValue, JournalError
from rheostat.job.frozen import from_json, to_json
from rheostat.job.record import KINDS, Record, check_kinds, kind_of
from rheostat.journal import schema
from rheostat.journal.database import reach
from rheostat.journal.failure import explained
from rheostat.journal.lease import Tenure
from rheostat.ports import Entry, Lease

PAGE = 256
"""Records that `read` fetches at a time. Between pages it holds neither a transaction nor a connection."""

SLICE = 2_000
"""Records that `prune` deletes in one transaction, so that the writers of other jobs are not locked out for long."""

_record, _lease = schema.record.c, schema.lease.c
_JOB: BindParameter[str] = bindparam("job_")  # SQLAlchemy keeps the bare names of columns for itself

# Built once: SQLAlchemy finds the compiled text of a statement by its shape.
_TENURE = select(_lease.holder, _lease.token, _lease.ttl_s, _lease.expires_s).where(_lease.job == _JOB)
_VACANT = text("INSERT INTO lease (job, holder, token, ttl_s) VALUES (:job_, '', 0, 0) ON CONFLICT DO NOTHING")
_OWN = (_lease.job == _JOB) & (_lease.holder == bindparam("holder_")) & (_lease.token == bindparam("token_"))
_OWN_HELD = _OWN & _lease.expires_s.is_not(None)
_EXTEND = update(schema.lease).where(_OWN_HELD).values(expires_s=bindparam("now_s") + _lease.ttl_s)
_RELEASE = update(schema.lease).where(_OWN).values(expires_s=None)
_TAKE = update(schema.lease).where(_lease.job == _JOB)
_INSERT = insert(schema.record)
_LAST = select(func.max(_record.number)).where(_record.job == _JOB)
_ENTRY = select(_record.number, _record.step, _record.kind, _record.body).where(_record.job == _JOB)
_NEXT = _ENTRY.where(_record.number > bindparam("after")).order_by(_record.number).limit(PAGE)
_LATEST = _ENTRY.where(_record.kind == bindparam("kind_")).order_by(_record.number.desc()).limit(1)
_OLD_SNAPSHOT = _LAST.where(_record.kind == "snapshot", _record.at_s <= bindparam("before_s"))
_OLD = _record.job == _JOB, _record.number < bindparam("snapshot"), _record.kind != "run"
_OLDEST = select(_record.number).where(*_OLD).order_by(_record.number).limit(SLICE)
_PRUNE = delete(schema.record).where(_record.number.in_(_OLDEST))
# Every record was written with a lease, so the few leases are asked, not the many records.
_JOBS = select(_lease.job).where(exists().where(_record.job == _lease.job))

# Two that open a new PostgreSQL journal at once would both create the tables. The number is Rheostat's own.
_ONE_AT_A_TIME = select(func.pg_advisory_xact_lock(0x5EED_0A11))


class SqlJournal:
    """The `Journal` port on SQLAlchemy Core. May be shared between threads; processes open their own."""

    def __init__(self, url_or_path: str | Path, *, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._database = reach(url_or_path)
        self._writer = self._database.writer
        self._prepare()

    def acquire(self, job: str, holder: str, ttl_s: float) -> Lease:
        """Take the job's lease; see `Journal`."""
        with self._writing() as connection:
            # A row is there before it is locked, so that of two first-comers the second waits and then sees the first.
            connection.execute(_VACANT, {"job_": job})
            before = Tenure(*connection.execute(_TENURE.with_for_update(), {"job_": job}).one())
            after = before.succeeded_by(job, holder, ttl_s, self._wall())
            connection.execute(
                _TAKE.values(holder=holder, token=after.token, ttl_s=ttl_s, expires_s=after.expires_s), {"job_": job}
            )
        return Lease(job, holder, after.token)

    def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
        """Write all records or none; see `Journal`. No records at all only extend the lease."""
        # Encoded before the transaction: a record that cannot be leaves nothing, and no lock is held meanwhile.
        rows = [_row(lease, step, record) for record in records]
        with self._writing() as connection:
            self._extend(connection, lease)
            if rows:
                connection.execute(_INSERT, rows)
            return connection.scalar(_LAST, {"job_": lease.job}) or 0

    def release(self, lease: Lease) -> None:
        """Give the lease back; see `Journal`."""
        with self._writing() as connection:
            connection.execute(_RELEASE, _names(lease))

    def read(self, job: str, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Entry]:
        """Return records in order; see `Journal`."""
        check_kinds(kinds)
        return self._pages(job, after, kinds)

    def latest(self, job: str, kind: str) -> Entry | None:
        """Return the newest record of a kind."""
        check_kinds([kind])
        with self._reading() as connection:
            row = connection.execute(_LATEST, {"job_": job, "kind_": kind}).first()
        return None if row is None else self._entry(row)

    def prune(self, lease: Lease, before_s: float) -> int:
        """Delete what lies behind the newest snapshot that is older than a moment; see `Journal`."""
        gone = 0
        while True:  # oldest first: whatever is left after a crash is still whole from some record on
            with self._writing() as connection:
                self._extend(connection, lease)
                snapshot = connection.scalar(_OLD_SNAPSHOT, {"job_": lease.job, "before_s": before_s})
                if snapshot is None:
                    return gone
                count = connection.execute(_PRUNE, {"job_": lease.job, "snapshot": snapshot}).rowcount
            gone += count
            if count < SLICE:
                return gone

    def jobs(self) -> tuple[str, ...]:
        """Return the names of all jobs with records."""
        with self._reading() as connection:
            return tuple(sorted(connection.scalars(_JOBS)))  # sorted here: databases disagree about letters

    def close(self) -> None:
        """Let go of files and connections."""
        self._database.engine.dispose()

    def _prepare(self) -> None:
        """Create the tables where there are none, and refuse those of another version."""
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(_ONE_AT_A_TIME)
            schema.TABLES.create_all(connection)
            found = connection.scalar(select(schema.schema_version.c.version))
            if found is None:
                connection.execute(insert(schema.schema_version), {"version": schema.VERSION})
            elif found != schema.VERSION:
                raise JournalError(
                    f"journal {self._database.place} has schema version {found}, this Rheostat writes version "
                    f"{schema.VERSION}: use the Rheostat that wrote it, or start a journal in another place"
                )

    def _extend(self, connection: Connection, lease: Lease) -> None:
        """Make the lease last from now on, or refuse: it is no longer the current one."""
        if connection.execute(_EXTEND, {**_names(lease), "now_s": self._wall()}).rowcount == 0:
            row = connection.execute(_TENURE, {"job_": lease.job}).first()
            raise (Tenure() if row is None else Tenure(*row)).refusal(lease)

    def _pages(self, job: str, after: int, kinds: Sequence[str]) -> Iterator[Entry]:
        page = _NEXT.where(_record.kind.in_(kinds)) if kinds else _NEXT
        while True:
            with self._reading() as connection:
                rows = connection.execute(page, {"job_": job, "after": after}).all()
            yield from map(self._entry, rows)
            if len(rows) < PAGE:
                return
            after = rows[-1].number

    def _entry(self, row: Row[Any, Any, Any, Any]) -> Entry:
        number, step, kind, body = row
        try:
            return Entry(number, step, from_json(KINDS[kind], body))
        except (KeyError, InvalidValue) as error:
            raise JournalError(
                f"journal {self._database.place}: record {number} of kind {kind!r} cannot be read ({error}): "
                "it was written by another version of Rheostat"
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with explained(self._database.place), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with explained(self._database.place), self._database.engine.connect() as connection:
            yield connection


def _names(lease: Lease) -> dict[str, Any]:
    return {"job_": lease.job, "holder_": lease.holder, "token_": lease.token}


def _row(lease: Lease, step: int, record: Record) -> dict[str, Any]:
    kind = kind_of(record)
    try:
        body = to_json(record)
    except ValueError as error:
        raise InvalidValue(f"a record of kind {kind!r} cannot be written as JSON: {error}") from error
    at_s = getattr(record, "at_s", None)
    return {"job": lease.job, "token": lease.token, "step": step, "kind": kind, "at_s": at_s, "body": body}
