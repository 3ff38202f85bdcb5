"""Backlog, input rate and lag at any moment, from the accounts of producer and workers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.lab.sight.truth import Truth

INF = math.inf


def life(arrived_s: list[float], processed_s: list[float], finished_s: list[float]) -> Truth:
    """Return the truth of records that arrived one by one."""
    return Truth(
        np.array(sorted(arrived_s)),
        np.arange(1.0, len(arrived_s) + 1),
        np.array(processed_s),
        np.array(sorted(finished_s)),
    )


def test_a_record_waits_from_its_arrival_until_it_was_worked_on() -> None:
    truth = life([1.0, 2.0, 3.0], [2.5, 4.0, INF], [])
    assert [truth.backlog(at_s) for at_s in (0.5, 1.0, 2.2, 2.5, 3.5, 4.0, 99.0)] == [0, 1, 2, 1, 2, 1, 1]


def test_a_record_has_a_result_when_its_batch_has_finished() -> None:
    truth = life([1.0, 2.0, 3.0], [2.5, 4.0, 4.5], [3.0, 6.0])
    assert truth.lag_s(0.5) == 0.0
    assert truth.lag_s(2.9) == pytest.approx(1.9)  # the first one was worked on, but its batch runs
    assert truth.lag_s(3.5) == pytest.approx(1.5)
    assert truth.lag_s(5.9) == pytest.approx(3.9)
    assert truth.lag_s(6.0) == 0.0


def test_records_out_of_order_leave_the_oldest_one_behind() -> None:
    truth = life([1.0, 2.0, 3.0], [INF, 2.5, 3.5], [4.0])
    assert truth.lag_s(5.0) == pytest.approx(4.0)
    assert truth.backlog(5.0) == 1


def test_a_record_of_which_no_worker_knows_has_no_result() -> None:
    truth = life([1.0, 2.0, 3.0], [1.5], [1.6])
    assert truth.lag_s(4.0) == pytest.approx(2.0)
    assert truth.backlog(4.0) == 2


def test_rates_count_arrivals_and_hold_during_silence() -> None:
    truth = Truth(np.array([1.0, 2.0, 10.0]), np.array([500.0, 1000.0, 1500.0]), np.array([]), np.array([]))
    assert truth.rate_per_s(0.0, 2.0) == 500.0
    assert truth.rate_per_s(3.0, 9.0) == 0.0
    assert truth.arrived(9.9) == 1000.0  # not interpolated through the silence


def test_nothing_at_all() -> None:
    none = np.array([], dtype=float)
    truth = Truth(none, none, none, none)
    assert (truth.backlog(1.0), truth.lag_s(1.0)) == (0.0, 0.0)
    assert truth.stretch_above(10.0, 0.0, 5) is None


def test_a_spike_is_dated_by_the_producers_own_count() -> None:
    at_s = 100.0 + np.arange(1, 61) / 10
    per_tenth = np.array([5.0] * 20 + [50.0] * 30 + [5.0] * 10)
    truth = Truth(at_s, np.cumsum(per_tenth), np.array([]), np.array([]))
    assert truth.stretch_above(275.0, 100.0 + 1e-6, 6) == pytest.approx((102.0, 105.0), abs=1e-3)
    assert truth.stretch_above(1000.0, 100.0, 6) is None
    # A producer that makes up for a pause in one second: the longer stretch is the load.
    burst = Truth(
        np.arange(100.0, 108.0), np.array([0.0, 400, 400, 700, 1000, 1300, 1400, 1400]), np.array([]), np.array([])
    )
    assert burst.stretch_above(275.0, 100.0, 7) == (102.0, 105.0)
    assert truth.stretch_above(275.0, 100.0 + 1e-6, 4) == pytest.approx((102.0, 104.0), abs=1e-3)


moments = st.floats(0.0, 100.0)


@given(st.lists(st.tuples(moments, moments), min_size=1, max_size=20), st.lists(moments, max_size=5), moments)
def test_backlog_and_lag_agree_with_counting_by_hand(
    lives: list[tuple[float, float]], finished_s: list[float], at_s: float
) -> None:
    arrived_s = sorted(arrived for arrived, _ in lives)
    processed_s = [arrived + wait_s for arrived, (_, wait_s) in zip(arrived_s, lives, strict=True)]
    truth = life(arrived_s, processed_s, finished_s)
    waiting = [a for a, p in zip(arrived_s, processed_s, strict=True) if a <= at_s < p]
    result_s = [min((end for end in finished_s if end >= done), default=INF) for done in processed_s]
    without = [a for a, r in zip(arrived_s, result_s, strict=True) if a <= at_s < r]
    assert truth.backlog(at_s) == len(waiting)
    assert truth.lag_s(at_s) == pytest.approx(at_s - min(without) if without else 0.0)
