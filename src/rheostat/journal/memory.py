"""A journal in memory, for simulations: the same rules, nothing encoded, gone at the end of the process."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from threading import Lock

from rheostat.job.record import KIND_OF, Record, Run, Snapshot, check_kinds, kind_of
from rheostat.journal.lease import Tenure
from rheostat.ports import Entry, Lease


@dataclass(slots=True)
class _Shelf:
    """One job's entries in order, and the newest of every kind."""

    tenure: Tenure = Tenure()
    entries: list[Entry] = field(default_factory=list)
    newest: dict[str, Entry] = field(default_factory=dict)


class MemoryJournal:
    """Lists and dictionaries behind the `Journal` port; may be read from other threads."""

    def __init__(self, *, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._shelves: dict[str, _Shelf] = {}
        self._last = 0
        self._lock = Lock()

    def acquire(self, job: str, holder: str, ttl_s: float) -> Lease:
        """Take the job's lease; see `Journal`."""
        with self._lock:
            shelf = self._shelves.get(job, _Shelf())
            shelf.tenure = shelf.tenure.succeeded_by(job, holder, ttl_s, self._wall())
            self._shelves[job] = shelf
            return Lease(job, holder, shelf.tenure.token)

    def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
        """Write all records or none; see `Journal`. No records at all only extend the lease."""
        kinds = [kind_of(record) for record in records]
        with self._lock:
            shelf = self._extended(lease)
            for kind, record in zip(kinds, records, strict=True):
                self._last += 1
                entry = Entry(self._last, step, record)
                shelf.entries.append(entry)
                shelf.newest[kind] = entry
            return shelf.entries[-1].number if shelf.entries else 0

    def release(self, lease: Lease) -> None:
        """Give the lease back; see `Journal`."""
        with self._lock:
            shelf = self._shelves.get(lease.job)
            if shelf is not None and shelf.tenure.covers(lease):
                shelf.tenure = replace(shelf.tenure, expires_s=None)

    def read(self, job: str, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Entry]:
        """Return records in order; see `Journal`."""
        check_kinds(kinds)
        with self._lock:
            entries = self._shelves.get(job, _Shelf()).entries
            rest = entries[bisect_right(entries, after, key=attrgetter("number")) :]
        return (entry for entry in rest if not kinds or KIND_OF[type(entry.record)] in kinds)

    def latest(self, job: str, kind: str) -> Entry | None:
        """Return the newest record of a kind."""
        check_kinds([kind])
        with self._lock:
            return self._shelves.get(job, _Shelf()).newest.get(kind)

    def prune(self, lease: Lease, before_s: float) -> int:
        """Delete what lies behind the newest snapshot that is older than a moment; see `Journal`."""
        with self._lock:
            shelf = self._extended(lease)
            old = (e.number for e in shelf.entries if isinstance(e.record, Snapshot) and e.record.at_s <= before_s)
            newest = max(old, default=0)
            kept = [e for e in shelf.entries if e.number >= newest or isinstance(e.record, Run)]
            gone = len(shelf.entries) - len(kept)
            shelf.entries = kept
            shelf.newest = {KIND_OF[type(e.record)]: e for e in kept}
            return gone

    def jobs(self) -> tuple[str, ...]:
        """Return the names of all jobs with records."""
        with self._lock:
            return tuple(sorted(job for job, shelf in self._shelves.items() if shelf.entries))

    def close(self) -> None:
        """Do nothing: there are no files and no connections."""

    def _extended(self, lease: Lease) -> _Shelf:
        shelf = self._shelves.get(lease.job, _Shelf())
        if not shelf.tenure.covers(lease):
            raise shelf.tenure.refusal(lease)
        shelf.tenure = replace(shelf.tenure, expires_s=self._wall() + shelf.tenure.ttl_s)
        return shelf
