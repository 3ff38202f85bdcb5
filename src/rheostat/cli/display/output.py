"""Consoles and files for results."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rheostat.errors import InvalidValue

if TYPE_CHECKING:
    from rich.console import Console

STDOUT = "-"


def console(json_file: str | None = None) -> Console:
    """Return the console; it writes to stderr if the JSON result goes to stdout."""
    from rich.console import Console

    return Console(stderr=json_file == STDOUT, highlight=False)


def check_writable(**files: str | None) -> None:
    """Refuse a file that cannot be written before the long work starts; the message names its option."""
    for option, name in files.items():
        if name is None or name == STDOUT:
            continue
        path = Path(name)
        if path.is_dir():
            raise InvalidValue(f"--{option} {name!r} is a folder: give the path of a file")
        if not path.parent.is_dir():
            raise InvalidValue(
                f"--{option} {name!r}: the folder {str(path.parent)!r} does not exist: create it, or give another path"
            )
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InvalidValue(f"--{option} {name!r} cannot be written: permission denied; give another path")


def write_text(file: str, text: str) -> None:
    """Write a result to a file, or to stdout."""
    if file == STDOUT:
        sys.stdout.write(text)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"{file!r} cannot be written ({error.strerror}): give another path") from error


def write_json(file: str, value: Any) -> None:
    """Write a result as strict JSON; infinity is the string "Infinity", as in the journal."""
    from rheostat.job.frozen import to_json

    write_text(file, json.dumps(json.loads(to_json(value)), indent=2) + "\n")
