"""Phoebe's latency model M_L: a regression on scale-out and rate, and a border between normal latencies and others.

Section III-D: a multiple regression predicts the latency from (scale-out, rate); two clusters of predicted latencies,
divided by their first percentile and in logarithms, separate normal latencies from those of a job that falls behind.

Ours: the regression is on the logarithms, because saturation depends on the rate per worker, and the clusters are those
of the measured latencies, because the values of a plane have no gap between them. Far outside the measured range there
is no answer, because a plane extrapolates without bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rheostat.model.clusters import two_groups
from rheostat.model.profile import APART, LEAST_LATENCY_S, Point

Floats = NDArray[np.float64]

FAR = 1.5
"""Ratio to the measured range of scale-outs and rates above which there is no answer."""
LEAST_POINTS = 4
"""Fewest points of a fit."""
LEAST_RATE = 1.0
"""Records/s; lower rates count as this one, since rates enter as logarithms."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A predicted latency, and whether it is a normal one (the paper's L_C < 1)."""

    latency_s: float
    normal: bool


@dataclass(frozen=True, slots=True)
class LatencySurface:
    """log(latency / unit) = b0 + b1 log(scale-out) + b2 log(rate)."""

    coefficients: tuple[float, float, float]
    unit_s: float
    """The first percentile of the measured latencies."""
    border: float
    """Predicted values above it belong to the cluster of a job that falls behind."""
    sizes: tuple[float, float]
    fastest_per_s: float

    @staticmethod
    def fit(points: Sequence[Point]) -> LatencySurface | None:
        """Fit the surface to measured latencies; None if there are too few."""
        measured = [p for p in points if p.latency_s is not None and math.isfinite(p.latency_s)]
        if len(measured) < LEAST_POINTS:
            return None
        sizes = np.array([p.scale_out for p in measured], dtype=float)
        rates = np.maximum([p.rate_per_s for p in measured], LEAST_RATE)
        latencies = np.maximum([p.latency_s or 0.0 for p in measured], LEAST_LATENCY_S)
        unit = float(np.quantile(latencies, 0.01))
        target = np.log(latencies / unit)
        terms = np.column_stack([np.ones(len(measured)), np.log(sizes), np.log(rates)])
        coefficients, *_ = np.linalg.lstsq(terms, target, rcond=None)
        groups = two_groups([float(v) for v in target])
        # A single cluster: all measured latencies are normal, or all are the same.
        border = _border(terms @ coefficients, target > groups.border) if groups.gap >= APART else math.inf
        b0, b1, b2 = (float(v) for v in coefficients)
        return LatencySurface((b0, b1, b2), unit, border, (float(sizes.min()), float(sizes.max())), float(rates.max()))

    def answer(self, scale_out: int, rate_per_s: float) -> Answer | None:
        """Return the latency at a scale-out and a rate; None far outside the measured range."""
        rate = max(rate_per_s, LEAST_RATE)
        few, many = self.sizes
        if (
            scale_out * FAR < few
            or scale_out > FAR * many
            or rate > FAR * self.fastest_per_s
            or not math.isfinite(rate)
        ):
            return None
        b0, b1, b2 = self.coefficients
        value = b0 + b1 * math.log(scale_out) + b2 * math.log(rate)
        # No latency is below the best measured one, however low the rate.
        return Answer(self.unit_s * math.exp(min(max(value, 0.0), 50.0)), value <= self.border)


def _border(predicted: Floats, behind: NDArray[np.bool_]) -> float:
    """Return the predicted value that best separates the two clusters of measured latencies."""
    order = np.argsort(predicted)
    values, wrong = predicted[order], behind[order]
    # Below the border the points that fall behind are errors, above it the normal ones.
    missed = np.concatenate([[0], np.cumsum(wrong)]) + np.concatenate([np.cumsum(~wrong[::-1])[::-1], [0]])
    k = int(np.argmin(missed[1:-1])) + 1
    return float((values[k - 1] + values[k]) / 2)
