from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.lab.bench import registry
from rheostat.lab.bench.measure import Measure
from rheostat.lab.bench.registry import Part
from rheostat.lab.experiment.trial import Progress

from .conftest import Command


@pytest.fixture(autouse=True)
def _two_benches(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(quick: bool, progress: Progress) -> list[Measure]:
        progress("counting")
        return [Measure("one", "quick", float(quick), "", ">= 1", "higher", "a [note]")]

    def two(quick: bool, progress: Progress) -> list[Measure]:
        return [Measure("two", "ms", 2.5, "ms", "<= 10", "lower")]

    monkeypatch.setattr(
        registry,
        "BENCHES",
        {"one": {"count": Part(one, "one of two")}, "two": {"ms": Part(two), "wait": Part(one, slow=True)}},
    )


def test_a_bench_prints_a_table_and_writes_a_list(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    ended = rheostat("bench", "one", "--quick", "--json", file)
    assert ended.code == 0
    assert "one: counting" in ended.out
    assert "a [note]" in ended.out
    assert json.loads(file.read_text()) == [
        {"bench": "one", "measure": "quick", "value": 1.0, "unit": "", "goal": ">= 1", "better": "higher"}
    ]


def test_all_benches_run(rheostat: Command) -> None:
    ended = rheostat("bench", "all", "--quick", "--json", "-")
    assert [row["bench"] for row in json.loads(ended.out)] == ["one", "two"]


def test_all_leaves_out_what_takes_hours(rheostat: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ALONE", frozenset({"two"}))
    ended = rheostat("bench", "all", "--quick", "--json", "-")
    assert [row["bench"] for row in json.loads(ended.out)] == ["one"]


def test_parts_are_asked_for_by_name_and_what_quick_leaves_out_is_said(rheostat: Command) -> None:
    assert "two wait: left out; --only wait measures it" in rheostat("bench", "two", "--quick").out
    assert "one count, quick: one of two" in rheostat("bench", "one", "--quick").out
    asked = rheostat("bench", "two", "--quick", "--only", "wait", "--json", "-")
    assert [row["measure"] for row in json.loads(asked.out)] == ["quick"]
    everything = rheostat("bench", "two", "--json", "-")
    assert [row["measure"] for row in json.loads(everything.out)] == ["ms", "quick"]


def test_a_part_whose_data_are_missing_is_left_out_and_that_is_said(
    rheostat: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = dict(registry.BENCHES["two"])
    benches = {"two": {**parts, "ms": replace(parts["ms"], data=True)}, "one": {"ms": replace(parts["ms"], data=True)}}
    monkeypatch.setattr(registry, "BENCHES", benches)
    monkeypatch.setenv("RHEOSTAT_DATA", str(tmp_path))
    assert "2.5 ms" in rheostat("bench", "two").out
    monkeypatch.setenv("RHEOSTAT_DATA", "nowhere")
    ended = rheostat("bench", "two")
    assert "2.5 ms" not in ended.out
    assert "two ms: left out: no measured data of the papers: $RHEOSTAT_DATA is 'nowhere'" in ended.out
    # Asked for by name, or alone, a part says itself what it lacks.
    assert "2.5 ms" in rheostat("bench", "two", "--only", "ms").out
    assert "2.5 ms" in rheostat("bench", "one").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["two", "--only", "weight"], "bench two has no part 'weight'"),
        (["two", "--days", "3"], "bench two has no --days"),
        (["two", "--minutes", "3"], "bench two has no --minutes"),
        (["all", "--seeds", "3"], "--seeds is an option of one bench"),
        (["two", "--only", "weight"], "its parts: ms, wait"),
        (["all", "--only", "ms"], "--only ms names parts of one bench"),
    ],
)
def test_an_unknown_part_is_named(rheostat: Command, arguments: list[str], says: str) -> None:
    ended = rheostat("bench", *arguments)
    assert ended.code == 2
    assert says in ended.err


def test_an_unknown_bench_is_named(rheostat: Command) -> None:
    ended = rheostat("bench", "oen")
    assert ended.code == 2
    assert "unknown bench 'oen'" in ended.err
