"""The last value: the future equals the present, plus or minus the past changes.

The baseline of every other forecaster. The quantiles are those of the past changes over h steps, around their median:
the last value is the median, and no trend is inferred.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.series import check_rates, check_request

ENOUGH = 8
"""Past changes over h steps from which on their quantiles are used."""
DEFAULT_SPREAD = 0.1
"""Standard deviation of the first step, as a share of the last value, where the history is too short."""

Values = NDArray[np.float64]


class LastValue:
    """Predicts the last value; additive, so that a series that touches zero needs no special case."""

    def __init__(self) -> None:
        self._values: Values = np.empty(0)

    def fit(self, values: Sequence[float]) -> None:
        """Store the series; gaps stay NaN, so that h steps remain h steps."""
        self._values = check_rates(values)

    def predict(self, steps: int, quantiles: Sequence[float]) -> Values:
        """Return steps x quantiles. The spread never narrows with the horizon."""
        check_request(steps, quantiles)
        present = self._values[~np.isnan(self._values)]
        if not present.size:
            raise InvalidValue("there is nothing to forecast from: the series has no rate")
        changes = np.array([self._changes(h, quantiles) for h in range(1, steps + 1)]).reshape(steps, len(quantiles))
        # A horizon with few past changes may seem calmer than a shorter one by chance, or by season.
        upper = np.maximum.accumulate(np.maximum(changes, 0), axis=0)
        lower = np.minimum.accumulate(np.minimum(changes, 0), axis=0)
        predicted: Values = np.maximum(present[-1] + upper + lower, 0.0)
        return predicted

    def _changes(self, horizon: int, quantiles: Sequence[float]) -> Values:
        """Return quantiles of the change over a horizon, centred; beyond the history they grow like a random walk."""
        changes, longest = self._past_changes(horizon), horizon
        while changes.size < ENOUGH and longest > 1:
            longest = min(longest - 1, max(1, self._values.size - ENOUGH))
            changes = self._past_changes(longest)
        growth = math.sqrt(horizon / longest)
        if changes.size < ENOUGH:
            last = self._values[~np.isnan(self._values)][-1]
            normal = NormalDist()
            return np.array([DEFAULT_SPREAD * last * growth * normal.inv_cdf(q) for q in quantiles])
        return (np.quantile(changes, quantiles) - np.median(changes)) * growth

    def _past_changes(self, horizon: int) -> Values:
        """Return the past changes over a horizon, without those that start or end in a gap."""
        changes = self._values[horizon:] - self._values[:-horizon]
        return changes[~np.isnan(changes)]
