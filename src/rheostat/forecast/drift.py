"""Drift: the last value, going on in the direction of the last steps, ever more slowly.

The slope is the median of all slopes between two of the last steps (Theil and Sen): one odd step does not turn it.
The trend is damped, because the load of a job neither rises nor falls for ever. Its quantiles are those of the last
value, moved along.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import LastValue
from rheostat.forecast.series import check_question, known_rates, without_gaps

RECENT = 10
"""Steps whose direction counts."""
DAMPING = 0.9
"""What is left of the slope after every step."""


class Drift:
    """Predicts the last value, moved along a damped trend."""

    def __init__(self) -> None:
        self._last = LastValue()
        self._slope = 0.0

    def fit(self, values: Sequence[float]) -> None:
        """Remember the series and its last direction."""
        series = known_rates(values)
        self._last.fit(values)
        recent = without_gaps(series)[-RECENT:] if (~np.isnan(series)).any() else np.empty(0)
        if recent.size < 3:
            raise InvalidValue(f"a drift needs at least 3 steps, not {recent.size}")
        i, j = np.triu_indices(recent.size, 1)
        self._slope = float(np.median((recent[j] - recent[i]) / (j - i)))

    def predict(self, steps: int, quantiles: Sequence[float]) -> NDArray[np.float64]:
        """Return steps x quantiles."""
        check_question(steps, quantiles)
        moved = self._slope * np.cumsum(DAMPING ** np.arange(1.0, steps + 1.0))
        predicted: NDArray[np.float64] = np.maximum(self._last.predict(steps, quantiles) + moved[:, None], 0.0)
        return predicted
