"""Downtimes: the assumption, the restarts that replace it, and the line in the state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.job.frozen import from_json, to_json
from rheostat.model.downtime import ASSUMED_S, MAX_RESTARTS, Downtimes

GB = 1e9


def test_a_downtime_is_assumed_before_the_first_restart() -> None:
    assert Downtimes().expected_s() == ASSUMED_S
    assert Downtimes(assumed_s=100.0).quantile(0.5) == 100.0
    assert Downtimes().quantile(0.95) > ASSUMED_S


def test_restarts_replace_the_assumption() -> None:
    rng = np.random.default_rng(0)
    downtimes = Downtimes()
    for downtime in rng.normal(90.0, 8.0, 30):
        downtimes = downtimes.with_restart(float(downtime), GB)
    assert downtimes.expected_s(GB) == pytest.approx(90.0, abs=4.0)
    drawn = rng.normal(90.0, 8.0, 20_000)
    for q in (0.5, 0.9, 0.95):
        assert (drawn <= downtimes.quantile(q, GB)).mean() == pytest.approx(q, abs=0.12)


def test_an_upper_quantile_covers_from_the_first_restarts_on() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 3, 8):
        covered = []
        for _ in range(400):
            downtimes = Downtimes()
            for downtime in rng.normal(65.0, 8.0, count):
                downtimes = downtimes.with_restart(float(downtime))
            covered.append(rng.normal(65.0, 8.0) <= downtimes.quantile(0.95))
        assert np.mean(covered) >= 0.93, count


def test_larger_states_take_longer() -> None:
    downtimes = Downtimes()
    for state in (1.0, 2.0, 5.0, 10.0, 20.0):
        downtimes = downtimes.with_restart(40.0 + 6.0 * state, state * GB)
    assert downtimes.expected_s(20 * GB) == pytest.approx(160.0, rel=0.1)
    assert downtimes.expected_s(GB) == pytest.approx(46.0, rel=0.2)
    assert downtimes.quantile(0.9, 20 * GB) > downtimes.quantile(0.9, GB)


def test_no_line_is_fitted_to_states_that_hardly_differ() -> None:
    downtimes = Downtimes()
    for downtime, state in ((40.0, 1.0), (60.0, 1.01), (80.0, 1.02), (90.0, 1.03), (100.0, 1.04)):
        downtimes = downtimes.with_restart(downtime, state * GB)
    assert downtimes.expected_s(100 * GB) == downtimes.expected_s(GB)


def test_no_line_is_fitted_to_chance() -> None:
    rng = np.random.default_rng(4)
    fitted = 0
    for _ in range(200):
        downtimes = Downtimes()
        for downtime, state in zip(rng.normal(65, 8, 8), rng.uniform(1, 5, 8), strict=True):
            downtimes = downtimes.with_restart(float(downtime), float(state) * GB)
        fitted += downtimes.expected_s(5 * GB) != downtimes.expected_s(GB)
    assert fitted < 0.05 * 200


def test_a_falling_line_is_refused() -> None:
    downtimes = Downtimes()
    for downtime, state in ((90.0, 1.0), (60.0, 5.0), (50.0, 7.0), (40.0, 8.0), (30.0, 10.0)):
        downtimes = downtimes.with_restart(downtime, state * GB)
    assert downtimes.expected_s(100 * GB) == downtimes.expected_s(GB) > 0


def test_only_the_newest_restarts_are_retained_and_survive_a_snapshot() -> None:
    downtimes = Downtimes()
    for k in range(100):
        downtimes = downtimes.with_restart(float(k))
    assert [r.downtime_s for r in downtimes.restarts] == [float(k) for k in range(100 - MAX_RESTARTS, 100)]
    assert from_json(Downtimes, to_json(downtimes)) == downtimes
    assert from_json(Downtimes, to_json(Downtimes())) == Downtimes()


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.none() | st.floats(0, 1e15)), max_size=40),
    st.floats(0.01, 0.99),
    st.none() | st.floats(0, 1e15),
)
def test_never_nan_never_negative_and_rising_with_the_quantile(
    restarts: list[tuple[float, float | None]], q: float, state: float | None
) -> None:
    downtimes = Downtimes()
    for downtime, size in restarts:
        downtimes = downtimes.with_restart(downtime, size)
    low, high = downtimes.quantile(q / 2, state), downtimes.quantile(q, state)
    assert 0 <= low <= high < math.inf


@pytest.mark.parametrize("q", [0.0, 1.0, -1.0, math.nan])
def test_impossible_quantiles_are_refused(q: float) -> None:
    with pytest.raises(InvalidValue, match="between 0 and 1"):
        Downtimes().quantile(q)
