from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rheostat.cli import main

from .conftest import Command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--job", "wordcont"], ["'wordcont'", "'wordcount'"]),
        (["--load", "sinus"], ["'sinus'", "'sine'"]),
        (["--load", "sine:men=2"], ["men", "'mean'"]),
        (["--load", "sine:mean=-2"], ["-2"]),
        (["--load", "steps:levels=1+nan"], ["NaN"]),
        (["--load", "trace:file=nowhere.csv"], ["'nowhere.csv'"]),
        (["--policy", "ds3"], ["'ds3'", "'ds2'"]),
        (["--policy", "ds2:windows"], ["'windows'"]),
        (["--policy", "ds2:activation_windws=2"], ["activation_windws", "'activation_windows'"]),
        (["--policy", "ds2:activation_windows=abc"], ["activation_windows", "'abc'"]),
        (["--policy", "./nowhere.py"], ["nowhere.py"]),
        (["--seed", "-1"], ["seed", "-1"]),
        (["--duration", "-5"], ["duration_s", "-5"]),
        (["--duration", "nan"], ["duration_s", "NaN"]),
        (["--duration", "30"], ["duration_s 30"]),
        (["--interval", "0"], ["interval_s", "0"]),
        (["--headroom", "-0.5"], ["slo.headroom", "-0.5"]),
        (["--max-latency", "0"], ["slo.max_latency_s", "0"]),
        (["--max-lag", "inf"], ["slo.max_lag_s", "inf"]),
        (["--start", "top"], ["start", "'top'"]),
        (["--start", "cnt=3"], ["'cnt'", "'count'"]),
        (["--start", "count=many"], ["count", "'many'"]),
        (["--journal", "nowhere/journal.db"], ["nowhere"]),
        (["--json", "nowhere/rows.json"], ["--json", "nowhere"]),
        (["--html", "."], ["--html", "folder"]),
        (["nowhere.yaml"], ["'nowhere.yaml'"]),
        (["--duration", "abc"], ["duration_s", "'abc'"]),
        (["--headroom", "much"], ["slo.headroom", "'much'"]),
        (["--sed", "3"], ["--sed"]),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_wrong_value_is_named_and_ends_with_2(
    rheostat: Command,
    command: str,
    arguments: list[str],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = rheostat(command, *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["simulate", "--policy", "ds2,hpa"], "compare"),
        (["compare", "--policy", "ds2,ds2"], "--policy names 'ds2' twice"),
        (["compare", "--seeds", "0"], "--seeds must be a whole number of at least 1, not 0"),
        (["compare", "--seeds", "many"], "'many'"),
        (["bench", "simulatr"], "'simulator'"),
        (["kafka", "run", "--port", "ninety"], "--port must be a whole number of at least 1, not 'ninety'"),
        (["kafka", "run", "--topic", "clicks:0"], "partitions of --topic clicks must be a whole number of at least 1"),
        (["nonsense"], "nonsense"),
        (["replay"], "JOURNAL"),
    ],
)
def test_a_wrong_command_line_ends_with_2(rheostat: Command, arguments: list[str], word: str) -> None:
    ended = rheostat(*arguments)
    assert ended.code == 2
    assert word in ended.err


def test_a_policy_file_that_breaks_is_an_error_without_traceback(rheostat: Command, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n")
    ended = rheostat("simulate", "--policy", file)
    assert ended.code == 2
    assert "ZeroDivisionError" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(rheostat: Command, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    ended = rheostat("compare", "--json", tmp_path / "rows.json")
    assert ended.code == 2
    assert "permission denied" in ended.err


def test_what_nobody_expected_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(main, "app", broken)
    with pytest.raises(ZeroDivisionError):
        main.run([])


STEPS_BYTES = 500_000
"""Size of a journal that holds steps."""


def test_an_interrupt_ends_with_130(tmp_path: Path) -> None:
    long = ["simulate", "--load", "constant", "--duration", "10000000", "--interval", "10"]
    # What is started in the background of a script ignores interrupts, and so do its children.
    code = "import signal; signal.signal(2, signal.default_int_handler); from rheostat.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *long, "--journal", tmp_path / "j.db"], stderr=subprocess.PIPE, text=True
    )
    try:
        # It is in its steps by then: an interrupt inside a finalizer of SQLAlchemy's set-up would be swallowed.
        while sum(file.stat().st_size for file in tmp_path.iterdir()) < STEPS_BYTES and process.poll() is None:
            time.sleep(0.05)  # a real process is waited for, not a clock
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err
