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
    "changes_per_day",
    "slot_seconds",
    "slot_seconds_over_oracle",
    "slot_seconds_lost",
    "slo_seconds_over",
    "peak_slots",
    "cost",
    "cost_over_oracle",
    "cost_over_oracle_low",
    "cost_over_oracle_high",
    "windows_short",
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
    assert all(row["cost_over_oracle"] >= 1.0 for row in rows)
    assert rows[-1]["cost_over_oracle"] < 1.1
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


@pytest.mark.parametrize("policy", ["ds2", "oracle", "FILE:patience=2"])
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
    assert rows[0]["cost_over_oracle"] >= 1
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


def test_a_named_ground_has_its_job_and_load_and_its_own_seeds(rheostat: Command, tmp_path: Path) -> None:
    ended = rheostat(
        "compare", "--ground", "skewed", "--quick", "--duration", 600, "--policy", "static,ds2", "--json", "-"
    )
    assert ended.code == 0
    rows = json.loads(ended.out)
    assert [(row["ground"], row["policy"], row["seeds"]) for row in rows] == [
        ("skewed", "static", 3),
        ("skewed", "ds2", 3),
    ]
    assert all(row["cost_over_oracle_low"] <= row["cost_over_oracle"] <= row["cost_over_oracle_high"] for row in rows)


def test_a_ground_without_its_data_is_skipped_with_a_message(
    rheostat: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RHEOSTAT_DATA", str(tmp_path))
    both = ("--ground", "wiki,skewed", "--duration", 300, "--seeds", 1, "--policy", "static")
    ended = rheostat("compare", *both)
    assert ended.code == 0
    assert "wiki: skipped, there is no trace 'wiki_en_5min'" in ended.out
    ended = rheostat("compare", "--ground", "wiki", "--policy", "static")
    assert ended.code == 2
    assert "none of the grounds can run here" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--ground", "skewd"), "'skewed'"),
        (("--ground", "skewed", "--job", "q1"), "--ground has its own job and load"),
        (("--quick",), "--quick needs --ground"),
        (("--engine", "spark", "--ground", "skewed"), "--ground needs --engine simulated"),
        (("--policy", "oracle:horizon_s=3"), "policy oracle has no options"),
    ],
)
def test_grounds_and_oracles_that_make_no_sense_are_refused(
    rheostat: Command, arguments: tuple[str, ...], words: str
) -> None:
    ended = rheostat("compare", *arguments)
    assert ended.code == 2
    assert words in ended.err


def test_a_failed_row_shows_no_numbers_and_the_traceback_on_request(rheostat: Command, failing: Path) -> None:
    ended = rheostat("compare", *SHORT, "--policy", f"ds2,{failing}", "-v")
    assert ended.code == 1
    assert "no busy time" in ended.out
    assert 'raise ZeroDivisionError("no busy time' in ended.err
