"""Our latency model: fitted to a few samples of its own law, and of another."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.lab.jobs import job
from rheostat.lab.papers.autrascale.truth import exhaustive, latency_s
from rheostat.model.capacity import Floats
from rheostat.policy.autrascale.box import Box
from rheostat.policy.autrascale.latency_model import DecomposedLatency, Network

WORDS, LOAD = job("autrascale-wordcount"), 350e3
NAMES = WORDS.spec().tunable_names
TOP = 40


def network() -> Network:
    index = {name: k for k, name in enumerate(NAMES)}
    return Network(
        tuple(np.array([WORDS.nominal_per_s(WORDS.operator(n), p, None) for p in range(1, TOP + 1)]) for n in NAMES),
        np.full(len(NAMES), LOAD),
        tuple((index.get(e.upstream, -1), index[e.downstream], 1.0) for e in WORDS.graph.edges),
    )


def law(row: list[int]) -> float:
    return float(latency_s(WORDS, np.array([row]), LOAD)[0])


def test_from_the_fewest_tasks_it_comes_to_the_optimum_in_a_few_steps() -> None:
    best = exhaustive(WORDS, LOAD, 0.18, TOP)
    assert best is not None
    box = Box(tuple(np.arange(p, TOP + 1) for p in (3, 4, 12, 10)))
    rows = [[3, 4, 12, 10]]
    for _ in range(3):
        model = DecomposedLatency.fit(network(), rows, [law(row) for row in rows])
        row, _ = model.cheapest(box, 0.95 * 0.18)
        if law(row.tolist()) <= 0.18:
            break
        rows.append(row.tolist())
    assert law(row.tolist()) <= 0.18
    assert sum(row) <= 1.3 * best.slots


def test_the_newest_sample_is_met_exactly_and_more_samples_fit_better() -> None:
    rows = [[3, 4, 12, 10], [4, 5, 14, 12], [6, 8, 20, 20], [3, 4, 13, 12], [5, 6, 16, 30]]
    model = DecomposedLatency.fit(network(), rows, [law(row) for row in rows])
    assert model.latency_s(np.array(rows[-1:]))[0] == pytest.approx(law(rows[-1]))
    fresh = [[4, 4, 15, 14], [5, 5, 13, 20], [3, 6, 18, 12]]
    off = [abs(float(model.latency_s(np.array([row]))[0]) / law(row) - 1) for row in fresh]
    assert max(off) < 0.25


def test_the_cheapest_row_is_that_of_brute_force_on_the_model() -> None:
    rows = [[3, 4, 12, 10], [4, 5, 14, 12], [8, 8, 20, 20]]
    model = DecomposedLatency.fit(network(), rows, [law(row) for row in rows])
    box = Box(tuple(np.arange(low, low + 6) for low in (3, 4, 12, 10)))
    every = np.array(list(product(*[each.tolist() for each in box.choices])))
    enough = every[model.latency_s(every) <= 0.16]
    row, _ = model.cheapest(box, 0.16)
    assert row.sum() <= enough.sum(axis=1).min() + 1


def test_a_target_below_the_floor_gives_the_nearest_without_an_absurd_size() -> None:
    model = DecomposedLatency.fit(network(), [[3, 4, 12, 10]], [0.25])
    box = Box(tuple(np.arange(low, TOP + 1) for low in (3, 4, 12, 10)), most_slots=80)
    row, expected = model.cheapest(box, 1e-6)
    assert row.sum() <= 80
    assert 0 < expected < 0.25


def test_an_operator_that_does_not_keep_up_grows_first() -> None:
    model = DecomposedLatency.fit(network(), [[3, 4, 12, 10]], [0.25])
    box = Box(tuple(np.arange(1, TOP + 1) for _ in range(4)))
    row, _ = model.cheapest(box, 10.0)
    assert (network().utilisation(row[None]) <= 1.0).all()


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 40), min_size=2, max_size=2), st.floats(0.0, 1e4)), min_size=1, max_size=6
    ),
    st.floats(1e-6, 1e12),
    st.floats(1e-6, 10.0),
)
def test_it_is_never_nan_and_never_hangs(samples: list[tuple[list[int], float]], load: float, target: float) -> None:
    sizes: Floats = np.arange(1.0, 41.0)
    net = Network((sizes * 10.0, sizes * 1e-3), np.array([load, 0.0]), ((-1, 0, 1.0), (0, 1, 0.0)))
    model = DecomposedLatency.fit(net, [row for row, _ in samples], [value for _, value in samples])
    row, expected = model.cheapest(Box((np.arange(1, 41), np.arange(1, 41)), most_slots=50), target)
    assert np.isfinite(expected)
    assert row.sum() <= 50
