"""The lease that allows one controller to write about a job: the same rules for every journal.

Time decides only when another controller may take over; the token decides which one may write (fencing). So a
controller that was suspended for longer than its lease is refused at its next write if another one took over, and
continues otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from rheostat.errors import InvalidValue, LeaseRefused
from rheostat.job.frozen import check_number
from rheostat.ports import Lease


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The state of a job's lease. The token only rises; `expires_s` is None after a release."""

    holder: str = ""
    token: int = 0
    ttl_s: float = 0.0
    expires_s: float | None = None

    def grant(self, job: str, holder: str, ttl_s: float, now_s: float) -> LeaseState:
        """Return the state after a grant. Refuse while the lease lasts, even to its holder: names may be equal."""
        if not job or not holder:
            raise InvalidValue(f"a lease needs the names of a job and of a holder, not {job!r} and {holder!r}")
        check_number("ttl_s of a lease", ttl_s, least=1e-3)
        if self.expires_s is not None and self.expires_s > now_s:
            raise LeaseRefused(
                f"job {job!r} is held by {self.holder!r} for another {self.expires_s - now_s:.1f} s: "
                "stop that controller, or wait until its lease expires"
            )
        return LeaseState(holder, self.token + 1, ttl_s, now_s + ttl_s)

    def covers(self, lease: Lease) -> bool:
        """Whether this is the current lease, expired or not."""
        return self.expires_s is not None and (self.holder, self.token) == (lease.holder, lease.token)

    def refusal(self, lease: Lease) -> LeaseRefused:
        """Return the error for a write with a lease that is not current."""
        if (self.holder, self.token) == (lease.holder, lease.token):
            return LeaseRefused(f"{lease.holder!r} has released job {lease.job!r}: acquire it again before writing")
        return LeaseRefused(
            f"job {lease.job!r} was taken over by {self.holder!r} (token {self.token}); "
            f"{lease.holder!r} had token {lease.token} and must stop"
        )
