"""The load so far, as the windows showed it: a bounded fold, and what is forecast from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.forecast.choose import MOST_HISTORY, choose, least_history, predict
from rheostat.forecast.series import Cleaned, clean
from rheostat.job.forecast import Forecast, ForecastChoice, Foresight
from rheostat.job.observation import Observation

MOST_STEPS_AHEAD = 20
"""A horizon is divided into no more steps than this: what lies far ahead is not known second by second."""


@dataclass(frozen=True, slots=True)
class Loads:
    """Moments and the records/s that came to all sources, oldest first."""

    at_s: tuple[float, ...] = ()
    rates_per_s: tuple[float, ...] = ()

    def seen(self, window: Observation) -> Loads:
        """Return the loads with those of one more window; a window that does not know them changes nothing."""
        rate = window.load_per_s
        if rate is None or not 0 <= rate < math.inf or not math.isfinite(window.at_s):
            return self
        return Loads((*self.at_s, window.at_s)[-MOST_HISTORY:], (*self.rates_per_s, rate)[-MOST_HISTORY:])

    def series(self, horizon_s: float) -> tuple[Cleaned, int]:
        """Return a regular series, and how many of its steps the horizon has."""
        usual = clean(self.at_s, self.rates_per_s)
        least_s = horizon_s / MOST_STEPS_AHEAD
        cleaned = usual if usual.step_s >= least_s else clean(self.at_s, self.rates_per_s, least_s)
        return cleaned, max(1, math.ceil(horizon_s / cleaned.step_s - 1e-9))


def foresee(
    loads: Loads, choice: ForecastChoice | None, foresight: Foresight, quantiles: Sequence[float], at_s: float
) -> Forecast | None:
    """Return the forecast of the chosen model, or of the last value before one was chosen; None where nothing came."""
    if not loads.at_s:
        return None
    history, steps = loads.series(foresight.horizon_s)
    if np.isnan(history.values).all():
        return None
    return predict(history, choice or ForecastChoice(at_s), steps, quantiles, at_s)


def choice_is_due(loads: Loads, choice: ForecastChoice | None, foresight: Foresight, now_s: float) -> bool:
    """Whether it is time for a back-test: enough was seen, and the last one is old (or from after a clock's jump)."""
    if choice is not None:
        return not 0 <= now_s - choice.at_s < foresight.choose_every_s
    history, steps = loads.series(foresight.horizon_s)
    return history.values.size >= least_history(steps)


def choose_again(loads: Loads, foresight: Foresight, now_s: float) -> ForecastChoice:
    """Back-test the candidates on the load so far."""
    history, steps = loads.series(foresight.horizon_s)
    return choose(history, steps, foresight.candidates, at_s=now_s)
