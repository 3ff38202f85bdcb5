"""The last value: its median, its quantiles, and histories with gaps."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import DEFAULT_SPREAD, LastValue
from rheostat.ports import Forecaster
from rheostat.testing.forecaster import ForecasterConformance

QUANTILES = (0.1, 0.5, 0.9)


class TestConformance(ForecasterConformance):
    def make_forecaster(self) -> Forecaster:
        return LastValue()


def fit(values: list[float]) -> LastValue:
    forecaster = LastValue()
    forecaster.fit(values)
    return forecaster


def walk(length: int) -> list[float]:
    return list(1000 + np.cumsum(np.random.default_rng(3).normal(0, 1, length)))


@pytest.mark.parametrize(
    ("values", "last"),
    [
        pytest.param([3.0, 5.0], 5.0, id="the newest"),
        pytest.param([3.0, 5.0, math.nan, math.nan], 5.0, id="before a gap"),
        pytest.param([9.0], 9.0, id="the only one"),
        pytest.param([4.0] * 30 + [0.0], 0.0, id="zero"),
    ],
)
def test_the_median_is_the_last_known_value(values: list[float], last: float) -> None:
    assert (fit(values).predict(4, [0.5]) == last).all()


def test_one_step_quantiles_are_those_of_the_changes_around_their_median() -> None:
    values = walk(200)
    changes = np.diff(values)
    expected = values[-1] + np.quantile(changes, QUANTILES) - np.median(changes)
    assert fit(values).predict(1, QUANTILES)[0] == pytest.approx(expected)


def test_a_random_walk_spreads_like_the_root_of_the_horizon() -> None:
    spread = np.ptp(fit(walk(5000)).predict(25, QUANTILES), axis=1)
    assert spread[24] / spread[0] == pytest.approx(5, rel=0.25)


def test_beyond_the_history_the_spread_grows_like_the_root_of_the_horizon() -> None:
    # Nine values show eight changes over one step and fewer over more.
    forecaster = fit([10.0, 12.0, 11.0, 14.0, 10.0, 12.0, 15.0, 11.0, 100.0])
    one, four = np.ptp(forecaster.predict(4, (0.4, 0.6)), axis=1)[[0, 3]]
    assert four == pytest.approx(2 * one)


@pytest.mark.parametrize("length", [1, 2, 8])
def test_a_short_history_gets_the_default_spread(length: int) -> None:
    predicted = fit([50.0] * length).predict(4, QUANTILES)
    z = NormalDist().inv_cdf(0.9)
    assert predicted[0, 2] == pytest.approx(50 * (1 + DEFAULT_SPREAD * z))
    assert predicted[3, 2] == pytest.approx(50 * (1 + DEFAULT_SPREAD * z * 2))


def test_gaps_do_not_shorten_the_steps() -> None:
    # Every second value is missing: changes over two steps are known, changes over one are not.
    values = [x for value in walk(40) for x in (value, math.nan)]
    predicted = fit(values).predict(2, QUANTILES)
    two_steps = np.diff(values[::2])
    assert predicted[1, 2] >= values[-2] + np.quantile(two_steps, 0.9) - np.median(two_steps) - 1e-9


def test_a_refused_history_leaves_the_previous_fit() -> None:
    forecaster = fit([5.0, 6.0])
    with pytest.raises(InvalidValue, match="-1"):
        forecaster.fit([5.0, -1.0])
    assert (forecaster.predict(1, [0.5]) == 6.0).all()


def test_without_any_history_there_is_nothing_to_forecast_from() -> None:
    with pytest.raises(InvalidValue, match="nothing to forecast from"):
        LastValue().predict(1, QUANTILES)


rates = st.lists(st.floats(0, 1e12) | st.just(math.nan), min_size=1, max_size=60).filter(
    lambda values: any(not math.isnan(value) for value in values)
)


@given(rates, st.integers(1, 80))
def test_any_history_gives_ordered_quantiles_that_never_narrow(values: list[float], steps: int) -> None:
    predicted = fit(values).predict(steps, QUANTILES)
    assert np.isfinite(predicted).all()
    assert (predicted >= 0).all()
    assert (np.diff(predicted, axis=1) >= 0).all()
    assert (np.diff(predicted[:, 2]) >= 0).all()
    assert (np.diff(predicted[:, 0]) <= 0).all()
