"""The back-test: which forecaster it selects, and what bounds a forecast."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.forecast.backtest import highest_plausible, pinball, predict, select_forecaster
from rheostat.forecast.series import RegularSeries, clean
from rheostat.job.forecast import LAST_VALUE, Forecast, ForecastChoice
from rheostat.job.frozen import from_json, to_json
from rheostat.testing.forecaster import daily


def regular(values: list[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> RegularSeries:
    return clean(60.0 * np.arange(len(values)), values, 60.0)


def test_a_seasonal_load_gets_a_profile() -> None:
    choice = select_forecaster(regular(daily(480)), 12)
    assert choice.model == "profile"
    assert choice.period is not None
    assert abs(choice.period - 48) <= 1
    assert choice.errors["profile"] < 0.8
    assert "of the last value's error over 12 steps" in choice.why


def test_a_random_walk_keeps_the_last_value() -> None:
    rng = np.random.default_rng(0)
    for seed in range(3):
        walk = np.maximum(5000 + np.cumsum(rng.normal(0, 10, 500)), 0)
        choice = select_forecaster(regular(walk), 5)
        assert choice.model == LAST_VALUE, (seed, choice)
        assert "no candidate clearly beats it" in choice.why
        assert choice.origins >= 20


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1.0, 2.0, 3.0], "3 steps with a rate are too few"),
        ([], "0 steps with a rate are too few"),
        ([0.0] * 200, "the load never changed"),
        ([5.0] * 200, "the load never changed"),
    ],
)
def test_without_a_comparison_the_last_value_is_selected(values: list[float], why: str) -> None:
    choice = select_forecaster(regular(values), 5)
    assert choice.model == LAST_VALUE
    assert why in choice.why


def test_the_last_value_is_selected_where_most_steps_are_gaps() -> None:
    times = np.sort(np.random.default_rng(1).choice(2000, 300, replace=False)) * 60.0
    choice = select_forecaster(clean(times, 100 + np.arange(300.0), 60.0), 5)
    assert choice.model == LAST_VALUE
    assert "are gaps" in choice.why
    assert any("gaps" in note for note in choice.notes)


def test_a_backtest_that_takes_too_long_names_the_skipped_models() -> None:
    ticks = iter(range(10_000))
    choice = select_forecaster(regular(daily(480)), 12, budget_s=100.0, timer=lambda: float(next(ticks)))
    assert "; no time for autoregression, profile" in choice.why


def test_a_forecast_names_its_model_and_rises_with_its_quantiles() -> None:
    history = regular(daily(480))
    forecast = predict(history, select_forecaster(history, 12), 12, (0.1, 0.5, 0.9))
    assert forecast.model == "profile"
    assert len(forecast.rates_per_s) == 12
    assert all(a <= b for low, mid, high in forecast.rates_per_s for a, b in ((low, mid), (mid, high)))
    assert forecast.path(0.5) == tuple(row[1] for row in forecast.rates_per_s)
    assert forecast.path(0.6) == forecast.path(0.99) == tuple(row[2] for row in forecast.rates_per_s)
    assert from_json(Forecast, to_json(forecast)) == forecast


def test_a_model_that_refuses_is_replaced_and_that_is_noted() -> None:
    forecast = predict(regular([5.0, 6.0, 7.0]), ForecastChoice(0.0, "profile", 48), 3, (0.5,))
    assert forecast.model == LAST_VALUE
    assert forecast.path(0.5) == (7.0, 7.0, 7.0)
    assert "profile refused" in forecast.notes[-1]
    with pytest.raises(InvalidValue, match="has no rate"):
        predict(regular([math.nan] * 3), ForecastChoice(0.0), 3, (0.5,))


def test_an_explosion_is_bounded_by_history_and_flagged() -> None:
    values = [2.0**k for k in range(20)]
    forecast = predict(regular(values), ForecastChoice(0.0, "autoregression"), 100, (0.5, 0.9))
    assert max(forecast.path(0.9)) <= highest_plausible(np.array(values)) <= 2.5 * values[-1]
    assert "exploded" in forecast.notes[-1]
    calm = predict(regular(daily(200)), ForecastChoice(0.0, "autoregression"), 10, (0.5, 0.9))
    assert calm.notes == ()


def test_pinball_charges_the_upper_quantile_more_for_being_too_low() -> None:
    actual = np.array([10.0, 10.0, math.nan])
    assert pinball(actual, np.array([8.0, 8.0, 8.0]), 0.9) == pytest.approx(1.8)
    assert pinball(actual, np.array([12.0, 12.0, 8.0]), 0.9) == pytest.approx(0.2)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0, 1e9) | st.just(0.0), min_size=1, max_size=120), st.integers(1, 12))
def test_never_nan_never_negative_never_above_the_highest_plausible_rate(values: list[float], steps: int) -> None:
    history = regular(values)
    choice = select_forecaster(history, steps)
    assert all(not math.isnan(error) for error in choice.errors.values())
    forecast = predict(history, choice, steps, (0.5, 0.95))
    rates = history.values[~np.isnan(history.values)]
    assert all(0 <= rate <= highest_plausible(rates) for row in forecast.rates_per_s for rate in row)


@pytest.mark.parametrize(
    "wrong",
    [{"quantiles": (0.9, 0.5)}, {"quantiles": ()}, {"step_s": 0.0}, {"rates_per_s": ((1.0,),)},
     {"rates_per_s": ((math.nan, 1.0),)}, {"rates_per_s": ((-1.0, 1.0),)}],
)  # fmt: skip
def test_an_impossible_forecast_is_refused(wrong: dict[str, object]) -> None:
    values: dict[str, object] = {"step_s": 60.0, "quantiles": (0.5, 0.9), "rates_per_s": ((1.0, 2.0),)}
    with pytest.raises(InvalidValue):
        Forecast(0.0, **{**values, **wrong})  # type: ignore[arg-type]
