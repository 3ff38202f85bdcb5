"""Two groups of numbers: the split that leaves the least scatter on both sides (k-means with k = 2, exactly)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class TwoGroups:
    """Where a line of numbers falls into two."""

    border: float
    """Numbers up to here belong to the lower group."""
    low: float
    high: float
    """The means of both groups; equal where there is only one."""

    @property
    def gap(self) -> float:
        """How far the groups are apart."""
        return self.high - self.low


def two_groups(values: Sequence[float]) -> TwoGroups:
    """Split numbers into two groups; one number, or equal ones, are a single group."""
    line = np.sort(np.asarray(values, dtype=float))
    if not line.size or not np.isfinite(line).all():
        raise ValueError(f"two groups need finite numbers, and at least one: {values!r}")
    if line[0] == line[-1]:
        return TwoGroups(float(line[-1]), float(line[0]), float(line[0]))
    counts = np.arange(1, line.size)
    added = np.cumsum(line)
    below, above = added[:-1] / counts, (added[-1] - added[:-1]) / (line.size - counts)
    # Least scatter within is most scatter between the two means.
    between = counts * (line.size - counts) * (above - below) ** 2
    between[np.diff(line) == 0] = -1.0  # equal numbers stay together
    k = int(np.argmax(between))
    return TwoGroups(float((line[k] + line[k + 1]) / 2), float(below[k]), float(above[k]))
