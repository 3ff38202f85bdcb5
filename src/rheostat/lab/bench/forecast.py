"""The error of the forecasters on recorded loads, against a forecast that repeats the last value.

The forecaster is selected as in the control loop: at every moment only earlier loads are known, a back-test runs from
time to time, and its choice stays until the next one. A trace's error is relative to that of the last value over the
same horizon from the same moments (MASE with the naive forecast of the same horizon): below 1 is better.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from rheostat.forecast.backtest import MOST_HISTORY, UPPER, pinball, predict, select_forecaster
from rheostat.forecast.registry import NAMES, OWN, STATISTICAL, make_forecaster
from rheostat.forecast.series import Floats, RegularSeries, clean
from rheostat.job.forecast import ForecastChoice
from rheostat.lab.bench.measure import Measure
from rheostat.lab.data import data_folder
from rheostat.lab.experiment.trial import Progress

QUANTILES = (0.1, 0.5, 0.9)
"""Quantiles of every forecast."""


@dataclass(frozen=True)
class Case:
    """One trace at one horizon, with the reference error of an offline study."""

    name: str
    file: str
    step_s: float
    ahead_s: float
    reference: float | None = None
    """Lowest relative error of ARIMA, ETS, trend and daily profile, fitted offline; None: none is reliably below 1."""

    @property
    def steps(self) -> int:
        """Steps of the horizon."""
        return round(self.ahead_s / self.step_s)


CASES = (
    Case("vehicles_2min", "vehicles_18h.csv", 10.0, 120.0, 0.48),
    Case("vehicles_10min", "vehicles_18h.csv", 60.0, 600.0),
    Case("vehicles_6h_10min", "vehicles_6h.csv", 60.0, 600.0),
    Case("iot_5min", "iot_5min.csv", 300.0, 300.0, 0.35),
    Case("iot_60min", "iot_5min.csv", 300.0, 3600.0, 0.64),
    Case("taxi_5min", "taxi_5min.csv", 300.0, 300.0),
    Case("taxi_60min", "taxi_5min.csv", 300.0, 3600.0, 0.58),
    Case("wiki_en_5min", "wiki_en_5min.csv", 300.0, 300.0, 0.82),
    Case("wiki_en_60min", "wiki_en_5min.csv", 300.0, 3600.0),
    Case("alibaba_5min", "alibaba_5min.csv", 300.0, 300.0, 0.72),
    Case("alibaba_60min", "alibaba_5min.csv", 300.0, 3600.0),
    Case("avazu_60min", "avazu_5min.csv", 300.0, 3600.0),
    Case("retailrocket_60min", "retailrocket_5min.csv", 300.0, 3600.0),
)


@dataclass(frozen=True)
class Accuracy:
    """The errors of the forecasts of one trace."""

    error: float
    """Mean absolute error relative to the last value's."""
    mape: float
    """Mean absolute error relative to the load, over moments with load."""
    mape_last: float
    upper: float
    """Pinball loss of the upper quantile relative to the last value's."""
    below: float
    """Share of the loads below the upper quantile."""
    models: tuple[str, ...]
    """The selected models, in order."""
    choose_s: tuple[float, ...]
    """Processor time of every choice."""
    predict_ms: float


def read_trace(folder: Path, case: Case) -> RegularSeries:
    """Read a trace as a regular series; its times are seconds or dates."""
    with (folder / "traces" / case.file).open(newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    times = [_seconds(row[0]) for row in rows]
    first = min(times)
    return clean([time - first for time in times], [float(row[1]) for row in rows], case.step_s)


def _seconds(text: str) -> float:
    return float(text) if "-" not in text else datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def walk(
    trace: RegularSeries,
    steps: int,
    moments: int,
    choices: int,
    candidates: Sequence[str] = OWN,
    timer: Callable[[], float] = time.process_time,
) -> Accuracy:
    """Forecast from `moments` of the last two thirds of a trace, with `choices` back-tests on the way."""
    values = trace.values
    places = np.unique(np.linspace(values.size // 3, values.size - steps, moments).astype(int))
    every = max(1, -(-places.size // choices))
    choice, models, spent, predicting = ForecastChoice(0.0), [], [], []
    errors: list[tuple[float, float, float, float]] = []
    shares: list[tuple[float, float]] = []
    below: list[float] = []
    for k, place in enumerate(places):
        past = RegularSeries(values[max(0, place - MOST_HISTORY) : place], trace.step_s, float(place) * trace.step_s)
        if k % every == 0:
            began = timer()
            choice = select_forecaster(past, steps, candidates)
            spent.append(timer() - began)
            models.append(choice.model)
        actual = values[place : place + steps]
        if np.isnan(past.values[-1]) or np.isnan(actual).all():
            continue
        began = timer()
        path = np.array(predict(past, choice, steps, QUANTILES).rates_per_s)
        predicting.append(timer() - began)
        last = np.array(predict(past, ForecastChoice(0.0), steps, QUANTILES).rates_per_s)
        ours, theirs = (np.nanmean(np.abs(actual - each[:, 1])) for each in (path, last))
        errors.append((ours, theirs, pinball(actual, path[:, 2], UPPER), pinball(actual, last[:, 2], UPPER)))
        busy = actual > 0
        if busy.any():
            shares.append(tuple(float(np.mean(np.abs(actual - p[:, 1])[busy] / actual[busy])) for p in (path, last)))  # type: ignore[arg-type]
        below.append(float(np.mean(actual <= path[:, 2])))
    ours, theirs, upper, upper_last = np.array(errors).mean(axis=0)
    mape, mape_last = np.array(shares).mean(axis=0)
    return Accuracy(
        float(ours / theirs),
        float(mape),
        float(mape_last),
        float(upper / upper_last),
        float(np.mean(below)),
        tuple(models),
        tuple(spent),
        float(np.mean(predicting)) * 1e3,
    )


def fit_ms(name: str, values: Floats, repeats: int) -> float:
    """Return the processor time of a fit and a twelve-step forecast, the shortest of several, in milliseconds."""
    times = []
    for _ in range(repeats + 1):  # the first one includes imports
        began = time.process_time()
        forecaster = make_forecaster(name, 288 if name == "profile" else None)
        forecaster.fit(values.tolist())
        forecaster.predict(12, QUANTILES)
        times.append(time.process_time() - began)
    return min(times[1:]) * 1e3


def forecast(quick: bool, progress: Progress) -> list[Measure]:
    """Forecast all traces with the selected forecasters, and time every forecaster."""
    folder = data_folder()
    measures: list[Measure] = []
    longest, predicting = 0.0, 0.0
    for case in CASES:
        progress(case.name)
        accuracy = walk(read_trace(folder, case), case.steps, 60 if quick else 300, 3 if quick else 8)
        longest, predicting = max(longest, *accuracy.choose_s), max(predicting, accuracy.predict_ms)
        used = ", ".join(dict.fromkeys(accuracy.models))
        reference = "none below 1" if case.reference is None else f"{case.reference:g}"
        # Better than the last value if an offline fit is, and nowhere worse by more than 2 %.
        goal = "<= 1.02" if case.reference is None else "< 1"
        note = f"relative to the last value's error; {used}; best offline fit: {reference}"
        measures.append(Measure("forecast", f"mase_{case.name}", accuracy.error, "", goal, "lower", note))
        note = f"of the last value: {accuracy.mape_last:.4f}"
        measures.append(Measure("forecast", f"mape_{case.name}", accuracy.mape, "share", "", "lower", note))
        note = f"quantile {UPPER:g}, relative to the last value's loss; {accuracy.below:.2f} of the loads are below it"
        measures.append(Measure("forecast", f"pinball_{case.name}", accuracy.upper, "", "<= 1.02", "lower", note))
    values = read_trace(folder, CASES[4]).values[:MOST_HISTORY]
    for name in NAMES:
        if name in STATISTICAL and find_spec("statsforecast") is None:
            continue
        progress(f"fits of {name}")
        label = name.replace(" ", "_").replace("-", "_")
        note = "fit on at most 400 steps, forecast of 12 steps" if name in STATISTICAL else "fit and forecast"
        spent = fit_ms(name, values, 2 if quick else 5)
        measures.append(Measure("forecast", f"fit_ms_{label}", spent, "ms", "", "lower", note))
    note = "processor time of the longest back-test, which runs outside the control step"
    measures.append(Measure("forecast", "choose_s", longest, "s", "<= 2", "lower", note))
    note = "processor time of a forecast in the control step, mean of the slowest trace"
    measures.append(Measure("forecast", "predict_ms", predicting, "ms", "<= 100", "lower", note))
    return measures
