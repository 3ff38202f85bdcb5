from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.cli.reproduce import tables
from rheostat.errors import PolicyError
from rheostat.lab.experiment.grounds import GROUNDS, OURS, PUBLISHED
from rheostat.lab.papers import registry, verdicts
from rheostat.lab.papers.claim import Ablation, Claim, less
from rheostat.lab.papers.grounds import SUITE as GROUNDS_SUITE
from rheostat.lab.papers.grounds.runs import Played
from rheostat.lab.papers.parallel import Task, run_part
from rheostat.lab.papers.result import Drawing, Fit
from rheostat.lab.papers.suite import Suite
from rheostat.lab.papers.table import Cell, Table
from rheostat.report.chart.figure import Axis, Figure, Panel

from .conftest import Command

CHANGES = Table("4a", "per tuning")
FEW, MANY = ("4a", "ContTune", "Q1"), ("4a", "DS2", "Q1")


def cells(found: str) -> list[Cell]:
    return [
        CHANGES.mean("DS2", "Q1", [2.2, 2.3, 2.4], 2.29, fitted=True),
        CHANGES.mean("ContTune", "Q1", [1.2, 1.3, 1.5], 1.29),
        CHANGES.exact("DS2", "mean", 123456.0, 2.4),
        *(Table("7", "changes").cell("[a] <b>", f"per{k}", float(k)) for k in range(9)),
    ]


TINY: Suite[str, str] = Suite(
    name="tiny",
    title="A tiny paper",
    quick="quickly",
    full="slowly",
    parts=lambda size: [],
    alone=lambda size: [("one half", str, (size,)), ("the other", str, (size,))],
    gather=lambda size, done: str(done["one half"]),
    tables=(cells,),
    claims=(
        Claim("4a", "ContTune < DS2", (less(FEW, MANY),)),
        Claim("4a", "DS2 < ContTune", (less(MANY, FEW),), goal=True),
        Claim(
            "4a",
            "DS2 < ContTune, too",
            (less(MANY, FEW),),
            ablation=Ablation("noise <script>", (less(FEW, MANY),), "rheostat reproduce tiny"),
        ),
    ),
    fits=(Fit("the noise", "DS2's row", "4a: DS2"),),
    figures=lambda found, cells: (Drawing("A figure", Figure("A figure", Axis(), [Panel("y", 200, [])]), "a note"),),
    notes=lambda found: (f"this went {found}",),
)
"""A suite that takes no time."""


def fail() -> None:
    raise PolicyError("ds2 failed: KeyError: no such rate (step 3, at 60 s)")


BROKEN = replace(TINY, name="broken", alone=lambda size: [("one half", fail, ()), ("the other", str, (size,))])
WORSE = replace(TINY, claims=(Claim("4a", "ContTune < DS2", (less(MANY, FEW),)), *TINY.claims[1:]))


@pytest.fixture(autouse=True)
def _one_suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "SUITES", {"tiny": f"{__name__}:TINY"})
    monkeypatch.setattr(verdicts, "verdict_file", lambda size: tmp_path / "recorded" / f"{size}.json")


def test_a_suite_is_printed_with_claims_fits_and_differences(rheostat: Command) -> None:
    ended = rheostat("reproduce", "tiny", "--quick")
    assert ended.code == 0
    for text in (
        "A tiny paper",
        "this went quickly",
        "Table 4a (per tuning)",
        "2.30*",
        "2.29",
        "123k",
        "50%, tiny: one half",
        "[a] <b>",
        "tiny: the noise, to DS2's row (in 4a: DS2)",
    ):
        assert text in ended.out
    text = " ".join(ended.out.split())
    assert "holds 4a: ContTune < DS2 [fitted: DS2 in 4a] (ContTune (Q1) less DS2 (Q1): -0.9667" in text
    assert "does not hold 4a: our goal: DS2 < ContTune [fitted" in text
    assert "noise <script>; without that it holds: rheostat reproduce tiny, 4a" in text
    assert "DS2, mean: 1.235e+05, paper 2.4 (+5143900%): not explained" in text


@pytest.mark.parametrize(("rows", "columns", "parts"), [(3, 8, [8]), (3, 9, [3]), (14, 14, [8, 6]), (20, 9, [8, 1])])
def test_a_table_is_as_wide_as_a_terminal(rows: int, columns: int, parts: list[int]) -> None:
    wide = [CHANGES.exact(f"row {r}", f"column {c}", 1.0) for r in range(rows) for c in range(columns)]
    assert [len(table.columns) - 1 for table in tables(wide)] == parts


def test_json_holds_cells_and_claims(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "tiny.json"
    assert rheostat("reproduce", "all", "--json", file).code == 0
    rows = json.loads(file.read_text())
    names = ["suite", "table", "row", "column", "paper", "ours", "unit", "fitted", "low", "high"]
    of_cells = [row for row in rows if "claim" not in row]
    assert all(list(row) == names for row in of_cells)
    assert {key: rows[0][key] for key in names[:8]} == dict(
        zip(names, ["tiny", "4a", "DS2", "Q1", 2.29, pytest.approx(2.3), "per tuning", True], strict=False)
    )
    claims = [row for row in rows if "claim" in row]
    assert [row["verdict"] for row in claims] == ["holds", "does not hold", "does not hold"]
    assert claims[0]["claim"] == "4a: ContTune < DS2"
    assert all(row["low"] <= row["ours"] <= row["high"] and row["fitted"] is True for row in claims)
    assert claims[1]["cause"] == "not explained"


def test_a_page_is_written_and_nothing_in_it_can_run(rheostat: Command, tmp_path: Path) -> None:
    page = tmp_path / "tiny.html"
    assert rheostat("reproduce", "tiny", "--html", page).code == 0
    text = page.read_text(encoding="utf-8")
    for part in ("A tiny paper", "A figure", "does not hold", "paper 2.29, 2.05 to 2.55", "DS2&#39;s row"):
        assert part in text
    assert "fitted: DS2 in 4a" in text
    assert "noise <script>" not in text
    assert "noise &lt;script&gt;" in text


def test_an_unknown_suite_is_named(rheostat: Command) -> None:
    ended = rheostat("reproduce", "tyni")
    assert ended.code == 2
    assert "unknown suite 'tyni'" in ended.err


class TestAll:
    @pytest.fixture(autouse=True)
    def _two_suites(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "SUITES", {"tiny": f"{__name__}:TINY", "broken": f"{__name__}:BROKEN"})

    def test_a_failed_policy_fails_its_suite_by_name_and_the_command(self, rheostat: Command, tmp_path: Path) -> None:
        ended = rheostat("reproduce", "all", "--html", tmp_path / "all.html", "--json", tmp_path / "all.json")
        assert ended.code == 1
        assert "broken failed: broken: one half: ds2 failed: KeyError: no such rate" in " ".join(ended.out.split())
        assert "holds  4a: ContTune < DS2" in ended.out
        text = (tmp_path / "all.html").read_text(encoding="utf-8")
        assert "no such rate" in text
        assert {row["suite"] for row in json.loads((tmp_path / "all.json").read_text())} == {"tiny"}

    def test_a_failed_policy_fails_a_single_suite(self, rheostat: Command) -> None:
        ended = rheostat("reproduce", "broken")
        assert ended.code == 1
        assert "error: broken: one half: ds2 failed" in ended.err

    def test_a_failed_suite_is_not_recorded(self, rheostat: Command, tmp_path: Path) -> None:
        assert rheostat("reproduce", "all", "--record").code == 1
        assert not (tmp_path / "recorded").exists()

    def test_one_page_has_all_claims_and_what_was_fitted(
        self, rheostat: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registry, "SUITES", {"tiny": f"{__name__}:TINY"})
        assert rheostat("reproduce", "all", "--html", tmp_path / "all.html").code == 0
        text = (tmp_path / "all.html").read_text(encoding="utf-8")
        for part in ("1 (1)", "2 (2)", "0 (0)", "DS2 &lt; ContTune, too", "the noise", "A tiny paper"):
            assert part in text
        assert "Cost over the oracle" not in text


def play_all(size: object) -> list[Played]:
    """Made-up runs of three seeds: anticipate costs half of DS2, and about as much as HPA."""
    prices = {"ds2": 240.0, "anticipate": 120.0, "hpa": 120.0}
    return [
        Played(name, seed, prices.get(name, 180.0) + (seed + len(name)) % 3 - 1, 100.0, 90.0, 5.0, 2.5, 48.0, 3.0, 1.0)
        for name in (*PUBLISHED, *OURS, "oracle")
        for seed in range(3)
    ]


def all_grounds(size: object) -> list[Task]:
    return [(f"{name}, seeds 0 to 2", play_all, (size,)) for name in GROUNDS if not GROUNDS[name].trace]


MADE_UP = replace(GROUNDS_SUITE, parts=all_grounds)
"""The grounds with runs that take no time."""


class TestGrounds:
    @pytest.fixture(autouse=True)
    def _paper_and_grounds(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(registry, "SUITES", {"tiny": f"{__name__}:TINY", "grounds": f"{__name__}:MADE_UP"})
        monkeypatch.setenv("RHEOSTAT_DATA", str(tmp_path))
        monkeypatch.setattr("rheostat.cli.reproduce._runner", lambda *_: lambda tasks: map(run_part, tasks))

    def test_all_prints_every_policy_on_every_ground_and_where_ours_is_better_or_worse(self, rheostat: Command) -> None:
        ended = rheostat("reproduce", "all", "--quick")
        assert ended.code == 0
        text = " ".join(ended.out.split())
        assert "Cost over the oracle by ground" in text
        assert "drift-down static 1.80 1.78 to 1.82 48.0 2.5 3.0" in text
        assert "anticipate against the others" in text
        better = text.partition("anticipate against the others")[2].partition("rough:")[2]
        assert better.startswith(" better than static (0.67, 0.65 to 0.69), dhalion")
        assert "ds2 (0.50, 0.49 to 0.51)" in better
        assert "cannot be told from hpa (1.00" in better
        assert "No alibaba: there is no trace 'alibaba_5min'" in text
        assert "grounds │" in ended.out

    def test_the_rows_of_the_json_file_have_the_form_of_all_others(self, rheostat: Command, tmp_path: Path) -> None:
        assert rheostat("reproduce", "all", "--quick", "--json", tmp_path / "all.json").code == 0
        rows = [row for row in json.loads((tmp_path / "all.json").read_text()) if row["suite"] == "grounds"]
        names = ["suite", "table", "row", "column", "paper", "ours", "unit", "fitted", "low", "high"]
        cells = [row for row in rows if "claim" not in row]
        assert all(list(row) == names for row in cells)
        (cell,) = [row for row in cells if [row[k] for k in names[1:4]] == ["cost over oracle", "ds2", "rough"]]
        assert cell["ours"] == pytest.approx(2.4)
        assert cell["low"] < cell["ours"] < cell["high"]
        assert cell["paper"] is None
        for table, value in (
            ("changes per day", 48.0),
            ("minutes over the SLO", 2.5),
            ("cost of anticipate over", 0.5),
        ):
            (cell,) = [row for row in cells if [row[k] for k in names[1:4]] == [table, "ds2", "rough"]]
            assert cell["ours"] == pytest.approx(value)
        claims = {row["claim"]: row["verdict"] for row in rows if "claim" in row}
        goal = "cost: {} costs no more than any published policy on rough"
        assert claims[goal.format("conttune:model=loglog")] == "does not hold"
        assert not any("alibaba" in claim for claim in claims)

    def test_the_page_has_costs_changes_and_standings(self, rheostat: Command, tmp_path: Path) -> None:
        assert rheostat("reproduce", "all", "--quick", "--html", tmp_path / "all.html").code == 0
        text = (tmp_path / "all.html").read_text(encoding="utf-8")
        for part in (
            "Cost over the oracle by ground",
            '<th class="number">drift-down</th>',
            "2.5 min, 3 short",
            "anticipate against the others",
            "better, 0.486 to 0.514",
        ):
            assert part in text


class TestStrict:
    def test_the_record_is_kept_and_compared(self, rheostat: Command, tmp_path: Path) -> None:
        assert rheostat("reproduce", "tiny", "--quick", "--record").code == 0
        stored = json.loads((tmp_path / "recorded" / "quick.json").read_text())
        assert stored["tiny"]["4a: ContTune < DS2"] == "holds"
        ended = rheostat("reproduce", "tiny", "--quick", "--strict")
        assert ended.code == 0
        assert "nothing is worse" in ended.out

    def test_what_held_and_does_not_exits_1(self, rheostat: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        assert rheostat("reproduce", "tiny", "--quick", "--record").code == 0
        monkeypatch.setattr(registry, "SUITES", {"tiny": f"{__name__}:WORSE"})
        ended = rheostat("reproduce", "tiny", "--quick", "--strict")
        assert ended.code == 1
        assert "worse: tiny, 4a: ContTune < DS2: does not hold, recorded as 'holds'" in " ".join(ended.out.split())

    def test_without_a_record_it_says_so_and_exits_1(self, rheostat: Command) -> None:
        ended = rheostat("reproduce", "tiny", "--strict")
        assert ended.code == 1
        assert "tiny: no verdicts are recorded" in ended.out

    def test_a_claim_that_does_not_hold_is_no_error_without_strict(self, rheostat: Command) -> None:
        assert rheostat("reproduce", "tiny", "--quick").code == 0

    def test_comparing_and_replacing_at_once_is_refused(self, rheostat: Command) -> None:
        ended = rheostat("reproduce", "tiny", "--strict", "--record")
        assert ended.code == 2
        assert "give one of them" in ended.err


def test_the_conttune_suite_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert registry.suite("conttune").name == "conttune"
