from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Command


@pytest.fixture
def journal(rheostat: Command, tmp_path: Path) -> Path:
    file = tmp_path / "journal.db"
    short = ("--duration", 600, "--load", "steps:levels=2+6:hold_s=240")
    assert rheostat("simulate", *short, "--journal", file).code == 0
    return file


def alter(journal: Path) -> int:
    """Change the target of the first decision that has one, by hand; return its step."""
    query = "SELECT number, step, body FROM record WHERE kind = 'decision' ORDER BY number"
    with closing(sqlite3.connect(journal)) as connection, connection:
        decisions = [(number, step, json.loads(body)) for number, step, body in connection.execute(query)]
        number, step, decision = next(each for each in decisions if each[2]["target"])
        decision["target"]["tasks"]["splitter"] += 1
        connection.execute("UPDATE record SET body = ? WHERE number = ?", (json.dumps(decision), number))
    connection.close()
    return int(step)


def test_a_fresh_journal_comes_out_the_same(rheostat: Command, journal: Path) -> None:
    ended = rheostat("replay", journal, "--job", "wordcount", "--json", "-")
    assert ended.code == 0
    assert json.loads(ended.out) == [
        {
            "job": "wordcount",
            "steps": 10,
            "skipped": 0,
            "differences": [],
            "recorded_policy_failures": 0,
            "policy_failures": 0,
            "failed": "",
        }
    ]


def test_an_altered_decision_is_found(rheostat: Command, journal: Path) -> None:
    step = alter(journal)
    ended = rheostat("replay", journal, "--json", "-")
    assert ended.code == 1
    (job,) = json.loads(ended.out)
    difference = job["differences"][0]
    assert difference["step"] == step
    tasks = {side: difference[side]["target"]["tasks"]["splitter"] for side in ("recorded", "again")}
    assert tasks["recorded"] == tasks["again"] + 1
    for word in (f"step {step}", "recorded: splitter=", "again:    splitter=", "because"):
        assert word in ended.err


def test_another_record_of_a_step_is_found_too(rheostat: Command, journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as connection, connection:
        connection.execute("""UPDATE record SET body = replace(body, '"kept"', '"missed"') WHERE kind = 'outcome'""")
    connection.close()
    ended = rheostat("replay", journal)
    assert ended.code == 1
    assert "the decision is the same; these records differ: Outcome" in ended.out


def test_a_page_about_the_journal_is_written(rheostat: Command, journal: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = rheostat("report", journal, "--out", page)
    assert (ended.code, ended.out) == (0, f"wrote {page}\n")
    assert "wordcount" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["replay", "report"])
def test_a_job_that_is_not_there_is_named(rheostat: Command, journal: Path, command: str) -> None:
    ended = rheostat(command, journal, "--job", "wordcont")
    assert ended.code == 2
    assert "'wordcont', did you mean 'wordcount'?" in ended.err


@pytest.mark.parametrize("command", ["replay", "report"])
def test_a_journal_that_is_not_there_is_not_made(rheostat: Command, tmp_path: Path, command: str) -> None:
    missing = tmp_path / "missing.db"
    for url in (missing, f"sqlite:///{missing}"):
        ended = rheostat(command, url)
        assert ended.code == 2
        assert "missing.db" in ended.err
    assert not missing.exists()


def test_a_file_that_is_no_journal_is_an_error_without_traceback(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are notes, not a database, and long enough to be looked at as a header" * 20)
    ended = rheostat("replay", file)
    assert ended.code == 1
    assert ended.err.startswith("error: journal ")
    assert "Traceback" not in ended.err


def test_an_empty_journal_is_an_error(rheostat: Command, tmp_path: Path) -> None:
    from rheostat.journal import open_journal

    open_journal(tmp_path / "empty.db").close()
    ended = rheostat("replay", tmp_path / "empty.db")
    assert ended.code == 2
    assert "empty" in ended.err


def test_several_jobs_are_replayed_one_after_another_but_reported_by_name(
    rheostat: Command, journal: Path, tmp_path: Path
) -> None:
    more = ("--job", "q1", "--duration", 300, "--load", "constant", "--journal", journal)
    assert rheostat("simulate", *more).code == 0
    assert rheostat("replay", journal).out == "q1: 5 steps, 0 differences\nwordcount: 10 steps, 0 differences\n"
    ended = rheostat("report", journal, "--out", tmp_path / "page.html")
    assert ended.code == 2
    assert "q1, wordcount" in ended.err


def test_steps_in_which_the_policy_failed_are_reported(rheostat: Command, failing: Path, tmp_path: Path) -> None:
    journal = tmp_path / "failures.db"
    short = ("--duration", 300, "--load", "constant", "--seeds", 1, "--journal", journal)
    assert rheostat("compare", *short, "--policy", f"{failing}:from_step=2").code == 1
    ended = rheostat("replay", journal, "--allow-policy-file")
    assert ended.code == 1
    text = "failing failed: ZeroDivisionError: no busy time"
    assert ended.out.splitlines() == [
        "wordcount: 5 steps, 0 differences",
        f"wordcount: in the recorded run the policy failed in 3 steps, first in step 2: {text}",
        f"wordcount: in the replay the policy failed in 3 steps, first in step 2: {text}",
    ]
    (row,) = json.loads(rheostat("replay", journal, "--allow-policy-file", "--json", "-").out)
    assert (row["recorded_policy_failures"], row["policy_failures"]) == (3, 3)
    assert row["failed"] == text


def test_a_repaired_policy_differs_from_its_failures_and_does_not_fail(
    rheostat: Command, failing: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "failures.db"
    short = ("--duration", 300, "--load", "constant", "--seeds", 1, "--journal", journal)
    assert rheostat("compare", *short, "--policy", failing).code == 1
    failing.write_text(failing.read_text().replace("situation.step >= self.from_step", "False"))
    ended = rheostat("replay", journal, "--allow-changed-policy-file")
    assert ended.code == 1
    assert "5 steps, 5 differences" in ended.out
    assert "in the recorded run the policy failed in 5 steps" in ended.out
    assert "in the replay the policy failed" not in ended.out


def test_a_replayed_policy_that_cannot_learn_is_reported(rheostat: Command, failing: Path, tmp_path: Path) -> None:
    journal = tmp_path / "sound.db"
    short = ("--duration", 300, "--load", "constant", "--seeds", 1, "--journal", journal)
    assert rheostat("compare", *short, "--policy", f"{failing}:from_step=99").code == 0
    failing.write_text(failing.read_text().replace("if not self.learns", "if True"))
    ended = rheostat("replay", journal, "--allow-changed-policy-file")
    assert ended.code == 1
    assert "in the replay the policy failed in" in ended.out
    assert "failing could not learn: KeyError: 'no such rate'" in ended.out
