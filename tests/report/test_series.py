from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.report.series import corners, insert_gaps, join_spans, shade_spans, thin


def test_a_short_series_is_left_alone() -> None:
    x, y = np.arange(10.0), np.arange(10.0)
    assert thin(x, y, 10) == (x, y)


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.just(float("nan")), st.floats(-1e9, 1e9)), min_size=1, max_size=800),
    st.integers(8, 100),
)
def test_thinning_keeps_extremes_ends_order_and_the_limit(values: list[float], most: int) -> None:
    x, y = np.arange(float(len(values))), np.array(values)
    thin_x, thin_y = thin(x, y, most)
    assert len(thin_x) == len(thin_y) <= max(most, 1)
    assert (np.diff(thin_x) > 0).all()
    assert {thin_x[0], thin_x[-1]} == {x[0], x[-1]}
    np.testing.assert_array_equal(thin_y, y[thin_x.astype(int)])
    assert np.isnan(thin_y).any() == np.isnan(y).any()
    if not np.isnan(y).all():
        assert np.nanmax(thin_y) == np.nanmax(y)
        assert np.nanmin(thin_y) == np.nanmin(y)


def test_thinning_keeps_every_spike_and_every_gap() -> None:
    y = np.zeros(100_000)
    spikes, gaps = [777, 50_001, 99_998], [3_000, 70_000]
    y[spikes], y[gaps] = 9.0, np.nan
    thin_x, thin_y = thin(np.arange(100_000.0), y)
    assert len(thin_x) <= 2000
    assert thin_x[thin_y == 9.0].tolist() == spikes
    assert thin_x[np.isnan(thin_y)].tolist() == gaps


def test_a_step_line_keeps_only_its_corners() -> None:
    y = np.array([2.0, 2, 2, 5, 5, 5, np.nan, np.nan, np.nan, 5, 5])
    x, kept = corners(np.arange(11.0), y)
    assert x.tolist() == [0, 2, 3, 5, 6, 8, 9, 10]
    np.testing.assert_array_equal(kept, y[x.astype(int)])


def test_a_break_becomes_a_gap() -> None:
    x, columns = insert_gaps(np.array([1.0, 2, 9]), {"a": np.array([1.0, 2, 3])}, np.array([5.0]))
    assert x.tolist() == [1, 2, 5, 9]
    np.testing.assert_array_equal(columns["a"], [1, 2, np.nan, 3])


def test_spans_that_touch_are_joined() -> None:
    assert join_spans(np.array([5.0, 0, 1]), np.array([6.0, 1, 3])) == [(0, 3), (5, 6)]


def test_few_periods_are_shaded_as_they_are() -> None:
    assert shade_spans(np.array([1.0, 4]), np.array([2.0, 5]), 0, 10) == [(1.0, [(1, 2), (4, 5)])]
    assert shade_spans(np.empty(0), np.empty(0), 0, 10) == []


def test_many_periods_are_shaded_by_how_much_they_cover() -> None:
    # A tenth of the first half is covered, all of the last quarter, nothing between them.
    starts = np.r_[np.arange(0.0, 500.0), 750.0]
    ends = np.r_[np.arange(0.0, 500.0) + 0.1, 1000.0]
    assert shade_spans(starts, ends, 0, 1000, most=100) == [(1.0, [(750, 1000)]), (0.25, [(0, 500)])]
