"""The benches of the planner."""

from __future__ import annotations

import pytest

from rheostat.lab.bench.bids2 import bids2, problem
from rheostat.lab.bench.planner import Planned, _of_estimates, _of_query, estimates
from rheostat.lab.bench.registry import BENCHES


def test_bids2_agrees_with_the_solver() -> None:
    pytest.importorskip("scipy")
    found = {m.measure: m.value for m in bids2(True, lambda _: None)}
    assert set(found) == {"speedup_over_milp", "disagreements", "ms"}
    assert found["disagreements"] == 0


def test_problems_are_of_the_papers_size() -> None:
    for seed in range(50):
        operators, slots = problem(seed)
        assert 2 <= len(operators) <= 9
        assert len(operators) <= slots <= 64


def test_without_noise_ours_is_nearer_and_faster() -> None:
    (their_error, their_minutes), (error, minutes) = estimates(0.0, 1).values()
    assert error < their_error < 0.05
    assert minutes < 0.7 * their_minutes


def test_names_are_the_designs() -> None:
    runs = [Planned(0.03, 0.02, True, 1.5, 1.2, 8, 6, 0.2, 0.1), Planned(0.05, 0.04, False, 1.7, 1.3, 9, 6, 0.3, 0.1)]
    measures = {m.measure: m for m in _of_query("q1", runs)}
    assert measures["slots_error_q1"].value == pytest.approx(0.04)
    assert measures["slots_error_q1"].met
    assert measures["measurements_q1"].value == 8.5
    assert measures["interval_coverage_q1"].value == 0.5
    saved = _of_estimates(0.05, {"paper": (0.03, 9.5), "ours": (0.02, 4.0)})
    assert [m.met for m in saved] == [True, True]
    assert {"bids2", "planner"} <= set(BENCHES)
