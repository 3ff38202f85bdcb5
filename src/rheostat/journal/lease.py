"""The lease that allows one controller to write about a job: the same rules for every journal.

Time decides only when another controller may take over; the token decides which one may write (fencing). So a
controller that was suspended for longer than its lease is refused at its next write if another one took over, and
continues otherwise.

The time is PostgreSQL's, or the host's: drivers with wrong clocks agree on it. A host's wall clock can be set, its time
since boot cannot: within one boot the latter decides, and after a restart of the host the wall clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rheostat.clock import Moment
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
    boot: str | None = None
    """The holder's boot at its last write."""
    booted_s: float | None = None
    """When that boot began, by the same wall clock as `expires_s`: with the time since boot it continues that clock,
    whatever was done to it since."""

    def grant(self, job: str, holder: str, ttl_s: float, now: Moment) -> LeaseState:
        """Return the state after a grant. Refuse while the lease lasts, even to its holder: names may be equal."""
        if not job or not holder:
            raise InvalidValue(f"a lease needs the names of a job and of a holder, not {job!r} and {holder!r}")
        check_number("ttl_s of a lease", ttl_s, least=1e-3)
        left_s = self.left_s(now)
        if left_s > 0:
            raise LeaseRefused(
                f"job {job!r} is held by {self.holder!r} for another {left_s:.1f} s: "
                "stop that controller, or wait until its lease expires"
            )
        return LeaseState(holder, self.token + 1, ttl_s).extend(now)

    def extend(self, now: Moment) -> LeaseState:
        """Return the state after a write of the holder: the lease counts from now on."""
        return replace(self, expires_s=now.wall_s + self.ttl_s, boot=now.boot, booted_s=now.booted_s)

    def left_s(self, now: Moment) -> float:
        """Return the seconds until the lease expires; 0 or less once it has."""
        if self.expires_s is None:
            return 0.0
        if self.booted_s is not None and self.boot == now.boot:
            return self.expires_s - (self.booted_s + now.up_s)
        return self.expires_s - now.wall_s

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
