"""Kinds of records by name, and the refusal of what is none."""

from __future__ import annotations

from collections.abc import Sequence

from rheostat.errors import InvalidValue, nearest
from rheostat.job.record import KIND_OF, KINDS, Record


def kind_of(record: Record) -> str:
    """Return the kind's name; an error for a thing that is no record."""
    kind = KIND_OF.get(type(record))
    if kind is None:
        raise InvalidValue(f"a {type(record).__name__} is no record of a journal; records are: {', '.join(KINDS)}")
    return kind


def check_kinds(kinds: Sequence[str]) -> None:
    """Refuse names that no record has: a misspelt one would otherwise find nothing."""
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidValue(f"unknown kind of record {kind!r}, {nearest(kind, KINDS)}")
