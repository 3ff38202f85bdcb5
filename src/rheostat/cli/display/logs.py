"""What a command logs, to stderr: warnings, everything with --verbose, JSON lines with --log-json."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from rheostat.errors import redact


class _Stderr(logging.StreamHandler[Any]):
    """Writes to the present stderr, so that a progress bar on the same terminal is not torn apart."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


class _Lines(logging.Formatter):
    """Text without secrets, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class _JsonLines(logging.Formatter):
    """One JSON object per line, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if record.exc_info:
            entry["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(entry)


def configure(verbose: bool, as_json: bool = False) -> None:
    """Set the logger `rheostat` up; called once, by the command that runs."""
    root = logging.getLogger("rheostat")
    for handler in [handler for handler in root.handlers if isinstance(handler, _Stderr)]:
        root.removeHandler(handler)
    handler = _Stderr(sys.stderr)
    text = _Lines("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
    handler.setFormatter(_JsonLines() if as_json else text)
    root.addHandler(handler)
    # As JSON, every change is a line; a terminal shows changes by itself.
    root.setLevel(logging.DEBUG if verbose else logging.INFO if as_json else logging.WARNING)
