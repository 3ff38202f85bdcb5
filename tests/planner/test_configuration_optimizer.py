"""BIDS2 against HiGHS and by its own properties."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.lab.papers.streambed.side_constraints import Side, solve
from rheostat.planner.configuration_optimizer import OperatorCapacity, bids2, slots_for

pytest.importorskip("scipy")


def random_problem(seed: int) -> tuple[list[OperatorCapacity], int]:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 10))
    capacities = [OperatorCapacity(f"op{k}", float(np.exp(rng.normal(10, 1.5)))) for k in range(count)]
    return capacities, int(rng.integers(count, 64))


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_optimum_of_the_mixed_integer_program(seed: int) -> None:
    problem, slots = random_problem(seed)
    ours, theirs = bids2(problem, slots), solve(problem, slots)
    assert ours.rate_per_s == pytest.approx(theirs.rate_per_s, rel=1e-6)
    assert sum(ours.tasks.values()) == sum(theirs.tasks.values()) == slots


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_optimum_with_curves_and_bounds(seed: int) -> None:
    problem, slots = random_problem(seed)
    rng = np.random.default_rng(seed)
    bent = [replace(a, exponent=float(rng.uniform(0.7, 1.3)), most=slots // 2 + 1) for a in problem]
    assert bids2(bent, slots).rate_per_s == pytest.approx(solve(bent, slots).rate_per_s, rel=1e-6)


@given(st.lists(st.floats(1.0, 1e7), min_size=1, max_size=8), st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_another_slot_never_lowers_the_rate(rates: list[float], spare: int) -> None:
    problem = [OperatorCapacity(f"op{k}", rate) for k, rate in enumerate(rates)]
    slots = len(rates) + spare
    assert bids2(problem, slots + 1).rate_per_s >= bids2(problem, slots).rate_per_s


def test_the_papers_figure_7_by_hand() -> None:
    split = bids2(
        [OperatorCapacity("filter", 100.0), OperatorCapacity("join", 40.0), OperatorCapacity("sink", 1000.0)], 8
    )
    assert split.tasks == {"filter": 2, "join": 5, "sink": 1}
    assert split.rate_per_s == 200.0


def test_an_operator_without_input_gets_one_task() -> None:
    assert bids2([OperatorCapacity("busy", 10.0), OperatorCapacity("idle", math.inf)], 5).tasks == {
        "busy": 4,
        "idle": 1,
    }


def test_tasks_come_in_whole_executors() -> None:
    split = bids2([OperatorCapacity("job", 10.0, least=4, most=40, quantum=4)], 18)
    assert split.tasks == {"job": 16}


def test_the_inverse_carries_the_rate_with_the_fewest_tasks() -> None:
    problem = [OperatorCapacity("a", 100.0, 0.9), OperatorCapacity("b", 40.0)]
    tasks = slots_for(problem, 500.0)
    assert all(a.carries_per_s(tasks[a.name]) >= 500.0 > a.carries_per_s(tasks[a.name] - 1) for a in problem)


def test_side_constraints_bind() -> None:
    problem = [OperatorCapacity("light", 100.0), OperatorCapacity("heavy", 100.0)]
    split = solve(problem, 10, [Side({"light": 1.0, "heavy": 4.0}, most=22.0)])
    assert split.tasks == {"light": 6, "heavy": 4}
    same = solve(problem, 10, [Side({"light": 1.0, "heavy": -1.0}, least=4.0, most=4.0)])
    assert same.tasks == {"light": 7, "heavy": 3}
    with pytest.raises(InvalidValue, match="side constraints"):
        solve(problem, 10, [Side({"light": 1.0, "heavy": 1.0}, most=9.0)])


@pytest.mark.parametrize(
    ("problem", "slots", "message"),
    [
        ([], 4, "at least one operator"),
        ([OperatorCapacity("a", 1.0), OperatorCapacity("b", 1.0)], 1, "too few"),
        ([OperatorCapacity("a", 1.0, most=2)], 3, "at most 2"),
    ],
)
def test_impossible_problems_are_refused(problem: list[OperatorCapacity], slots: int, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        bids2(problem, slots)
