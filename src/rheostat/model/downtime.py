"""Downtimes as they were observed: how long a restart stops a job, as a distribution, by the size of its state.

The paper takes D for a constant that is known before. It decides how large a job must be (CALIBRATION.md: 90 or 130 s
is a saving of 49 or 23 %), so here it is learned from every restart that was seen. Around a line in the state's size,
where the restarts show one, downtimes scatter; an objective takes an upper quantile, wide while little was seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number
from rheostat.job.observation import Observation

KEPT = 32
"""Newest restarts that are kept."""
ASSUMED_S = 60.0
"""Before any restart was seen, and one restart's worth after it; Flink with a 20 s timeout resumes after 65 s."""
ASSUMED_SPREAD = 0.15
"""Standard deviation as a share of the downtime, before restarts tell: it counts as four of them."""
ASSUMED_DEGREES = 4.0
TELLING_SPREAD, TELLING_COUNT, TELLING_SLOPE = 1.5, 5, 3.0
"""States must differ by this ratio, of so many restarts, and the slope be so many of its standard errors, before a line
is drawn through them: state follows the load, and with few restarts any two things seem to go together."""


@dataclass(frozen=True, slots=True)
class Restart:
    """One restart: seconds without progress, and the state that had to be read back, where it is known."""

    downtime_s: float
    state_bytes: float | None = None

    def __post_init__(self) -> None:
        check_number("downtime_s of a restart", self.downtime_s)
        check_number("state_bytes of a restart", self.state_bytes)


@dataclass(frozen=True, slots=True)
class Downtimes:
    """The newest restarts, oldest first; `control.recovery` folds them, so that they outlive the controller."""

    restarts: tuple[Restart, ...] = ()
    assumed_s: float = ASSUMED_S
    seen_s: float = -math.inf
    """Moment of the resumption that was learned last: the same restart shows in many windows."""

    def __post_init__(self) -> None:
        check_number("assumed_s", self.assumed_s)

    def learned(self, downtime_s: float, state_bytes: float | None = None) -> Downtimes:
        """Return what is known after one more restart."""
        kept = (*self.restarts, Restart(downtime_s, state_bytes))[-KEPT:]
        return Downtimes(kept, self.assumed_s, self.seen_s)

    def expected_s(self, state_bytes: float | None = None) -> float:
        """Return the mean downtime of a restart with so much state."""
        return self._moments(state_bytes)[0]

    def quantile(self, q: float, state_bytes: float | None = None) -> float:
        """Return the downtime that a share q of restarts with so much state stays below."""
        if not 0 < q < 1:
            raise InvalidValue(f"a quantile must lie between 0 and 1, not {q!r}")
        mean, sd, degrees = self._moments(state_bytes)
        z = NormalDist().inv_cdf(q)
        # Student's t, by the first term of its expansion: few restarts say little about the tail.
        return max(mean + sd * z * (1 + (z * z + 1) / (4 * degrees)), 0.0)

    def _moments(self, state_bytes: float | None) -> tuple[float, float, float]:
        """Return the mean, the standard deviation of one more restart, and the degrees of freedom."""
        if not self.restarts:
            return self.assumed_s, self.assumed_s * ASSUMED_SPREAD, ASSUMED_DEGREES
        slope = self._seconds_per_byte()
        downtimes = np.array([r.downtime_s for r in self.restarts])
        states = np.array([math.nan if r.state_bytes is None else r.state_bytes for r in self.restarts])
        level = float(np.nanmean(states)) if np.isfinite(states).any() else 0.0
        # Every restart as it would have been with this state; an unknown state is an average one.
        here = level if state_bytes is None else state_bytes
        moved = downtimes + slope * (here - np.where(np.isnan(states), level, states))
        moved = np.maximum(moved, 0.0)
        n = downtimes.size
        mean = float((moved.sum() + self.assumed_s + slope * (here - level)) / (n + 1))
        mean = max(mean, 0.0)
        scatter = float(((moved - moved.mean()) ** 2).sum())
        degrees = ASSUMED_DEGREES + n - 1
        variance = (ASSUMED_DEGREES * (ASSUMED_SPREAD * mean) ** 2 + scatter) / degrees
        return mean, math.sqrt(variance * (1 + 1 / (n + 1))), degrees

    def _seconds_per_byte(self) -> float:
        """Return how many seconds a byte of state costs: never negative, 0 where the restarts do not tell."""
        pairs = [(r.state_bytes, r.downtime_s) for r in self.restarts if r.state_bytes is not None]
        if len(pairs) < TELLING_COUNT:
            return 0.0
        states, downtimes = np.array(pairs).T
        most = float(states.max())
        if most <= TELLING_SPREAD * float(states.min()):
            return 0.0
        x = states / most - (states / most).mean()
        slope = float(x @ (downtimes - downtimes.mean()) / (x @ x))
        rest = downtimes - downtimes.mean() - slope * x
        error = math.sqrt(float(rest @ rest) / (len(pairs) - 2) / float(x @ x))
        return slope / most if slope > TELLING_SLOPE * error else 0.0


def state_of(window: Observation) -> float | None:
    """Return the bytes of state of all operators that tell theirs; None where none does."""
    known = [o.state_bytes for o in window.operators if o.state_bytes is not None and 0 <= o.state_bytes < math.inf]
    return sum(known) if known else None
