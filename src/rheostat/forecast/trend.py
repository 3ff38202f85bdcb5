"""The local trend: a line through the newest values goes on, ever flatter.

What a load does in the next minutes is mostly what it does now. Level and slope are those of a least-squares line
through the last values; the slope is damped, so that no trend goes on for ever. Both are fixed weights of these values,
so that the same forecast from every earlier moment is one convolution: its errors there give the quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import LastValue, Values
from rheostat.forecast.series import check_question, known_rates, without_gaps

LEAST = 4
"""Values without which there is no line; with fewer it is the last value."""
ORIGINS = 240
"""Earlier moments from which it is tried, to know its errors."""
ENOUGH = 16
"""Errors that are needed to take their quantiles."""


class Trend:
    """Predicts that the present slope goes on for a while."""

    def __init__(self, length: int = 24, damping: float = 0.99) -> None:
        if length < LEAST:
            raise InvalidValue(f"length of a trend must be at least {LEAST}, not {length}")
        if not 0 < damping <= 1:
            raise InvalidValue(f"damping of a trend must lie between 0 and 1, not {damping!r}")
        self.length, self.damping = length, damping
        self._last = LastValue()
        self._values: Values = np.empty(0)

    def fit(self, values: Sequence[float]) -> None:
        """Remember the series; a gap is bridged by a straight line."""
        self._last.fit(values)
        series = known_rates(values)
        self._values = series[:0] if np.isnan(series).all() else without_gaps(series)

    def predict(self, steps: int, quantiles: Sequence[float]) -> Values:
        """Return steps x quantiles; never more than twice what was ever seen."""
        check_question(steps, quantiles)
        series = self._values
        length = min(self.length, series.size)
        if length < LEAST:
            return self._last.predict(steps, quantiles)
        level, slope = line_weights(length)
        grown = np.cumsum(self.damping ** np.arange(1, steps + 1))
        newest = series[-length:]
        middle = newest @ level + (newest @ slope) * grown
        most = 2.0 * float(series.max())
        if all(q == 0.5 for q in quantiles):
            return np.clip(np.repeat(middle[:, None], len(quantiles), axis=1), 0.0, most)
        spread = np.zeros((steps, len(quantiles)))
        past = series[-(ORIGINS + length) :]
        # np.convolve turns its weights around.
        levels, slopes = (np.convolve(past, weights[::-1], "valid") for weights in (level, slope))
        for h in range(1, steps + 1):
            came = past[length - 1 + h :]
            if came.size >= ENOUGH:
                errors = came - (levels[: came.size] + slopes[: came.size] * grown[h - 1])
                spread[h - 1] = np.quantile(errors, quantiles) - np.median(errors)
            elif h == 1:
                plain = self._last.predict(steps, quantiles)
                shifted: Values = np.clip(plain + (middle[:, None] - newest[-1]), 0.0, most)
                return shifted
            else:
                spread[h - 1] = spread[h - 2]
        predicted: Values = np.clip(middle[:, None] + spread, 0.0, most)
        return predicted


def line_weights(length: int) -> tuple[Values, Values]:
    """Return the weights that make the end and the slope of a least-squares line out of so many values."""
    place = np.arange(length, dtype=float) - (length - 1)
    middle = place.mean()
    slope = (place - middle) / ((place - middle) ** 2).sum()
    level: Values = 1.0 / length - slope * middle
    return level, slope
