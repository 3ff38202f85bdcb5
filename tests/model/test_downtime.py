from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.job.frozen import from_json, to_json
from rheostat.model.downtime import ASSUMED_S, KEPT, Downtimes

GB = 1e9


def test_before_any_restart_it_is_assumed() -> None:
    assert Downtimes().expected_s() == ASSUMED_S
    assert Downtimes(assumed_s=100.0).quantile(0.5) == 100.0
    assert Downtimes().quantile(0.95) > ASSUMED_S


def test_restarts_replace_the_assumption() -> None:
    rng = np.random.default_rng(0)
    known = Downtimes()
    for downtime in rng.normal(90.0, 8.0, 30):
        known = known.learned(float(downtime), GB)
    assert known.expected_s(GB) == pytest.approx(90.0, abs=4.0)
    drawn = rng.normal(90.0, 8.0, 20_000)
    for q in (0.5, 0.9, 0.95):
        assert (drawn <= known.quantile(q, GB)).mean() == pytest.approx(q, abs=0.12)


def test_an_upper_quantile_covers_from_the_first_restarts_on() -> None:
    rng = np.random.default_rng(1)
    for seen in (1, 3, 8):
        covered = []
        for _ in range(400):
            known = Downtimes()
            for downtime in rng.normal(65.0, 8.0, seen):
                known = known.learned(float(downtime))
            covered.append(rng.normal(65.0, 8.0) <= known.quantile(0.95))
        assert np.mean(covered) >= 0.93, seen


def test_larger_states_take_longer() -> None:
    known = Downtimes()
    for state in (1.0, 2.0, 5.0, 10.0, 20.0):
        known = known.learned(40.0 + 6.0 * state, state * GB)
    assert known.expected_s(20 * GB) == pytest.approx(160.0, rel=0.1)
    assert known.expected_s(GB) == pytest.approx(46.0, rel=0.2)
    assert known.quantile(0.9, 20 * GB) > known.quantile(0.9, GB)


def test_states_that_hardly_differ_draw_no_line() -> None:
    known = Downtimes()
    for downtime, state in ((40.0, 1.0), (60.0, 1.01), (80.0, 1.02), (90.0, 1.03), (100.0, 1.04)):
        known = known.learned(downtime, state * GB)
    assert known.expected_s(100 * GB) == known.expected_s(GB)


def test_chance_alone_draws_no_line() -> None:
    rng = np.random.default_rng(4)
    drawn = 0
    for _ in range(200):
        known = Downtimes()
        for downtime, state in zip(rng.normal(65, 8, 8), rng.uniform(1, 5, 8), strict=True):
            known = known.learned(float(downtime), float(state) * GB)
        drawn += known.expected_s(5 * GB) != known.expected_s(GB)
    assert drawn < 0.05 * 200


def test_a_longer_downtime_with_less_state_is_not_believed() -> None:
    known = Downtimes()
    for downtime, state in ((90.0, 1.0), (60.0, 5.0), (50.0, 7.0), (40.0, 8.0), (30.0, 10.0)):
        known = known.learned(downtime, state * GB)
    assert known.expected_s(100 * GB) == known.expected_s(GB) > 0


def test_only_the_newest_are_kept_and_it_survives_a_snapshot() -> None:
    known = Downtimes()
    for k in range(100):
        known = known.learned(float(k))
    assert [r.downtime_s for r in known.restarts] == [float(k) for k in range(100 - KEPT, 100)]
    assert from_json(Downtimes, to_json(known)) == known
    assert from_json(Downtimes, to_json(Downtimes())) == Downtimes()


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.none() | st.floats(0, 1e15)), max_size=40),
    st.floats(0.01, 0.99),
    st.none() | st.floats(0, 1e15),
)
def test_never_nan_never_negative_and_rising_with_the_quantile(
    seen: list[tuple[float, float | None]], q: float, state: float | None
) -> None:
    known = Downtimes()
    for downtime, size in seen:
        known = known.learned(downtime, size)
    low, high = known.quantile(q / 2, state), known.quantile(q, state)
    assert 0 <= low <= high < math.inf


@pytest.mark.parametrize("q", [0.0, 1.0, -1.0, math.nan])
def test_impossible_quantiles_are_refused(q: float) -> None:
    with pytest.raises(InvalidValue, match="between 0 and 1"):
        Downtimes().quantile(q)
