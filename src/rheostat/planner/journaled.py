"""Planning that outlives its process: what is measured goes into the journal, and comes out of it again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rheostat.errors import JournalError
from rheostat.job.decision import Measurement
from rheostat.job.plan import Estimate, Plan
from rheostat.planner.profiling import of_a_profile
from rheostat.ports import Journal, Lease

HOLDER = "plan"
TTL_S = 60.0
"""So long a planning that was killed keeps others away; one that lives renews its lease meanwhile."""


def known(journal: Journal, job: str) -> list[Estimate]:
    """Return what was measured of a job before."""
    return [e.record for e in journal.read(job, kinds=("estimate",)) if isinstance(e.record, Estimate)]


def profile_of(journal: Journal, job: str) -> list[Measurement]:
    """Return what was profiled of a job before, and could be measured."""
    read = (e.record for e in journal.read(job, kinds=("measurement",)))
    return [m for m in read if isinstance(m, Measurement) and of_a_profile(m) and not m.problem]


@dataclass
class Notebook:
    """Writes down estimates as they come, and the plan at the end."""

    journal: Journal
    lease: Lease

    def save(self, record: Estimate | Plan | Measurement) -> None:
        """Append one record."""
        self.journal.append(self.lease, 0, [record])


@contextmanager
def notebook(journal: Journal, job: str) -> Iterator[Notebook]:
    """Hold the job's lease while planning; an error when a controller holds it."""
    lease, over = journal.acquire(job, HOLDER, TTL_S), threading.Event()

    def renew() -> None:
        # A measurement takes minutes, in which nothing is written. Where this fails, the next record says why.
        while not over.wait(TTL_S / 3):
            with suppress(JournalError):
                journal.append(lease, 0, [])

    beat = threading.Thread(target=renew, name="rheostat-planning", daemon=True)
    beat.start()
    try:
        yield Notebook(journal, lease)
    finally:
        over.set()
        beat.join()
        journal.release(lease)
