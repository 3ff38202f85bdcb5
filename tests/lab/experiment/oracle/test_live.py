"""The convex hull that prices a mix of sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rheostat.lab.experiment.oracle.live import hull

sizes = st.lists(st.tuples(st.floats(1, 1000), st.integers(1, 50)), min_size=1, max_size=8)


@given(sizes, st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_no_mix_of_sizes_is_below_the_hull(points: list[tuple[float, int]], weights: list[float]) -> None:
    capacity = np.array([c for c, _ in points])
    slots = np.array([float(s) for _, s in points])
    share = np.array(weights[: len(points)]) + 1e-3
    share /= share.sum()
    corners, prices = hull(capacity, slots)
    mixed = float(share @ capacity)
    assert np.interp(mixed, corners, prices) <= float(share @ slots) + 1e-9
    assert np.all(np.diff(corners) > 0)


@given(sizes)
def test_the_hull_is_convex_and_touches_its_sizes(points: list[tuple[float, int]]) -> None:
    capacity = np.array([c for c, _ in points])
    slots = np.array([float(s) for _, s in points])
    corners, prices = hull(capacity, slots)
    slopes = np.diff(prices) / np.diff(corners)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert prices[0] == slots.min()
    assert corners[-1] == capacity.max()
