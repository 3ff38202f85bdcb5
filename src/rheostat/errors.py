"""Every error that Rheostat raises on purpose; a message says what was wrong, with the value, and what to do.

No secret is shown: errors, log lines, settings in the journal and pages go through `redact`. A secret is the value of a
setting whose name says so, as for Spark's `spark.redaction.regex`, or the password of a URL.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

REDACTED = "*********(redacted)"
"""What stands for a secret; Spark writes the same."""
# `tokenize` is an operator, not a token.
_NAME = r"(?:secret|passw(?:or)?d|token(?!iz)|access[._-]?key|api[._-]?key|credential|sasl[._-]?jaas)"
SENSITIVE = re.compile(_NAME, re.IGNORECASE)
"""Part of a setting's name that makes its value a secret."""
# A number is not taken for a secret in text: `secrets=3` are the tasks of an operator.
_ASSIGNED = re.compile(
    rf"""(?P<name>{_NAME}[\w.-]*\\?["'\]]*\s*[=:]\s*)"""
    r"""(?!\*{9}|\d+(?![\w.-]))(?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\\"[^"]*"|\{[^}]*\}?|[^\s,;&'")\]}]+)""",
    re.IGNORECASE,
)
# `password` itself stands in messages that say how a URL is written.
_URL = re.compile(r"""(://[^/\s:@'"]*):(?!password@|\*{9})[^\s'"]*@""")


class RheostatError(Exception):
    """The root: catch this to catch everything Rheostat raises on purpose."""

    exit_code = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


class InvalidValue(RheostatError, ValueError):  # noqa: N818 - it is a value that is wrong, not a failure
    """A value that was given cannot be right: the caller's mistake, reported before anything runs."""

    exit_code = 2


class PolicyError(RheostatError):
    """A policy's `decide` or `learn` raised: the cause is the policy's own exception."""


class EngineError(RheostatError):
    """An engine could not observe or apply; the loop holds and tries again."""


class EngineLate(EngineError):  # noqa: N818
    """An engine did not answer within its deadline."""


class JournalError(RheostatError):
    """The journal cannot be used: another version, a full disk, a lost connection."""


class UnreadableRecord(JournalError):  # noqa: N818
    """A journaled record cannot be read: another version wrote it, or it is damaged."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class LeaseRefused(JournalError):  # noqa: N818
    """Another controller holds this job, or this one's lease was taken over."""


class RheostatWarning(UserWarning):
    """Something that works, but hardly as it was meant."""


def first_line(error: object) -> str:
    """Return the first line of an error's message without secrets; the name of its type where it is empty."""
    return redact(next(iter(str(error).strip().splitlines()), type(error).__name__))


def plain_text(value: object, most: int = 500) -> str:
    """Return any object's text as a journal can hold it: encodable, not endless, without secrets."""
    try:
        text = str(value)
    except Exception:  # noqa: BLE001 - the text of a foreign object
        text = f"({type(value).__name__} without a text)"
    return redact(text)[:most].encode("utf-8", "replace").decode()


def describe(error: BaseException) -> str:
    """Return the type and the message of any exception, as a journal can hold it."""
    return f"{type(error).__name__}: {plain_text(error)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'x'?` for a misspelt word, else the list of what is known."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


def redact(text: str) -> str:
    """Return the text without passwords of URLs and values of sensitive names (`password=...`, `'token': '...'`)."""
    return _ASSIGNED.sub(rf"\g<name>{REDACTED}", _URL.sub(rf"\1:{REDACTED}@", text))


def redact_settings(value: Any, name: str = "") -> Any:
    """Return settings at any depth without secrets: text under a sensitive name, and inside other text."""
    if isinstance(value, Mapping):
        return {key: redact_settings(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_settings(item, name) for item in value]
    if isinstance(value, str):
        return REDACTED if SENSITIVE.search(name) else redact(value)
    return value


def shown(name: str, value: object) -> str:
    """Return the value of a setting as an error message shows it."""
    return REDACTED if SENSITIVE.search(name) else redact(repr(value))
