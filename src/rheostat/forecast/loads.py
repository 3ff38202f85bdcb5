"""The past load, a bounded fold over the windows, and the forecasts made from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.forecast.backtest import MOST_HISTORY, least_history, predict, select_forecaster
from rheostat.forecast.series import RegularSeries, clean
from rheostat.job.forecast import Forecast, ForecastChoice, Foresight
from rheostat.job.observation import MOST, Observation

MOST_STEPS_AHEAD = 20
"""Most steps of a horizon: a distant load cannot be forecast second by second."""


@dataclass(frozen=True, slots=True)
class Loads:
    """Moments and the records/s that arrived at all sources, oldest first."""

    at_s: tuple[float, ...] = ()
    rates_per_s: tuple[float, ...] = ()

    def with_window(self, window: Observation) -> Loads:
        """Return the loads with that of one more window; a window without a load adds none."""
        rate = window.load_per_s
        if rate is None or not 0 <= rate < MOST or not math.isfinite(window.at_s):
            return self
        return Loads((*self.at_s, window.at_s)[-MOST_HISTORY:], (*self.rates_per_s, rate)[-MOST_HISTORY:])

    def series(self, horizon_s: float) -> tuple[RegularSeries, int]:
        """Return a regular series, and the number of its steps in the horizon."""
        usual = clean(self.at_s, self.rates_per_s)
        least_s = horizon_s / MOST_STEPS_AHEAD
        cleaned = usual if usual.step_s >= least_s else clean(self.at_s, self.rates_per_s, least_s)
        return cleaned, max(1, math.ceil(horizon_s / cleaned.step_s - 1e-9))


def forecast_load(
    loads: Loads, choice: ForecastChoice | None, foresight: Foresight, quantiles: Sequence[float], at_s: float
) -> Forecast | None:
    """Return the forecast of the selected model, of the last value before the first selection; None without loads."""
    if not loads.at_s:
        return None
    history, steps = loads.series(foresight.horizon_s)
    if np.isnan(history.values).all():
        return None
    return predict(history, choice or ForecastChoice(at_s), steps, quantiles, at_s)


def backtest_is_due(loads: Loads, choice: ForecastChoice | None, foresight: Foresight, now_s: float) -> bool:
    """Whether a back-test is due: the history is long enough, and the last one is old (or lies in the future)."""
    if choice is not None:
        return not 0 <= now_s - choice.at_s < foresight.choose_every_s
    history, steps = loads.series(foresight.horizon_s)
    return history.values.size >= least_history(steps)


def run_backtest(loads: Loads, foresight: Foresight, now_s: float) -> ForecastChoice:
    """Back-test the candidates on the past load."""
    history, steps = loads.series(foresight.horizon_s)
    return select_forecaster(history, steps, foresight.candidates, at_s=now_s)
