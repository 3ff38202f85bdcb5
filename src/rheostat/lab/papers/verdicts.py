"""Stored verdicts, one file per size, and what has changed since they were recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path

from rheostat.errors import InvalidValue
from rheostat.lab.papers.claim import HOLDS
from rheostat.lab.papers.result import Result

Verdicts = Mapping[str, Mapping[str, str]]
"""Suite -> claim -> verdict."""


def verdict_file(size: str) -> Path:
    """Return the file of a size."""
    return Path(str(resources.files("rheostat.lab.papers") / "recorded" / f"{size}.json"))


def read_verdicts(file: Path) -> Verdicts:
    """Return the stored verdicts; empty if none are recorded."""
    if not file.exists():
        return {}
    stored: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    return stored


def record_verdicts(file: Path, results: Iterable[Result]) -> None:
    """Store the verdicts of these suites; those of others stay."""
    stored = dict(read_verdicts(file)) | {result.suite: result.verdicts() for result in results}
    try:
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(stored, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"--record cannot write {str(file)!r} ({error.strerror}): use a source tree") from error


def find_regressions(stored: Verdicts, result: Result) -> Iterator[str]:
    """Yield what is worse than recorded: a missing claim, or one that held and does not, or cannot be told."""
    if result.suite not in stored:
        yield f"{result.suite}: no verdicts are recorded; record them with --record"
        return
    now = result.verdicts()
    for claim, before in stored[result.suite].items():
        if claim not in now:
            yield f"{result.suite}, {claim}: missing, recorded as {before!r}"
        elif before == HOLDS and now[claim] != HOLDS:
            yield f"{result.suite}, {claim}: {now[claim]}, recorded as {before!r}"


def find_news(stored: Verdicts, result: Result) -> Iterator[str]:
    """Yield what is not in the record: new claims, and claims that hold by now."""
    before = stored.get(result.suite, {})
    for claim, now in result.verdicts().items():
        if claim not in before:
            yield f"{result.suite}, {claim}: {now}, not recorded"
        elif now == HOLDS != before[claim]:
            yield f"{result.suite}, {claim}: {now}, recorded as {before[claim]!r}"
