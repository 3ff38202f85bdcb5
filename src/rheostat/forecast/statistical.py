"""Holt-Winters, AutoCES and AutoARIMA, as the package statsforecast has them.

Slow against the models of our own (a fit takes tens to hundreds of milliseconds, the first import seconds), so they are
tried only where they are named, never see more than `MOST` steps, and AutoARIMA never looks for a season here.
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
from rheostat.forecast.series import check_question, known_rates, without_gaps

Floats = NDArray[np.float64]

MOST = 400
"""Newest steps that a fit sees."""
LEAST = 24
LONGEST_SEASON = 96
"""Holt-Winters with a longer season takes seconds: it then goes without."""
LEVEL = 90
"""The interval that gives the spread."""


class Statistical:
    """One model of statsforecast behind the Forecaster port."""

    def __init__(self, make: Callable[[Any, int], Any]) -> None:
        self._make = make
        self._model: Any = None
        self._constant: float | None = None
        self._scale = 1.0

    def fit(self, values: Sequence[float]) -> None:
        """Fit on the newest steps."""
        series = known_rates(values)
        if int((~np.isnan(series)).sum()) < LEAST:
            raise InvalidValue(f"a statistical model needs at least {LEAST} known steps")
        full = without_gaps(series)[-MOST:]
        self._constant = float(full[-1]) if np.ptp(full) <= 1e-12 * full.max() else None
        if self._constant is not None:
            return
        period = find_period(full)
        season = period if period is not None and 2 * period <= full.size and period <= LONGEST_SEASON else 1
        # Very large and very small rates are all the same to a model that sees them in units of their mean.
        self._scale = float(full.mean())
        self._model = self._make(_models(), season)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                self._model.fit(full / self._scale)
            except Exception as error:  # a fit that fails is a model that does not suit this series
                self._model = None
                raise InvalidValue(f"the model could not be fitted: {type(error).__name__}: {error}") from error

    def predict(self, steps: int, quantiles: Sequence[float]) -> Floats:
        """Return steps x quantiles: the middle, and a normal spread of the width that the model gives."""
        check_question(steps, quantiles)
        if self._constant is not None:
            return np.full((steps, len(quantiles)), self._constant)
        if self._model is None:
            raise InvalidValue("there is nothing to forecast from: fit it first")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            told = self._model.predict(steps, level=[LEVEL])
        middle = np.asarray(told["mean"], dtype=float)
        width = np.asarray(told[f"hi-{LEVEL}"], dtype=float) - middle
        sd = np.maximum(width, 0.0) / NormalDist().inv_cdf(0.5 + LEVEL / 200)
        z = np.array([NormalDist().inv_cdf(q) for q in quantiles])
        predicted = (middle[:, None] + sd[:, None] * z[None, :]) * self._scale
        if not np.isfinite(predicted).all():
            raise InvalidValue("the model's forecast is not finite")
        result: Floats = np.clip(predicted, 0.0, math.inf)
        return result


def holt_winters() -> Statistical:
    """Exponential smoothing with a trend, and a season where one is short enough."""

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
