"""Fits the batch time as a line: fixed + slope * records / slots. Pure.

The fit needs only batch times. So it gives the true rate of a slot (1 / slope) where stages are unknown, and the fixed
cost of a batch. Batches are not clean samples: the first ones run cold, others include a garbage collection or a noisy
neighbour. The line therefore starts from the median of the slopes between all pairs (Theil and Sen), which three
outliers in ten batches do not move, and is then fitted by least squares to the batches near it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rheostat.job.observation import BatchTime

LEAST_BATCHES = 6
"""Fewest batches to fit a line to: fewer do not show their scatter."""
MOST_BATCHES = 64
"""Most recent batches to fit: older ones processed other data, and the pairs grow with the square."""
NEAR = 3.0
"""Distance from the line, in robust deviations, beyond which a batch is an outlier."""
SURE = 0.25
"""Largest standard error of the slope, as a share of it; above it the batches are too alike to fit."""
TICK_S = 1e-3
"""Resolution of Spark's batch times in seconds: progress events hold whole milliseconds."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One finished batch."""

    records: float
    slots: int
    seconds: float

    @property
    def per_slot(self) -> float:
        """Records per slot."""
        return self.records / self.slots


def fit_batches(samples: Iterable[Sample]) -> BatchTime | None:
    """Fit the newest batches, sorted by time; return None when they are too few or too alike."""
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
    far = NEAR * 1.48 * median(abs(start.deviation(sample)) for sample in recent) + TICK_S
    near = [sample for sample in recent if abs(start.deviation(sample)) <= far]
    line, spread = _least_squares(near, start)
    residual = math.sqrt(sum(line.deviation(sample) ** 2 for sample in near) / max(1, len(near) - 2)) + TICK_S
    if line.slope <= 0 or residual > SURE * line.slope * spread:
        return None
    loads = [sample.per_slot for sample in near]
    error = median(abs(line.deviation(sample)) for sample in near)
    return BatchTime(line.fixed_s, line.slope, error, len(near), min(loads), max(loads))


@dataclass(frozen=True, slots=True)
class _Line:
    fixed_s: float
    slope: float

    def at(self, sample: Sample) -> float:
        return max(self.fixed_s + self.slope * sample.per_slot, TICK_S)

    def deviation(self, sample: Sample) -> float:
        """Return the residual as a share of the batch time: long batches vary by more seconds than short ones."""
        return sample.seconds / self.at(sample) - 1.0


def _least_squares(samples: Sequence[Sample], start: _Line) -> tuple[_Line, float]:
    """Return the least-squares line without negative coefficients, and the spread of the loads.

    Residuals are weighted as shares of the time on the `start` line. The standard error of the slope is the residual
    of a batch divided by the spread.
    """
    weights = [start.at(sample) ** -2 for sample in samples]
    points = [(sample.per_slot, sample.seconds, w) for sample, w in zip(samples, weights, strict=True)]
    weight = sum(weights)
    mean_x, mean_y = sum(x * w for x, _, w in points) / weight, sum(y * w for _, y, w in points) / weight
    spread = sum(w * (x - mean_x) ** 2 for x, _, w in points)
    slope = sum(w * (x - mean_x) * (y - mean_y) for x, y, w in points) / spread if spread > 0 else 0.0
    if slope > 0 and mean_y < slope * mean_x:  # no fixed cost: the line goes through the origin
        slope = sum(w * x * y for x, y, w in points) / sum(w * x * x for x, _, w in points)
        return _Line(0.0, slope), math.sqrt(spread)
    return _Line(mean_y - max(slope, 0.0) * mean_x, max(slope, 0.0)), math.sqrt(spread)


class SlotHistory:
    """The number of slots over time, from samples: between two samples that differ it is unknown."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float, int]] = []

    def record(self, at_s: float, slots: int, *, replaced: bool = False) -> None:
        """Record a sample; `replaced` marks slots on other executors than before, even if as many."""
        if self._spans and self._spans[-1][2] == slots and not replaced:
            self._spans[-1] = (self._spans[-1][0], at_s, slots)
        else:
            self._spans = [*self._spans[-MOST_BATCHES:], (at_s, at_s, slots)]

    def during(self, start_s: float, end_s: float) -> int | None:
        """Return the slots between two moments; None when they changed or were not sampled."""
        return next((slots for low_s, high_s, slots in self._spans if low_s <= start_s and end_s <= high_s), None)
