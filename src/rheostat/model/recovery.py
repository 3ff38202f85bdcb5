"""Recovery time: seconds from a failure until the job has caught up, and the capacity that a recovery time needs.

Geldenhuys, Scheinert, Kao, Thamsen: "Phoebe: QoS-aware distributed stream processing through anticipating dynamic
workloads", ICWS 2022, section III-B.

| paper | here |
|---|---|
| f(t), the load: history up to now, forecast after it | `Course` |
| t_0, the failure | second 0 of a `Course` |
| I, seconds since the last checkpoint | `checkpoint_interval_s`: the failure comes just before the next checkpoint |
| D, downtime | `downtime_s`: from the failure until records are processed again |
| T_max | `capacity_per_s` |
| c(n), C, R = D + C | `catch_up_steps_s`, their sum, `recovery_time_s` |

The paper adds up c(n) until a step is shorter than a second. The sum has a limit in closed form: with
t_n = D + c(0) + ... + c(n-1) the definition says T_max (t_n+1 - D) = records that arrived from -I to t_n. So R is the
first moment at which the arrived records equal those that could be processed. Where the load stays at or above the
capacity there is no such moment, and R is infinite. `needed_capacity_per_s` solves the same equation for the capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number

Floats = NDArray[np.float64]

CLOSE_S = 1.0
"""Length of the paper's last step, in seconds: the sequence ends with the first shorter step."""
SLACK = 1e-9
"""Relative tolerance: two ways to sum the same records differ in their last bits."""


@dataclass(frozen=True, eq=False)
class Course:
    """The load around a failure at second 0, as cumulative records."""

    at_s: Floats
    """Rising moments between which the load is constant; the first is at or before 0, the last ends the forecast."""
    arrived: Floats
    """Records that arrived up to each moment: 0 at second 0, negative before it."""
    before_per_s: float
    """The load before the first moment."""
    after_per_s: float
    """The load after the last moment: the forecast's last value."""

    @staticmethod
    def of(history: ArrayLike, forecast: ArrayLike, step_s: float, forecast_step_s: float | None = None) -> Course:
        """Join rates before and after now, one mean per step, oldest first; a gap (NaN) takes an earlier rate."""
        check_number("step_s", step_s, least=1e-9)
        check_number("forecast_step_s", forecast_step_s, least=1e-9)
        past, future = _rates("history", history), _rates("forecast", forecast)
        measured = np.concatenate([past, future])
        measured = measured[~np.isnan(measured)]
        if not measured.size:
            raise InvalidValue("a recovery time needs at least one rate, before or after the failure")
        past = _fill_gaps(past, measured[0])
        future = _fill_gaps(future, past[-1] if past.size else measured[0])
        after_s = step_s if forecast_step_s is None else forecast_step_s
        at = np.concatenate([-step_s * np.arange(past.size, 0, -1.0), after_s * np.arange(future.size + 1.0)])
        records = np.concatenate([past * step_s, future * after_s])
        arrived = np.concatenate([[0.0], np.cumsum(records)])
        if not np.isfinite(arrived).all():
            raise InvalidValue(
                f"the sum of the arrived records overflows: the largest rate is {measured.max():g} records/s"
            )
        rates = np.concatenate([past, future])
        return Course(at, arrived - arrived[past.size], float(rates[0]), float(rates[-1]))

    @staticmethod
    def constant(rate_per_s: float) -> Course:
        """Return a constant load."""
        return Course.of([rate_per_s], [], 1.0)

    def arrived_until(self, t_s: ArrayLike) -> Floats:
        """Return the records that arrive between second 0 and a moment; negative for a moment before it."""
        t = np.asarray(t_s, dtype=float)
        inside = np.interp(t, self.at_s, self.arrived)
        before = self.before_per_s * np.minimum(t - self.at_s[0], 0.0)
        after = self.after_per_s * np.maximum(t - self.at_s[-1], 0.0)
        total: Floats = inside + before + after
        return total


def recovery_time_s(
    capacity_per_s: float,
    course: Course,
    checkpoint_interval_s: float,
    downtime_s: float,
    waiting: float = 0.0,
) -> float:
    """Return R, from the failure until the job has caught up; infinite if it never does.

    `waiting` is the backlog at the moment of the failure, as in a failure during a recovery.
    """
    _check(checkpoint_interval_s, downtime_s, waiting)
    check_number("capacity_per_s", capacity_per_s)
    if math.isinf(downtime_s):
        return math.inf
    # Unprocessed records at each moment; linear between two moments of the course.
    moments = np.concatenate([[downtime_s], course.at_s[course.at_s > downtime_s]])
    replayed = waiting - float(course.arrived_until(-checkpoint_interval_s))
    left = replayed + course.arrived_until(moments) - capacity_per_s * (moments - downtime_s)
    done = np.flatnonzero(left <= SLACK * max(replayed, 1.0))
    if done.size:
        k = int(done[0])
        if k == 0:
            return float(downtime_s)
        span, fell = moments[k] - moments[k - 1], left[k - 1] - left[k]
        return float(min(moments[k - 1] + span * left[k - 1] / fell, moments[k]))
    spare = capacity_per_s - course.after_per_s
    # Plain floats: dividing by a tiny spare capacity gives infinity without a warning.
    return float(moments[-1]) + float(left[-1]) / spare if spare > SLACK * capacity_per_s else math.inf


def catch_up_steps_s(
    capacity_per_s: float,
    course: Course,
    checkpoint_interval_s: float,
    downtime_s: float,
    most: int = 1000,
) -> list[float]:
    """Return the paper's c(0), c(1), ... up to the first that is shorter than a second."""
    _check(checkpoint_interval_s, downtime_s, 0.0)
    check_number("capacity_per_s", capacity_per_s, least=5e-324)
    steps: list[float] = []
    start, end = -checkpoint_interval_s, downtime_s
    while len(steps) < most and not (steps and steps[-1] < CLOSE_S):
        records = float(course.arrived_until(end) - course.arrived_until(start))
        steps.append(records / capacity_per_s)
        start, end = end, end + steps[-1]
    return steps


def needed_capacity_per_s(
    max_recovery_s: float,
    course: Course,
    checkpoint_interval_s: float,
    downtime_s: float,
    waiting: float = 0.0,
) -> float:
    """Return the smallest capacity with which the job recovers in time; infinite if no capacity is enough.

    The job must have caught up at some moment before `max_recovery_s`, so the result is the least of the capacities
    that the single moments need. Between two moments of the course it is monotonic, so only the moments count.
    """
    _check(checkpoint_interval_s, downtime_s, waiting)
    check_number("max_recovery_s", max_recovery_s)
    replayed = waiting - float(course.arrived_until(-checkpoint_interval_s))
    if downtime_s <= max_recovery_s and replayed + float(course.arrived_until(downtime_s)) <= SLACK * max(
        replayed, 1.0
    ):
        return 0.0  # no records arrived: the job has caught up when it resumes
    if downtime_s >= max_recovery_s:
        return math.inf
    inside = course.at_s[(course.at_s > downtime_s) & (course.at_s < max_recovery_s)]
    moments = np.append(inside, max_recovery_s)
    needed = (replayed + course.arrived_until(moments)) / (moments - downtime_s)
    return float(max(needed.min(), 0.0))


def implied_downtime_s(
    recovery_s: float,
    capacity_per_s: float,
    course: Course,
    checkpoint_interval_s: float,
    waiting: float = 0.0,
) -> float:
    """Return the downtime that explains a measured recovery under the actual load."""
    _check(checkpoint_interval_s, recovery_s, waiting)
    check_number("capacity_per_s", capacity_per_s, least=5e-324)
    records = waiting + float(course.arrived_until(recovery_s) - course.arrived_until(-checkpoint_interval_s))
    return min(max(recovery_s - records / capacity_per_s, 0.0), recovery_s)


def _check(checkpoint_interval_s: float, downtime_s: float, waiting: float) -> None:
    check_number("checkpoint_interval_s", checkpoint_interval_s)
    check_number("downtime_s", downtime_s, infinite=True)
    check_number("waiting", waiting)


def _rates(what: str, values: ArrayLike) -> Floats:
    rates = np.asarray(values, dtype=float).reshape(-1)
    wrong = rates[(rates < 0) | np.isinf(rates)]
    if wrong.size:
        raise InvalidValue(f"a rate of the {what} must be finite and not negative, it is {wrong[0]:g}")
    return rates


def _fill_gaps(rates: Floats, first: float) -> Floats:
    """Fill every gap with the last rate before it, and gaps at the start with `first`."""
    present = ~np.isnan(rates)
    last = np.maximum.accumulate(np.where(present, np.arange(rates.size), -1)) if rates.size else np.empty(0, dtype=int)
    filled: Floats = np.where(last >= 0, rates[np.maximum(last, 0)], first)
    return filled
