"""Frozen mappings, and the checks and JSON that all types of the vocabulary share.

JSON round trips are exact. Infinity has one encoding, the string "Infinity"; NaN is never a value.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, NoReturn, TypeVar, cast

from rheostat.errors import InvalidValue, describe

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class FrozenMap(dict[K, V]):
    """An immutable dictionary, so that a frozen dataclass that holds one is really frozen."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is frozen: create a new one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenMap[K, V]], tuple[dict[K, V]]]:
        return type(self), (dict(self),)


def freeze(value: Any) -> Any:
    """Convert dictionaries and lists at any depth into frozen maps and tuples (JSON decodes to lists)."""
    if isinstance(value, Mapping):
        return FrozenMap({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def check_json(what: str, value: Any) -> None:
    """Refuse values that JSON does not preserve: infinity, NaN, keys that are not text, other types."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidValue(f"{what} has the key {key!r}: keys must be text")
            check_json(f"{what}.{key}", item)
    elif isinstance(value, list | tuple):
        for item in value:
            check_json(what, item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidValue(f"{what} is {value!r}: a memo holds finite numbers only")
    elif not (value is None or isinstance(value, bool | int | float | str)):
        raise InvalidValue(f"{what} is a {type(value).__name__}: a memo holds JSON values only")


def put(instance: object, **values: object) -> None:
    """Set fields of a frozen dataclass from its own `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def check_number(
    what: str, value: float | None, *, least: float = 0.0, most: float = math.inf, infinite: bool = False
) -> None:
    """Refuse NaN, values outside [least, most] and, unless allowed, infinity; None is accepted."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(f"{what} must be a number, not {value!r}")
    if math.isnan(value) or not least <= value <= most or (math.isinf(value) and not infinite):
        span = f"at least {least:g}" if math.isinf(most) else f"between {least:g} and {most:g}"
        raise InvalidValue(f"{what} must be a finite number, {span}; it is {value!r}")


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def to_json(value: object) -> str:
    """Encode any type of the vocabulary as strict JSON."""
    from pydantic_core import to_json as encode

    return encode(value, inf_nan_mode="strings").decode()


def from_json(kind: type[T], text: str | bytes) -> T:
    """Decode the output of `to_json`; the result equals the original."""
    from pydantic import ValidationError

    try:
        result: T = _adapter(cast(Hashable, kind)).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or kind.__name__
        raise InvalidValue(f"cannot read {kind.__name__}: {place}: {first['msg']}") from error
    except Exception as error:  # a type's own check of its values may raise anything
        raise InvalidValue(f"cannot read {kind.__name__}: {describe(error)}") from error
    return result


def readable(value: T) -> T:
    """Return the value as a journal gives it back; InvalidValue where it cannot be written or read."""
    try:
        text = to_json(value)
    except Exception as error:  # a foreign object may hold anything
        raise InvalidValue(f"a {type(value).__name__} cannot be written: {describe(error)}") from error
    return from_json(type(value), text)


def check_whole(what: str, value: int, least: int) -> None:
    """Refuse a value that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidValue(f"{what} must be a whole number of at least {least}, not {value!r}")
