"""A Gaussian process over a whole allocation, and its expected improvement.

Zhang, Zheng, Zheng, Zhu, Li, Guo: "Bayesian-Driven Automated Scaling in Stream Computing With Multiple QoS Targets"
(AuTraScale+), TPDS 2024, Eq 5 and 6.

| paper | here |
|---|---|
| x, a parallelism vector | a row of tasks; distances are measured in log(tasks) |
| Matérn kernel k | `_matern`, smoothness 5/2 |
| μ_t(x), σ_t(x) (Eq 5) | `predict` |
| σ², noise | the most likely of `NOISES` |
| EI(x), ξ (Eq 6) | `expected_improvement` |

Ours, where the paper is silent: the mean of the process is that of the samples, because with a zero mean every
unobserved size looks bad and most searches never end; one length scale for all operators, the most likely of a few;
repeated rows are averaged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.model.capacity import Floats

LENGTHS = 2.0 ** np.arange(-1.0, 2.6, 0.7)
"""Length scales in log(tasks): from less than a doubling to beyond every size."""
NOISES = np.array([0.02, 0.1, 0.3])
"""Noise as a share of the signal's deviation."""
LEAST_SD, FEW, FEW_SD = 1e-4, 3, 0.1
"""Least signal deviation: of equal samples, and of fewer than `FEW` samples, which do not show how values differ."""


class Surrogate(Protocol):
    """A model that predicts a value of an allocation and its uncertainty."""

    def predict(self, tasks: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of every row."""


@dataclass(frozen=True)
class JointGP:
    """The posterior of Eq 5."""

    rows: Floats
    """log(tasks) of the samples."""
    inverse: Floats
    weights: Floats
    centre: float
    length: float
    signal: float
    count: int
    """Number of samples."""

    @staticmethod
    def fit(tasks: Floats, values: Floats) -> JointGP:
        """Average the samples of each allocation, then select the most likely length scale and noise."""
        if not len(values):
            raise InvalidValue("a Gaussian process needs at least one sample")
        rows, where = np.unique(np.log(np.maximum(np.asarray(tasks, dtype=float), 1.0)), axis=0, return_inverse=True)
        counts = np.bincount(where.ravel())
        mean = np.bincount(where.ravel(), values) / counts
        centre, n = float(mean.mean()), len(mean)
        y = mean - centre
        distance = _distances(rows, rows)
        kernels = _matern(distance[None] / LENGTHS[:, None, None])[:, None]
        kernels = kernels + NOISES[None, :, None, None] ** 2 * np.diag(1.0 / counts) + 1e-9 * np.eye(n)
        flat = kernels.reshape(-1, n, n)
        solved = np.linalg.solve(flat, np.broadcast_to(y[:, None], (len(flat), n, 1)))[..., 0]
        fit = np.maximum(solved @ y, 0.0)
        variance = np.maximum(fit / n, (FEW_SD if n < FEW else LEAST_SD) ** 2)
        likely = -0.5 * (fit / variance + n * np.log(variance) + np.linalg.slogdet(flat)[1])
        best = int(np.argmax(likely))
        length, inverse = float(LENGTHS[best // len(NOISES)]), np.linalg.inv(flat[best])
        return JointGP(rows, inverse, solved[best], centre, length, math.sqrt(variance[best]), len(values))

    def predict(self, tasks: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of every row (Eq 5)."""
        k = _matern(_distances(np.log(np.maximum(tasks, 1.0)), self.rows) / self.length)
        spread = np.maximum(1.0 - ((k @ self.inverse) * k).sum(axis=1), 0.0)
        return self.centre + k @ self.weights, self.signal * np.sqrt(spread)


def expected_improvement(mean: Floats, sd: Floats, best: float, xi: float) -> Floats:
    """Return EI of every row (Eq 6); zero where the standard deviation is zero."""
    gain = mean - best - xi  # Eq 6a
    uncertain = sd > 1e-12
    z = np.where(uncertain, gain / np.where(uncertain, sd, 1.0), 0.0)  # Eq 6b
    below = _normal_cdf(z)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return np.where(uncertain, np.maximum(gain * below + sd * density, 0.0), 0.0)


def _normal_cdf(z: Floats) -> Floats:
    """Return Φ(z), to seven digits (Abramowitz and Stegun 26.2.17): numpy has no erf, scipy is not imported."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(z))
    series = ((((1.330274429 * t - 1.821255978) * t + 1.781477937) * t - 0.356563782) * t + 0.319381530) * t
    upper: Floats = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) * series
    return np.where(z > 0, 1.0 - upper, upper)


def _distances(a: Floats, b: Floats) -> Floats:
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2.0 * a @ b.T
    distance: Floats = np.sqrt(np.maximum(squares, 0.0))
    return distance


def _matern(r: Floats) -> Floats:
    """Return the Matérn covariance of smoothness 5/2 at a scaled distance."""
    s = math.sqrt(5.0) * r
    covariance: Floats = (1.0 + s + s * s / 3.0) * np.exp(-s)
    return covariance
