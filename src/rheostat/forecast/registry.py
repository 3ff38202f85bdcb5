"""Forecasters by name."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from rheostat.errors import InvalidValue, RheostatError, nearest
from rheostat.forecast.autoregression import AutoRegression
from rheostat.forecast.drift import Drift
from rheostat.forecast.last_value import LastValue
from rheostat.forecast.profile import Profile
from rheostat.forecast.statistical import auto_arima, auto_ces, holt_winters
from rheostat.forecast.trend import Trend
from rheostat.job.forecast import LAST_VALUE
from rheostat.ports import Forecaster

OWN = ("drift", "autoregression", "profile")
"""Default candidates: each takes about a millisecond."""
STATISTICAL = ("holt-winters", "ces", "arima")
"""From statsforecast; tried only if they are named."""
NAMES = (LAST_VALUE, *OWN, "trend", *STATISTICAL)


def check_candidates(names: Iterable[str]) -> None:
    """Refuse unknown forecasters, and those whose package is not installed, before anything runs."""
    for name in names:
        if name not in NAMES:
            raise InvalidValue(f"unknown forecaster {name!r}, {nearest(name, NAMES)}")
        if name in STATISTICAL and find_spec("statsforecast") is None:
            raise RheostatError(f"forecaster {name!r} needs statsforecast: pip install 'rheostat[forecast]'")


def make_forecaster(name: str, period: int | None = None) -> Forecaster:
    """Return a new forecaster; `period` applies to the profile."""
    if name == LAST_VALUE:
        return LastValue()
    if name == "trend":
        return Trend()
    if name == "drift":
        return Drift()
    if name == "autoregression":
        return AutoRegression()
    if name == "profile":
        return Profile(period)
    if name == "holt-winters":
        return holt_winters()
    if name == "ces":
        return auto_ces()
    if name == "arima":
        return auto_arima()
    raise InvalidValue(f"unknown forecaster {name!r}, {nearest(name, NAMES)}")
