"""The last value: tomorrow is like now, give or take what the series has changed by so far.

The forecast that every other one has to beat. Its quantiles are those of the changes over h steps that the history
shows, around their median: the last value stays the median, and no trend is read into the past.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.series import check_question, known_rates

ENOUGH = 8
"""Changes over h steps that are needed to take their quantiles."""
DEFAULT_SPREAD = 0.1
"""Standard deviation of the first step, as a share of the last value, where the history is too short to say."""

Values = NDArray[np.float64]


class LastValue:
    """Predicts the last known value; additive, so that a series that touches zero is no special case."""

    def __init__(self) -> None:
        self._values: Values = np.empty(0)

    def fit(self, values: Sequence[float]) -> None:
        """Remember the series; gaps are NaN and stay gaps, so that h steps remain h steps."""
        self._values = known_rates(values)

    def predict(self, steps: int, quantiles: Sequence[float]) -> Values:
        """Return steps x quantiles. The spread never narrows with the horizon."""
        check_question(steps, quantiles)
        known = self._values[~np.isnan(self._values)]
        if not known.size:
            raise InvalidValue("there is nothing to forecast from: the series has no known value")
        changes = np.array([self._changes(h, quantiles) for h in range(1, steps + 1)]).reshape(steps, len(quantiles))
        # A horizon with few changes may look calmer than a shorter one by chance, or by season.
        upper = np.maximum.accumulate(np.maximum(changes, 0), axis=0)
        lower = np.minimum.accumulate(np.minimum(changes, 0), axis=0)
        predicted: Values = np.maximum(known[-1] + upper + lower, 0.0)
        return predicted

    def _changes(self, horizon: int, quantiles: Sequence[float]) -> Values:
        """Return quantiles of the change over a horizon, centred; beyond the history they grow like a random walk."""
        seen, longest = self._seen(horizon), horizon
        while seen.size < ENOUGH and longest > 1:
            longest = min(longest - 1, max(1, self._values.size - ENOUGH))
            seen = self._seen(longest)
        growth = math.sqrt(horizon / longest)
        if seen.size < ENOUGH:
            last = self._values[~np.isnan(self._values)][-1]
            normal = NormalDist()
            return np.array([DEFAULT_SPREAD * last * growth * normal.inv_cdf(q) for q in quantiles])
        return (np.quantile(seen, quantiles) - np.median(seen)) * growth

    def _seen(self, horizon: int) -> Values:
        """Return the changes over a horizon that the history shows, without those that end in a gap."""
        changes = self._values[horizon:] - self._values[:-horizon]
        return changes[~np.isnan(changes)]
