"""Intervals: what is called a 95 % interval holds the truth that often, and says nothing where runs are too few."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from rheostat.lab.papers import interval

RUNS = 2000
"""Simulated experiments: a coverage of 95 % is then exact to about 1 %."""


@pytest.mark.parametrize("freedom", [*range(1, 31), 100, 191])
def test_students_t_is_scipys(freedom: int) -> None:
    assert interval.student_t(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-6)
    assert interval.student_t(freedom, 0.995) == pytest.approx(stats.t.ppf(0.9975, freedom), abs=1e-6)


@pytest.mark.parametrize("count", [1, 6, 20, 32])
def test_a_shares_interval_is_clopper_and_pearsons(count: int) -> None:
    for hits in range(count + 1):
        ours = interval.share([True] * hits + [False] * (count - hits))
        exact = stats.binomtest(hits, count).proportion_ci(0.95, "exact")
        assert (ours.low, ours.high) == pytest.approx((exact.low, exact.high), abs=1e-9)


@pytest.mark.parametrize("seeds", [3, 6, 20])
def test_the_interval_of_a_mean_holds_it_in_95_percent(seeds: int) -> None:
    rng = np.random.default_rng(seeds)
    held = 0
    for _ in range(RUNS):
        found = interval.mean(list(rng.normal(3.0, 2.0, seeds)))
        held += found.low <= 3.0 <= found.high
    assert 0.93 <= held / RUNS <= 0.97


@pytest.mark.parametrize("seeds", [6, 20])
def test_the_interval_of_a_paired_ratio_holds_it_in_95_percent(seeds: int) -> None:
    """Left and right share most of their noise, as two methods with the same seeds do."""
    rng = np.random.default_rng(seeds)
    held = 0
    for _ in range(RUNS):
        common = rng.normal(0.0, 1.0, seeds)
        left, right = 5.0 + common + rng.normal(0, 0.5, seeds), 10.0 + 2 * common + rng.normal(0, 0.5, seeds)
        found = interval.paired_ratio(list(left), list(right))
        held += found.low <= 0.5 <= found.high
    assert 0.93 <= held / RUNS <= 0.97


def test_pairs_narrow_the_interval() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(0.0, 3.0, 20)
    left, right = list(10 + common), list(9 + common + rng.normal(0, 0.1, 20))
    paired = interval.paired_difference(left, right)
    assert paired.high - paired.low < 0.2
    apart = [interval.mean(values) for values in (left, right)]
    assert all(one.high - one.low > 2 for one in apart)


@pytest.mark.parametrize("seeds", [6, 20])
def test_the_interval_of_a_median_holds_it_for_a_skewed_distribution(seeds: int) -> None:
    rng = np.random.default_rng(seeds)
    held = 0
    for _ in range(RUNS):
        found = interval.median(list(rng.exponential(1.0, seeds)))
        held += found.low <= math.log(2) <= found.high
    assert held / RUNS >= 0.94


def test_the_range_of_five_seeds_is_no_95_percent_interval_of_their_median() -> None:
    assert math.isinf(interval.median([1.0, 2.0, 3.0, 4.0, 5.0]).high)
    assert interval.median([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).high == 6.0


def test_equal_values_are_an_interval_from_six_on() -> None:
    assert math.isinf(interval.mean([10.0] * 5).high)
    assert interval.mean([10.0] * 6) == interval.exact(10.0)
    assert math.isinf(interval.paired_ratio([2.0] * 3, [4.0] * 3).high)
    assert interval.paired_ratio([2.0] * 6, [4.0] * 6) == interval.exact(0.5)


def test_two_seeds_and_a_denominator_that_may_be_zero_say_nothing() -> None:
    assert math.isinf(interval.mean([1.0, 2.0]).high)
    assert math.isinf(interval.paired_ratio([1.0, 2.0, 3.0], [-1.0, 0.1, 1.0]).high)
    assert math.isinf(interval.paired_ratio([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]).high)


values = st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=3, max_size=24)


@given(values)
def test_fiellers_interval_is_where_the_contrast_may_be_zero(pairs: list[tuple[float, float]]) -> None:
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    found = interval.paired_ratio(left, right)
    assume(math.isfinite(found.low) and found.high - found.low > 1e-6)
    assert found.low <= found.value <= found.high
    for edge in (found.low, found.high):
        contrast = interval.paired_difference(left, [edge * each for each in right])
        assert min(abs(contrast.low), abs(contrast.high)) == pytest.approx(0, abs=1e-4 * max(left))
