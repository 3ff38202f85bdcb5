"""The distribution of observed downtimes: how long a restart stops a job, by the size of its state.

Phoebe's paper treats D as a constant that is known beforehand. D decides how large a job must be (on the paper's jobs
Phoebe saves 49 % with 90 s and 23 % with 130 s), so here it is learned from every observed restart. Downtimes scatter
around a line in the size of the state, where the restarts show such a line. An objective uses an upper quantile, which
is wide as long as few restarts were observed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number
from rheostat.job.observation import MOST, Observation

MAX_RESTARTS = 32
"""Newest restarts that are retained."""
ASSUMED_S = 60.0
"""Downtime before the first observed restart; it keeps the weight of one restart afterwards. Flink with a timeout of
20 s resumes after 65 s."""
ASSUMED_SPREAD = 0.15
"""Prior standard deviation as a share of the downtime."""
ASSUMED_DEGREES = 4.0
"""Weight of the prior standard deviation, in restarts."""
MIN_STATE_RATIO, MIN_RESTARTS, MIN_SLOPE_ERRORS = 1.5, 5, 3.0
"""Ratio of the largest to the smallest state, number of restarts, and standard errors of the slope from which on a line
in the state is fitted. State follows the load, and with few restarts any two quantities seem to correlate."""


@dataclass(frozen=True, slots=True)
class Restart:
    """One restart: seconds without progress, and the state that had to be restored, where it is known."""

    downtime_s: float
    state_bytes: float | None = None

    def __post_init__(self) -> None:
        check_number("downtime_s of a restart", self.downtime_s)
        check_number("state_bytes of a restart", self.state_bytes)


@dataclass(frozen=True, slots=True)
class Downtimes:
    """The newest restarts, oldest first; `control.recovery` folds them from the journal."""

    restarts: tuple[Restart, ...] = ()
    assumed_s: float = ASSUMED_S
    seen_s: float = -math.inf
    """Moment of the last resumption that was added: the same restart shows in many windows."""

    def __post_init__(self) -> None:
        check_number("assumed_s", self.assumed_s)

    def with_restart(self, downtime_s: float, state_bytes: float | None = None) -> Downtimes:
        """Return a copy with one more restart."""
        restarts = (*self.restarts, Restart(downtime_s, state_bytes))[-MAX_RESTARTS:]
        return Downtimes(restarts, self.assumed_s, self.seen_s)

    def expected_s(self, state_bytes: float | None = None) -> float:
        """Return the mean downtime of a restart with this much state."""
        return self._moments(state_bytes)[0]

    def quantile(self, q: float, state_bytes: float | None = None) -> float:
        """Return the quantile q of the downtime of a restart with this much state."""
        if not 0 < q < 1:
            raise InvalidValue(f"a quantile must lie between 0 and 1, not {q!r}")
        mean, sd, degrees = self._moments(state_bytes)
        z = NormalDist().inv_cdf(q)
        # Student's t, by the first term of its expansion: few restarts leave the tail uncertain.
        return max(mean + sd * z * (1 + (z * z + 1) / (4 * degrees)), 0.0)

    def _moments(self, state_bytes: float | None) -> tuple[float, float, float]:
        """Return the mean, the standard deviation of one more restart, and the degrees of freedom."""
        if not self.restarts:
            return self.assumed_s, self.assumed_s * ASSUMED_SPREAD, ASSUMED_DEGREES
        slope = self._seconds_per_byte()
        downtimes = np.array([r.downtime_s for r in self.restarts])
        states = np.array([math.nan if r.state_bytes is None else r.state_bytes for r in self.restarts])
        level = float(np.nanmean(states)) if np.isfinite(states).any() else 0.0
        # Every restart, shifted to this state; an unknown state counts as the average one.
        here = level if state_bytes is None else state_bytes
        shifted = downtimes + slope * (here - np.where(np.isnan(states), level, states))
        shifted = np.maximum(shifted, 0.0)
        n = downtimes.size
        mean = float((shifted.sum() + self.assumed_s + slope * (here - level)) / (n + 1))
        mean = max(mean, 0.0)
        scatter = float(((shifted - shifted.mean()) ** 2).sum())
        degrees = ASSUMED_DEGREES + n - 1
        variance = (ASSUMED_DEGREES * (ASSUMED_SPREAD * mean) ** 2 + scatter) / degrees
        return mean, math.sqrt(variance * (1 + 1 / (n + 1))), degrees

    def _seconds_per_byte(self) -> float:
        """Return the seconds that a byte of state costs: at least 0, and 0 unless the restarts show a clear line."""
        pairs = [(r.state_bytes, r.downtime_s) for r in self.restarts if r.state_bytes is not None]
        if len(pairs) < MIN_RESTARTS:
            return 0.0
        states, downtimes = np.array(pairs).T
        most = float(states.max())
        if most <= MIN_STATE_RATIO * float(states.min()):
            return 0.0
        x = states / most - (states / most).mean()
        slope = float(x @ (downtimes - downtimes.mean()) / (x @ x))
        residual = downtimes - downtimes.mean() - slope * x
        error = math.sqrt(float(residual @ residual) / (len(pairs) - 2) / float(x @ x))
        return slope / most if slope > MIN_SLOPE_ERRORS * error else 0.0


def state_of(window: Observation) -> float | None:
    """Return the bytes of state of all operators that report them; None if none does."""
    sizes = [o.state_bytes for o in window.operators if o.state_bytes is not None and 0 <= o.state_bytes < MOST]
    return sum(sizes) if sizes else None
