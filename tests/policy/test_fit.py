"""Fitting tasks to bounds, quantum and slots."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.job.fit import MOST_TASKS, fit_tasks, round_up
from rheostat.job.slo import Bounds, Limits
from rheostat.policy.fit import fit_one
from rheostat.testing.situations import limits_of, situation, window, word_count


@pytest.mark.parametrize(
    ("count", "whole"),
    [
        pytest.param(0.0, 0, id="nothing"),
        pytest.param(2.0, 2, id="whole"),
        pytest.param(2.01, 3, id="a little more"),
        pytest.param(2.0000000001, 2, id="binary fraction above"),
        pytest.param(1.9999999999, 2, id="binary fraction below"),
        pytest.param(0.1 + 0.2 + 2.7, 3, id="a sum of fractions"),
        pytest.param(math.inf, MOST_TASKS, id="infinite"),
    ],
)
def test_rounding_up(count: float, whole: int) -> None:
    assert round_up(count) == whole


@pytest.mark.parametrize(
    ("wanted", "bounds", "quantum", "tasks"),
    [
        pytest.param(2.3, Bounds(1, 10), 1, 3, id="rounded up"),
        pytest.param(0.0, Bounds(1, 10), 1, 1, id="at least the minimum"),
        pytest.param(0.0, Bounds(3, 10), 2, 4, id="minimum rounded up to the quantum"),
        pytest.param(5.0, Bounds(1, 10), 4, 8, id="up to a multiple"),
        pytest.param(99.0, Bounds(1, 10), 1, 10, id="at most the maximum"),
        pytest.param(99.0, Bounds(1, 10), 4, 8, id="the last multiple below the maximum"),
        pytest.param(1.0, Bounds(5, 7), 4, 5, id="no multiple between the bounds: the bounds take precedence"),
        pytest.param(math.inf, Bounds(1, None), 1, MOST_TASKS, id="infinite without a maximum"),
    ],
)
def test_fitting_one_count(wanted: float, bounds: Bounds, quantum: int, tasks: int) -> None:
    assert fit_tasks(Limits({"split": bounds}, Bounds(), {"split": quantum}), "split", wanted) == tasks


@pytest.mark.parametrize(
    ("wanted", "slots", "tasks"),
    [
        pytest.param({"split": 4, "count": 8}, Bounds(), (4, 8), id="no limit"),
        pytest.param({"split": 4}, Bounds(), (4, 2), id="without a suggestion it keeps its tasks"),
        pytest.param({"split": 10, "count": 20}, Bounds(1, 15), (5, 10), id="both cut by the same ratio"),
        pytest.param({"split": 1, "count": 20}, Bounds(1, 11), (1, 10), id="one task cannot be halved"),
        pytest.param({"split": 4, "count": 8}, Bounds(24), (8, 16), id="both raised by the same ratio"),
        pytest.param({"split": 0, "count": 0}, Bounds(6), (3, 3), id="no suggestion at all, but slots to fill"),
        pytest.param({"split": 8, "count": 8}, Bounds(1, 11), (6, 5), id="equal suggestions fill an odd budget"),
        pytest.param({"split": 7.2, "count": 7.9}, Bounds(1, 11), (5, 6), id="the scarcer one gets the odd slot"),
        pytest.param({"split": 1, "count": 1}, Bounds(3), (2, 1), id="equal suggestions fill an odd minimum"),
    ],
)
def test_fitting_an_allocation_into_the_slots(wanted: dict[str, float], slots: Bounds, tasks: tuple[int, int]) -> None:
    spec = word_count()
    at = situation(spec, window(spec, 100.0, 2, 100.0), None, limits=limits_of(spec, slots))
    assert tuple(at.fit(wanted).tasks.values()) == tasks


@pytest.mark.parametrize(
    ("wanted", "slots", "tasks"),
    [
        pytest.param(9, Bounds(), (9, 4), id="no limit"),
        pytest.param(9, Bounds(1, 10), (6, 4), id="only what the other leaves"),
        pytest.param(1, Bounds(7), (3, 4), id="not below the job's minimum"),
        pytest.param(9, Bounds(1, 4), (3, 1), id="the other alone is too many"),
    ],
)
def test_fitting_one_operator(wanted: float, slots: Bounds, tasks: tuple[int, int]) -> None:
    spec = word_count()
    at = situation(spec, window(spec, 100.0, 4, 100.0), None, limits=limits_of(spec, slots))
    assert tuple(fit_one(at, "split", wanted).tasks.values()) == tasks


@given(
    st.floats(0, 500),
    st.floats(0, 500),
    st.integers(1, 5),
    st.integers(0, 60),
    st.integers(1, 6),
    st.integers(2, 200),
)
def test_the_slots_are_respected_if_the_minima_allow_it(
    split: float, count: float, least: int, more: int, quantum: int, slots: int
) -> None:
    spec = word_count(Bounds(least, least + more), quantum)
    limits = limits_of(spec, Bounds(1, slots))
    at = situation(spec, window(spec, 100.0, least, 100.0), None, limits=limits)
    target = at.fit({"split": split, "count": count})
    smallest = 2 * fit_tasks(limits, "split", 0)
    assert target.slots <= max(slots, smallest)
    wanted = sum(fit_tasks(limits, name, tasks) for name, tasks in (("split", split), ("count", count)))
    assert target.slots > min(slots, wanted) - quantum, "a slot is left that an operator could use"
    for name in target.tasks:
        assert limits.operators[name].clip(target.tasks[name]) == target.tasks[name]
