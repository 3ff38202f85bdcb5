"""A journal in a SQL database: a SQLite file by default, PostgreSQL by URL.

A batch is one transaction, which first extends the writer's lease. That UPDATE is the fence: it matches no row once
another controller has taken the lease, and it locks the row, so two writers of one job exclude each other until they
commit. So a job's numbers become visible in order, and a reader that continues after the last number it read misses no
record.

A call returns within 15 s; `read` does for every page, and `prune` for every slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    Double,
    Row,
    bindparam,
    cast,
    delete,
    exists,
    extract,
    func,
    insert,
    select,
    text,
    update,
)

from rheostat.clock import HostClock, Moment
from rheostat.errors import InvalidValue, JournalError, LeaseRefused, UnreadableRecord
from rheostat.job.frozen import from_json, to_json
from rheostat.job.record import KINDS, Record, check_kinds, kind_of
from rheostat.journal import schema
from rheostat.journal.database import prepare_database
from rheostat.journal.failure import is_lock_timeout, translate_errors
from rheostat.journal.lease import LeaseState
from rheostat.journal.migrations import prepare_tables, schema_version, upgrade
from rheostat.ports import Entry, Lease, Skip

PAGE = 256
"""Records that `read` fetches at a time. Between pages it holds neither a transaction nor a connection."""

SLICE = 2_000
"""Records that `prune` deletes per transaction, so that it locks out the writers of other jobs only briefly."""

_record, _lease = schema.record.c, schema.lease.c
_JOB: BindParameter[str] = bindparam("job_")  # SQLAlchemy reserves the bare names of columns

# Built once, so that SQLAlchemy finds their compiled text in its cache.
_LEASE = select(_lease.holder, _lease.token, _lease.ttl_s, _lease.expires_s, _lease.boot, _lease.booted_s).where(
    _lease.job == _JOB
)
_LOCKED = select(_lease.job).where(_lease.job == _JOB).with_for_update().subquery()
# The outer SELECT reads PostgreSQL's clock for a row that the inner one has locked: after the wait for the lock.
_LOCKED_NOW = select(cast(extract("epoch", func.clock_timestamp()), Double)).select_from(_LOCKED)
_VACANT = text("INSERT INTO lease (job, holder, token, ttl_s) VALUES (:job_, '', 0, 0) ON CONFLICT DO NOTHING")
_TAKE = update(schema.lease).where(_lease.job == _JOB)
_OWN = (_lease.job == _JOB) & (_lease.holder == bindparam("holder_")) & (_lease.token == bindparam("token_"))
_EXTEND = (
    update(schema.lease)
    .where(_OWN & _lease.expires_s.is_not(None))
    .values(expires_s=bindparam("now_s") + _lease.ttl_s, boot=bindparam("boot_"), booted_s=bindparam("booted_s_"))
)
_RELEASE = update(schema.lease).where(_OWN).values(expires_s=None)
_INSERT = insert(schema.record)
_LAST = select(func.max(_record.number)).where(_record.job == _JOB)
_ENTRY = select(_record.number, _record.step, _record.kind, _record.body, _record.version).where(_record.job == _JOB)
_NEXT = _ENTRY.where(_record.number > bindparam("after")).order_by(_record.number).limit(PAGE)
_NUMBERS = select(_record.number).where(_record.job == _JOB).order_by(_record.number.desc()).limit(1)
_LATEST = _ENTRY.where(_record.kind == bindparam("kind_")).order_by(_record.number.desc()).limit(1)
_OLD_SNAPSHOT = _LAST.where(_record.kind == "snapshot", _record.at_s <= bindparam("before_s"))
_BEHIND = _record.number < bindparam("snapshot")
_RUN = _LAST.where(_BEHIND, _record.kind == "run").scalar_subquery()
_OLD = _record.job == _JOB, _BEHIND, (_record.kind != "run") | (_record.number < _RUN)
_OLDEST = select(_record.number).where(*_OLD).order_by(_record.number).limit(SLICE)
_PRUNE = delete(schema.record).where(_record.number.in_(_OLDEST))
# Every record has a lease, so this scans the few leases, not the many records.
_JOBS = select(_lease.job).where(exists().where(_record.job == _lease.job))


class SqlJournal:
    """The `Journal` port on SQLAlchemy Core. Threads may share it; every process opens its own.

    Opening creates the tables, and migrates those of an older version, also for a caller that only reads: a journal of
    the present version is opened without a write.
    """

    def __init__(
        self, url_or_path: str | Path, *, wall: Callable[[], float] | None = None, host: HostClock | None = None
    ) -> None:
        """Open a journal. For tests, `host` replaces the host's clocks, and `wall` all clocks, PostgreSQL's too."""
        self._wall = wall
        self._host = host or HostClock()
        self._database = prepare_database(url_or_path)
        self._writer = self._database.writer
        self._postgres = self._database.engine.dialect.name == "postgresql"
        self._unsettled: set[str] = set()
        self._prepare()

    def acquire(self, job: str, holder: str, ttl_s: float) -> Lease:
        """Take the job's lease; see `Journal`. A row that stays locked is a lease that is held."""
        try:
            with self._transaction() as connection:
                # Insert the row before locking it, so that of two first controllers the second waits for the first.
                connection.execute(_VACANT, {"job_": job})
                before = LeaseState(*connection.execute(_LEASE.with_for_update(), {"job_": job}).one())
                after = before.grant(job, holder, ttl_s, self._now(connection, job))
                connection.execute(_TAKE, {"job_": job, **asdict(after)})
        except JournalError as error:
            if not is_lock_timeout(error.__cause__):
                raise
            raise LeaseRefused(
                f"job {job!r} is held: another process has been writing its lease for too long, try again ({error})"
            ) from error
        return Lease(job, holder, after.token)

    def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
        """Write all records or none; see `Journal`. An empty batch only extends the lease."""
        # Encode before the transaction: an invalid record then writes nothing, and encoding holds no lock.
        rows = [_row(lease, step, record) for record in records]
        try:
            with self._transaction() as connection:
                self._extend(connection, lease)
                if rows:
                    connection.execute(_INSERT, rows)
                return connection.scalar(_LAST, {"job_": lease.job}) or 0
        except LeaseRefused:
            raise
        except JournalError:
            if self._postgres:
                self._unsettled.add(lease.job)
            raise

    def release(self, lease: Lease) -> None:
        """Release the lease; see `Journal`."""
        with self._transaction() as connection:
            connection.execute(_RELEASE, _parameters(lease))

    def read(self, job: str, after: int = 0, kinds: Sequence[str] = (), skip: Skip | None = None) -> Iterator[Entry]:
        """Return records in order; see `Journal`."""
        check_kinds(kinds)
        return self._pages(job, after, kinds, skip)

    def latest(self, job: str, kind: str, before: int | None = None) -> Entry | None:
        """Return the newest record of a kind; see `Journal`."""
        check_kinds([kind])
        query = _LATEST if before is None else _LATEST.where(_record.number < before)
        self._settle(job)
        with self._connection() as connection:
            row = connection.execute(query, {"job_": job, "kind_": kind}).first()
        return None if row is None else self._entry(row)

    def tail(self, job: str, records: int, before: int | None = None) -> int:
        """Return where the last records begin; see `Journal`."""
        query = _NUMBERS if before is None else _NUMBERS.where(_record.number < before)
        self._settle(job)
        with self._connection() as connection:
            return connection.scalar(query.offset(records), {"job_": job}) or 0

    def prune(self, lease: Lease, before_s: float) -> int:
        """Delete the records before the newest snapshot that is older than a moment; see `Journal`."""
        deleted = 0
        while True:  # oldest first: after a crash the rest is still complete from its first record on
            with self._transaction() as connection:
                self._extend(connection, lease)
                snapshot = connection.scalar(_OLD_SNAPSHOT, {"job_": lease.job, "before_s": before_s})
                if snapshot is None:
                    return deleted
                count = connection.execute(_PRUNE, {"job_": lease.job, "snapshot": snapshot}).rowcount
            deleted += count
            if count < SLICE:
                return deleted

    def jobs(self) -> tuple[str, ...]:
        """Return the names of all jobs with records."""
        with self._connection() as connection:
            return tuple(sorted(connection.scalars(_JOBS)))  # sorted here: databases have different collations

    def close(self) -> None:
        """Close files and connections."""
        self._database.engine.dispose()

    def _prepare(self) -> None:
        with self._connection() as connection:
            if schema_version(connection) == schema.VERSION:
                return
        with self._transaction() as connection:
            prepare_tables(connection, self._database.place)

    def _now(self, connection: Connection, job: str) -> Moment:
        """Return the time that leases go by. PostgreSQL's is read after the row of the job's lease is locked."""
        if self._wall is not None:
            return Moment(self._wall())
        if not self._postgres:
            return self._host.now()
        return Moment(connection.scalar(_LOCKED_NOW, {"job_": job}) or 0.0)  # without a row there is nothing to end

    def _extend(self, connection: Connection, lease: Lease) -> None:
        """Extend the lease from now on; refuse if it is no longer the current one."""
        now = self._now(connection, lease.job)
        times = {"now_s": now.wall_s, "boot_": now.boot, "booted_s_": now.booted_s}
        if connection.execute(_EXTEND, {**_parameters(lease), **times}).rowcount == 0:
            row = connection.execute(_LEASE, {"job_": lease.job}).first()
            raise (LeaseState() if row is None else LeaseState(*row)).refusal(lease)

    def _settle(self, job: str) -> None:
        """Wait for the end of a batch whose COMMIT was sent and not answered: afterwards it is there, or never will be.

        The server may still execute it; until then it holds the lock of the lease's row.
        """
        if job in self._unsettled:
            with self._transaction() as connection:
                connection.execute(_LOCKED_NOW, {"job_": job})
            self._unsettled.discard(job)

    def _pages(self, job: str, after: int, kinds: Sequence[str], skip: Skip | None) -> Iterator[Entry]:
        page = _NEXT.where(_record.kind.in_(kinds)) if kinds else _NEXT
        self._settle(job)
        while True:
            with self._connection() as connection:
                rows = connection.execute(page, {"job_": job, "after": after}).all()
            for row in rows:
                try:
                    entry = self._entry(row)
                except UnreadableRecord as error:
                    if skip is None:
                        raise
                    skip(error)
                else:
                    yield entry
            if len(rows) < PAGE:
                return
            after = rows[-1].number

    def _entry(self, row: Row[Any, Any, Any, Any, Any]) -> Entry:
        number, step, kind, body, version = row
        try:
            return Entry(number, step, from_json(KINDS[kind], upgrade(kind, body, version)))
        except (KeyError, InvalidValue) as error:
            raise UnreadableRecord(
                f"journal {self._database.place}: record {number} of kind {kind!r} cannot be read ({error}): "
                "it was written by another version of Rheostat",
                number,
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with translate_errors(self._database.place), self._database.limit(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with (
            translate_errors(self._database.place),
            self._database.limit(),
            self._database.engine.connect() as connection,
        ):
            yield connection


def _parameters(lease: Lease) -> dict[str, Any]:
    return {"job_": lease.job, "holder_": lease.holder, "token_": lease.token}


def _row(lease: Lease, step: int, record: Record) -> dict[str, Any]:
    kind = kind_of(record)
    try:
        body = to_json(record)
    except ValueError as error:
        raise InvalidValue(f"a record of kind {kind!r} cannot be written as JSON: {error}") from error
    at_s = getattr(record, "at_s", None)
    return {
        "job": lease.job,
        "token": lease.token,
        "step": step,
        "kind": kind,
        "at_s": at_s,
        "body": body,
        "version": schema.VERSION,
    }
