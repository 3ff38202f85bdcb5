"""The search over allocations: near the exhaustive optimum, inside the box, never an excluded one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.model.joint import JointGP, expected_improvement
from rheostat.policy.autrascale.box import Box, candidates, maximise


def even(*tops: int, low: int = 1, most_slots: int | None = None) -> Box:
    return Box(tuple(np.arange(low, top + 1) for top in tops), most_slots)


@pytest.mark.parametrize("seed", range(6))
def test_its_improvement_is_that_of_an_exhaustive_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    box = even(24, 24, 24)
    tasks = rng.integers(1, 25, (10, 3)).astype(float)
    values = -np.abs(np.log(tasks) - np.log([4, 9, 15])).sum(axis=1) + 0.05 * rng.standard_normal(10)
    gp = JointGP.fit(tasks, values)

    def score(rows: np.ndarray) -> np.ndarray:
        return expected_improvement(*gp.predict(rows), float(values.max()), 0.01)

    every = np.array(list(product(range(1, 25), repeat=3)), dtype=float)
    best = maximise(box, score, [np.array([4, 9, 15])], rng)
    assert best is not None
    assert best[1] >= 0.99 * score(every).max()


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=6),
    st.integers(0, 1_000_000),
    st.integers(0, 40),
)
def test_candidates_stay_inside_and_within_the_slots(tops: list[int], seed: int, spare: int) -> None:
    box = even(*tops, most_slots=len(tops) + spare)
    rows = candidates(box, [box.least], np.random.default_rng(seed))
    assert len(rows)
    assert (rows >= 1).all()
    assert (rows <= np.array(tops)).all()
    assert (rows.sum(axis=1) <= len(tops) + spare).all()


def test_excluded_allocations_are_not_proposed() -> None:
    box = even(2, 2)
    excluded = [np.array(row) for row in ((1, 1), (1, 2), (2, 1))]
    best = maximise(box, lambda rows: -rows.sum(axis=1), [box.least], np.random.default_rng(0), excluded)
    assert best is not None
    assert best[0].tolist() == [2, 2]
    every = [*excluded, np.array([2, 2])]
    assert maximise(box, lambda rows: rows.sum(axis=1), [box.least], np.random.default_rng(0), every) is None


def test_allowed_counts_need_not_be_neighbours() -> None:
    box = Box((np.array([4, 8, 12]), np.array([3, 6, 9])))
    assert box.snap(np.array([[11.0, 100.0], [0.0, 6.0]])).tolist() == [[8, 9], [4, 6]]
    best = maximise(box, lambda rows: rows[:, 0] - rows[:, 1], [box.least], np.random.default_rng(0))
    assert best is not None
    assert best[0].tolist() == [12, 3]
