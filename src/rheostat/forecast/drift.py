"""Drift: the last value, continued in the direction of the last steps with a damped slope.

The slope is the median of all slopes between two of the last steps (Theil and Sen), so a single odd step has no effect.
The trend is damped, because no load rises or falls for ever. The quantiles are those of the last value, shifted by the
trend.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import LastValue
from rheostat.forecast.series import check_rates, check_request, fill_gaps

RECENT = 10
"""Newest steps that determine the slope."""
DAMPING = 0.9
"""Share of the slope that remains after every step."""


class Drift:
    """Predicts the last value, shifted along a damped trend."""

    def __init__(self) -> None:
        self._last = LastValue()
        self._slope = 0.0

    def fit(self, values: Sequence[float]) -> None:
        """Store the series and its recent slope."""
        series = check_rates(values)
        self._last.fit(values)
        recent = fill_gaps(series)[-RECENT:] if (~np.isnan(series)).any() else np.empty(0)
        if recent.size < 3:
            raise InvalidValue(f"a drift needs at least 3 steps, not {recent.size}")
        i, j = np.triu_indices(recent.size, 1)
        self._slope = float(np.median((recent[j] - recent[i]) / (j - i)))

    def predict(self, steps: int, quantiles: Sequence[float]) -> NDArray[np.float64]:
        """Return steps x quantiles."""
        check_request(steps, quantiles)
        shift = self._slope * np.cumsum(DAMPING ** np.arange(1.0, steps + 1.0))
        predicted: NDArray[np.float64] = np.maximum(self._last.predict(steps, quantiles) + shift[:, None], 0.0)
        return predicted
