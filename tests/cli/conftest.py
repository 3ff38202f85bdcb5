from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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


FAILING = """
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rheostat.job.decision import Decision, Reason
from rheostat.ports import Policy


@dataclass(frozen=True)
class Failing(Policy[None]):
    name: ClassVar[str] = "failing"
    seed: int = -1
    from_step: int = 0
    learns: bool = True

    def learn(self, knowledge: None, record: Any) -> None:
        if not self.learns:
            raise KeyError("no such rate")

    def decide(self, situation: Any) -> Decision:
        if situation.step >= self.from_step and self.seed in (-1, situation.seed):
            raise ZeroDivisionError("no busy time\\nand a second line")
        return Decision.hold(Reason.STEADY, "fine so far")
"""
"""A policy that raises: at every decision, from a step on, for one seed only, or when it learns."""


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """Write a policy that raises; its options say when."""
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    return file
