from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Command

SHORT = ("--duration", 300, "--load", "constant:value=4", "--seeds", 2)
FIELDS = {
    "policy",
    "seeds",
    "reconfigurations",
    "slot_seconds",
    "slot_seconds_over_oracle",
    "slo_seconds_over",
    "latency_p99_s",
    "backlog_max",
    "decision_ms",
    "policy_failures",
    "failed",
}
STEADY = """
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rheostat.job.decision import Decision, Reason
from rheostat.ports import Policy


@dataclass(frozen=True)
class Steady(Policy[None]):
    name: ClassVar[str] = "steady"
    patience: int = 1

    def decide(self, situation: Any) -> Decision:
        return Decision.hold(Reason.STEADY, f"patience {self.patience}")
"""


@pytest.fixture
def steady(tmp_path: Path) -> Path:
    file = tmp_path / "steady.py"
    file.write_text(STEADY)
    return file


def test_there_is_a_row_per_policy(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    ended = rheostat("compare", *SHORT, "--json", file)
    rows = json.loads(file.read_text())
    assert [row["policy"] for row in rows] == ["static", "hpa", "dhalion", "ds2", "oracle"]
    assert all(set(row) == FIELDS and row["seeds"] == 2 for row in rows)
    assert rows[-1]["slot_seconds_over_oracle"] == 1.0
    for word in ("dhalion", "seeds 0 to 1", "latency at most 10 s", "headroom 0.2", "at the start: splitter="):
        assert word in ended.out


def test_a_policy_of_ones_own_runs_beside_the_others(rheostat: Command, steady: Path) -> None:
    ended = rheostat("compare", *SHORT, "--policy", f"ds2,{steady},{steady}:patience=3", "--json", "-")
    assert [row["policy"] for row in json.loads(ended.out)] == ["ds2", str(steady), f"{steady}:patience=3"]


def test_the_files_policy_runs_beside_the_usual_ones(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("policy: ds2:activation_windows=2\n")
    ended = rheostat("compare", file, *SHORT, "--json", "-")
    rows = [row["policy"] for row in json.loads(ended.out)]
    assert rows == ["ds2:activation_windows=2", "static", "hpa", "dhalion", "ds2", "oracle"]


def test_the_default_headroom_yields_to_a_policys_own_factor(rheostat: Command) -> None:
    ended = rheostat("compare", *SHORT, "--policy", "hpa,ds2:scaling_factor=0.1")
    assert ended.code == 0
    assert "ds2:scaling_factor=0.1 sets its own factor" in ended.out
    assert "headroom 0.2" not in ended.out


def test_a_headroom_that_was_given_does_not_yield(rheostat: Command) -> None:
    ended = rheostat("compare", *SHORT, "--policy", "hpa,ds2:scaling_factor=0.1", "--headroom", 0.2)
    assert ended.code == 2
    assert "scaling_factor (0.1)" in ended.err


def test_a_page_is_written(rheostat: Command, tmp_path: Path) -> None:
    page = tmp_path / "comparison.html"
    assert rheostat("compare", *SHORT, "--policy", "static,ds2", "--html", page).code == 0
    assert "<html" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("policy", ["ds2", "oracle", "oracle:horizon_s=300", "FILE:patience=2"])
def test_what_is_journaled_can_be_replayed(rheostat: Command, tmp_path: Path, steady: Path, policy: str) -> None:
    journal = tmp_path / "journal.db"
    named = policy.replace("FILE", str(steady))
    assert rheostat("compare", *SHORT, "--policy", named, "--seed", 5, "--journal", journal).code == 0
    ended = rheostat("replay", journal, "--allow-policy-file")
    assert (ended.code, ended.out) == (0, "wordcount: 5 steps, 0 differences\n")


def test_every_row_counts_the_failures_of_its_policy(rheostat: Command) -> None:
    ended = rheostat("compare", *SHORT, "--policy", "static,ds2", "--json", "-")
    assert ended.code == 0
    assert [(row["policy_failures"], row["failed"]) for row in json.loads(ended.out)] == [(0, ""), (0, "")]


def test_a_policy_that_raises_is_a_failed_row_and_the_others_finish(
    rheostat: Command, failing: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    ended = rheostat("compare", *SHORT, "--policy", f"ds2,{failing},hpa", "--json", "-", "--html", page)
    assert ended.code == 1
    rows = json.loads(ended.out)
    assert [row["policy"] for row in rows] == ["ds2", str(failing), "hpa"]
    assert [row["policy_failures"] for row in rows] == [0, 10, 0]
    text = "failing failed: ZeroDivisionError: no busy time (10 of 10 decisions, first in step 0 of seed 0)"
    assert [row["failed"] for row in rows] == ["", text, ""]
    assert rows[0]["slot_seconds_over_oracle"] >= 1
    assert ended.err.splitlines()[-1] == f"error: 1 of 3 rows failed: {failing}: {text}"
    assert "Traceback" not in ended.err
    assert "WARNING" not in ended.err
    assert "failing failed: ZeroDivisionError: no busy time" in page.read_text(encoding="utf-8")


def test_one_seed_that_fails_marks_the_row(rheostat: Command, failing: Path) -> None:
    ended = rheostat("compare", *SHORT, "--policy", f"{failing}:seed=1,ds2", "--json", "-")
    assert ended.code == 1
    row = json.loads(ended.out)[0]
    assert row["policy_failures"] == 5
    assert row["failed"].endswith("(5 of 10 decisions, first in step 0 of seed 1)")


def test_a_policy_that_cannot_learn_is_a_failed_row(rheostat: Command, failing: Path) -> None:
    ended = rheostat("compare", *SHORT, "--policy", f"{failing}:learns=false,ds2", "--json", "-")
    assert ended.code == 1
    rows = json.loads(ended.out)
    assert "WARNING" not in ended.err
    assert rows[0]["policy_failures"] == 10
    assert rows[0]["failed"].startswith("failing could not learn: KeyError: 'no such rate' (10 of 10 decisions")
    assert rows[1]["failed"] == ""


def test_an_oracle_that_fails_is_no_yardstick(
    rheostat: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("rheostat.lab.experiment.oracle.Oracle.decide", lambda *_: 1 / 0)
    page = tmp_path / "page.html"
    ended = rheostat("compare", *SHORT, "--policy", "static,ds2", "--json", "-", "--html", page)
    assert ended.code == 1
    assert [row["slot_seconds_over_oracle"] for row in json.loads(ended.out)] == [None, None]
    assert "error: the yardstick failed: oracle: oracle failed: ZeroDivisionError" in ended.err
    assert "oracle failed: ZeroDivisionError" in page.read_text(encoding="utf-8")
    ended = rheostat("compare", *SHORT, "--policy", "static,oracle", "--json", "-")
    assert ended.code == 1
    rows = json.loads(ended.out)
    assert [row["policy_failures"] for row in rows] == [0, 10]
    assert [row["slot_seconds_over_oracle"] for row in rows] == [None, None]


def test_a_failed_row_shows_no_numbers_and_the_traceback_on_request(rheostat: Command, failing: Path) -> None:
    ended = rheostat("compare", *SHORT, "--policy", f"ds2,{failing}", "-v")
    assert ended.code == 1
    assert "no busy time" in ended.out
    assert 'raise ZeroDivisionError("no busy time' in ended.err
