"""Claims: verdicts from paired runs, what tolerance does, fitted cells, causes with an ablation behind them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.lab.papers.claim import (
    FAILS,
    HOLDS,
    UNDECIDED,
    UNEXPLAINED,
    UNKNOWN,
    VERDICTS,
    Ablation,
    Claim,
    Comparison,
    Judgement,
    always,
    at_least,
    at_most,
    less,
    near_paper,
    not_more,
    ratio,
)
from rheostat.lab.papers.difference import INSIDE, differences
from rheostat.lab.papers.table import Cell, Place, Table, index

CHANGES = Table("1", "changes")
FEW, MANY, SAME = ("1", "few", "Q1"), ("1", "many", "Q1"), ("1", "same", "Q1")
LOW, HIGH = [1.0, 2.0, 3.0, 2.0], [4.0, 5.0, 6.5, 5.0]
CELLS = (
    CHANGES.mean("few", "Q1", LOW, 2.0),
    CHANGES.mean("many", "Q1", HIGH, 4.0, fitted=True),
    CHANGES.mean("same", "Q1", [value + noise for value, noise in zip(LOW, (0.1, -0.1, 0.1, -0.1), strict=True)]),
    CHANGES.exact("bound", "Q1", 3.5),
    CHANGES.cell("one run", "Q1", 1.0),
)


def judged(*parts: Comparison, cells: tuple[Cell, ...] = CELLS, ablation: Ablation | None = None) -> Judgement:
    judgement = Claim("1", "a claim", parts, ablation=ablation).judge(index(cells))
    assert judgement is not None
    return judgement


def test_a_claim_holds_fails_or_cannot_be_told() -> None:
    assert judged(less(FEW, MANY)).verdict == HOLDS
    assert judged(less(MANY, FEW)).verdict == FAILS
    assert judged(less(FEW, SAME)).verdict == UNKNOWN
    assert judged(not_more(SAME, FEW, 0.5)).verdict == HOLDS


def test_pairs_decide_where_single_intervals_overlap() -> None:
    """The old verdict compared two means; the cells' own intervals overlap here, and the pairs do not."""
    common = np.random.default_rng(1).normal(0.0, 5.0, 20)
    noise = np.random.default_rng(2).normal(0.0, 0.1, 20)
    cells = (CHANGES.mean("few", "Q1", list(20 + common + noise)), CHANGES.mean("many", "Q1", list(21 + common)))
    few, many = cells
    assert few.high is not None
    assert many.low is not None
    assert few.high > many.low
    assert judged(less(FEW, MANY), cells=cells).verdict == HOLDS


def test_equal_cells_are_not_less_and_not_more() -> None:
    cells = (CHANGES.mean("few", "Q1", [3.0] * 6), CHANGES.mean("many", "Q1", [3.0] * 6))
    assert judged(less(FEW, MANY), cells=cells).verdict == FAILS
    assert judged(not_more(FEW, MANY), cells=cells).verdict == HOLDS


def test_a_part_refutes_only_with_the_confidence_of_all_parts() -> None:
    cells = tuple(CHANGES.mean("few", f"Q{k}", [1.0, 3.0, 1.0, 3.0]) for k in range(8))
    barely = Comparison((("1", "few", "Q0"),), "above", 3.9)
    rest = tuple(Comparison((("1", "few", f"Q{k}"),), "below", 9.0) for k in range(1, 8))
    assert judged(barely, cells=cells).verdict == FAILS
    assert judged(barely, *rest, cells=cells).verdict == UNKNOWN


def test_a_conjunction_has_its_worst_verdict_and_shows_what_decides() -> None:
    both = judged(less(FEW, MANY), less(FEW, SAME))
    assert (both.verdict, both.held, both.decisive) == (UNKNOWN, 1, less(FEW, SAME))
    assert judged(less(FEW, SAME), less(MANY, FEW)).verdict == FAILS
    assert "1 of 2 comparisons hold" in both.numbers


def test_exact_numbers_and_single_runs() -> None:
    bound: Place = ("1", "bound", "Q1")
    assert judged(*at_most(3.5, bound)).verdict == HOLDS
    assert judged(less(FEW, bound)).verdict == HOLDS
    assert judged(*at_most(3.0, bound)).verdict == FAILS
    zero = CHANGES.exact("zero", "Q1", 0.0)
    assert judged(ratio(bound, ("1", "zero", "Q1"), "below", 1.0), cells=(*CELLS, zero)).verdict == UNKNOWN
    single = judged(*at_most(99.0, ("1", "one run", "Q1")))
    assert single.verdict == UNKNOWN
    assert math.isinf(single.estimate.high)


def test_different_seeds_are_not_compared() -> None:
    cells = (CHANGES.mean("few", "Q1", [1.0, 2.0, 3.0]), CHANGES.mean("many", "Q1", [1.0, 2.0]))
    with pytest.raises(ValueError, match="needs the same seeds in all of its cells, not 1 few Q1: 3"):
        judged(Comparison((FEW, MANY), "below", 1.0), cells=cells)


def test_the_papers_own_quantity_stands_beside_ours() -> None:
    found = judged(ratio(FEW, MANY, "below", 1.0))
    assert found.paper == 0.5
    assert "paper 0.5" in found.numbers
    assert judged(less(FEW, SAME)).paper is None


def test_a_paper_of_zero_is_compared_by_difference() -> None:
    steps = [0.0, 0.02, -0.02, 0.0, 0.01, -0.01]
    none = CHANGES.mean("few", "Q1", steps, 0.0)
    assert judged(near_paper(FEW, 0.1), cells=(none,)).verdict == HOLDS
    assert judged(near_paper(FEW, 0.001), cells=(none,)).verdict == UNKNOWN
    relative = judged(near_paper(MANY, 0.5)).estimate
    assert relative.value == pytest.approx(np.mean(HIGH) / 4.0 - 1)
    assert not none.off(0.1)
    (far,) = differences([CHANGES.mean("few", "Q1", [5.0, 6.0, 5.5], 0.0)])
    assert far.what == "few, Q1: 5.5, paper 0"


def test_yes_and_no_are_compared_as_such() -> None:
    met = Table("IV, meets QoS", "% of runs")
    never, mostly = met.share("DRS", "Up", [False] * 6, False), met.share("DRS", "Down", [True] * 5 + [False], False)
    assert not never.off(0.1)
    assert mostly.off(0.1)
    (far,) = differences([never, mostly])
    assert far.what == "DRS, Down: yes in 83 % of the runs, paper no"
    place: Place = ("IV, meets QoS", "DRS", "Up")
    assert judged(Comparison((place,), "below", 50.0), cells=(never,)).verdict == HOLDS
    assert judged(Comparison((place,), "below", 40.0), cells=(never,)).verdict == UNKNOWN


def test_always_needs_many_runs_and_one_counterexample_refutes_it() -> None:
    place: Place = ("budget", "DS2", "kept")

    def verdict(flags: list[bool]) -> str:
        return judged(*always(place), cells=(Table("budget", "share of runs").share("DS2", "kept", flags),)).verdict

    assert verdict([True] * 20) == HOLDS
    assert verdict([True] * 6) == UNKNOWN
    assert verdict([True] * 99 + [False]) == FAILS


def test_a_claim_about_fitted_cells_says_so() -> None:
    assert judged(less(FEW, MANY)).fitted_text == "fitted: many in 1"
    assert judged(less(FEW, SAME)).fitted_text == ""


def test_a_cause_needs_an_ablation_that_holds() -> None:
    assert judged(less(MANY, FEW)).cause == UNEXPLAINED
    helps = Ablation("Big counts", (less(FEW, MANY),), "rheostat reproduce tiny")
    found = judged(less(MANY, FEW), ablation=helps)
    assert found.cause == "Big counts; without that it holds: rheostat reproduce tiny, 1"
    idle = Ablation("the weather", (less(FEW, SAME),), "rheostat reproduce tiny")
    assert judged(less(MANY, FEW), ablation=idle).cause == UNEXPLAINED
    assert judged(less(FEW, SAME), ablation=helps).cause == UNDECIDED
    assert judged(less(FEW, MANY), ablation=helps).cause == ""


def test_a_cell_that_differs_has_no_canned_cause() -> None:
    far, near = CHANGES.mean("few", "Q1", [9.0, 9.1, 9.2], 4.0), CHANGES.mean("few", "Q2", [1.0, 9.0, 5.0], 4.0)
    assert [found.cause for found in differences([far, near])] == [UNEXPLAINED, INSIDE]


def test_a_missing_cell_is_an_error_unless_the_claim_is_optional() -> None:
    needs = Claim("2", "absent", at_least(1.0, ("2", "few", "Q1")))
    assert replace(needs, optional=True).judge(index(CELLS)) is None
    with pytest.raises(KeyError):
        needs.judge(index(CELLS))


samples = st.lists(st.floats(-50, 50), min_size=3, max_size=24)
directions = st.sampled_from(["below", "at most", "above", "at least", "within"])


@given(samples, directions, st.floats(-20, 20), st.floats(0, 10), st.floats(0, 10))
def test_more_tolerance_never_makes_a_verdict_worse(
    values: list[float], direction: str, limit: float, tolerance: float, more: float
) -> None:
    at = index([CHANGES.mean("few", "Q1", values)])
    strict = Comparison((FEW,), direction, limit, tolerance)  # type: ignore[arg-type]
    lenient = replace(strict, tolerance=tolerance + more)
    before, after = (each.judge(at) for each in (strict, lenient))
    assert VERDICTS.index(after) >= VERDICTS.index(before)


@given(samples, st.floats(-20, 20))
def test_a_claim_and_its_opposite_never_both_hold(values: list[float], limit: float) -> None:
    at = index([CHANGES.mean("few", "Q1", values)])
    sides = [Comparison((FEW,), "at most", limit), Comparison((FEW,), "above", limit)]
    verdicts = [each.judge(at) for each in sides]
    assert verdicts != [HOLDS, HOLDS]
    assert (verdicts[0] == UNKNOWN) == (verdicts[1] == UNKNOWN)


@pytest.mark.parametrize("comparisons", [1, 8])
def test_a_true_claim_is_refuted_in_at_most_5_percent(comparisons: int) -> None:
    """The verdict's own error, also of many comparisons at once: every truth sits at its limit."""
    rng = np.random.default_rng(0)
    places: list[Place] = [("1", "few", f"Q{k}") for k in range(comparisons)]
    claim = Claim("1", "none is above zero", at_most(0.0, *places))
    wrong = 0
    for _ in range(500):
        at = index(CHANGES.mean("few", place[2], list(rng.normal(0.0, 1.0, 20))) for place in places)
        judgement = claim.judge(at)
        assert judgement is not None
        wrong += judgement.verdict == FAILS
    assert wrong / 500 <= 0.05
