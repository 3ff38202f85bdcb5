"""The code blocks of a page, and a way to run its commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from project import ROOT


def blocks(page: str, language: str) -> list[str]:
    """Return the page's blocks of one language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def run_all(page: str, folder: Path) -> str:
    """Run every line of the page's shell blocks, one after another; return all that was printed."""
    printed = ""
    for line in "".join(blocks(page, "bash")).splitlines():
        command, *arguments = shlex.split(line, comments=True)
        assert command == "rheostat"
        done = subprocess.run(
            [sys.executable, "-m", "rheostat", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        printed += done.stdout
    return printed
