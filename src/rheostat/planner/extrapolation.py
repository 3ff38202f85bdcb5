"""The paper's models of capacity over (memory, slots): three families, selected by extrapolation error (section VI).

| paper | here |
|---|---|
| linear, log, sqrt (Eq 6 to 8) | `FAMILIES` |
| LOOCV RMSE, BestModel (Eq 9) | `loocv`, `best_family` |
| trained on the lower half, tested on the upper | `select_fit` |
| 110 % of the requested rate, solved by increasing Π | `Fit.slots_for` |

Ours is in `scaling.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.job.plan import Estimate

Floats = NDArray[np.float64]

FAMILIES: Mapping[str, Callable[[Floats], Floats]] = {"linear": lambda x: x, "log": np.log, "sqrt": np.sqrt}
MOST_SLOTS = 1_000_000
"""Upper end of the search for slots."""


@dataclass(frozen=True, slots=True)
class Fit:
    """a f(M) + b f(Π) + c = λ_src."""

    family: str
    a: float
    b: float
    c: float

    def rate_per_s(self, slots: float, memory_mb: float) -> float:
        """Return the predicted capacity (Eq 6 to 8)."""
        f = FAMILIES[self.family]
        sizes = f(np.array([memory_mb, slots], dtype=float))
        return float(self.a * sizes[0] + self.b * sizes[1] + self.c)

    def slots_for(self, rate_per_s: float, memory_mb: float, factor: float = 1.1) -> int | None:
        """Return the fewest slots for `factor` times the rate; None if no number of slots is enough.

        All three families are monotonic in Π, so bisection replaces the paper's counting.
        """
        wanted = factor * rate_per_s * (1 - 1e-9)
        if self.rate_per_s(1, memory_mb) >= wanted:
            return 1
        if self.rate_per_s(MOST_SLOTS, memory_mb) < wanted:
            return None
        low, high = 1, MOST_SLOTS
        while high - low > 1:
            middle = (low + high) // 2
            if self.rate_per_s(middle, memory_mb) >= wanted:
                high = middle
            else:
                low = middle
        return high


@dataclass(frozen=True)
class Points:
    """Measured capacities as arrays."""

    slots: Floats
    memory_mb: Floats
    rate_per_s: Floats

    @staticmethod
    def of(estimates: Sequence[Estimate]) -> Points:
        """Take the usable estimates; where memory is not a choice it is 1 everywhere."""
        good = [e for e in estimates if e.usable]
        return Points(
            np.array([float(e.slots) for e in good]),
            np.array([float(e.memory_mb or 1) for e in good]),
            np.array([e.middle_per_s for e in good]),
        )

    def __len__(self) -> int:
        return len(self.slots)

    def only(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Points:
        """Return the points of these rows."""
        return Points(self.slots[rows], self.memory_mb[rows], self.rate_per_s[rows])


def fit_family(points: Points, family: str) -> Fit:
    """Return the least-squares fit of one family; among several, the one with the smallest coefficients."""
    if not len(points):
        raise InvalidValue("a model needs at least one measurement")
    f = FAMILIES[family]
    columns = np.stack([f(points.memory_mb), f(points.slots), np.ones(len(points))], axis=1)
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    answer, *_ = np.linalg.lstsq(columns / scale, points.rate_per_s, rcond=1e-10)
    a, b, c = (answer / scale).tolist()
    return Fit(family, a, b, c)


def loocv(points: Points, family: str) -> float:
    """Return the RMSE of predicting every point from the others."""
    n = len(points)
    if n < 2:
        return math.inf
    errors = []
    for k in range(n):
        others = np.arange(n) != k
        fit = fit_family(points.only(others), family)
        errors.append(fit.rate_per_s(points.slots[k], points.memory_mb[k]) - points.rate_per_s[k])
    return math.sqrt(float(np.mean(np.square(errors))))


def best_family(points: Points) -> tuple[str, float]:
    """Return the family with the lowest LOOCV error, and that error (Eq 9)."""
    scores = {family: loocv(points, family) for family in FAMILIES}
    family = min(scores, key=lambda name: scores[name])
    return family, scores[family]


def upper_half_errors(points: Points) -> dict[str, float]:
    """Return every family's RMSE on the half with more slots, trained on the half with fewer."""
    order = np.argsort(points.slots, kind="stable")
    half = len(order) // 2
    if half < 1:
        return dict.fromkeys(FAMILIES, math.inf)
    lower, upper = points.only(order[:half]), points.only(order[half:])
    errors = {}
    for family in FAMILIES:
        fit = fit_family(lower, family)
        off = [fit.rate_per_s(s, m) - r for s, m, r in zip(upper.slots, upper.memory_mb, upper.rate_per_s, strict=True)]
        errors[family] = math.sqrt(float(np.mean(np.square(off))))
    return errors


def select_fit(points: Points) -> Fit:
    """Return the family that extrapolates best, fitted to all points."""
    errors = upper_half_errors(points)
    return fit_family(points, min(errors, key=lambda name: errors[name]))
