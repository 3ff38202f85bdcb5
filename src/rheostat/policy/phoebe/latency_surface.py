"""Phoebe's latency model M_L: a regression on scale-out and rate, and which of its answers are normal.

Section III-D: a multiple regression predicts the latency from (scale-out, rate); two clusters of predicted latencies,
divided by their first percentile and in logarithms, tell the normal ones from those of a job that falls behind. Here
the regression is on the logarithms, because saturation is a matter of rate per worker, and the clusters are those of
the measured latencies: a plane's values have no gap between them. Far outside of what was measured it does not answer:
a plane always has an opinion.
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
"""Scale-outs and rates beyond this many times the range that was measured get no answer."""
LEAST_POINTS = 4
LEAST_RATE = 1.0
"""Records/s; fewer count as so many, since rates enter as logarithms."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A predicted latency, and whether it is one of the normal ones (the paper's L_C < 1)."""

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
    def fitted(points: Sequence[Point]) -> LatencySurface | None:
        """Fit it to measured latencies; None where there are too few."""
        known = [p for p in points if p.latency_s is not None and math.isfinite(p.latency_s)]
        if len(known) < LEAST_POINTS:
            return None
        sizes = np.array([p.scale_out for p in known], dtype=float)
        rates = np.maximum([p.rate_per_s for p in known], LEAST_RATE)
        latencies = np.maximum([p.latency_s or 0.0 for p in known], LEAST_LATENCY_S)
        unit = float(np.quantile(latencies, 0.01))
        target = np.log(latencies / unit)
        terms = np.column_stack([np.ones(len(known)), np.log(sizes), np.log(rates)])
        found, *_ = np.linalg.lstsq(terms, target, rcond=None)
        groups = two_groups([float(v) for v in target])
        # One cluster: all that was measured was normal, or all of it alike.
        border = _border(terms @ found, target > groups.border) if groups.gap >= APART else math.inf
        b0, b1, b2 = (float(v) for v in found)
        return LatencySurface((b0, b1, b2), unit, border, (float(sizes.min()), float(sizes.max())), float(rates.max()))

    def answer(self, scale_out: int, rate_per_s: float) -> Answer | None:
        """Return the latency at a scale-out and a rate; None far outside of what was measured."""
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
        # No latency is better than the best that was measured, however little there is to do.
        return Answer(self.unit_s * math.exp(min(max(value, 0.0), 50.0)), value <= self.border)


def _border(predicted: Floats, behind: NDArray[np.bool_]) -> float:
    """Return the predicted value that best tells the two clusters of measured latencies apart."""
    order = np.argsort(predicted)
    values, wrong = predicted[order], behind[order]
    # Below the border those that fall behind are wrong, above it the normal ones.
    missed = np.concatenate([[0], np.cumsum(wrong)]) + np.concatenate([np.cumsum(~wrong[::-1])[::-1], [0]])
    k = int(np.argmin(missed[1:-1])) + 1
    return float((values[k - 1] + values[k]) / 2)
