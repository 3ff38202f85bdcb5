from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.report.chart.figure import Axis
from rheostat.report.chart.scale import Scale, date_ticks, fit_scale, linear_ticks, log_ticks, spread


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e9), st.integers(2, 12))
def test_linear_ticks_are_few_even_and_inside(spans: float, span: float, most: int) -> None:
    low = spans * span
    ticks = linear_ticks(low, low + span, most)
    assert 1 <= len(ticks) <= most + 1
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)
    if len(ticks) > 2:
        steps = np.diff(ticks)
        np.testing.assert_allclose(steps, steps[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "most", "labels"),
    [
        (0.0, 1.1e6, 6, ["0", "200k", "400k", "600k", "800k", "1M"]),
        (0.0, 16.0, 8, ["0", "2", "4", "6", "8", "10", "12", "14", "16"]),
        (0.0, 0.9, 4, ["0", "0.5"]),
        (1_000_100.0, 1_000_400.0, 3, ["1.0001M", "1.0002M", "1.0003M", "1.0004M"]),
        (-5.0, 12.0, 4, ["-5", "0", "5", "10"]),
    ],
)
def test_linear_labels_are_short_and_tell_ticks_apart(low: float, high: float, most: int, labels: list[str]) -> None:
    assert [tick.label for tick in Scale(Axis(), low, high, 0, 100).ticks(most)] == labels


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0.04, 1200.0, 8, [0.1, 1, 10, 100, 1000]),
        (2.0, 40.0, 8, [2, 5, 10, 20]),
        (1e-9, 1e9, 5, [1e-9, 1e-5, 1e-1, 1e3, 1e7]),
        (1.1, 1.4, 4, [1.1, 1.2, 1.3, 1.4]),
    ],
)
def test_log_ticks_are_powers_of_ten_and_more_where_there_is_room(
    low: float, high: float, most: int, expected: list[float]
) -> None:
    assert log_ticks(low, high, most) == pytest.approx(expected)


def test_a_percent_axis_has_percent_labels() -> None:
    assert [t.label for t in Scale(Axis(format="percent"), 0, 1, 0, 100).ticks(5)] == [
        *("0%", "20%", "40%", "60%", "80%", "100%")
    ]


START = 1_780_000_000.0  # 2026-05-28 20:26:40


@pytest.mark.parametrize(
    ("span_s", "labels"),
    [
        (60.0, [("20:26:40", "2026-05-28"), ("20:26:50", ""), ("20:27:00", "")]),
        (3600.0, [("20:30", "2026-05-28"), ("20:40", ""), ("20:50", "")]),
        (86400.0, [("21:00", "2026-05-28"), ("00:00", "2026-05-29"), ("03:00", "")]),
        (30 * 86400.0, [("05-31", "2026"), ("06-04", ""), ("06-08", "")]),
    ],
)
def test_dates_are_round_and_name_the_day_once(span_s: float, labels: list[tuple[str, str]]) -> None:
    ticks = date_ticks(START, START + span_s, 8)
    assert [(tick.label, tick.under) for tick in ticks[:3]] == labels
    assert len(ticks) <= 9


def test_a_scale_places_values_between_its_ends() -> None:
    linear = Scale(Axis(), 0.0, 10.0, 100.0, 0.0)
    assert linear.place(np.array([0.0, 5.0, 10.0])).tolist() == [100, 50, 0]
    log = Scale(Axis(scale="log"), 1.0, 100.0, 0.0, 200.0)
    assert log.place(np.array([1.0, 10.0, 100.0])).tolist() == pytest.approx([0, 100, 200])
    assert np.isnan(log.place(np.array([0.0, -1.0, math.nan]))).all()


def test_a_scale_holds_every_value_and_zero_where_it_is_asked_for() -> None:
    values = np.array([3.0, math.nan, 8.0, math.inf])
    scale = fit_scale(Axis(from_zero=True), values, 0, 1)
    assert scale.low == 0
    assert 8 < scale.high < 9
    free = fit_scale(Axis(), values, 0, 1)
    assert 2 < free.low < 3
    log = fit_scale(Axis(scale="log"), np.array([0.0, 0.5, 50.0]), 0, 1)
    assert 0.3 < log.low < 0.5


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("values", [[], [5.0], [5.0, 5.0], [math.nan]])
def test_few_or_equal_values_have_an_axis_all_the_same(scale: str, values: list[float]) -> None:
    axis = Axis(scale="log" if scale == "log" else "linear")
    fitted = fit_scale(axis, np.array(values), 0, 100)
    assert fitted.high > fitted.low
    assert fitted.ticks(5)


def test_spread_is_the_ratio_of_the_ends() -> None:
    assert spread(np.array([2.0, np.nan, 8.0])) == 4
    assert spread(np.array([0.0, 8.0])) == 0
    assert spread(np.empty(0)) == 0
