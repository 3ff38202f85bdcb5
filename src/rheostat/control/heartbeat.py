"""A lease that stays ours: renewed on a thread of its own, and known by the monotonic clock until when it surely is.

Another controller may take the lease over once it has expired by the journal's clock. This one counts from before each
renewal was sent, by a clock that is never set: so it stops acting before the other one can begin.
"""

from __future__ import annotations

import logging
import threading

from rheostat.errors import JournalError, LeaseRefused
from rheostat.ports import Clock, Journal, Lease

log = logging.getLogger(__name__)

BEATS = 4
"""Renewals per lease: three may fail before the lease is lost."""


class Heartbeat:
    """Keeps one lease. Without a thread (`threaded=False`) only the controller's own writes renew it."""

    def __init__(
        self, journal: Journal, lease: Lease, ttl_s: float, clock: Clock, since_s: float, *, threaded: bool
    ) -> None:
        self._journal, self._lease, self._ttl_s, self._clock = journal, lease, ttl_s, clock
        self.renewed_s = since_s
        """Monotonic moment at which the last successful renewal was sent; every write of the controller is one."""
        self._refusal: LeaseRefused | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._work, name="rheostat-heartbeat", daemon=True)
            self._thread.start()

    def check(self) -> None:
        """Raise LeaseRefused where another controller has taken the lease, or may have."""
        if self._refusal is not None:
            raise self._refusal
        late_s = self._clock.monotonic() - self.renewed_s - self._ttl_s
        if late_s > 0:
            raise LeaseRefused(
                f"the lease of job {self._lease.job!r} could not be renewed in time and expired {late_s:.1f} s ago: "
                "another controller may hold it"
            )

    def stop(self) -> None:
        """End the thread."""
        self._ending.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(self._ttl_s)

    def beat(self) -> None:
        """Renew the lease once."""
        since_s = self._clock.monotonic()
        try:
            self._journal.append(self._lease, 0, [])
        except LeaseRefused as refusal:
            self._refusal = refusal
            log.warning("%s: the lease is lost: %s", self._lease.job, refusal)
        except JournalError as error:
            log.warning("%s: the lease could not be renewed: %s", self._lease.job, error)
        else:
            self.renewed_s = max(self.renewed_s, since_s)

    def _work(self) -> None:
        while self._refusal is None and not self._ending.wait(self._ttl_s / BEATS):
            self.beat()
