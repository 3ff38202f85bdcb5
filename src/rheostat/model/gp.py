"""ContTune's Gaussian process, as published: zero mean, RBF kernel, over (tasks, capacity).

Lian et al., VLDB 2023, Eq 3. Its published code averages repeated observations of one size ("mean reversion"), has no
noise term, and learns length scale and signal deviation by maximum likelihood within bounds.

| paper | here |
|---|---|
| K, k, y | `kernel` with unit variance; capacities divided by the largest of them |
| σ_f | the most likely one for a length scale, sqrt(yᵀK⁻¹y / n), but at most the largest capacity |
| length scale | the most likely one of `LENGTHS`; with a single sample `LENGTH_0` |

Ours: the bounds. With the code's own, ordinary samples let the length scale collapse to 0 and make the matrix singular;
without a bound on σ_f the tiny jitter of the diagonal would act as noise. The mean is zero, so the curve falls towards
zero beyond the largest observed size, and it need not rise with p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.model.capacity import CapacityCurve, Floats, Sample, columns, distances

LENGTH_0 = 4.37
"""Tasks; the initial value of the published code."""
LENGTHS = LENGTH_0 * 2.0 ** np.array([0.0, -0.25, 0.25, -0.5, 0.5, -0.75, 0.75, -1.0, 1.0, 1.25, 1.5, 1.75, 2.0])
"""The nearest to the initial value first; the published code finds 2.4 for its own example."""
JITTER = 1e-8
"""Added to the diagonal of K, so that it can be inverted."""


@dataclass(frozen=True)
class GaussianProcess:
    """The posterior of Eq 3."""

    sizes: Floats
    weights: Floats
    """K⁻¹y, in units of the largest capacity."""
    inverse: Floats
    length: float
    signal: float
    """The signal deviation, in units of the largest capacity."""
    unit_per_s: float

    @staticmethod
    def fit(samples: Sequence[Sample]) -> GaussianProcess:
        """Average repeated observations, then take the most likely length scale and variance."""
        tasks, capacity, _ = columns(samples)
        sizes, where = np.unique(tasks, return_inverse=True)
        mean = np.bincount(where, capacity) / np.bincount(where)
        unit = float(mean.max())
        y, n = mean / unit, len(mean)
        kernels = kernel(sizes, sizes, LENGTHS[:, None, None]) + JITTER * np.eye(n)
        solved = np.linalg.solve(kernels, np.broadcast_to(y[:, None], (len(LENGTHS), n, 1)))[..., 0]
        fit = np.maximum(solved @ y, 1e-12)
        variance = np.minimum(fit / n, 1.0)
        likely = -0.5 * (fit / variance + n * np.log(variance) + np.linalg.slogdet(kernels)[1])
        best = int(np.argmax(likely > likely.max() - 1e-9))  # among equals the nearest to the initial value
        inverse = np.linalg.inv(kernels[best])
        return GaussianProcess(sizes, solved[best], inverse, float(LENGTHS[best]), float(variance[best] ** 0.5), unit)

    def curve(self, most: int) -> CapacityCurve:
        """Return mean and standard deviation of Eq 3."""
        k = kernel(np.arange(1.0, most + 1.0), self.sizes, self.length)
        spread = np.maximum(1.0 - ((k @ self.inverse) * k).sum(axis=1), 0.0)
        sd = self.signal * np.sqrt(spread) * self.unit_per_s
        return CapacityCurve(k @ self.weights * self.unit_per_s, sd, distances(self.sizes, most))


def kernel(a: Floats, b: Floats, length: Floats | float) -> Floats:
    """Return exp(-(a - b)² / 2 l²), for one length scale or a stack of them."""
    covariance: Floats = np.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)
    return covariance
