"""A suite: its sizes, what it makes of its parts, and what a missing cell means to a conclusion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rheostat.errors import InvalidValue
from rheostat.lab.papers import registry
from rheostat.lab.papers.conclusion import UNKNOWN, Conclusion, far_cells, less
from rheostat.lab.papers.parallel import PartFailed
from rheostat.lab.papers.suite import Suite
from rheostat.lab.papers.table import Cell, Table, index

RATES = Table("1", "records/s")
FAST, SLOW, ABSENT = ("1", "fast", "Q1"), ("1", "slow", "Q1"), ("2", "fast", "Q1")
SLOWER = Conclusion("1", "slow is slower", (SLOW, FAST), less, "{0:.0f} against {1:.1f}, paper {1.paper:.0f}")


def broken(_: int) -> float:
    raise ZeroDivisionError("nothing arrived\nin any window")


def rates(found: dict[str, float]) -> list[Cell]:
    return [RATES.cell("slow", "Q1", found["slow"]), RATES.mean("fast", "Q1", [found["fast"], 9.0], 4.0)]


SUITE: Suite[int, dict[str, float]] = Suite(
    name="tiny",
    title="A tiny paper",
    quick=1,
    full=2,
    parts=lambda size: [("slow", float, (size,)), ("fast", float, (5 * size,))],
    alone=lambda size: [("time", float, (size,))],
    gather=lambda size, done: dict(done),
    tables=(rates,),
    conclusions=(SLOWER,),
    findings=lambda cells: far_cells(cells, lambda cell: "another cluster"),
    figures=lambda found, cells: (),
    notes=lambda found: (f"{len(found)} parts",),
)


def silent(what: str, share: float) -> None:
    pass


def test_an_unknown_size_is_named_with_the_nearest_one() -> None:
    with pytest.raises(InvalidValue, match="unknown size 'quik' of tiny, did you mean 'quick'"):
        SUITE.measure("quik", silent, 1)


def test_each_size_runs_its_own_parts_and_what_measures_time_comes_last() -> None:
    told: list[tuple[str, float]] = []
    assert SUITE.measure("quick", lambda *what: told.append(what), 1) == {"slow": 1.0, "fast": 5.0, "time": 1.0}
    assert SUITE.measure("full", silent, 1)["fast"] == 10.0
    assert [name for name, _ in told] == ["slow", "fast", "time"]
    assert [share for _, share in told] == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_a_part_that_raises_surfaces_with_its_first_line() -> None:
    bad = replace(SUITE, parts=lambda size: [("slow", float, (1,)), ("fast", broken, (1,))])
    with pytest.raises(PartFailed, match=r"^fast failed: ZeroDivisionError: nothing arrived$"):
        bad.reproduce("quick", silent, 1)


def test_a_result_has_cells_conclusions_exceptions_and_notes() -> None:
    result = SUITE.reproduce("quick", silent, 1)
    (check,) = result.checks
    assert (check.holds, check.numbers, check.cause) == (True, "1 against 7.0, paper 4", UNKNOWN)
    assert [(finding.what, finding.cause) for finding in result.findings] == [
        ("fast, Q1: 7, paper 4 (+75%)", "another cluster")
    ]
    assert result.notes == ("3 parts",)
    assert [row["suite"] for row in result.rows()] == ["tiny"] * 3
    assert result.rows()[-1]["column"] == "holds"


def test_a_missing_cell_is_an_error_unless_the_conclusion_is_optional() -> None:
    at: Any = index([RATES.cell("fast", "Q1", 1.0)])
    needs = replace(SLOWER, cells=(FAST, ABSENT))
    assert replace(needs, optional=True).check(at) is None
    with pytest.raises(KeyError):
        needs.check(at)


def test_a_cause_may_depend_on_the_cells() -> None:
    at = index([RATES.mean("fast", "Q1", [1.0, 3.0]), RATES.mean("slow", "Q1", [2.0, 4.0])])
    cause = "overlap" if at[FAST].overlaps(at[SLOW]) else "apart"
    check = replace(SLOWER, numbers="", cause=lambda a, b: "overlap" if a.overlaps(b) else "apart").check(at)
    assert check is not None
    assert (check.holds, check.cause) == (False, cause) == (False, "overlap")


def test_a_median_has_the_smallest_and_the_largest_and_a_single_seed_has_neither() -> None:
    cell = RATES.median("fast", "Q1", [3.0, 1.0, 2.0], paper=2.5)
    assert (cell.ours, cell.low, cell.high, cell.inside) == (2.0, 1.0, 3.0, True)
    assert RATES.median("fast", "Q1", [3.0]).low is None


@pytest.mark.parametrize("name", registry.SUITES)
def test_every_paper_is_a_suite_with_both_sizes(name: str) -> None:
    suite = registry.suite(name)
    assert suite.name == name
    assert set(suite.sizes) == {"quick", "full"}
    assert suite.quick != suite.full
    assert suite.conclusions
