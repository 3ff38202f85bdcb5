"""Checks of options that more than one policy has."""

from __future__ import annotations

from rheostat.errors import InvalidValue


def check_whole(what: str, value: int, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidValue(f"{what} must be a whole number of at least {least}, not {value!r}")
