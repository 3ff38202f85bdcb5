from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import ROOT

from .conftest import Command

SHORT = ("--duration", 600, "--load", "steps:levels=2+6:hold_s=240")
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def test_a_run_ends_with_a_summary(rheostat: Command) -> None:
    ended = rheostat("simulate", *SHORT)
    assert ended.code == 0
    for word in ("splitter", "under-provisioned", "kept", "slot s", "latency", "█", "headroom 0.2", "seed 0"):
        assert word in ended.out
    assert "100%" in ended.err


def test_json_goes_to_stdout_alone(rheostat: Command) -> None:
    ended = rheostat("simulate", *SHORT, "--policy", "hpa:tolerance=0.2", "--json", "-")
    result = json.loads(ended.out)
    assert result["row"]["policy"] == "hpa:tolerance=0.2"
    assert result["scenario"]["policy"] == {"name": "hpa", "tolerance": 0.2}
    assert sum(result["decisions"].values()) == 10


def test_options_go_above_the_file(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("job: q1\nduration_s: 600\nload: constant:value=3\npolicy: static\nstart: min\nseed: 4\n")
    ended = rheostat("simulate", file, "--job", "q2", "--start", "filter=7", "--max-lag", 3, "--json", "-")
    scenario = json.loads(ended.out)["scenario"]
    assert (scenario["job"], scenario["start"], scenario["seed"]) == ("q2", {"filter": 7}, 4)
    assert "lag at most 3 s" in ended.err


def test_failures_and_a_objective_about_them(rheostat: Command) -> None:
    load = ("--job", "tsw", "--load", "constant:value=60000", "--duration", 1200)
    ended = rheostat("simulate", *load, "--failures", "300,800", "--max-recovery", 180, "--json", "-")
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    assert result["scenario"]["failures_s"] == [300, 800]
    assert len(result["recoveries_s"]) == 2
    assert "recovery within 180 s" in ended.err
    assert "ds2: caught up after" in ended.err
    assert "of 2 too late" in ended.err
    assert result["guards"]["recovery"] > 0


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--failures", "300,soon", "soon"),
        ("--failures", "-5", "failures_s"),
        ("--max-recovery", "0", "max_recovery_s"),
        ("--max-recovery", "180000", "for 180000 ms write 180"),
    ],
)
def test_impossible_failures_and_promises_are_named(rheostat: Command, option: str, value: str, says: str) -> None:
    ended = rheostat("simulate", *SHORT, f"{option}={value}")
    assert ended.code == 2
    assert says in ended.err


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(rheostat: Command, example: Path) -> None:
    ended = rheostat("simulate", example, "--json", "-")
    assert ended.code == 0, ended.err
    assert sum(json.loads(ended.out)["decisions"].values()) == json.loads(ended.out)["scenario"]["duration_s"] / 60


def test_a_page_is_written(rheostat: Command, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    assert rheostat("simulate", *SHORT, "--html", page).code == 0
    assert "<html" in page.read_text(encoding="utf-8")


def test_a_second_run_does_not_write_behind_the_first(rheostat: Command, tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    assert rheostat("simulate", *SHORT, "--journal", journal).code == 0
    ended = rheostat("simulate", *SHORT, "--journal", journal)
    assert ended.code == 2
    assert "already has a run of 'wordcount'" in ended.err


def test_a_policy_that_raises_ends_the_run_with_its_exception(rheostat: Command, failing: Path) -> None:
    ended = rheostat("simulate", *SHORT, "--policy", f"{failing}:from_step=2")
    assert ended.code == 1
    (error,) = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert error == (
        "error: failing failed: ZeroDivisionError: no busy time (step 2, at 180 s; -v shows the traceback)"
    )
    assert "Traceback" not in ended.err
    assert "slot s" not in ended.out


def test_the_traceback_of_a_policys_exception_is_shown_on_request(rheostat: Command, failing: Path) -> None:
    ended = rheostat("simulate", *SHORT, "--policy", failing, "-v")
    assert ended.code == 1
    assert ended.err.count("Traceback") == 1
    assert 'raise ZeroDivisionError("no busy time' in ended.err
    assert ended.err.splitlines()[-1] == "error: failing failed: ZeroDivisionError: no busy time (step 0, at 60 s)"


def test_a_policy_that_cannot_learn_ends_the_run_too(rheostat: Command, failing: Path) -> None:
    ended = rheostat("simulate", *SHORT, "--policy", f"{failing}:learns=false")
    assert ended.code == 1
    assert "error: failing could not learn: KeyError: 'no such rate' (step 0, at 60 s" in ended.err
