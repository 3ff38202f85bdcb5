"""Regular series: gaps, duplicates, impossible values and clocks that jump."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.forecast.series import MOST_STEPS, clean, fill_gaps

nan = math.nan


def test_a_regular_series_stays_as_it_is() -> None:
    cleaned = clean([0, 60, 120], [1.0, 2.0, 3.0])
    assert (cleaned.values.tolist(), cleaned.step_s, cleaned.end_s, cleaned.notes) == ([1, 2, 3], 60.0, 120.0, ())


def test_gaps_are_marked_and_counted() -> None:
    cleaned = clean([0, 60, 240, 300], [1.0, 2.0, 3.0, nan], step_s=60)
    assert cleaned.values.tolist()[:2] == [1, 2]
    assert np.isnan(cleaned.values[[2, 3, 5]]).all()
    assert cleaned.notes == ("3 of 6 steps are gaps",)


def test_duplicates_are_averaged_and_time_that_went_backwards_is_sorted() -> None:
    cleaned = clean([60, 0, 120, 120], [2.0, 1.0, 3.0, 5.0], step_s=60)
    assert cleaned.values.tolist() == [1, 2, 4]
    assert cleaned.notes == ("time went backwards 1 times: sorted", "1 duplicate time: averaged")


def test_negative_times_and_impossible_rates_are_reported() -> None:
    cleaned = clean([-60, 0, 60, 120, 180, math.inf], [9.0, 1.0, -2.0, math.inf, 4.0, 7.0], step_s=60)
    assert cleaned.values[[0, 3]].tolist() == [1, 4]
    assert cleaned.notes == (
        "2 values at a negative or non-finite time dropped",
        "2 negative or infinite rates treated as a gap",
        "2 of 4 steps are gaps",
    )


def test_a_zero_between_busy_steps_is_a_failed_measurement_and_a_long_silence_is_not() -> None:
    cleaned = clean(range(9), [100.0, 0.0, 100.0, 100.0, 0.0, 0.0, 0.0, 100.0, 100.0])
    assert math.isnan(cleaned.values[1])
    assert cleaned.values[4:7].tolist() == [0, 0, 0]
    assert cleaned.notes == ("1 zeros between busy steps treated as gaps", "3 of 9 steps have no load")


def test_a_constant_zero_load_is_a_load() -> None:
    cleaned = clean(range(5), [0.0] * 5)
    assert cleaned.values.tolist() == [0.0] * 5
    assert cleaned.notes == ("5 of 5 steps have no load",)


def test_a_clock_that_jumps_by_years_does_not_fill_the_memory() -> None:
    cleaned = clean([0, 60, 120, 3e9], [1.0, 2.0, 3.0, 4.0], step_s=60)
    assert cleaned.values.size <= MOST_STEPS
    assert cleaned.values[-1] == 4.0
    assert any("dropped" in note for note in cleaned.notes)


def test_a_series_without_values_is_noted() -> None:
    assert clean([], []).notes == ("no values are left",)
    assert clean([-1], [1.0]).values.size == 0
    with pytest.raises(InvalidValue, match="one time per rate"):
        clean([1, 2], [1.0])


def test_gaps_are_interpolated() -> None:
    assert fill_gaps(np.array([nan, 1.0, nan, 3.0, nan])).tolist() == [1, 2, 3, 3]
    with pytest.raises(InvalidValue, match="has no rate"):
        fill_gaps(np.array([nan]))


@given(
    st.lists(
        st.tuples(st.floats(allow_nan=True, allow_infinity=True), st.floats(allow_nan=True, allow_infinity=True)),
        max_size=30,
    )
)
def test_any_input_gives_a_series_that_can_be_forecast(pairs: list[tuple[float, float]]) -> None:
    cleaned = clean([time for time, _ in pairs], [rate for _, rate in pairs], step_s=60)
    rates = cleaned.values[~np.isnan(cleaned.values)]
    assert (rates >= 0).all()
    assert np.isfinite(rates).all()
    assert cleaned.values.size <= MOST_STEPS
