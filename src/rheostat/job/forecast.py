"""The load to come, as records: the selected forecaster and its forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.errors import InvalidValue
from rheostat.job.frozen import FrozenMap, check_number, put

LAST_VALUE = "last value"


@dataclass(frozen=True, slots=True)
class Foresight:
    """Whether and how far the loop forecasts the load. It does so only if an objective or a policy needs it."""

    horizon_s: float = 600.0
    """Seconds ahead that the forecast covers."""
    candidates: tuple[str, ...] = ("drift", "autoregression", "profile")
    """Forecasters that may replace the last value: the built-in ones, and `holt-winters`, `ces`, `arima`."""
    choose_every_s: float = 3600.0
    """Seconds between two back-tests on the job's own history."""

    def __post_init__(self) -> None:
        check_number("forecast.horizon_s", self.horizon_s, least=1.0)
        check_number("forecast.choose_every_s", self.choose_every_s, least=1.0)
        put(self, candidates=tuple(self.candidates))


@dataclass(frozen=True, slots=True)
class ForecastChoice:
    """The result of a back-test of forecasters on the job's own history, made outside the control step."""

    at_s: float
    model: str = LAST_VALUE
    period: int | None = None
    """Steps per season, for a seasonal model."""
    why: str = "no forecasters were compared yet"
    errors: Mapping[str, float] = field(default_factory=FrozenMap)
    """Model -> its mean absolute error over the last value's, for the models that could be fitted."""
    origins: int = 0
    """Past moments from which the back-test forecasts."""
    notes: tuple[str, ...] = ()
    """Defects of the history."""

    def __post_init__(self) -> None:
        put(self, errors=FrozenMap(self.errors))


@dataclass(frozen=True, slots=True)
class Forecast:
    """The load of the next steps, as quantiles."""

    at_s: float
    step_s: float
    quantiles: tuple[float, ...]
    """In rising order."""
    rates_per_s: tuple[tuple[float, ...], ...]
    """One row per step, with one rate per quantile."""
    model: str = LAST_VALUE
    notes: tuple[str, ...] = ()
    """Doubts about the forecast: a bounded explosion, a model that refused, gaps."""

    def __post_init__(self) -> None:
        check_number("step_s of a forecast", self.step_s, least=1e-9)
        if not self.quantiles or list(self.quantiles) != sorted(self.quantiles):
            raise InvalidValue(f"quantiles of a forecast must rise, not {self.quantiles}")
        for row in self.rates_per_s:
            if len(row) != len(self.quantiles):
                raise InvalidValue(f"a step of a forecast needs {len(self.quantiles)} rates, not {len(row)}")
            for rate in row:
                check_number("a rate of a forecast", rate)

    def path(self, quantile: float) -> tuple[float, ...]:
        """Return one rate per step: of this quantile, else of the next higher one, else of the highest."""
        place = next((k for k, q in enumerate(self.quantiles) if q >= quantile - 1e-9), len(self.quantiles) - 1)
        return tuple(row[place] for row in self.rates_per_s)
