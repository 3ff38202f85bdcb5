"""A journal may name a policy file. What a journal names is run only with the consent of the user."""

from __future__ import annotations

import json
import os
import pty
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from .conftest import FAILING, Command

SHORT = ("--duration", 300, "--load", "constant")
MARKING = "from pathlib import Path\nPath({marker!r}).touch()\n"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "was-run"


@pytest.fixture
def marking(tmp_path: Path, marker: Path) -> Path:
    """Write a policy file that leaves a mark when it is run."""
    file = tmp_path / "marking.py"
    file.write_text(FAILING + MARKING.format(marker=str(marker)))
    return file


def alter_runs(journal: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change every run record, as anybody can who may write the journal."""
    with closing(sqlite3.connect(journal)) as connection, connection:
        rows = connection.execute("SELECT number, body FROM record WHERE kind = 'run'").fetchall()
        for number, body in rows:
            record = json.loads(body)
            change(record)
            connection.execute("UPDATE record SET body = ? WHERE number = ?", (json.dumps(record), number))
    connection.close()


def recorded(journal: Path) -> dict[str, Any]:
    """Return the last run record."""
    found: list[dict[str, Any]] = []
    alter_runs(journal, found.append)
    return found[-1]


WAYS: dict[str, Callable[[dict[str, Any], str], object]] = {
    "settings": lambda run, file: run.update(policy="marking", settings={**run["settings"], "policy": file}),
    "settings with options": lambda run, file: run.update(
        policy="marking", settings={**run["settings"], "policy": {"name": file, "from_step": 1}}
    ),
    "policy": lambda run, file: run.update(policy=file),
    "settings of the oracle": lambda run, file: run.update(
        policy="oracle", settings={**run["settings"], "policy": file}
    ),
    "file": lambda run, file: run.update(
        policy_file={"path": file, "sha256": sha256(Path(file).read_bytes()).hexdigest()}
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_a_journal_names_is_not_run_unasked(
    rheostat: Command, marking: Path, marker: Path, tmp_path: Path, way: str
) -> None:
    journal = tmp_path / "journal.db"
    assert rheostat("simulate", *SHORT, "--journal", journal).code == 0
    alter_runs(journal, lambda run: run.update(options={}) or WAYS[way](run, str(marking)))
    for command in (("replay", journal), ("report", journal, "--out", tmp_path / "page.html")):
        ended = rheostat(*command)
        assert not marker.exists()
        if command[0] == "replay" and way != "settings of the oracle":
            assert ended.code == 2
            assert str(marking) in ended.err
            assert "--allow-" in ended.err


def simulate_file(rheostat: Command, file: Path, marker: Path, tmp_path: Path) -> Path:
    """Journal a run of this policy file."""
    journal = tmp_path / "journal.db"
    assert rheostat("simulate", *SHORT, "--policy", f"{file}:from_step=99", "--journal", journal).code == 0
    marker.unlink()
    return journal


def test_the_hash_of_the_file_is_in_the_run_record(
    rheostat: Command, marking: Path, marker: Path, tmp_path: Path
) -> None:
    journal = simulate_file(rheostat, marking, marker, tmp_path)
    digest = sha256(marking.read_bytes()).hexdigest()
    assert recorded(journal)["policy_file"] == {"path": str(marking), "sha256": digest}
    ended = rheostat("replay", journal, "--allow-policy-file")
    assert (ended.code, ended.out) == (0, "wordcount: 5 steps, 0 differences\n")
    assert marker.exists()


def test_a_changed_file_needs_a_consent_of_its_own(
    rheostat: Command, marking: Path, marker: Path, tmp_path: Path
) -> None:
    journal = simulate_file(rheostat, marking, marker, tmp_path)
    marking.write_text(marking.read_text() + "# changed\n")
    ended = rheostat("replay", journal, "--allow-policy-file")
    assert ended.code == 2
    assert "is not the recorded" in ended.err
    assert "--allow-changed-policy-file" in ended.err
    assert not marker.exists()
    assert rheostat("replay", journal, "--allow-changed-policy-file").code == 0
    assert marker.exists()


def test_a_record_without_a_hash_needs_the_consent_for_a_changed_file(
    rheostat: Command, marking: Path, marker: Path, tmp_path: Path
) -> None:
    journal = simulate_file(rheostat, marking, marker, tmp_path)
    alter_runs(journal, lambda run: run.pop("policy_file"))
    ended = rheostat("replay", journal, "--allow-policy-file")
    assert ended.code == 2
    assert "the journal has no hash" in ended.err
    assert not marker.exists()
    assert rheostat("replay", journal, "--allow-changed-policy-file").code == 0


def test_what_is_hashed_is_what_is_run(rheostat: Command, marking: Path, marker: Path, tmp_path: Path) -> None:
    """Python takes byte code from __pycache__ where its time and size fit: the hash of the file would say nothing."""
    import py_compile

    journal = simulate_file(rheostat, marking, marker, tmp_path)
    other, at_s = tmp_path / "other.py", marking.stat().st_mtime
    source = marking.read_text()
    other.write_text(source.replace("was-run", "not-run"))
    os.utime(other, (at_s, at_s))
    cache = marking.parent / "__pycache__" / f"marking.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(str(other), cfile=str(cache), doraise=True)
    assert rheostat("replay", journal, "--allow-policy-file").code == 0
    assert marker.exists()
    assert not (tmp_path / "not-run").exists()


def test_a_built_in_policy_beside_a_file_is_replayed_as_itself(
    rheostat: Command, marking: Path, tmp_path: Path
) -> None:
    """All policies of a comparison have the same settings, which name the first one."""
    journal = tmp_path / "journal.db"
    assert rheostat("simulate", *SHORT, "--journal", journal).code == 0
    alter_runs(journal, lambda run: run["settings"].update(policy={"name": str(marking)}))
    assert rheostat("replay", journal).code == 0


@pytest.mark.parametrize(("answer", "code"), [("\n", 2), ("n\n", 2), ("y\n", 0)])
def test_a_terminal_is_asked(
    rheostat: Command, marking: Path, marker: Path, tmp_path: Path, answer: str, code: int
) -> None:
    journal = simulate_file(rheostat, marking, marker, tmp_path)
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "rheostat", "replay", str(journal), "--json", str(tmp_path / "out.json")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    said = b""
    while True:
        try:
            said += os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
    os.close(ours)
    assert child.wait(60) == code
    text = " ".join(said.decode().split())
    assert "is the recorded one Run this file?" in text
    assert "[y/N]" in text
    assert marker.exists() == (code == 0)
