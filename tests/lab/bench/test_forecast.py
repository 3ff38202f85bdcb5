from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rheostat.errors import InvalidValue
from rheostat.forecast.series import clean
from rheostat.lab.bench.forecast import CASES, Case, fit_ms, read_trace, walk
from rheostat.lab.data import data_folder
from rheostat.testing.forecaster import daily


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return data_folder()
    except InvalidValue as error:
        pytest.skip(str(error))


def test_a_walk_never_sees_the_future() -> None:
    """Whatever comes after the last moment, the walk up to it is the same."""
    calm = np.array(daily(400))
    wild = calm.copy()
    wild[-1] = 1e9
    told = [walk(clean(60.0 * np.arange(400), values, 60.0), 6, 40, 2) for values in (calm, wild)]
    assert told[0].models == told[1].models
    assert told[0].error < 0.9
    assert told[1].error > told[0].error


def test_where_nothing_is_better_the_walk_is_the_last_value() -> None:
    rng = np.random.default_rng(7)
    walked = walk(clean(60.0 * np.arange(500), np.maximum(1e4 + np.cumsum(rng.normal(0, 10, 500)), 0), 60.0), 5, 60, 3)
    assert set(walked.models) == {"last value"}
    assert (walked.error, walked.upper) == (1.0, 1.0)


def test_all_traces_can_be_read(folder: Path) -> None:
    for case in CASES:
        trace = read_trace(folder, case)
        assert trace.values.size > 300, case
        assert np.isfinite(trace.values).mean() > 0.9, case
        assert case.steps >= 1


def test_a_recorded_load_is_forecast_better_than_by_its_last_value(folder: Path) -> None:
    case = next(case for case in CASES if case.name == "vehicles_10min")
    walked = walk(read_trace(folder, case), case.steps, 40, 2)
    assert walked.error < 0.9
    assert walked.upper < 0.9
    assert walked.mape < walked.mape_last
    assert 0.7 < walked.below <= 1.0


def test_a_forecaster_can_be_timed() -> None:
    assert fit_ms("autoregression", np.array(daily(400)), 1) > 0


def test_dates_and_seconds_are_both_times(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "dates.csv").write_text("date,messages\n1970-01-02 00:00:00,5\n1970-01-02 00:05:00,7\n")
    (tmp_path / "traces" / "seconds.csv").write_text("second,rate\n0,5\n300,7\n")
    for file in ("dates.csv", "seconds.csv"):
        assert read_trace(tmp_path, Case("x", file, 300.0, 300.0)).values.tolist() == [5, 7]
