"""Selection of a job's forecaster by a rolling back-test on its own history; without evidence, the last value.

From past moments (origins) each candidate forecasts from the history up to the origin. It is selected only if it
clearly beats the last value: its mean error is lower by more than the scatter, and its upper quantile is no worse. The
back-test takes up to seconds, so it runs outside the control step, and its result is a journal record.
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
from rheostat.forecast.series import RegularSeries, fill_gaps
from rheostat.job.forecast import LAST_VALUE, Forecast, ForecastChoice

Floats = NDArray[np.float64]

ORIGINS, FEW_ORIGINS = 64, 6
"""Origins of our own forecasters, and of those from statsforecast, which are slow."""
LEAST_ORIGINS = 5
"""Fewest origins of a comparison."""
LEAST_HISTORY = 24
"""Steps before the first origin."""
MOST_HISTORY = 2880
"""Newest steps in the back-test: two days of minutes, ten days of five minutes."""
BETTER = 0.98
"""Upper limit of a candidate's error, scatter included, as a share of the last value's."""
SURE = 1.64
"""Scatter in standard errors: a candidate that is no better passes once in twenty times."""
UPPER = 0.9
"""The quantile that must not get worse."""
MOST_GAPS = 0.5
"""Largest share of gaps in a history: more of them hide any pattern."""
BUDGET_S = 2.0
"""Processor time of a whole back-test; candidates that do not fit into it are not selected."""
EXPLODES = 1.5
"""A plausible forecast stays below this multiple of the highest past load, or above it by at most this multiple of the
past range."""


def select_forecaster(
    history: RegularSeries,
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
    present = values[~np.isnan(values)]

    def last_value(why: str, errors: dict[str, float] | None = None, origins: int = 0) -> ForecastChoice:
        return ForecastChoice(at, LAST_VALUE, None, why, errors or {}, origins, history.notes)

    if present.size < least_history(steps):
        return last_value(f"last value: {present.size} steps with a rate are too few to compare forecasters")
    if present.size < (1 - MOST_GAPS) * values.size:
        return last_value(f"last value: {values.size - present.size} of {values.size} steps are gaps")
    if not np.ptp(present) > 0:
        return last_value("last value: the load never changed")
    origins = _origins(values, steps, ORIGINS)
    if len(origins) < LEAST_ORIGINS:
        return last_value(f"last value: {len(origins)} origins are too few to compare forecasters")
    period = find_period(fill_gaps(values))
    base = {origin: _losses(LAST_VALUE, None, values, origin, steps) for origin in origins}
    began, errors, scores, skipped = timer(), {}, {}, []
    for name in candidates:
        if name == "profile" and period is None:
            continue
        where = _origins(values, steps, FEW_ORIGINS) if name in STATISTICAL else origins
        pairs = []
        for origin in where:
            if timer() - began > budget_s:
                skipped.append(name)
                break
            losses = _losses(name, period, values, origin, steps)
            if losses is not None:
                before = base.get(origin) or _losses(LAST_VALUE, None, values, origin, steps)
                if before is not None:
                    pairs.append((losses, before))
        else:
            if len(pairs) >= LEAST_ORIGINS:
                errors[name], scores[name] = _score_candidate(np.array(pairs))
    late = f"; no time for {', '.join(skipped)}" if skipped else ""
    good = [name for name in scores if scores[name] < 1]
    if not good:
        best = min(errors, key=lambda name: errors[name]) if errors else None
        what = f"{best} has {errors[best]:.2f} of its error" if best else "no other model could be fitted"
        return last_value(f"last value: no candidate clearly beats it ({what}){late}", errors, len(origins))
    model = min(good, key=lambda name: scores[name])
    why = f"{model}: {errors[model]:.2f} of the last value's error over {steps} steps, {len(origins)} origins{late}"
    season = period if model == "profile" else None
    return ForecastChoice(at, model, season, why, errors, len(origins), history.notes)


def predict(
    history: RegularSeries, choice: ForecastChoice, steps: int, quantiles: Sequence[float], at_s: float | None = None
) -> Forecast:
    """Return the selected model's forecast within plausible rates; the last value's if the model refuses."""
    values, notes = history.values[-MOST_HISTORY:], list(history.notes)
    model = choice.model
    try:
        rates = _predict_rates(model, choice.period, values, steps, quantiles)
    except InvalidValue as error:
        if model == LAST_VALUE:
            raise
        notes.append(f"{model} refused, so the last value is used: {error}")
        model = LAST_VALUE
        rates = _predict_rates(model, None, values, steps, quantiles)
    most = highest_plausible(values)
    if (rates > most).any():
        notes.append(f"{model} exploded to {rates.max():.4g} records/s: bounded to {most:.4g}")
        rates = np.minimum(rates, most)
    at = history.end_s if at_s is None else at_s
    rows = tuple(tuple(float(rate) for rate in row) for row in rates)
    return Forecast(at, history.step_s, tuple(quantiles), rows, model, tuple(notes))


def least_history(steps: int) -> int:
    """Return the number of steps that a back-test over a horizon needs."""
    return LEAST_HISTORY + steps + LEAST_ORIGINS


def highest_plausible(values: Floats) -> float:
    """Return the highest rate that a forecast may contain, given the past rates."""
    top = float(np.nanmax(values))
    return max(EXPLODES * top, top + EXPLODES * (top - float(np.nanmin(values))))


def _predict_rates(
    model: str, period: int | None, values: Floats, steps: int, quantiles: Sequence[float]
) -> NDArray[np.float64]:
    forecaster = LastValue() if model == LAST_VALUE else make_forecaster(model, period)
    forecaster.fit(values.tolist())
    return forecaster.predict(steps, quantiles)


def _origins(values: Floats, steps: int, most: int) -> list[int]:
    """Return origins with enough history before and a rate after them, evenly over the later two thirds."""
    first, last = max(LEAST_HISTORY, values.size // 3), values.size - steps
    if last < first:
        return []
    spaced = np.unique(np.linspace(first, last, most).astype(int))
    return [int(k) for k in spaced if not np.isnan(values[k - 1]) and not np.isnan(values[k : k + steps]).all()]


def _losses(model: str, period: int | None, values: Floats, origin: int, steps: int) -> tuple[float, float] | None:
    """Return the mean absolute error and the upper quantile's loss from one origin; None if the model refuses."""
    try:
        predicted = _predict_rates(model, period, values[:origin], steps, (0.5, UPPER))
    except InvalidValue:
        return None
    predicted = np.minimum(predicted, highest_plausible(values[:origin]))
    actual = values[origin : origin + steps]
    return float(np.nanmean(np.abs(actual - predicted[:, 0]))), pinball(actual, predicted[:, 1], UPPER)


def pinball(actual: Floats, predicted: Floats, quantile: float) -> float:
    """Return the mean pinball loss of a predicted quantile; gaps do not count."""
    error = actual - predicted
    return float(np.nanmean(np.maximum(quantile * error, (quantile - 1) * error)))


def _score_candidate(losses: Floats) -> tuple[float, float]:
    """Return a candidate's error as a share of the last value's, and its score: below 1 it may be selected.

    `losses` is origins x (candidate, last value) x (error, loss of the upper quantile).
    """
    error, before = losses[:, 0, 0], losses[:, 1, 0]
    if before.mean() <= 0:
        return (1.0 if error.mean() <= 0 else math.inf), math.inf
    share = float(error.mean() / before.mean())
    # Scatter of the mean difference, widened where origins are few.
    scatter = SURE * float(np.std(error - before, ddof=1)) / math.sqrt(len(error)) * (1 + 2 / len(error))
    upper = float(losses[:, 0, 1].mean()) / max(float(losses[:, 1, 1].mean()), 1e-300)
    proven = share + scatter / float(before.mean()) < BETTER and upper <= 1.0
    return share, (share + upper) / 2 if proven else math.inf
