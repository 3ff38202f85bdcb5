"""Autoregression: the next change is a weighted sum of the last changes.

ARIMA(p, 1, 0) by ridge regression: one small linear system, well under a millisecond, where a search over orders and
a likelihood take a hundred times as long. On the traces of `bench forecast` it is as good. Its quantiles are those of
the errors that the same weights made on the history, step by step of the horizon, so no distribution is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.series import check_question, known_rates, without_gaps

Floats = NDArray[np.float64]

ORDER = 12
RIDGE = 1e-3
"""Of the mean variance: keeps weights small where changes say little."""
MOST = 864
"""Newest steps that are learned from: three days of five minutes."""
LEAST = 16
"""Fewest steps."""


class Weights:
    """The weights of one series of any sign: what comes next, and how wrong that was so far."""

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
        """Return the middle of the next steps."""
        ahead: Floats = self.last + self.scale * self._ahead(self.changes[None, -self.order :], steps)[0]
        return ahead

    def errors(self, steps: int) -> list[Floats]:
        """Return, for every step ahead, by how much the history differed from what these weights would have said."""
        before = sliding_window_view(self.changes, self.order)
        # The last origins have no future yet; every horizon keeps those that have.
        known = min(steps, before.shape[0] - 1)
        ahead = self._ahead(before, known)
        came = np.concatenate([[0.0], np.cumsum(self.changes)])
        count = self.changes.size
        # As many weights as there are were fitted to these very errors.
        loose = math.sqrt((count + self.order) / max(count - self.order, 1))
        result = []
        for h in range(1, known + 1):
            origins = came[self.order : count + 1 - h]
            result.append(self.scale * loose * (came[self.order + h :] - origins - ahead[: origins.size, h - 1]))
        return result

    def _ahead(self, before: Floats, steps: int) -> Floats:
        """Return origins x steps: how far the series moves from every origin."""
        window, total = before.copy(), np.zeros(before.shape[0])
        moved = np.empty((before.shape[0], steps))
        for h in range(steps):
            # No change is larger than the largest that was seen: weights that explode are held here.
            change = np.clip(window @ self.weights, -1.0, 1.0)
            total = total + change
            moved[:, h] = total
            window = np.concatenate([window[:, 1:], change[:, None]], axis=1)
        return moved


def spread(errors: list[Floats], steps: int, quantiles: Sequence[float], enough: int = 8) -> Floats:
    """Return steps x quantiles of the errors around their median; beyond the history they grow like a random walk."""
    rows: list[Floats] = []
    told, at = np.zeros(len(quantiles)), 1
    for h in range(1, steps + 1):
        if h <= len(errors) and errors[h - 1].size >= enough:
            told, at = np.quantile(errors[h - 1], quantiles) - np.median(errors[h - 1]), h
            rows.append(told)
        else:
            rows.append(told * math.sqrt(h / at))
    every = np.array(rows).reshape(steps, len(quantiles))
    widest: Floats = np.maximum.accumulate(np.maximum(every, 0), axis=0) + np.minimum.accumulate(
        np.minimum(every, 0), axis=0
    )
    return widest


class AutoRegression:
    """Predicts by its own last changes."""

    def __init__(self) -> None:
        self._weights: Weights | None = None

    def fit(self, values: Sequence[float]) -> None:
        """Find the weights."""
        series = known_rates(values)
        known = int((~np.isnan(series)).sum())
        if known < LEAST:
            raise InvalidValue(f"an autoregression needs at least {LEAST} known steps, not {known}")
        self._weights = Weights(without_gaps(series))

    def predict(self, steps: int, quantiles: Sequence[float]) -> Floats:
        """Return steps x quantiles."""
        check_question(steps, quantiles)
        if self._weights is None:
            raise InvalidValue("there is nothing to forecast from: fit it first")
        middle = self._weights.path(steps)
        around = spread(self._weights.errors(steps), steps, quantiles)
        predicted: Floats = np.maximum(middle[:, None] + around, 0.0)
        return predicted
