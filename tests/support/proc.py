"""What /proc says of a process that may end while it is asked."""

from __future__ import annotations

from pathlib import Path


def state(pid: int) -> str:
    """Return the letter of a process' state, or nothing once it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone before, or between opening and reading
        return ""


def runs(pid: int) -> bool:
    return state(pid) not in ("", "Z")
