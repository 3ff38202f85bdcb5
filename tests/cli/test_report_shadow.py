"""`rheostat report --shadow`: the score of a dry run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from charts import charts

from .conftest import Command


@pytest.fixture
def journal(rheostat: Command, tmp_path: Path) -> Path:
    """A dry run over a simulated job that starts at the size of its peak."""
    file, config = tmp_path / "journal.db", tmp_path / "run.yaml"
    config.write_text("job: wordcount\nload: permutation\npolicy: ds2\nguards: {dry_run: true}\nslo: {max_lag_s: 30}\n")
    assert rheostat("simulate", config, "--duration", 7200, "--journal", file).code == 0
    return file


def test_a_dry_run_is_scored(rheostat: Command, journal: Path, tmp_path: Path) -> None:
    file = tmp_path / "score.json"
    ended = rheostat("report", journal, "--shadow", "--json", file)
    assert ended.code == 0, ended.err
    assert "slot-hours" in ended.out
    assert "How sure:" in ended.out
    score = json.loads(file.read_text())
    assert score["job"] == "wordcount"
    assert score["shadow_unit_s"] < score["real_unit_s"]
    assert score["saved_unit_h"] == pytest.approx((score["real_unit_s"] - score["shadow_unit_s"]) / 3600)
    assert score["usable_share"] > 0.9


def test_a_dry_run_has_a_page(rheostat: Command, journal: Path, tmp_path: Path) -> None:
    file = tmp_path / "shadow.html"
    ended = rheostat("report", journal, "--shadow", "--out", file, "--json", tmp_path / "score.json")
    assert ended.code == 0, ended.err
    assert f"wrote {file}" in ended.out
    page = file.read_text()
    chart = charts(page)["shadow"]
    really, dry = chart.line("really ran"), chart.line("dry run")
    assert set(really.y) == {25.0}
    assert min(size for size in dry.y if size is not None) < 20.0
    for name in ("load (arriving)", "backlog, really", "backlog, dry run", "lag, really", "lag, dry run", "SLO"):
        assert chart.line(name).y, name
    score = json.loads((tmp_path / "score.json").read_text())
    assert f"{score['saved_unit_h']:.2f} saved" in page
    assert "How sure:" in page


def test_the_page_can_go_to_stdout_alone(rheostat: Command, journal: Path) -> None:
    ended = rheostat("report", journal, "--shadow", "--out", "-")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("<!DOCTYPE html>")
    assert "How sure:" in ended.err


def test_a_run_that_applied_its_decisions_is_not(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    assert rheostat("simulate", "--job", "wordcount", "--duration", 600, "--journal", file).code == 0
    ended = rheostat("report", file, "--shadow")
    assert ended.code == 2
    assert "attach with dry_run=True" in ended.err


def test_a_page_has_no_json(rheostat: Command, journal: Path, tmp_path: Path) -> None:
    ended = rheostat("report", journal, "--json", tmp_path / "a.json")
    assert ended.code == 2
    assert "--json is of --shadow" in ended.err
