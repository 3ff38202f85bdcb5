from __future__ import annotations

import json
from pathlib import Path

import pytest

from rheostat.lab.bench import registry
from rheostat.lab.bench.measure import Measure, Progress

from .conftest import Command


@pytest.fixture(autouse=True)
def _two_benches(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(quick: bool, progress: Progress) -> list[Measure]:
        progress("counting")
        return [Measure("one", "quick", float(quick), "", ">= 1", "higher", "a [note]")]

    def two(quick: bool, progress: Progress) -> list[Measure]:
        return [Measure("two", "ms", 2.5, "ms", "<= 10", "lower")]

    monkeypatch.setattr(registry, "BENCHES", {"one": one, "two": two})


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
    ended = rheostat("bench", "all", "--json", "-")
    assert [row["bench"] for row in json.loads(ended.out)] == ["one", "two"]


def test_an_unknown_bench_is_named(rheostat: Command) -> None:
    ended = rheostat("bench", "oen")
    assert ended.code == 2
    assert "unknown bench 'oen'" in ended.err
