"""What was seen against what happened: errors, reactions, blind windows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rheostat.lab.sight.comparison import (
    blind_share,
    compare,
    describe,
    executor_s,
    middle,
    over_lag_s,
    reaction_s,
    right_size,
    slots_before,
    worst,
)
from rheostat.lab.sight.truth import Truth
from rheostat.lab.sight.windows import Window

BASE = 10.0


def rising(per_s: list[int]) -> Truth:
    """Return arrivals of so much in each second, evenly; nothing is ever worked on."""
    at_s = np.concatenate([second + (np.arange(count) + 1) / count for second, count in enumerate(per_s) if count])
    return Truth(at_s, np.arange(1.0, len(at_s) + 1), np.full(len(at_s), np.inf), np.array([]))


STEADY = rising([100] * 40)


def test_a_window_that_shows_the_truth_has_no_error() -> None:
    windows = [Window(at_s, 100.0, at_s * 100, at_s - 0.01) for at_s in (10.0, 20.0, 30.0)]
    sight = compare(windows, STEADY, BASE)
    assert (sight.windows, sight.interval_s, sight.unseen, sight.oldest_s) == (3, 10.0, 0, 0.0)
    for errors in (sight.backlog, sight.rate, sight.late_rate, sight.lag_s):
        assert errors == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_a_small_backlog_is_compared_with_a_second_of_load() -> None:
    worked = Truth(STEADY.counted_s, STEADY.counts, STEADY.counted_s + 0.05, np.array([]))
    (error,) = compare([Window(30.0, backlog=55.0)], worked, BASE).backlog
    assert error == pytest.approx((55 - worked.backlog(30.0)) / 100, abs=1e-3)


def test_a_large_backlog_is_compared_with_itself() -> None:
    assert compare([Window(30.0, backlog=1500.0)], STEADY, BASE).backlog == pytest.approx([0.5], abs=1e-3)


def test_a_backlog_that_was_true_within_its_second_is_right_by_the_second() -> None:
    # A batch works a second of load off within a tenth of a second.
    done_s = np.ceil(STEADY.counted_s - 0.3) + 0.3
    worked = Truth(STEADY.counted_s, STEADY.counts, done_s, np.array([]))
    before, after = worked.backlog(30.25), worked.backlog(30.35)
    assert before - after >= 90
    sight = compare([Window(30.25, backlog=after), Window(31.25, backlog=before + 50)], worked, BASE)
    assert sight.backlog == pytest.approx([(before - after) / 100, 0.5], abs=0.02)
    assert sight.backlog_second == pytest.approx([0.0, 0.45], abs=0.03)


def test_silence_is_compared_with_the_base_load() -> None:
    silent = rising([100] * 10 + [0] * 30)
    all_done = Truth(silent.counted_s, silent.counts, silent.counted_s + 1, np.array([]))
    windows = [Window(30.0, 2.0, 5.0), Window(40.0, 0.0, 0.0)]
    sight = compare(windows, all_done, BASE)
    assert sight.backlog == pytest.approx([0.5, 0.0])
    assert sight.rate == pytest.approx([0.2, 0.0])


def test_a_number_is_compared_with_the_moment_that_it_names() -> None:
    dated = [Window(20.0), Window(30.0, backlog=2500.0, measured_s=25.0)]
    sight = compare(dated, STEADY, BASE)
    assert sight.backlog == pytest.approx([0.0], abs=1e-3)
    assert sight.oldest_s == 5.0


def test_a_date_excuses_no_more_than_an_interval() -> None:
    stale = [Window(20.0), Window(30.0, backlog=500.0, measured_s=5.0)]
    assert compare(stale, STEADY, BASE).backlog == pytest.approx([0.75], abs=1e-3)  # 2000 had arrived by 20 s


def test_a_rate_may_be_an_interval_late_or_a_few_seconds_early_in_the_variant() -> None:
    jump = rising([100] * 25 + [1000] * 15)
    seen = [Window(20.0), Window(30.0, 100.0), Window(30.0, 1000.0), Window(40.0, 100.0)]
    gaps = [Window(10.0), *seen]  # the median gap stays 10 s
    sight = compare(gaps, jump, BASE)
    assert sight.interval_s == 10.0
    assert sight.rate == pytest.approx([450 / 550, 450 / 550, 0.9], abs=1e-2)
    assert sight.late_rate == pytest.approx([0.0, 0.0, 450 / 550], abs=1e-2)


def test_windows_without_numbers_are_counted_and_have_no_error() -> None:
    sight = compare([Window(10.0, problem="blind"), Window(20.0, rate_per_s=100.0)], STEADY, BASE)
    assert (sight.windows, sight.unseen, len(sight.backlog), len(sight.rate)) == (2, 2, 0, 1)
    assert math.isnan(middle(sight.backlog))
    assert math.isnan(worst(sight.backlog))


def test_a_window_is_described_beside_the_truth() -> None:
    window = Window(30.0, 90.0, 2000.0, 28.0, 25.0, target=4, running=1, why="100/s arrive")
    assert describe(window, STEADY, 10.0) == (
        "20.0 s, 1 running, rate 90 (100), backlog 2000 (2500), measured 5.0 s before, lag 28 s (30): 4 executors "
        "(100/s arrive)"
    )
    assert describe(Window(10.0, problem="blind"), STEADY, 0.0).endswith("lag - s (10): hold (blind)")


def test_no_windows() -> None:
    sight = compare([], STEADY, BASE)
    assert (sight.windows, sight.unseen, sight.oldest_s) == (0, 0, 0.0)
    assert math.isnan(blind_share([], 0.0, 10.0))
    assert reaction_s([], 0.0, 4) == math.inf


@pytest.mark.parametrize(
    ("load_per_s", "slots"), [(0.0, 1), (500.0, 1), (1000.0, 1), (1001.0, 2), (3000.0, 3), (5000.0, 4), (50_000.0, 4)]
)
def test_the_right_size_serves_the_load_with_headroom(load_per_s: float, slots: int) -> None:
    assert right_size(load_per_s, 1200.0, 0.2, 4) == slots


def test_the_reaction_ends_with_the_first_decision_for_the_right_size() -> None:
    windows = [
        Window(50.0, target=4),  # before the change
        Window(60.0, target=None),
        Window(70.0, target=2),
        Window(80.0, target=4, decided_s=80.3),
        Window(90.0, target=4),
    ]
    assert reaction_s(windows, 58.0, 4) == pytest.approx(22.3)
    assert reaction_s(windows[:3], 58.0, 4) == math.inf
    assert reaction_s(windows, 58.0, 4, end_s=75.0) == math.inf  # too late: the load has fallen again
    assert reaction_s(windows, 58.0, 3) == pytest.approx(22.3)


def test_to_hold_the_right_size_is_a_decision_if_the_window_is_usable() -> None:
    windows = [Window(50.0, running=4), Window(60.0, running=4, problem="blind"), Window(70.0, running=4)]
    assert reaction_s(windows, 58.0, 4) == 12.0
    assert slots_before(windows, 58.0) == 4
    assert slots_before(windows, 50.0) == 0


def test_a_decision_counts_from_its_journaling_not_from_its_window() -> None:
    assert reaction_s([Window(57.9, target=4, decided_s=58.2)], 58.0, 4) == pytest.approx(0.2)


def test_blind_windows_are_those_with_a_problem_during_the_spike() -> None:
    windows = [Window(5.0, problem="x"), Window(10.0, problem="x"), Window(20.0), Window(30.0), Window(40.0)]
    assert blind_share(windows, 10.0, 30.0) == pytest.approx(1 / 3)
    assert math.isnan(blind_share(windows, 100.0, 200.0))


def test_executor_seconds_hold_from_sample_to_sample() -> None:
    assert executor_s(np.array([0.0, 10.0, 20.0]), np.array([1.0, 4.0, 2.0]), 5.0, 25.0) == 5 * 1 + 10 * 4 + 5 * 2
    assert executor_s(np.array([]), np.array([]), 5.0, 25.0) == 0.0


def test_late_seconds_are_counted_by_the_true_lag() -> None:
    assert over_lag_s(STEADY, 0.0, 20.0, 15.0) == 5
    assert over_lag_s(STEADY, 0.0, 10.0, 15.0) == 0
