"""95 % intervals from runs over seeds: of a mean, a paired difference, a paired ratio, a median, a share of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

CONFIDENCE = 0.95
FEWEST_SEEDS = 3
"""Fewest seeds of an interval of a mean."""

LARGEST_T = 1e4
ROUNDING = 1e-12
"""Relative distance of values that count as equal."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number from runs, with its 95 % interval; an infinite interval says nothing."""

    value: float
    low: float
    high: float

    def scale(self, factor: float) -> Estimate:
        """Return the estimate times a positive factor."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def shift(self, by: float) -> Estimate:
        """Return the estimate plus a number."""
        return Estimate(self.value + by, self.low + by, self.high + by)


def exact(value: float) -> Estimate:
    """Return a number without uncertainty: a closed form, or a fit to recorded data."""
    return Estimate(value, value, value)


def mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean with Student's interval."""
    centre = float(np.mean(values))
    if len(values) < FEWEST_SEEDS or not math.isfinite(centre):
        return Estimate(centre, -math.inf, math.inf)
    spread = float(np.std(values, ddof=1))
    if max(values) - min(values) <= ROUNDING * max(1.0, abs(centre)):
        return exact(centre) if equal_suffice(len(values), confidence) else Estimate(centre, -math.inf, math.inf)
    half = student_t(len(values) - 1, confidence) * spread / math.sqrt(len(values))
    return Estimate(centre, centre - half, centre + half)


def equal_suffice(count: int, confidence: float) -> bool:
    """Return whether `count` equal values are an interval by themselves: the sign test's, six for 95 %."""
    return 2 * 0.5**count <= 1 - confidence


def paired_difference(left: Sequence[float], right: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of the differences, seed by seed."""
    return mean([a - b for a, b in zip(left, right, strict=True)], confidence)


def paired_ratio(left: Sequence[float], right: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the ratio of two means of paired values, with Fieller's interval.

    It holds every ratio r for which the mean of left - r x right may be zero. Where the right mean itself may be
    zero, the interval is infinite.
    """
    a, b = float(np.mean(left)), float(np.mean(right))
    ratio = a / b if b else math.nan
    nothing = Estimate(ratio, -math.inf, math.inf)
    contrasts = [x - ratio * y for x, y in zip(left, right, strict=True)]
    if len(left) < FEWEST_SEEDS or not math.isfinite(ratio):
        return nothing
    if max(map(abs, contrasts)) <= ROUNDING * max(1.0, *map(abs, left)):
        return exact(ratio) if equal_suffice(len(left), confidence) else nothing
    scale = student_t(len(left) - 1, confidence) ** 2 / len(left)
    (aa, ab), (_, bb) = np.cov(left, right)
    square, middle, rest = b * b - scale * bb, a * b - scale * ab, a * a - scale * aa
    if square <= 0:
        return nothing
    root = math.sqrt(max(middle * middle - square * rest, 0.0))
    return Estimate(ratio, float((middle - root) / square), float((middle + root) / square))


def median(values: Sequence[float]) -> Estimate:
    """Return the median with its interval of order statistics, which holds for any distribution."""
    ordered, count = sorted(values), len(values)
    centre = float(np.median(values))
    tail, cut = 0.5**count, 0
    while 2 * tail <= 1 - CONFIDENCE:
        cut += 1
        tail += math.comb(count, cut) * 0.5**count
    if cut == 0:
        return Estimate(centre, -math.inf, math.inf)
    return Estimate(centre, ordered[cut - 1], ordered[count - cut])


def share(flags: Sequence[bool], confidence: float = CONFIDENCE) -> Estimate:
    """Return the share of true flags with the interval of Clopper and Pearson."""
    count, hits = len(flags), sum(flags)
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _bisect(lambda p: 1 - _binomial(hits - 1, count, p) < tail)
    high = 1.0 if hits == count else _bisect(lambda p: _binomial(hits, count, p) > tail)
    return Estimate(hits / count, low, high)


def _binomial(hits: int, count: int, p: float) -> float:
    """Return the probability of at most `hits` of `count`."""
    return sum(math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(hits + 1))


def _bisect(below: Callable[[float], bool], low: float = 0.0, high: float = 1.0) -> float:
    """Return where a condition that is true at `low` becomes false."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


@lru_cache(maxsize=256)
def student_t(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest |t| of this share of Student's distribution, by its series for whole degrees of freedom."""
    return _bisect(lambda t: _within(t, freedom) < confidence, 0.0, LARGEST_T)


def _within(t: float, freedom: int) -> float:
    """Return the probability that |T| is below t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    square, odd = math.cos(angle) ** 2, freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= square * k / (k + 1)
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
