"""The short way to write a policy or a load: `ds2:activation_windows=3`, `steps:levels=1+5+10:hold_s=300`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rheostat.config.reader import scalar
from rheostat.errors import InvalidValue

Named = tuple[str, dict[str, Any]]
"""A name with its options."""


def parse_named(text: str) -> Named:
    """Read `name:key=value:key=value`; a list is written `1+5+10`, because commas separate policies."""
    name, *rest = text.strip().split(":")
    if not name:
        raise InvalidValue(f"cannot read {text!r}: write name or name:key=value:key=value")
    options: dict[str, Any] = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InvalidValue(f"cannot read {part!r} in {text!r}: an option is written key=value")
        if key.strip() in options:
            raise InvalidValue(f"option {key.strip()!r} is there twice in {text!r}")
        options[key.strip()] = _value(value)
    return name, options


def named(value: str | Mapping[str, Any], key: str, what: str) -> Named:
    """Read the short form, or a mapping in which `key` holds the name."""
    if isinstance(value, str):
        return parse_named(value)
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{what} must be text or a mapping, not {value!r}")
    rest = dict(value)
    name = rest.pop(key, None)
    if not isinstance(name, str) or not name:
        raise InvalidValue(f"{what}.{key} must be the name of a {what}, not {name!r}")
    return name, rest


def label(name: str, options: Mapping[str, Any]) -> str:
    """Write the short form."""
    return ":".join([name, *(f"{key}={_text(value)}" for key, value in options.items())])


def _value(text: str) -> Any:
    whole = scalar(text)
    if not isinstance(whole, str) or "+" not in whole:
        return whole
    parts = [scalar(part) for part in whole.rstrip("+").split("+")]  # `5+` is a list of one
    # `c++` or `a+b` is a text with a plus in it; only numbers make a list.
    return parts if all(isinstance(part, int | float) for part in parts) else whole


def _text(value: Any) -> str:
    return "+".join(_text(each) for each in value) if isinstance(value, list | tuple) else str(value)
