from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rheostat.cli.main import run


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def rheostat(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command line in this process, as `main` does."""

    def command(*arguments: object) -> Ended:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return command
