"""The local trend: its weights, its damping and its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.forecast.last_value import LastValue
from rheostat.forecast.trend import Trend, line_weights
from rheostat.ports import Forecaster
from rheostat.testing.forecaster import ForecasterConformance


class TestConformance(ForecasterConformance):
    def make_forecaster(self) -> Forecaster:
        return Trend()


def test_weights_are_those_of_a_least_squares_line() -> None:
    values = np.random.default_rng(0).random(9)
    slope, level = np.polyfit(np.arange(-8, 1), values, 1)
    at_end, per_step = line_weights(9)
    assert values @ at_end == pytest.approx(level)
    assert values @ per_step == pytest.approx(slope)


def test_a_line_goes_on_and_flattens() -> None:
    forecaster = Trend(damping=0.9)
    forecaster.fit([float(v) for v in range(100, 160)])
    path = forecaster.predict(20, (0.5,))[:, 0]
    steps = np.diff(path)
    assert path[0] == pytest.approx(159 + 0.9)
    assert (np.diff(steps) < 0).all()


def test_on_a_wave_it_beats_the_last_value() -> None:
    wave = 100 + 80 * np.sin(2 * np.pi * np.arange(600) / 240) + np.random.default_rng(1).normal(0, 1, 600)
    wave = np.maximum(wave, 0.0)
    errors = {}
    for name, forecaster in (("trend", Trend()), ("last", LastValue())):
        off = []
        for now in range(300, 560, 7):
            forecaster.fit([float(v) for v in wave[:now]])
            off.append(abs(forecaster.predict(12, (0.5,))[11, 0] - wave[now + 11]))
        errors[name] = np.mean(off)
    assert errors["trend"] < 0.7 * errors["last"]


def test_it_never_explodes() -> None:
    forecaster = Trend(damping=1.0)
    forecaster.fit([1.0, 1.0, 1.0, 1.0, 10.0, 100.0, 1000.0])
    assert forecaster.predict(500, (0.5, 0.99)).max() <= 2000.0


def test_three_points_are_the_last_value() -> None:
    forecaster, last = Trend(), LastValue()
    for each in (forecaster, last):
        each.fit([5.0, 6.0, 7.0])
    assert (forecaster.predict(4, (0.1, 0.5, 0.9)) == last.predict(4, (0.1, 0.5, 0.9))).all()


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=80), st.integers(1, 30))
def test_answers_are_always_numbers(values: list[float], steps: int) -> None:
    forecaster = Trend()
    forecaster.fit(values)
    predicted = forecaster.predict(steps, (0.05, 0.5, 0.95))
    assert np.isfinite(predicted).all()
    assert (predicted >= 0).all()


@pytest.mark.parametrize(("length", "damping"), [(2, 0.9), (8, 0.0), (8, 1.5)])
def test_impossible_settings_are_refused(length: int, damping: float) -> None:
    with pytest.raises(InvalidValue):
        Trend(length, damping)
