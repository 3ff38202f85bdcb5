from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Command

QUICKLY = ("--max-slots", "8", "--budget-minutes", "15")


def test_a_plan_is_made_kept_and_gone_on_with(rheostat: Command, tmp_path: Path) -> None:
    journal, file, page = tmp_path / "plan.db", tmp_path / "plan.json", tmp_path / "plan.html"
    ended = rheostat(
        "plan",
        "streambed-q1",
        "--rate",
        "2e7",
        *QUICKLY,
        "--verify",
        "--journal",
        journal,
        "--json",
        file,
        "--html",
        page,
    )
    assert ended.code == 0, ended.err
    assert "next: 2 slots of 4096 MB, the smallest size" in ended.out
    assert "at 150%" in ended.out
    found = json.loads(file.read_text())
    assert found["plan"]["allocation"]["tasks"]["calc"] > 8
    assert found["plan"]["verified"]["150%"] == "not sustained"
    assert "streambed-q1: 0 steps, 0 differences" in rheostat("replay", journal).out
    assert "Response surface" in page.read_text(encoding="utf-8")
    again = rheostat("plan", "streambed-q1", "--rate", "1e7", *QUICKLY, "--journal", journal)
    assert again.code == 0
    assert f"the journal already has {len(found['measurements'])} measurements of streambed-q1" in again.out
    assert "next:" not in again.out
    assert "the journal already has 3 runs of planned sizes" in again.out
    simulated = rheostat(
        "simulate", "--job", "streambed-q1", "--load", "constant", "--duration", "300", "--journal", journal
    )
    assert simulated.code == 0, simulated.err


def test_the_papers_method(rheostat: Command) -> None:
    ended = rheostat("plan", "streambed-q1", "--rate", "2e7", "--max-slots", "8", "--method", "streambed")
    assert ended.code == 0, ended.err
    assert "next: 2 slots of 4096 MB, a corner" in ended.out
    assert "10.8 min" in ended.out
    assert "90 %" not in ended.out


def test_jobs_that_are_measured_run_by_run(rheostat: Command) -> None:
    ended = rheostat("plan", "spark-ysb", "--rate", "2e4", "--max-slots", "8", "--budget-minutes", "60")
    assert ended.code == 0, ended.err
    assert "slots" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("q11", "--rate", "many"), "--rate must be a number, not 'many'"),
        (("q11", "--rate", "-5"), "--rate must be"),
        (("q11", "--rate", "1e6", "--method", "streambd"), "unknown --method 'streambd'"),
        (("q11", "--rate", "1e6", "--memory", "3q"), "'3q' is not a memory size"),
        (("q11", "--rate", "1e6", "--master", "spark://here:7077"), "needs --engine spark, not simulated"),
        (("ysb", "--engine", "spark", "--rate", "1e3", "--master", "local[4]"), "local[4]"),
        (("q11", "--rate", "1e6", "--memory", "3g"), "3072 MB is not a memory size of this job"),
        (("q11", "--rate", "1e6", "--max-slots", "2"), "the operators need at least 4 slots"),
        (("q11", "--rate", "1e6", "--budget-minutes", "0"), "0 minutes"),
        (("q99", "--rate", "1e6", "--engine", "spark"), "unknown pipeline 'q99'"),
        (("q12", "--rate", "1e6"), "unknown job 'q12'"),
    ],
)
def test_what_is_wrong_is_said(rheostat: Command, arguments: tuple[str, ...], message: str) -> None:
    ended = rheostat("plan", *arguments)
    assert ended.code == 2
    assert message in ended.err
