"""A split of numbers into two groups with the least scatter within both (exact k-means with k = 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class TwoGroups:
    """The border and the means of two groups of numbers."""

    border: float
    """Numbers up to here belong to the lower group."""
    low: float
    high: float
    """Means of both groups; equal where there is only one group."""

    @property
    def gap(self) -> float:
        """Distance between the two means."""
        return self.high - self.low


def two_groups(values: Sequence[float]) -> TwoGroups:
    """Split numbers into two groups; one number, or equal ones, are a single group."""
    line = np.sort(np.asarray(values, dtype=float))
    if not line.size or not np.isfinite(line).all():
        raise ValueError(f"two groups need at least one number, all finite, not {values!r}")
    if line[0] == line[-1]:
        return TwoGroups(float(line[-1]), float(line[0]), float(line[0]))
    counts = np.arange(1, line.size)
    added = np.cumsum(line)
    below, above = added[:-1] / counts, (added[-1] - added[:-1]) / (line.size - counts)
    # The least scatter within the groups is the most scatter between the two means.
    between = counts * (line.size - counts) * (above - below) ** 2
    between[np.diff(line) == 0] = -1.0  # equal numbers stay together
    k = int(np.argmax(between))
    return TwoGroups(float((line[k] + line[k + 1]) / 2), float(below[k]), float(above[k]))
