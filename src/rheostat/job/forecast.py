"""What the journal knows about the load to come: which forecaster was chosen, and what it said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.errors import InvalidValue
from rheostat.job.frozen import FrozenMap, check_number, put

LAST_VALUE = "last value"


@dataclass(frozen=True, slots=True)
class Foresight:
    """Whether and how far the loop looks ahead. It does so only where an objective or a policy needs it."""

    horizon_s: float = 600.0
    """How far ahead, in seconds."""
    candidates: tuple[str, ...] = ("drift", "autoregression", "profile")
    """Forecasters that may replace the last value: those of our own, and `holt-winters`, `ces`, `arima`."""
    choose_every_s: float = 3600.0
    """Seconds between two back-tests on the job's own history."""

    def __post_init__(self) -> None:
        check_number("forecast.horizon_s", self.horizon_s, least=1.0)
        check_number("forecast.choose_every_s", self.choose_every_s, least=1.0)
        put(self, candidates=tuple(self.candidates))


@dataclass(frozen=True, slots=True)
class ForecastChoice:
    """A back-test of forecasters on the job's own history, made outside the control step, and what it came to."""

    at_s: float
    model: str = LAST_VALUE
    period: int | None = None
    """Steps of a season, where the model has one."""
    why: str = "nothing was compared yet"
    errors: Mapping[str, float] = field(default_factory=FrozenMap)
    """Model -> its mean absolute error as a share of the last value's, where it could be tried."""
    origins: int = 0
    """Moments of the past from which the future was forecast."""
    notes: tuple[str, ...] = ()
    """What was wrong with the history."""

    def __post_init__(self) -> None:
        put(self, errors=FrozenMap(self.errors))


@dataclass(frozen=True, slots=True)
class Forecast:
    """The load of the next steps, as quantiles."""

    at_s: float
    step_s: float
    quantiles: tuple[float, ...]
    """Rising."""
    rates_per_s: tuple[tuple[float, ...], ...]
    """For every step one rate per quantile."""
    model: str = LAST_VALUE
    notes: tuple[str, ...] = ()
    """What is doubtful about it: an explosion that was bounded, a model that refused, gaps."""

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
