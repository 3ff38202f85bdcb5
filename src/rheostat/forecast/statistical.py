"""Holt-Winters, AutoCES and AutoARIMA from the package statsforecast.

They are slow compared with our own models (a fit takes tens to hundreds of milliseconds, the first import seconds). So
they are tried only if they are named, fit at most `MOST` steps, and AutoARIMA runs without a season.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue, RheostatError
from rheostat.forecast.profile import find_period
from rheostat.forecast.series import check_rates, check_request, fill_gaps

Floats = NDArray[np.float64]

MOST = 400
"""Newest steps in a fit."""
LEAST = 24
"""Fewest steps in a fit."""
LONGEST_SEASON = 96
"""Longest season of Holt-Winters, in steps; a longer one takes seconds, so the model then runs without a season."""
LEVEL = 90
"""Percentage of the interval that gives the spread."""


class Statistical:
    """One model of statsforecast as a Forecaster."""

    def __init__(self, make: Callable[[Any, int], Any]) -> None:
        self._make = make
        self._model: Any = None
        self._constant: float | None = None
        self._scale = 1.0

    def fit(self, values: Sequence[float]) -> None:
        """Fit on the newest steps."""
        series = check_rates(values)
        if int((~np.isnan(series)).sum()) < LEAST:
            raise InvalidValue(f"a statistical model needs at least {LEAST} steps with a rate")
        full = fill_gaps(series)[-MOST:]
        self._constant = float(full[-1]) if np.ptp(full) <= 1e-12 * full.max() else None
        if self._constant is not None:
            return
        period = find_period(full)
        season = period if period is not None and 2 * period <= full.size and period <= LONGEST_SEASON else 1
        # In units of the mean, very large and very small rates look the same to the model.
        self._scale = float(full.mean())
        self._model = self._make(_models(), season)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                self._model.fit(full / self._scale)
            except Exception as error:  # the model does not suit this series
                self._model = None
                raise InvalidValue(f"the model could not be fitted: {type(error).__name__}: {error}") from error

    def predict(self, steps: int, quantiles: Sequence[float]) -> Floats:
        """Return steps x quantiles: the model's mean, and a normal spread with the width of its interval."""
        check_request(steps, quantiles)
        if self._constant is not None:
            return np.full((steps, len(quantiles)), self._constant)
        if self._model is None:
            raise InvalidValue("there is nothing to forecast from: call fit first")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            forecast = self._model.predict(steps, level=[LEVEL])
        middle = np.asarray(forecast["mean"], dtype=float)
        width = np.asarray(forecast[f"hi-{LEVEL}"], dtype=float) - middle
        sd = np.maximum(width, 0.0) / NormalDist().inv_cdf(0.5 + LEVEL / 200)
        z = np.array([NormalDist().inv_cdf(q) for q in quantiles])
        predicted = (middle[:, None] + sd[:, None] * z[None, :]) * self._scale
        if not np.isfinite(predicted).all():
            raise InvalidValue("the model's forecast is not finite")
        result: Floats = np.clip(predicted, 0.0, math.inf)
        return result


def holt_winters() -> Statistical:
    """Exponential smoothing with a trend, and with a season if it is short enough."""

    def make(models: Any, season: int) -> Any:
        if season > 1:
            return models.HoltWinters(season_length=season)
        return models.AutoETS(model="AAN", damped=True)

    return Statistical(make)


def auto_ces() -> Statistical:
    """Complex exponential smoothing, without a season."""
    return Statistical(lambda models, season: models.AutoCES(model="N"))


def auto_arima() -> Statistical:
    """ARIMA of the best small order, never seasonal."""
    return Statistical(lambda models, season: models.AutoARIMA(seasonal=False, max_p=3, max_q=3))


def _models() -> Any:
    try:
        from statsforecast import models
    except ImportError as error:
        raise RheostatError("these forecasters need statsforecast: pip install 'rheostat[forecast]'") from error
    return models
