"""Which forecaster suits this job? A rolling back-test on its own history; without proof, the last value.

From moments of the past (origins) each candidate sees what was known then and says what comes next. It is used only if
it beats the last value clearly: in the mean by more than its scatter explains, and not at the price of worse upper
quantiles. The back-test takes up to seconds, so it runs outside the control step, and its result is a journal record.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import LastValue
from rheostat.forecast.profile import find_period
from rheostat.forecast.registry import OWN, STATISTICAL, make_forecaster
from rheostat.forecast.series import Cleaned, without_gaps
from rheostat.job.forecast import LAST_VALUE, Forecast, ForecastChoice

Floats = NDArray[np.float64]

ORIGINS, FEW_ORIGINS = 64, 6
"""Moments from which own models are tried, and those through statsforecast."""
LEAST_ORIGINS = 5
LEAST_HISTORY = 24
"""Steps that the first origin must have seen."""
MOST_HISTORY = 2880
"""Newest steps that are looked at: two days of minutes, ten days of five minutes."""
BETTER = 0.98
"""Share of the last value's error that a candidate must stay below, with its scatter."""
SURE = 1.64
"""Standard errors that are taken for scatter: one chance in twenty for a candidate that is no better."""
UPPER = 0.9
"""The quantile that must not get worse."""
MOST_GAPS = 0.5
"""A history with more gaps than this shows no pattern."""
BUDGET_S = 2.0
"""Processor time for a whole choice; what could not be tried in it is not used."""
EXPLODES = 1.5
"""A forecast above so many times the highest load so far, or above it by so many times its range, is not believed."""


def choose(
    history: Cleaned,
    steps: int,
    candidates: Sequence[str] = OWN,
    *,
    at_s: float | None = None,
    budget_s: float = BUDGET_S,
    timer: Callable[[], float] = time.thread_time,
) -> ForecastChoice:
    """Compare the candidates with the last value on this history, over a horizon of `steps`."""
    at = history.end_s if at_s is None else at_s
    values = history.values[-MOST_HISTORY:]
    known = values[~np.isnan(values)]

    def last_value(why: str, errors: dict[str, float] | None = None, origins: int = 0) -> ForecastChoice:
        return ForecastChoice(at, LAST_VALUE, None, why, errors or {}, origins, history.notes)

    if known.size < least_history(steps):
        return last_value(f"last value: {known.size} known steps are too few to compare forecasters")
    if known.size < (1 - MOST_GAPS) * values.size:
        return last_value(f"last value: {values.size - known.size} of {values.size} steps are gaps")
    if not np.ptp(known) > 0:
        return last_value("last value: the load never changed")
    origins = _origins(values, steps, ORIGINS)
    if len(origins) < LEAST_ORIGINS:
        return last_value(f"last value: {len(origins)} moments are too few to compare forecasters")
    period = find_period(without_gaps(values))
    base = {origin: _losses(LAST_VALUE, None, values, origin, steps) for origin in origins}
    began, errors, scores, skipped = timer(), {}, {}, []
    for name in candidates:
        if name == "profile" and period is None:
            continue
        where = _origins(values, steps, FEW_ORIGINS) if name in STATISTICAL else origins
        tried = []
        for origin in where:
            if timer() - began > budget_s:
                skipped.append(name)
                break
            losses = _losses(name, period, values, origin, steps)
            if losses is not None:
                before = base.get(origin) or _losses(LAST_VALUE, None, values, origin, steps)
                if before is not None:
                    tried.append((losses, before))
        else:
            if len(tried) >= LEAST_ORIGINS:
                errors[name], scores[name] = _compared(np.array(tried))
    late = f"; no time for {', '.join(skipped)}" if skipped else ""
    good = [name for name in scores if scores[name] < 1]
    if not good:
        best = min(errors, key=lambda name: errors[name]) if errors else None
        what = f"{best} has {errors[best]:.2f} of its error" if best else "no other model could be tried"
        return last_value(f"last value: nothing beats it clearly ({what}){late}", errors, len(origins))
    model = min(good, key=lambda name: scores[name])
    why = f"{model}: {errors[model]:.2f} of the last value's error over {steps} steps, {len(origins)} moments{late}"
    season = period if model == "profile" else None
    return ForecastChoice(at, model, season, why, errors, len(origins), history.notes)


def predict(
    history: Cleaned, choice: ForecastChoice, steps: int, quantiles: Sequence[float], at_s: float | None = None
) -> Forecast:
    """Return what the chosen forecaster says, bounded by what was ever seen; the last value where it refuses."""
    values, notes = history.values[-MOST_HISTORY:], list(history.notes)
    model = choice.model
    try:
        rates = _predicted(model, choice.period, values, steps, quantiles)
    except InvalidValue as error:
        if model == LAST_VALUE:
            raise
        notes.append(f"{model} refused, the last value stands in: {error}")
        model = LAST_VALUE
        rates = _predicted(model, None, values, steps, quantiles)
    most = highest_believed(values)
    if (rates > most).any():
        notes.append(f"{model} exploded to {rates.max():.4g} records/s: bounded to {most:.4g}")
        rates = np.minimum(rates, most)
    at = history.end_s if at_s is None else at_s
    rows = tuple(tuple(float(rate) for rate in row) for row in rates)
    return Forecast(at, history.step_s, tuple(quantiles), rows, model, tuple(notes))


def least_history(steps: int) -> int:
    """Return how many steps it takes to compare forecasters over a horizon."""
    return LEAST_HISTORY + steps + LEAST_ORIGINS


def highest_believed(values: Floats) -> float:
    """Return the highest rate that a forecast may name, given what was seen."""
    top = float(np.nanmax(values))
    return max(EXPLODES * top, top + EXPLODES * (top - float(np.nanmin(values))))


def _predicted(
    model: str, period: int | None, values: Floats, steps: int, quantiles: Sequence[float]
) -> NDArray[np.float64]:
    forecaster = LastValue() if model == LAST_VALUE else make_forecaster(model, period)
    forecaster.fit(values.tolist())
    return forecaster.predict(steps, quantiles)


def _origins(values: Floats, steps: int, most: int) -> list[int]:
    """Return moments with enough history before and a known future after them, evenly over the later two thirds."""
    first, last = max(LEAST_HISTORY, values.size // 3), values.size - steps
    if last < first:
        return []
    spaced = np.unique(np.linspace(first, last, most).astype(int))
    return [int(k) for k in spaced if not np.isnan(values[k - 1]) and not np.isnan(values[k : k + steps]).all()]


def _losses(model: str, period: int | None, values: Floats, origin: int, steps: int) -> tuple[float, float] | None:
    """Return the mean absolute error and the loss of the upper quantile from one origin; None where it refuses."""
    try:
        told = _predicted(model, period, values[:origin], steps, (0.5, UPPER))
    except InvalidValue:
        return None
    told = np.minimum(told, highest_believed(values[:origin]))
    came = values[origin : origin + steps]
    return float(np.nanmean(np.abs(came - told[:, 0]))), pinball(came, told[:, 1], UPPER)


def pinball(came: Floats, told: Floats, quantile: float) -> float:
    """Return the mean pinball loss: what a wrong quantile costs, on either side; gaps do not count."""
    error = came - told
    return float(np.nanmean(np.maximum(quantile * error, (quantile - 1) * error)))


def _compared(tried: Floats) -> tuple[float, float]:
    """Return a candidate's error as a share of the last value's, and its score: below 1 it may be used.

    `tried` is origins x (candidate, last value) x (error, loss of the upper quantile).
    """
    error, before = tried[:, 0, 0], tried[:, 1, 0]
    if before.mean() <= 0:
        return (1.0 if error.mean() <= 0 else math.inf), math.inf
    share = float(error.mean() / before.mean())
    # Of the mean difference, more where origins are few.
    scatter = SURE * float(np.std(error - before, ddof=1)) / math.sqrt(len(error)) * (1 + 2 / len(error))
    upper = float(tried[:, 0, 1].mean()) / max(float(tried[:, 1, 1].mean()), 1e-300)
    proven = share + scatter / float(before.mean()) < BETTER and upper <= 1.0
    return share, (share + upper) / 2 if proven else math.inf
