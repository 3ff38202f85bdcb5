"""Who may write about a job: the rules of leases, the same for every journal.

Time only decides who may take over; the token decides who may write. So a controller that was asleep past its
time finds out at its next write that it was overtaken (fencing), and goes on when nobody came.
"""

from __future__ import annotations

from dataclasses import dataclass

from rheostat.errors import InvalidValue, LeaseRefused
from rheostat.job.frozen import check_number
from rheostat.ports import Lease


@dataclass(frozen=True, slots=True)
class Tenure:
    """What is known about a job's lease. The token only ever rises; `expires_s` is None once it was given back."""

    holder: str = ""
    token: int = 0
    ttl_s: float = 0.0
    expires_s: float | None = None

    def succeeded_by(self, job: str, holder: str, ttl_s: float, now_s: float) -> Tenure:
        """Return the next tenure, or refuse while this one lasts, whoever asks: two controllers may share a name."""
        if not job or not holder:
            raise InvalidValue(f"a lease needs the names of a job and of a holder, not {job!r} and {holder!r}")
        check_number("ttl_s of a lease", ttl_s, least=1e-3)
        if self.expires_s is not None and self.expires_s > now_s:
            raise LeaseRefused(
                f"job {job!r} is held by {self.holder!r} for another {self.expires_s - now_s:.1f} s: "
                "stop that controller, or wait until its lease expires"
            )
        return Tenure(holder, self.token + 1, ttl_s, now_s + ttl_s)

    def covers(self, lease: Lease) -> bool:
        """Whether the lease is the current one, expired or not."""
        return self.expires_s is not None and (self.holder, self.token) == (lease.holder, lease.token)

    def refusal(self, lease: Lease) -> LeaseRefused:
        """Return the error for a write with a lease that is not covered."""
        if (self.holder, self.token) == (lease.holder, lease.token):
            return LeaseRefused(f"{lease.holder!r} has given job {lease.job!r} back: acquire it again before writing")
        return LeaseRefused(
            f"job {lease.job!r} was taken over by {self.holder!r} (token {self.token}); "
            f"{lease.holder!r} had token {lease.token} and must stop"
        )
