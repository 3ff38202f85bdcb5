from __future__ import annotations

import subprocess
import sys

import pytest

from rheostat import __version__

from .conftest import Command

HEAVY = ("numpy", "pandas", "pyspark", "sqlalchemy", "pydantic", "rich", "yaml")
COMMANDS = (
    "run",
    "plan",
    "simulate",
    "compare",
    "reproduce",
    "replay",
    "report",
    "bench",
    "doctor",
    "settings",
    "kafka",
    "jobs",
    "policies",
    "loads",
)


@pytest.mark.parametrize(
    "code",
    [
        "import rheostat",
        "from rheostat.cli.main import run; assert run(['--help']) == 0",
        "from rheostat.cli.main import run; assert run(['simulate', '--help']) == 0",
        "from rheostat.cli.main import run; assert run(['compare', '--help']) == 0",
        "from rheostat.cli.main import run; assert run(['reproduce', '--help']) == 0",
        "from rheostat.cli.main import run; assert run(['replay', '--help']) == 0",
    ],
)
def test_help_imports_nothing_heavy(code: str) -> None:
    check = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{code}; {check}"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_names_every_command(rheostat: Command) -> None:
    ended = rheostat("--help")
    assert ended.code == 0
    assert all(f"\n  {command} " in ended.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(rheostat: Command, command: str) -> None:
    ended = rheostat(command, "--help")
    assert ended.code == 0
    assert f"Usage: rheostat {command}" in ended.out


def test_the_version_is_shown(rheostat: Command) -> None:
    assert rheostat("--version").out == f"rheostat {__version__}\n"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("jobs", "wordcount             lines, splitter, count"),
        ("policies", "Plays the cheapest schedule"),
        ("loads", "sine         A sine wave"),
    ],
)
def test_there_are_lists(rheostat: Command, command: str, line: str) -> None:
    ended = rheostat(command)
    assert ended.code == 0
    assert line in ended.out
