"""Frozen dataclasses from plain values, with errors that name the key, the value and what was probably meant.

Pydantic checks the types, strictly: `"3"` is no number and `true` no count. What a dataclass itself refuses in its
`__post_init__` comes out as the same kind of sentence, with the path of the key in front.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from rheostat.errors import InvalidValue, nearest, shown
from rheostat.job.guards import FrozenPeriod, Guards

T = TypeVar("T")

WORDS = {
    "Input should be": "must be",
    "a valid integer": "a whole number",
    "a valid dictionary": "a mapping",
    "an object": "a mapping",
    "a valid array": "a list",
    "a valid list": "a list",
    "a valid string": "text",
    "a valid boolean": "true or false",
    "a valid": "a",
}
"""What pydantic says -> what a reader of the file would say; the last ones are the most general."""
UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Make a dataclass from plain values (of a file, a command line or a journal); `where` is the path to them."""
    from pydantic import ValidationError
    from pydantic_core import to_json

    if not isinstance(values, Mapping):
        raise InvalidValue(f"{where} must be a mapping of keys to values, not {values!r}")
    given = plain(values, where)
    if not is_dataclass(cls):
        if given:
            raise InvalidValue(f"{where} has no options (its class is no dataclass), but {', '.join(given)} is given")
        return cls()
    if cls is Guards:
        given = _with_periods(given, where)
    elif isinstance(given.get("guards"), dict):
        given = {**given, "guards": _with_periods(given["guards"], path(where, "guards"))}
    holder = _holder(cls)
    try:
        # Through JSON, because there strict means: lists may become tuples, mappings dataclasses, and nothing else.
        held = holder.model_validate_json(to_json({"value": given}, inf_nan_mode="constants"))
    except ValidationError as error:
        raise InvalidValue("; ".join(sentence(cls, where, each) for each in error.errors())) from error
    return cast(T, held.value)


def plain(value: Any, where: str) -> Any:
    """Return JSON values: "Infinity" (the journal's encoding) as a number, and never a NaN."""
    if isinstance(value, Mapping):
        return {str(key): plain(item, path(where, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, path(where, index)) for index, item in enumerate(value)]
    if value in ("Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        raise InvalidValue(f"{where} must be a number, not NaN")
    return value


def path(where: str, *parts: str | int) -> str:
    """Return the full path of a key: `slo.operators.count.max`, or `policy ds2: scaling_factor`."""
    # A `where` of several words is a description, not a key.
    joint = ": " if " " in where and ":" not in where else "."
    inner = ".".join(str(part) for part in parts)
    return f"{where}{joint}{inner}" if where and inner else where or inner


def sentence(cls: Any, where: str, error: Mapping[str, Any], held_in: int = 1) -> str:
    """Say one of pydantic's errors in our words; the first `held_in` parts of its place are not the user's."""
    place, kind, value = error["loc"][held_in:], error["type"], error.get("input")
    key = path(where, *place)
    if kind in UNKNOWN:
        return f"unknown key {key!r}, {nearest(str(place[-1]), keys_at(cls, place[:-1]))}"
    if kind in ("missing", "missing_argument"):
        return f"{key} is missing"
    if kind == "value_error":
        return refused(key, str(error["ctx"]["error"]))
    return f"{key} {worded(error['msg'])}, not {shown(key, value)}"


def worded(message: str) -> str:
    """Say pydantic's words in those of a YAML file."""
    for theirs, ours in WORDS.items():
        message = message.replace(theirs, ours)
    return message


def refused(key: str, why: str) -> str:
    """Put the path before what a dataclass said, unless it says where by itself."""
    head, dot, rest = why.partition(".")
    if dot and " " not in head and head == key.rpartition(".")[2]:
        return f"{key}.{rest}"
    return why if key in why.replace("'", "") else f"{key}: {why}"


def keys_at(cls: Any, place: Sequence[str | int]) -> list[str]:
    """Return the keys that are known at a place inside a dataclass."""
    for part in place:
        cls = _inside(cls, part)
    cls = _not_none(cls)
    return [field.name for field in fields(cls)] if is_dataclass(cls) else []


def _inside(kind: Any, part: str | int) -> Any:
    kind = _not_none(kind)
    if is_dataclass(kind):
        return get_type_hints(kind)[str(part)]
    arguments = get_args(kind)
    return arguments[1] if issubclass(get_origin(kind), Mapping) else arguments[0]


def _not_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        return next(member for member in get_args(kind) if member is not NoneType)
    return kind


def _with_periods(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Read the frozen periods that are written as text."""
    periods = values.get("frozen")
    if not isinstance(periods, list):
        return values
    read = []
    for index, period in enumerate(periods):
        try:
            read.append(FrozenPeriod.parse(period) if isinstance(period, str) else period)
        except InvalidValue as error:
            raise InvalidValue(f"{path(where, 'frozen', index)}: {error}") from error
    return {**values, "frozen": read}


@lru_cache(maxsize=256)
def _holder(cls: type[Any]) -> Any:
    """Return a model with one field of this class: a model's configuration reaches the dataclasses inside it."""
    from pydantic import ConfigDict, create_model
    from pydantic.errors import PydanticUserError

    try:
        return create_model("Holder", __config__=ConfigDict(extra="forbid", strict=True), value=(cls, ...))
    except (PydanticUserError, NameError) as error:
        raise InvalidValue(f"the options of {cls.__name__} have types that no file can hold: {error}") from error
