from __future__ import annotations

import json
from pathlib import Path

import pytest

from rheostat.lab.papers import registry
from rheostat.lab.papers.conclusion import Conclusion, Finding
from rheostat.lab.papers.result import Drawing
from rheostat.lab.papers.suite import Suite
from rheostat.lab.papers.table import Cell, Table
from rheostat.report.chart.figure import Axis, Figure, Panel

from .conftest import Command

CHANGES = Table("4a", "per tuning")
ONE = (("4a", "DS2", "Q1"),)


def cells(found: str) -> list[Cell]:
    return [
        Cell("4a", "DS2", "Q1", 2.29, 2.3, "per tuning", True, 2.2, 2.4),
        CHANGES.cell("DS2", "mean", 123456.0),
        *(Table("7", "changes").cell("[a] <b>", f"per{k}", float(k)) for k in range(9)),
    ]


TINY = Suite(
    name="tiny",
    title="A tiny paper",
    quick="quickly",
    full="slowly",
    parts=lambda size: [],
    alone=lambda size: [("one half", str, (size,)), ("the other", str, (size,))],
    gather=lambda size, done: done["one half"],
    tables=(cells,),
    conclusions=(
        Conclusion("4a", "A > B", ONE, lambda cell: True, "2, 1"),
        Conclusion("4a", "B > C", ONE, lambda cell: False, "1, 2", "noise <script>"),
    ),
    findings=lambda cells: (Finding("4a", "DS2, Q1", "not [explained]"),),
    figures=lambda found, cells: (Drawing("A figure", Figure("A figure", Axis(), [Panel("y", 200, [])]), "a note"),),
    notes=lambda found: (f"this went {found}",),
)
"""A suite that takes no time."""


@pytest.fixture(autouse=True)
def _one_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "SUITES", {"tiny": f"{__name__}:TINY"})


def test_a_suite_is_printed_with_conclusions_and_exceptions(rheostat: Command) -> None:
    ended = rheostat("reproduce", "tiny", "--quick")
    assert ended.code == 0
    for text in (
        "A tiny paper",
        "this went quickly",
        "Table 4a (per tuning)",
        "2.30*",
        "2.29",
        "123k",
        "tiny: 50%, one half",
    ):
        assert text in ended.out
    assert "holds  4a: A > B (2, 1)" in ended.out
    assert "does not hold  4a: B > C (1, 2): noise <script>" in ended.out
    assert "not [explained]" in ended.out
    assert "[a] <b>" in ended.out


def test_json_holds_cells_and_conclusions(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "tiny.json"
    assert rheostat("reproduce", "all", "--json", file).code == 0
    rows = json.loads(file.read_text())
    names = ["suite", "table", "row", "column", "paper", "ours", "unit", "fitted", "low", "high"]
    assert all(list(row) == names for row in rows)
    assert rows[0] == dict(
        zip(names, ["tiny", "4a", "DS2", "Q1", 2.29, 2.3, "per tuning", True, 2.2, 2.4], strict=True)
    )
    assert [row["ours"] for row in rows if row["column"] == "holds"] == [1.0, 0.0]


def test_a_page_is_written_and_nothing_in_it_can_run(rheostat: Command, tmp_path: Path) -> None:
    page = tmp_path / "tiny.html"
    assert rheostat("reproduce", "tiny", "--html", page).code == 0
    text = page.read_text(encoding="utf-8")
    for part in ("A tiny paper", "A figure", "does not hold", "paper 2.29, 2.2 to 2.4", "fitted"):
        assert part in text
    assert "noise <script>" not in text
    assert "noise &lt;script&gt;" in text


def test_an_unknown_suite_is_named(rheostat: Command) -> None:
    ended = rheostat("reproduce", "tyni")
    assert ended.code == 2
    assert "unknown suite 'tyni'" in ended.err


def test_one_page_cannot_hold_several_suites(
    rheostat: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(registry, "SUITES", {"tiny": f"{__name__}:TINY", "other": f"{__name__}:TINY"})
    ended = rheostat("reproduce", "all", "--html", tmp_path / "both.html")
    assert ended.code == 2
    assert "needs one suite, not all" in ended.err


def test_the_conttune_suite_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert registry.suite("conttune").name == "conttune"
