"""Recovery time: its closed form, the paper's sequence, and the capacity that an objective needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.model.recovery import (
    Course,
    catch_up_steps_s,
    implied_downtime_s,
    needed_capacity_per_s,
    recovery_time_s,
)

RATES = st.lists(st.floats(0, 1e7), min_size=1, max_size=12)
SECONDS = st.floats(0, 600)


def closed_form_s(capacity: float, load: float, interval_s: float, downtime_s: float) -> float:
    """A constant load: the backlog is (I + D) load records and falls by capacity - load every second."""
    return downtime_s + load * (interval_s + downtime_s) / (capacity - load)


@pytest.mark.parametrize(
    ("capacity", "load", "interval_s", "downtime_s"),
    [(200e3, 100e3, 10, 65), (1000, 999, 10, 60), (5, 1, 0, 30), (7, 3, 10, 0), (100, 0, 10, 60)],
)
def test_a_constant_load_has_the_closed_form(
    capacity: float, load: float, interval_s: float, downtime_s: float
) -> None:
    expected = closed_form_s(capacity, load, interval_s, downtime_s)
    for course in (
        Course.constant(load),
        Course.of([load] * 30, [load] * 10, 60.0),
        Course.of([load] * 3, [], 7.0),
        Course.of([], [load], 1.0),
        Course.of([load] * 30, [load] * 10, 5.0, forecast_step_s=60.0),
    ):
        assert recovery_time_s(capacity, course, interval_s, downtime_s) == pytest.approx(expected, rel=1e-9)


def test_the_papers_sequence_adds_up_to_the_same() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        course = Course.of(rng.uniform(50, 150, 20), rng.uniform(50, 150, 20), 10.0, 30.0)
        capacity = rng.uniform(260, 400)
        steps = catch_up_steps_s(capacity, course, 10.0, 60.0)
        exact = recovery_time_s(capacity, course, 10.0, 60.0)
        # The paper leaves out what follows a step below one second: at load / capacity, not much more than one second.
        assert 60.0 + sum(steps) <= exact + 1e-6
        assert exact - 60.0 - sum(steps) < 1.5
        assert steps[-1] < 1.0


def test_it_is_infinite_where_the_load_is_not_below_the_capacity() -> None:
    for load in (100.0, 100.1, 1e9):
        assert recovery_time_s(100.0, Course.constant(load), 10.0, 60.0) == math.inf
    # It rises above the capacity before the backlog is gone, and stays there.
    rising = Course.of([50.0], [50.0, 150.0], 60.0)
    assert recovery_time_s(100.0, rising, 10.0, 60.0) == math.inf


def test_a_load_that_falls_later_ends_the_recovery() -> None:
    course = Course.of([150.0], [150.0] * 5 + [0.0], 60.0)
    # 75 s of 150/s before resuming at 65 s, 235 s more of it until 300 s, then nothing: 46500 records at 100/s.
    assert recovery_time_s(100.0, course, 10.0, 65.0) == pytest.approx(65 + 150 * (10 + 300) / 100)


def test_records_since_the_last_checkpoint_are_processed_again() -> None:
    busy = Course.of([1000.0, 0.0], [0.0], 10.0)
    assert recovery_time_s(100.0, busy, 10.0, 30.0) == 30.0
    assert recovery_time_s(100.0, busy, 20.0, 30.0) == pytest.approx(130.0)


def test_a_backlog_at_the_failure_takes_longer() -> None:
    course = Course.constant(50.0)
    assert recovery_time_s(100.0, course, 10.0, 60.0, waiting=5000.0) == pytest.approx(60 + (50 * 70 + 5000) / 50)


def test_without_load_recovery_ends_with_the_downtime() -> None:
    assert recovery_time_s(0.0, Course.constant(0.0), 10.0, 60.0) == 60.0
    assert recovery_time_s(100.0, Course.constant(0.0), 10.0, 60.0) == 60.0


def test_an_endless_downtime_has_no_recovery() -> None:
    assert recovery_time_s(1e9, Course.constant(1.0), 10.0, math.inf) == math.inf
    assert needed_capacity_per_s(180.0, Course.constant(1.0), 10.0, math.inf) == math.inf


def test_gaps_take_the_value_beside_them() -> None:
    nan = math.nan
    filled = Course.of([10.0, 10.0, 30.0, 30.0], [30.0, 40.0, 40.0], 10.0)
    gaps = Course.of([nan, 10.0, 30.0, nan], [nan, 40.0, nan], 10.0)
    assert (gaps.arrived == filled.arrived).all()
    assert (gaps.before_per_s, gaps.after_per_s) == (10.0, 40.0)


@pytest.mark.parametrize("rates", [[], [math.nan] * 3])
def test_a_course_without_a_rate_is_refused(rates: list[float]) -> None:
    with pytest.raises(InvalidValue, match="at least one rate"):
        Course.of(rates, rates, 60.0)


@pytest.mark.parametrize("wrong", [-1.0, math.inf])
def test_absurd_rates_are_refused(wrong: float) -> None:
    with pytest.raises(InvalidValue, match="must be finite and not negative"):
        Course.of([1.0], [wrong], 60.0)
    with pytest.raises(InvalidValue):
        recovery_time_s(wrong, Course.constant(1.0), 10.0, 60.0)


@given(st.floats(0, 1e8), RATES, RATES, st.floats(0.1, 600), SECONDS, SECONDS, st.floats(0, 1e9))
def test_never_nan_never_negative_never_shorter_than_the_downtime(
    capacity: float,
    history: list[float],
    forecast: list[float],
    step_s: float,
    interval_s: float,
    downtime_s: float,
    waiting: float,
) -> None:
    course = Course.of(history, forecast, step_s)
    recovery = recovery_time_s(capacity, course, interval_s, downtime_s, waiting)
    assert not math.isnan(recovery)
    assert recovery >= downtime_s >= 0


@given(RATES, RATES, st.floats(1, 600), SECONDS, SECONDS, st.floats(1, 1e7), st.floats(1, 3))
def test_more_capacity_or_less_downtime_never_takes_longer(
    history: list[float],
    forecast: list[float],
    step_s: float,
    interval_s: float,
    downtime_s: float,
    capacity: float,
    more: float,
) -> None:
    course = Course.of(history, forecast, step_s)
    slow = recovery_time_s(capacity, course, interval_s, downtime_s)
    assert recovery_time_s(capacity * more, course, interval_s, downtime_s) <= slow * (1 + 1e-6) + 1e-6
    assert recovery_time_s(capacity, course, interval_s, downtime_s / more) <= slow * (1 + 1e-6) + 1e-6


@given(RATES, RATES, st.floats(1, 600), st.floats(0, 60), st.floats(0, 170), st.floats(0, 1e6))
def test_the_needed_capacity_just_meets_the_objective(
    history: list[float], forecast: list[float], step_s: float, interval_s: float, downtime_s: float, waiting: float
) -> None:
    course = Course.of(history, forecast, step_s)
    needed = needed_capacity_per_s(180.0, course, interval_s, downtime_s, waiting)
    assert 0 <= needed < math.inf
    assert recovery_time_s(needed * (1 + 1e-6) + 1e-6, course, interval_s, downtime_s, waiting) <= 180.0 + 1e-3
    if needed > 1e-3:
        late = recovery_time_s(needed * 0.99, course, interval_s, downtime_s, waiting)
        assert late > 180.0 * (1 - 1e-6)


def test_no_capacity_is_enough_where_the_downtime_is_too_long() -> None:
    assert needed_capacity_per_s(60.0, Course.constant(5.0), 10.0, 61.0) == math.inf
    assert needed_capacity_per_s(60.0, Course.constant(5.0), 10.0, 60.0) == math.inf
    assert needed_capacity_per_s(60.0, Course.constant(0.0), 10.0, 60.0) == 0.0


@given(RATES, RATES, st.floats(1, 600), st.floats(0, 60), st.floats(0, 300))
def test_a_measured_recovery_implies_its_downtime(
    history: list[float], forecast: list[float], step_s: float, interval_s: float, downtime_s: float
) -> None:
    course = Course.of(history, forecast, step_s)
    capacity = max(*history, *forecast, 1.0) * 2
    recovery = recovery_time_s(capacity, course, interval_s, downtime_s)
    assert implied_downtime_s(recovery, capacity, course, interval_s) == pytest.approx(downtime_s, abs=1e-3)


def test_a_tiny_capacity_takes_for_ever_without_a_warning() -> None:
    assert recovery_time_s(5.7e-304, Course.of([102628.0], [0.0], 1.0), 1.0, 0.0) == math.inf
