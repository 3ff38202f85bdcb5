"""DS2's linear model: every task has the rate of the newest sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.model.capacity import CapacityCurve, Floats, Sample, columns, distances


@dataclass(frozen=True)
class Linear:
    """capacity(p) = rate x p, with the rate per task of the newest sample. It carries no uncertainty."""

    rate_per_s: float
    sizes: Floats

    @staticmethod
    def fit(samples: Sequence[Sample]) -> Linear:
        """Take the newest sample's rate per task."""
        tasks, capacity, age = columns(samples)
        newest = int(np.argmin(age))
        return Linear(float(capacity[newest] / tasks[newest]), tasks)

    def curve(self, most: int) -> CapacityCurve:
        """Return rate x p."""
        capacity = self.rate_per_s * np.arange(1.0, most + 1.0)
        return CapacityCurve(capacity, np.zeros(most), distances(self.sizes, most))
