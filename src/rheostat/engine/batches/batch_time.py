"""How long batches take, fitted: fixed + slope * records / slots. Pure.

It needs nothing but batch times, so it tells what a slot can do (1 / slope) where stages cannot be seen, and what a
batch takes whatever is in it. Batches are not clean samples: the first ones run cold, some meet a garbage collection
or another tenant. So the line starts from the median of the slopes between all pairs (Theil and Sen), which three
odd batches in ten do not move, and is then fitted by least squares to the batches near it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rheostat.job.observation import BatchTime

LEAST_BATCHES = 6
MOST_BATCHES = 64
"""Older batches may have met other data, and pairs grow with the square."""
NEAR = 3.0
"""Batches further from the line than this many robust deviations are not fitted to."""
SURE = 0.25
"""Largest standard error of the slope, as a share of it: else the batches do not differ enough to tell."""
TICK_S = 1e-3
"""Spark writes batch times in whole milliseconds; no batch is known, or its share told, more exactly."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One finished batch."""

    records: float
    slots: int
    seconds: float

    @property
    def per_slot(self) -> float:
        """Records that one slot had to do."""
        return self.records / self.slots


def fit_batches(samples: Iterable[Sample]) -> BatchTime | None:
    """Fit the newest batches, oldest first; None when they are too few or too alike to tell."""
    recent = [sample for sample in samples if sample.slots > 0 and sample.records > 0][-MOST_BATCHES:]
    slopes = [
        (b.seconds - a.seconds) / (b.per_slot - a.per_slot)
        for i, a in enumerate(recent)
        for b in recent[i + 1 :]
        if b.per_slot != a.per_slot
    ]
    if len(recent) < LEAST_BATCHES or not slopes:
        return None
    slope = max(0.0, median(slopes))
    start = _Line(max(0.0, median(sample.seconds - slope * sample.per_slot for sample in recent)), slope)
    # A normal deviation is 1.48 times the median distance.
    far = NEAR * 1.48 * median(abs(start.off(sample)) for sample in recent) + TICK_S
    kept = [sample for sample in recent if abs(start.off(sample)) <= far]
    line, apart = _least_squares(kept, start)
    deviation = math.sqrt(sum(line.off(sample) ** 2 for sample in kept) / max(1, len(kept) - 2)) + TICK_S
    if line.slope <= 0 or deviation > SURE * line.slope * apart:
        return None
    loads = [sample.per_slot for sample in kept]
    error = median(abs(line.off(sample)) for sample in kept)
    return BatchTime(line.fixed_s, line.slope, error, len(kept), min(loads), max(loads))


@dataclass(frozen=True, slots=True)
class _Line:
    fixed_s: float
    slope: float

    def at(self, sample: Sample) -> float:
        return max(self.fixed_s + self.slope * sample.per_slot, TICK_S)

    def off(self, sample: Sample) -> float:
        """Return the distance of a batch as a share of its time: long batches vary by more seconds than short ones."""
        return sample.seconds / self.at(sample) - 1.0


def _least_squares(samples: Sequence[Sample], start: _Line) -> tuple[_Line, float]:
    """Return the line with the least squares of which neither part is negative, and how far the loads are apart.

    Distances count as shares of the time that the first line gives; the error of a batch, divided by how far the
    loads are apart, is that of the slope.
    """
    weights = [start.at(sample) ** -2 for sample in samples]
    points = [(sample.per_slot, sample.seconds, w) for sample, w in zip(samples, weights, strict=True)]
    weight = sum(weights)
    mean_x, mean_y = sum(x * w for x, _, w in points) / weight, sum(y * w for _, y, w in points) / weight
    spread = sum(w * (x - mean_x) ** 2 for x, _, w in points)
    slope = sum(w * (x - mean_x) * (y - mean_y) for x, y, w in points) / spread if spread > 0 else 0.0
    if slope > 0 and mean_y < slope * mean_x:  # nothing is fixed: the line goes through the origin
        slope = sum(w * x * y for x, y, w in points) / sum(w * x * x for x, _, w in points)
        return _Line(0.0, slope), math.sqrt(spread)
    return _Line(mean_y - max(slope, 0.0) * mean_x, max(slope, 0.0)), math.sqrt(spread)


class Sizes:
    """How many slots there were, as far as looks tell: between two looks that differ it is not known."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float, int]] = []

    def note(self, at_s: float, slots: int, *, disturbed: bool = False) -> None:
        """Note what a look saw; `disturbed` says that the slots are others than before though as many."""
        if self._spans and self._spans[-1][2] == slots and not disturbed:
            self._spans[-1] = (self._spans[-1][0], at_s, slots)
        else:
            self._spans = [*self._spans[-MOST_BATCHES:], (at_s, at_s, slots)]

    def during(self, start_s: float, end_s: float) -> int | None:
        """Return the slots of a stretch of time; None when they changed or were not looked at."""
        return next((slots for low_s, high_s, slots in self._spans if low_s <= start_s and end_s <= high_s), None)
