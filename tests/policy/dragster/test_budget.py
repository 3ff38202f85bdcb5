"""Both projections onto a budget, against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.policy.dragster.budget import Choice, balanced, euclidean

SIZES = tuple(range(1, 8))
NAMES = ("a", "b", "c")
CAPACITIES = st.lists(st.floats(1.0, 1000.0), min_size=len(SIZES), max_size=len(SIZES))


def choice(capacities: list[float], demand: float) -> Choice:
    return Choice(SIZES, np.array(capacities), demand)


@given(st.lists(st.tuples(CAPACITIES, st.floats(0.0, 1500.0)), min_size=1, max_size=3), st.integers(3, 21))
def test_the_balanced_split_serves_as_much_as_any_split_can(rows: list[tuple[list[float], float]], slots: int) -> None:
    """Also for capacities that fall with tasks, and for operators without demand."""
    choices = {name: choice(*row) for name, row in zip(NAMES, rows, strict=False)}

    def share(places: tuple[int, ...]) -> float:
        return min(c.share(place) for c, place in zip(choices.values(), places, strict=True))

    every = product(range(len(SIZES)), repeat=len(choices))
    best = max(share(places) for places in every if sum(SIZES[place] for place in places) <= slots)
    tasks, served = balanced(choices, slots)
    assert sum(tasks.values()) <= slots
    assert served == pytest.approx(best)
    assert share(tuple(SIZES.index(tasks[name]) for name in choices)) >= best * (1 - 1e-9)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=3), st.integers(3, 21))
def test_the_euclidean_projection_is_the_nearest_point(suggestions: list[int], slots: int) -> None:
    suggested = dict(zip(NAMES, suggestions, strict=False))

    def distance(point: tuple[int, ...]) -> int:
        return sum((suggestion - size) ** 2 for suggestion, size in zip(suggestions, point, strict=True))

    nearest = min(distance(p) for p in product(SIZES, repeat=len(suggestions)) if sum(p) <= slots)
    projected = euclidean(suggested, dict.fromkeys(suggested, SIZES), slots)
    assert sum(projected.values()) <= slots
    assert distance(tuple(projected.values())) == nearest


def test_the_nearest_point_is_not_the_best_split() -> None:
    """Suggestions of 6 and 4; the second operator needs its tasks more."""
    many, few = [10.0 * p for p in SIZES], [15.0 * p for p in SIZES]
    choices = {"a": choice(few, 60.0), "b": choice(many, 60.0)}
    assert balanced(choices, 5)[0] == {"a": 2, "b": 3}
    assert euclidean({"a": 4, "b": 6}, {"a": SIZES, "b": SIZES}, 4) == {"a": 1, "b": 3}


def test_sizes_may_be_multiples() -> None:
    steps = (2, 4, 6)
    assert euclidean({"a": 6, "b": 6}, {"a": steps, "b": steps}, 9) == {"a": 4, "b": 4}
    option = Choice(steps, np.array([20.0, 40.0, 60.0]), 60.0)
    tasks, served = balanced({"a": option, "b": option}, 9)
    assert tasks == {"a": 4, "b": 4}
    assert served == pytest.approx(2 / 3)


def test_a_budget_below_one_task_per_operator_is_refused_with_the_minimum() -> None:
    option = choice([1.0] * len(SIZES), 1.0)
    for project in (
        lambda: balanced({"a": option, "b": option}, 1),
        lambda: euclidean({"a": 3, "b": 3}, {"a": SIZES, "b": SIZES}, 1),
    ):
        with pytest.raises(InvalidValue, match="budget of 1 slots is below the fewest tasks: a=1 b=1"):
            project()
