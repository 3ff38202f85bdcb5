"""Every error that Rheostat raises on purpose; a message says what was wrong, with the value, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RheostatError(Exception):
    """The root: catch this to catch everything Rheostat raises on purpose."""

    exit_code = 1


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
    """Return the first line of an error's message; the name of its type where the message is empty."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def plain_text(value: object, most: int = 500) -> str:
    """Return any object's text as a journal can hold it: encodable, not endless, whatever `__str__` does."""
    try:
        text = str(value)
    except Exception:  # noqa: BLE001 - the text of a foreign object
        text = f"({type(value).__name__} without a text)"
    return text[:most].encode("utf-8", "replace").decode()


def error_text(error: BaseException) -> str:
    """Return the type and the message of a foreign exception, as a journal can hold it."""
    return f"{type(error).__name__}: {plain_text(error)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'x'?` for a misspelt word, else the list of what is known."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
