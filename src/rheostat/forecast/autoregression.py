"""Autoregression: the next change is a weighted sum of the last changes.

ARIMA(p, 1, 0) by ridge regression: one small linear system, well under a millisecond; a search over orders with a
likelihood takes a hundred times as long, and on the traces of `bench forecast` it is no better. The quantiles are those
of the errors of the same weights on the history, per step of the horizon, so no distribution is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.series import check_rates, check_request, fill_gaps

Floats = NDArray[np.float64]

ORDER = 12
"""Past changes in the weighted sum."""
RIDGE = 1e-3
"""Ridge as a share of the mean variance; it keeps weights small where changes carry little information."""
MOST = 864
"""Newest steps in the fit: three days of five minutes."""
LEAST = 16
"""Fewest steps in the fit."""


class Weights:
    """The weights of one series of any sign: its forecast, and the errors of that forecast on the history."""

    def __init__(self, series: Floats, order: int = ORDER) -> None:
        recent = series[-MOST:]
        self.last = float(recent[-1])
        self.changes: Floats = np.diff(recent)
        self.order = max(1, min(order, self.changes.size // 4))
        self.scale = float(np.abs(self.changes).max())
        self.weights: Floats = np.zeros(self.order)
        if self.scale > 0:
            self.changes = np.asarray(self.changes / self.scale, dtype=np.float64)
            before = sliding_window_view(self.changes, self.order)[:-1]
            square = before.T @ before
            square += np.eye(self.order) * (RIDGE * np.trace(square) / self.order + 1e-12)
            self.weights = np.asarray(np.linalg.solve(square, before.T @ self.changes[self.order :]), dtype=np.float64)

    def path(self, steps: int) -> Floats:
        """Return the median of the next steps."""
        ahead: Floats = self.last + self.scale * self._ahead(self.changes[None, -self.order :], steps)[0]
        return ahead

    def errors(self, steps: int) -> list[Floats]:
        """Return, for every step ahead, the errors of these weights on the history."""
        before = sliding_window_view(self.changes, self.order)
        # The last origins have no future yet; every horizon uses those that have one.
        longest = min(steps, before.shape[0] - 1)
        ahead = self._ahead(before, longest)
        level = np.concatenate([[0.0], np.cumsum(self.changes)])
        count = self.changes.size
        # The weights were fitted to these errors, so the errors are widened by the degrees of freedom.
        widening = math.sqrt((count + self.order) / max(count - self.order, 1))
        result = []
        for h in range(1, longest + 1):
            origins = level[self.order : count + 1 - h]
            result.append(self.scale * widening * (level[self.order + h :] - origins - ahead[: origins.size, h - 1]))
        return result

    def _ahead(self, before: Floats, steps: int) -> Floats:
        """Return origins x steps: the predicted change from every origin."""
        window, total = before.copy(), np.zeros(before.shape[0])
        moved = np.empty((before.shape[0], steps))
        for h in range(steps):
            # No change exceeds the largest past one: this bounds exploding weights.
            change = np.clip(window @ self.weights, -1.0, 1.0)
            total = total + change
            moved[:, h] = total
            window = np.concatenate([window[:, 1:], change[:, None]], axis=1)
        return moved


def spread(errors: list[Floats], steps: int, quantiles: Sequence[float], enough: int = 8) -> Floats:
    """Return steps x quantiles of the errors around their median; beyond the history they grow like a random walk."""
    rows: list[Floats] = []
    quantile, at = np.zeros(len(quantiles)), 1
    for h in range(1, steps + 1):
        if h <= len(errors) and errors[h - 1].size >= enough:
            quantile, at = np.quantile(errors[h - 1], quantiles) - np.median(errors[h - 1]), h
            rows.append(quantile)
        else:
            rows.append(quantile * math.sqrt(h / at))
    spreads = np.array(rows).reshape(steps, len(quantiles))
    widest: Floats = np.maximum.accumulate(np.maximum(spreads, 0), axis=0) + np.minimum.accumulate(
        np.minimum(spreads, 0), axis=0
    )
    return widest


class AutoRegression:
    """Predicts the next change from the last changes."""

    def __init__(self) -> None:
        self._weights: Weights | None = None

    def fit(self, values: Sequence[float]) -> None:
        """Fit the weights."""
        series = check_rates(values)
        count = int((~np.isnan(series)).sum())
        if count < LEAST:
            raise InvalidValue(f"an autoregression needs at least {LEAST} steps with a rate, not {count}")
        self._weights = Weights(fill_gaps(series))

    def predict(self, steps: int, quantiles: Sequence[float]) -> Floats:
        """Return steps x quantiles."""
        check_request(steps, quantiles)
        if self._weights is None:
            raise InvalidValue("there is nothing to forecast from: call fit first")
        middle = self._weights.path(steps)
        around = spread(self._weights.errors(steps), steps, quantiles)
        predicted: Floats = np.maximum(middle[:, None] + around, 0.0)
        return predicted
