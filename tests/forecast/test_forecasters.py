"""Every forecaster conforms to the port, and each predicts the pattern that it is made for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rheostat.errors import InvalidValue
from rheostat.forecast.autoregression import AutoRegression
from rheostat.forecast.drift import Drift
from rheostat.forecast.profile import Profile, find_period
from rheostat.forecast.registry import NAMES, make_forecaster
from rheostat.forecast.statistical import auto_arima, auto_ces, holt_winters
from rheostat.ports import Forecaster
from rheostat.testing.forecaster import ForecasterConformance, daily


class TestDrift(ForecasterConformance):
    def make_forecaster(self) -> Forecaster:
        return Drift()


class TestAutoRegression(ForecasterConformance):
    def make_forecaster(self) -> Forecaster:
        return AutoRegression()


class TestProfile(ForecasterConformance):
    """A profile refuses a history without a season, so its period is given."""

    def make_forecaster(self) -> Forecaster:
        return Profile(48)


class TestHoltWinters(ForecasterConformance):
    def make_forecaster(self) -> Forecaster:
        pytest.importorskip("statsforecast", reason="needs rheostat[forecast]")
        return holt_winters()


class TestAutoCes(ForecasterConformance):
    def make_forecaster(self) -> Forecaster:
        pytest.importorskip("statsforecast", reason="needs rheostat[forecast]")
        return auto_ces()


class TestAutoArima(ForecasterConformance):
    def make_forecaster(self) -> Forecaster:
        pytest.importorskip("statsforecast", reason="needs rheostat[forecast]")
        return auto_arima()


def middle(forecaster: Forecaster, values: list[float], steps: int) -> list[float]:
    forecaster.fit(values)
    return [float(value) for value in forecaster.predict(steps, [0.5])[:, 0]]


def test_a_drift_goes_on_and_slows_down() -> None:
    forecast = middle(Drift(), [100.0 + 2 * k for k in range(30)], 20)
    steps = np.diff([158.0, *forecast])
    assert steps[0] == pytest.approx(1.8)
    assert (np.diff(steps) < 0).all()
    assert forecast[-1] < 158 + 20


def test_one_odd_step_does_not_turn_a_drift() -> None:
    values = [100.0] * 29
    values[25] = 1e6
    assert middle(Drift(), [*values, 100.0], 5) == [100.0] * 5


def test_an_autoregression_learns_correlated_changes() -> None:
    rng = np.random.default_rng(0)
    changes = [0.0]
    for _ in range(600):
        changes.append(0.9 * changes[-1] + float(rng.normal(0, 1)))
    series = (5000 + np.cumsum(changes)).tolist()
    errors, naive = [], []
    for origin in range(300, 590, 7):
        forecast = middle(AutoRegression(), series[:origin], 3)
        errors.append(abs(forecast[2] - series[origin + 2]))
        naive.append(abs(series[origin - 1] - series[origin + 2]))
    assert np.mean(errors) < 0.7 * np.mean(naive)


def test_quantiles_cover_their_share() -> None:
    rng = np.random.default_rng(1)
    series = np.maximum(1000 + np.cumsum(rng.normal(0, 10, 1200)), 0)
    below = []
    for origin in range(400, 1190, 5):
        forecaster = AutoRegression()
        forecaster.fit(series[:origin].tolist())
        below.append(series[origin + 4] <= forecaster.predict(5, [0.1, 0.5, 0.9])[4])
    assert np.mean(below, axis=0) == pytest.approx([0.1, 0.5, 0.9], abs=0.1)


def test_a_profile_predicts_the_time_of_the_day() -> None:
    forecast = middle(Profile(), daily(480), 24)
    actual = 100 + 40 * np.sin(2 * np.pi * np.arange(480, 504) / 48)
    assert np.abs(np.array(forecast) - actual).mean() < 5
    assert np.abs(daily(480)[-1] - actual).mean() > 15


@pytest.mark.parametrize("period", [24, 48, 120])
def test_the_period_is_found(period: int) -> None:
    rng = np.random.default_rng(2)
    wave = 100 + 30 * np.sin(2 * np.pi * np.arange(600) / period) + rng.normal(0, 6, 600)
    estimated = find_period(wave)
    assert estimated is not None
    assert abs(estimated - period) <= 2


def test_no_period_is_found_where_there_is_none() -> None:
    rng = np.random.default_rng(3)
    assert find_period(np.full(200, 5.0)) is None
    assert find_period(np.arange(200.0)) is None
    assert find_period(rng.normal(100, 5, 300)) is None
    with pytest.raises(InvalidValue, match="season that repeats"):
        Profile().fit(rng.normal(100, 5, 300).tolist())
    with pytest.raises(InvalidValue, match="two seasons of 48"):
        Profile(48).fit(daily(90))


@pytest.mark.parametrize("period", [0, 1, -3, True])
def test_a_season_must_have_steps(period: int) -> None:
    with pytest.raises(InvalidValue, match="at least 2 steps"):
        Profile(period)


def test_exploding_weights_are_bounded() -> None:
    """Doubling at every step would be at 1e30 after a hundred."""
    values = [2.0**k for k in range(20)]
    forecast = middle(AutoRegression(), values, 100)
    assert max(forecast) <= values[-1] + 100 * (values[-1] - values[-2])


def test_every_name_makes_its_forecaster_and_a_misspelt_one_is_named() -> None:
    assert len({type(make_forecaster(name)).__name__ for name in NAMES[:4]}) == 4
    with pytest.raises(InvalidValue, match="did you mean 'profile'"):
        make_forecaster("profil")
    assert math.isfinite(middle(make_forecaster("last value"), [1.0, 2.0], 1)[0])
