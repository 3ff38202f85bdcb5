"""Downtimes: how long a failure stops a job, learned from failures and drills, by the kind of failure.

Phoebe's paper treats D as a constant that is known beforehand. D decides how large a job must be (on the paper's jobs
Phoebe saves 49 % with 90 s and 23 % with 130 s), so here it is learned. Before the first failure it is unknown, and the
prior is as wide as that. Downtimes scatter around a line in the size of the state, where failures show such a line. An
objective uses an upper quantile, which is wide as long as few failures were observed.

The one rule of learning (`fold`): while a job is down it reads nothing, so the oldest waiting record ages by one second
per second. When it resumes, that age is the time since the last checkpoint before the failure, and a failure falls
anywhere between two checkpoints, on average half an interval after the last one:

    downtime, from the failure on = lag at the resumption - interval / 2

A lost worker is noticed late, and work since the checkpoint is done again; an engine counts neither, but both wait at
the source. Where the engine reports a longer stop than the lag shows, its report counts. Planned changes stop a job,
too, and teach nothing about failures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.job.decision import Measurement
from rheostat.job.frozen import check_number
from rheostat.job.observation import MOST, Observation, Status
from rheostat.job.record import Intent, IntentEnd, Record, Run

MAX_RESTARTS = 32
"""Newest failures of one kind that are retained."""
SCATTER = 0.15
"""Prior standard deviation of one job's downtimes around their mean, as a share of it."""
SCATTER_DEGREES = 4.0
"""Weight of the prior scatter, in failures."""
MIN_STATE_RATIO, MIN_RESTARTS, MIN_SLOPE_ERRORS = 1.5, 5, 3.0
"""Ratio of the largest to the smallest state, number of failures, and standard errors of the slope from which on a line
in the state is fitted. State follows the load, and with few failures any two quantities seem to correlate."""
SOON_S = 90.0
"""Seconds after a resumption in which the lag still shows what a failure lost; later the job has caught up too much."""
LONGEST_S = 7200.0
"""Longest downtime in seconds that counts as a failure: no objective covers a longer one."""
DRILL = "drill"
"""First word of the names of a drill's trials, which identifies their measurements; the second is the kind."""


class Kind(StrEnum):
    """What has to start again after a failure."""

    RESTART = "restart"
    """The whole job: its driver is lost, or its engine restarts the job for a lost worker."""
    EXECUTOR = "executor"
    """A worker; the job goes on with the others."""


PRIORS: Mapping[Kind, tuple[float, float]] = {Kind.RESTART: (60.0, 1.0), Kind.EXECUTOR: (20.0, 1.0)}
"""Mean of the downtime before the first failure of a kind, in seconds, and its standard deviation as a share of it.

What is known of a job that has never failed is what heartbeats and clusters allow: a restart takes between 20 s (a
process starts at once) and minutes (a timeout of 50 s, a node that has to come). The quantile of 0.95 is three times
the mean: 180 s for a restart, 60 s for an executor."""
LEGACY_PRIOR = 60.0, SCATTER
"""The prior of journals without one: as if one failure of 60 s had been seen."""


def prior_of(known_s: float | None) -> tuple[float, float]:
    """Return the prior of a restart: that of a downtime that the user knows, or the wide one."""
    return PRIORS[Kind.RESTART] if known_s is None else (known_s, SCATTER)


@dataclass(frozen=True, slots=True)
class Restart:
    """One failure: seconds without progress, the state that had to be restored, where it is known, and its kind."""

    downtime_s: float
    state_bytes: float | None = None
    kind: Kind = Kind.RESTART

    def __post_init__(self) -> None:
        check_number("downtime_s of a restart", self.downtime_s)
        check_number("state_bytes of a restart", self.state_bytes)


@dataclass(frozen=True, slots=True)
class Downtimes:
    """The newest failures, oldest first: a fold over the journal. A quantity of several kinds is that of the worst.

    A restart of the whole job can always happen. A lost executor counts once one has been measured: before that it is
    not assumed to cost more than a restart.
    """

    restarts: tuple[Restart, ...] = ()
    assumed_s: float = LEGACY_PRIOR[0]
    """Mean downtime of a restart before the first one."""
    spread: float = LEGACY_PRIOR[1]
    """Its standard deviation, as a share of it."""
    seen_s: float = -math.inf
    """Moment of the last resumption that was looked at: the same one shows in many windows."""
    changing: bool = False
    up: bool = False
    """Whether a window of this run has shown the job up: before that it is starting, not failing."""
    down_s: float | None = None
    """Moment of the last window in which the job was down, during an outage."""
    lag_s: float = 0.0
    """Age of the oldest waiting record at that moment."""

    def __post_init__(self) -> None:
        check_number("assumed_s", self.assumed_s)
        check_number("spread", self.spread, least=1e-3)

    @staticmethod
    def unknown() -> Downtimes:
        """Return those of a job that has never failed."""
        return Downtimes().with_prior(*PRIORS[Kind.RESTART])

    def with_prior(self, mean_s: float, spread: float) -> Downtimes:
        """Return a copy with another prior of a restart."""
        return replace(self, assumed_s=mean_s, spread=spread)

    def with_restart(self, downtime_s: float, state_bytes: float | None = None, kind: Kind = Kind.RESTART) -> Downtimes:
        """Return a copy with one more failure."""
        same = [*self.of(kind), Restart(downtime_s, state_bytes, kind)][-MAX_RESTARTS:]
        return replace(self, restarts=(*(r for r in self.restarts if r.kind is not kind), *same))

    def of(self, kind: Kind) -> tuple[Restart, ...]:
        """Return the failures of one kind."""
        return tuple(r for r in self.restarts if r.kind is kind)

    @property
    def guessed(self) -> bool:
        """Whether the downtime of a restart rests on a wide prior alone."""
        return not self.of(Kind.RESTART) and self.spread > SCATTER

    def expected_s(self, state_bytes: float | None = None) -> float:
        """Return the mean downtime of a failure with this much state."""
        return max(self._moments(kind, state_bytes)[0] for kind in self._kinds())

    def quantile(self, q: float, state_bytes: float | None = None) -> float:
        """Return the quantile q of the downtime of a failure with this much state."""
        if not 0 < q < 1:
            raise InvalidValue(f"a quantile must lie between 0 and 1, not {q!r}")
        z = NormalDist().inv_cdf(q)
        most = 0.0
        for kind in self._kinds():
            mean, sd, degrees = self._moments(kind, state_bytes)
            # Student's t, by the first term of its expansion: few failures leave the tail uncertain.
            most = max(most, mean + sd * z * (1 + (z * z + 1) / (4 * degrees)))
        return most

    def _kinds(self) -> tuple[Kind, ...]:
        return tuple(kind for kind in Kind if kind is Kind.RESTART or self.of(kind))

    def _moments(self, kind: Kind, state_bytes: float | None) -> tuple[float, float, float]:
        """Return the mean, the standard deviation of one more failure of a kind, and the degrees of freedom."""
        assumed_s, spread = (self.assumed_s, self.spread) if kind is Kind.RESTART else PRIORS[kind]
        return _moments(self.of(kind), assumed_s, spread, state_bytes)


@lru_cache(maxsize=256)
def _moments(
    restarts: tuple[Restart, ...], assumed_s: float, spread: float, state_bytes: float | None
) -> tuple[float, float, float]:
    if not restarts:
        return assumed_s, assumed_s * spread, SCATTER_DEGREES
    slope = _seconds_per_byte(restarts)
    downtimes = np.array([r.downtime_s for r in restarts])
    states = np.array([math.nan if r.state_bytes is None else r.state_bytes for r in restarts])
    level = float(np.nanmean(states)) if np.isfinite(states).any() else 0.0
    # Every failure, shifted to this state; an unknown state counts as the average one.
    here = level if state_bytes is None else state_bytes
    shifted = downtimes + slope * (here - np.where(np.isnan(states), level, states))
    shifted = np.maximum(shifted, 0.0)
    # A prior as narrow as the scatter has the weight of one failure, a wide one next to none.
    n, weight = downtimes.size, (SCATTER / spread) ** 2
    mean = float((shifted.sum() + weight * (assumed_s + slope * (here - level))) / (n + weight))
    mean = max(mean, 0.0)
    scatter = float(((shifted - shifted.mean()) ** 2).sum())
    degrees = SCATTER_DEGREES + n - 1
    variance = (SCATTER_DEGREES * (SCATTER * mean) ** 2 + scatter) / degrees
    return mean, math.sqrt(variance * (1 + 1 / (n + weight))), degrees


def _seconds_per_byte(restarts: Sequence[Restart]) -> float:
    """Return the seconds that a byte of state costs: at least 0, and 0 unless the failures show a clear line."""
    pairs = [(r.state_bytes, r.downtime_s) for r in restarts if r.state_bytes is not None]
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


Served = Callable[[Observation], float | None]
"""Returns the capacity of the job in a window over its load; None where it is not known."""


def fold(known: Downtimes, record: Record, interval_s: float, served: Served = lambda _: None) -> Downtimes:
    """Return the downtimes after one more record: a failure that a window shows, or a drill."""
    match record:
        case Measurement() if (kind := drilled_kind(record)) is not None:
            window = record.observation
            if window is not None and window.downtime_s is not None and 0 <= window.downtime_s <= LONGEST_S:
                return known.with_restart(window.downtime_s, state_of(window), kind)
        case Run():
            return replace(known, up=False, down_s=None)
        case Intent():
            return replace(known, changing=True, down_s=None)
        case IntentEnd():
            # A failure during a change cannot be told from the change.
            return replace(known, changing=False, seen_s=max(known.seen_s, record.at_s))
        case Observation() if not known.changing:
            return _add_window(known, record, interval_s, served)
    return known


def drilled_kind(measurement: Measurement) -> Kind | None:
    """Return the kind of failure that a drill caused; None for a measurement of anything else."""
    first, _, rest = measurement.trial.name.partition(" ")
    kind = rest.partition(" ")[0]
    return Kind(kind) if first == DRILL and kind in set(Kind) else None


def _add_window(known: Downtimes, window: Observation, interval_s: float, served: Served) -> Downtimes:
    if _is_down(window):
        lag_s = window.lag_s
        if not known.up or lag_s is None or not (math.isfinite(lag_s) and math.isfinite(window.at_s)):
            return known
        return replace(known, down_s=window.at_s, lag_s=max(lag_s, 0.0))
    if not 0 < window.uptime_s < MOST:
        return known  # nothing was seen
    if not known.up:
        known = replace(known, up=True)
    if known.down_s is None and window.status is not Status.RECOVERING:
        return known
    over = replace(known, down_s=None)
    resumed_s = window.at_s - window.uptime_s
    if not math.isfinite(resumed_s) or resumed_s <= known.seen_s + 1.0:
        return over
    downtime_s = _downtime_s(known, window, resumed_s, interval_s, served)
    if downtime_s is None:
        return over
    return replace(over.with_restart(downtime_s, state_of(window)), seen_s=resumed_s)


def _is_down(window: Observation) -> bool:
    """Whether nothing runs: an engine that restarts a failed query recovers without any uptime until then."""
    restarts = window.status is Status.RECOVERING and window.uptime_s == 0.0 and window.downtime_s is None
    return window.status is Status.DOWN or restarts


def _downtime_s(
    known: Downtimes, window: Observation, resumed_s: float, interval_s: float, served: Served
) -> float | None:
    """Return what the lag at the resumption says, or what the engine reports if that is more; None if neither does."""
    reported_s = window.downtime_s
    if reported_s is not None and not 0 <= reported_s < MOST:
        return None
    waited_s: float | None
    if known.down_s is not None:
        waited_s = known.lag_s + resumed_s - known.down_s
        if not (known.down_s - 1.0 <= resumed_s <= window.at_s and 0 <= waited_s <= LONGEST_S):
            return None  # the clock jumped
    elif reported_s is None:
        return None
    else:
        waited_s = _waited_s(window, served)
        if waited_s is None:
            return reported_s
    return max(waited_s - 0.5 * interval_s, reported_s or 0.0, 0.0)


def _waited_s(window: Observation, served: Served) -> float | None:
    """Return the lag at the resumption, where no window showed the job down: less what was caught up since then."""
    lag_s, load = window.lag_s, window.load_per_s
    if lag_s is None or not load or not (0 <= lag_s < MOST and 0 < load < MOST and window.uptime_s <= SOON_S):
        return None
    share = served(window)
    # Every second of work takes `share` seconds of load away, and one second of load comes.
    return None if share is None else lag_s - window.uptime_s + share * window.uptime_s


def state_of(window: Observation) -> float | None:
    """Return the bytes of state of all operators that report them; None if none does."""
    sizes = [o.state_bytes for o in window.operators if o.state_bytes is not None and 0 <= o.state_bytes < MOST]
    return sum(sizes) if sizes else None
