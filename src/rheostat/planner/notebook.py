"""The journal of a planning session: its measurements are records, so that a later session continues from them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rheostat.errors import JournalError
from rheostat.job.decision import Measurement
from rheostat.job.plan import Estimate, Plan
from rheostat.planner.profiling import is_profile_measurement
from rheostat.ports import Journal, Lease

HOLDER = "plan"
TTL_S = 60.0
"""Seconds until the lease of a killed session expires; a live session renews it three times as often."""


def read_estimates(journal: Journal, job: str) -> list[Estimate]:
    """Return the earlier estimates of a job."""
    return [e.record for e in journal.read(job, kinds=("estimate",)) if isinstance(e.record, Estimate)]


def read_plans(journal: Journal, job: str) -> list[Plan]:
    """Return the earlier plans of a job, with their verdicts."""
    return [e.record for e in journal.read(job, kinds=("plan",)) if isinstance(e.record, Plan)]


def read_profile(journal: Journal, job: str) -> list[Measurement]:
    """Return the successful measurements of a job's earlier profile."""
    records = (e.record for e in journal.read(job, kinds=("measurement",)))
    return [m for m in records if isinstance(m, Measurement) and is_profile_measurement(m) and not m.problem]


@dataclass
class Notebook:
    """Appends estimates as they come, and the plan at the end."""

    journal: Journal
    lease: Lease

    def save(self, record: Estimate | Plan | Measurement) -> None:
        """Append one record."""
        self.journal.append(self.lease, 0, [record])


@contextmanager
def open_notebook(journal: Journal, job: str) -> Iterator[Notebook]:
    """Hold the job's lease while planning; LeaseRefused if a controller holds it."""
    lease, over = journal.acquire(job, HOLDER, TTL_S), threading.Event()

    def renew() -> None:
        # A measurement takes minutes without a record. If a renewal fails, the next record raises the reason.
        while not over.wait(TTL_S / 3):
            with suppress(JournalError):
                journal.append(lease, 0, [])

    renewal = threading.Thread(target=renew, name="rheostat-planning", daemon=True)
    renewal.start()
    try:
        yield Notebook(journal, lease)
    finally:
        over.set()
        renewal.join()
        journal.release(lease)
