"""A journal in memory, for simulations: the same rules, without JSON, lost at the end of the process."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from threading import Lock

from rheostat.clock import Moment, steady_s
from rheostat.job.record import KIND_OF, Record, Run, Snapshot, check_kinds, kind_of
from rheostat.journal.lease import LeaseState
from rheostat.ports import Entry, Lease, Skip


@dataclass(slots=True)
class _JobRecords:
    """The entries of one job in order, and the newest of every kind."""

    lease: LeaseState = LeaseState()
    entries: list[Entry] = field(default_factory=list)
    newest: dict[str, Entry] = field(default_factory=dict)


class MemoryJournal:
    """Lists and dictionaries behind the `Journal` port; other threads may read it."""

    def __init__(self, *, wall: Callable[[], float] = steady_s) -> None:
        self._wall = wall
        self._jobs: dict[str, _JobRecords] = {}
        self._last = 0
        self._lock = Lock()

    def acquire(self, job: str, holder: str, ttl_s: float) -> Lease:
        """Take the job's lease; see `Journal`."""
        with self._lock:
            records = self._jobs.get(job, _JobRecords())
            records.lease = records.lease.grant(job, holder, ttl_s, Moment(self._wall()))
            self._jobs[job] = records
            return Lease(job, holder, records.lease.token)

    def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
        """Write all records or none; see `Journal`. An empty batch only extends the lease."""
        kinds = [kind_of(record) for record in records]
        with self._lock:
            job = self._extend_lease(lease)
            for kind, record in zip(kinds, records, strict=True):
                self._last += 1
                entry = Entry(self._last, step, record)
                job.entries.append(entry)
                job.newest[kind] = entry
            return job.entries[-1].number if job.entries else 0

    def release(self, lease: Lease) -> None:
        """Release the lease; see `Journal`."""
        with self._lock:
            records = self._jobs.get(lease.job)
            if records is not None and records.lease.covers(lease):
                records.lease = replace(records.lease, expires_s=None)

    def read(self, job: str, after: int = 0, kinds: Sequence[str] = (), skip: Skip | None = None) -> Iterator[Entry]:
        """Return records in order; see `Journal`."""
        check_kinds(kinds)
        with self._lock:
            entries = self._jobs.get(job, _JobRecords()).entries
            rest = entries[bisect_right(entries, after, key=attrgetter("number")) :]
        return (entry for entry in rest if not kinds or KIND_OF[type(entry.record)] in kinds)

    def latest(self, job: str, kind: str, before: int | None = None) -> Entry | None:
        """Return the newest record of a kind; see `Journal`."""
        check_kinds([kind])
        with self._lock:
            records = self._jobs.get(job, _JobRecords())
            if before is None:
                return records.newest.get(kind)
            earlier = (e for e in reversed(records.entries) if e.number < before and KIND_OF[type(e.record)] == kind)
            return next(earlier, None)

    def tail(self, job: str, records: int, before: int | None = None) -> int:
        """Return where the last records begin; see `Journal`."""
        with self._lock:
            entries = self._jobs.get(job, _JobRecords()).entries
            end = len(entries) if before is None else bisect_left(entries, before, key=attrgetter("number"))
            return entries[end - records - 1].number if end > records else 0

    def prune(self, lease: Lease, before_s: float) -> int:
        """Delete the records before the newest snapshot that is older than a moment; see `Journal`."""
        with self._lock:
            job = self._extend_lease(lease)
            old = (e.number for e in job.entries if isinstance(e.record, Snapshot) and e.record.at_s <= before_s)
            newest = max(old, default=0)
            runs = (e.number for e in job.entries if isinstance(e.record, Run) and e.number < newest)
            run = max(runs, default=0)
            retained = [e for e in job.entries if e.number >= newest or e.number == run]
            deleted = len(job.entries) - len(retained)
            job.entries = retained
            job.newest = {KIND_OF[type(e.record)]: e for e in retained}
            return deleted

    def jobs(self) -> tuple[str, ...]:
        """Return the names of all jobs with records."""
        with self._lock:
            return tuple(sorted(name for name, job in self._jobs.items() if job.entries))

    def close(self) -> None:
        """Do nothing: there are no files and no connections."""

    def _extend_lease(self, lease: Lease) -> _JobRecords:
        records = self._jobs.get(lease.job, _JobRecords())
        if not records.lease.covers(lease):
            raise records.lease.refusal(lease)
        records.lease = records.lease.extend(Moment(self._wall()))
        return records
