"""Where results go: a console for people, files and stdout for machines."""

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
    """Return the console for people; it goes to stderr where stdout belongs to a machine."""
    from rich.console import Console

    return Console(stderr=json_file == STDOUT, highlight=False)


def check_writable(**files: str | None) -> None:
    """Refuse a file that cannot be written, by the option that names it, before the long work starts."""
    for option, name in files.items():
        if name is None or name == STDOUT:
            continue
        path = Path(name)
        if path.is_dir():
            raise InvalidValue(f"--{option} {name!r} is a folder: give the path of a file in it")
        if not path.parent.is_dir():
            raise InvalidValue(f"--{option} {name!r}: there is no folder {str(path.parent)!r}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InvalidValue(f"--{option} {name!r} cannot be written: permission denied")


def write_text(file: str, text: str) -> None:
    """Write a result to a file, or to stdout."""
    if file == STDOUT:
        sys.stdout.write(text)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"cannot write {file!r}: {error.strerror}") from error


def write_json(file: str, value: Any) -> None:
    """Write a result as strict JSON: infinity is the string "Infinity", as in the journal."""
    from rheostat.job.frozen import to_json

    write_text(file, json.dumps(json.loads(to_json(value)), indent=2) + "\n")
