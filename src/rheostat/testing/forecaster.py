"""The rules for every forecaster."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.ports import Forecaster

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def daily(length: int, seed: int = 0) -> list[float]:
    """Return a noisy rate with a period of 48 steps."""
    rng = np.random.default_rng(seed)
    wave = 100 + 40 * np.sin(2 * np.pi * np.arange(length) / 48)
    return [float(value) for value in np.maximum(wave + rng.normal(0, 5, length), 0)]


class ForecasterConformance(ABC):
    """Subclass it and implement `make_forecaster`; pytest then collects its tests."""

    @abstractmethod
    def make_forecaster(self) -> Forecaster:
        """Return a new forecaster."""

    def series(self) -> dict[str, list[float]]:
        """Return the histories that a forecaster must handle, by name."""
        gaps = daily(200)
        gaps[50:60] = [math.nan] * 10
        gaps[-1] = math.nan
        return {
            "daily": daily(200),
            "gaps": gaps,
            "constant": [7.0] * 100,
            "all zero": [0.0] * 100,
            "falls to zero": [float(value) for value in range(99, -1, -1)],
            "one spike": [1.0] * 50 + [1e6] + [1.0] * 50,
            "huge": [value * 1e12 for value in daily(200)],
            "tiny": [value * 1e-9 for value in daily(200)],
        }

    def test_predictions_are_finite_ordered_and_not_negative(self) -> None:
        """Every history gives a usable prediction of steps x quantiles."""
        for name, values in self.series().items():
            for steps in (1, 12):
                forecaster = self.make_forecaster()
                forecaster.fit(values)
                predicted = forecaster.predict(steps, QUANTILES)
                assert predicted.shape == (steps, len(QUANTILES)), name
                assert np.isfinite(predicted).all(), name
                assert (predicted >= 0).all(), name
                assert (np.diff(predicted, axis=1) >= 0).all(), name

    def test_short_histories_are_predicted_or_refused(self) -> None:
        """A few values give a usable prediction, or an error with what is missing."""
        for length in range(1, 12):
            forecaster = self.make_forecaster()
            try:
                forecaster.fit(daily(length))
                predicted = forecaster.predict(5, QUANTILES)
            except InvalidValue:
                continue
            assert np.isfinite(predicted).all(), length
            assert (predicted >= 0).all(), length
            assert (np.diff(predicted, axis=1) >= 0).all(), length

    def test_a_horizon_beyond_the_history_is_predicted(self) -> None:
        """A forecast may have more steps than the history."""
        forecaster = self.make_forecaster()
        forecaster.fit(daily(100))
        predicted = forecaster.predict(300, QUANTILES)
        assert predicted.shape == (300, len(QUANTILES))
        assert np.isfinite(predicted).all()

    def test_an_empty_history_is_refused(self) -> None:
        """A history without values has no forecast."""
        for values in ([], [math.nan] * 20):
            self._refuses(lambda values=values: self._fit(values).predict(1, QUANTILES))  # type: ignore[misc]

    def test_negative_and_infinite_rates_are_refused(self) -> None:
        """The message shows the invalid rate."""
        for invalid in (-3.0, math.inf):
            message = self._refuses(lambda invalid=invalid: self._fit([*daily(50), invalid]))  # type: ignore[misc]
            assert f"{invalid:g}" in message

    def test_invalid_steps_and_quantiles_are_refused(self) -> None:
        """Zero steps and quantiles outside (0, 1) are errors."""
        forecaster = self._fit(daily(100))
        self._refuses(lambda: forecaster.predict(0, QUANTILES))
        for quantile in (0.0, 1.0, -0.1, 1.5, math.nan):
            self._refuses(lambda quantile=quantile: forecaster.predict(1, [quantile]))  # type: ignore[misc]

    def test_the_same_history_gives_the_same_forecast(self) -> None:
        """Repeated predictions, and predictions of two forecasters, are equal to the last bit."""
        first, second = self._fit(daily(150)), self._fit(daily(150))
        expected = first.predict(10, QUANTILES)
        assert (first.predict(10, QUANTILES) == expected).all()
        assert (second.predict(10, QUANTILES) == expected).all()

    def test_a_second_fit_replaces_the_first(self) -> None:
        """The first history has no effect after the second fit."""
        again = self._fit([value * 1000 for value in daily(150, seed=1)])
        again.fit(daily(150))
        assert (again.predict(10, QUANTILES) == self._fit(daily(150)).predict(10, QUANTILES)).all()

    def test_the_history_is_not_modified(self) -> None:
        """`fit` neither changes its argument nor depends on later changes of it."""
        values = daily(150)
        forecaster = self._fit(values)
        assert values == daily(150)
        expected = forecaster.predict(3, QUANTILES)
        values[-1] = 1e9
        assert (forecaster.predict(3, QUANTILES) == expected).all()

    def _fit(self, values: list[float]) -> Forecaster:
        forecaster = self.make_forecaster()
        forecaster.fit(values)
        return forecaster

    @staticmethod
    def _refuses(attempt: Callable[[], object]) -> str:
        try:
            attempt()
        except InvalidValue as error:
            return str(error)
        raise AssertionError("expected InvalidValue")
