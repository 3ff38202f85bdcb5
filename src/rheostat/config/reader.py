"""YAML as this project reads it: numbers as in YAML 1.2 (`1e6` is one, `22:00` is not), and no key twice."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from rheostat.errors import InvalidValue

CORE = {
    "null": (r"~|null|Null|NULL|none|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9][0-9_]*", "-+0123456789"),
    "float": (r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    "float#": (r"[-+]?(\.inf|\.Inf|inf|Infinity)|\.nan|\.NaN|nan|NaN", "-+.iInN"),
}
"""Type -> how it is written, and with which characters it begins. YAML 1.1 reads `1e6` as text and `no` as false."""


class Loader(yaml.SafeLoader):
    """A safe loader with those types only; dates stay text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse a key that is there twice: PyYAML would silently take the last one."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, Hashable) else id(key))
        return super().construct_mapping(node, deep)


def _number(loader: Loader, node: yaml.ScalarNode) -> float:
    text = node.value.replace("_", "")
    if text.lower().strip("-+.") in ("inf", "infinity"):
        return -math.inf if text.startswith("-") else math.inf
    return math.nan if text.lower().strip(".") == "nan" else float(text)


for name, (pattern, firsts) in CORE.items():
    tag = f"tag:yaml.org,2002:{name.rstrip('#')}"
    starts = [*firsts, ""] if name == "null" else list(firsts)
    Loader.add_implicit_resolver(tag, re.compile(f"(?:{pattern})$"), starts)
Loader.add_constructor("tag:yaml.org,2002:float", _number)
Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value.replace("_", "")))


def scalar(text: str) -> Any:
    """Read one value as YAML would: `3`, `0.1`, `true`, `none`, or text."""
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise InvalidValue(f"cannot read the value {text!r}: {_explained(error)}") from error


def read_yaml(file: str | Path) -> dict[str, Any]:
    """Read a file that holds one mapping; what is wrong with it is said with line and column."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text in UTF-8"
        raise InvalidValue(f"cannot read {str(file)!r}: {why}") from error
    try:
        values = yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise InvalidValue(f"{str(file)!r} is no valid YAML: {_explained(error)}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidValue(f"{str(file)!r} must hold keys with values, not {type(values).__name__} {values!r:.60}")
    return values


def _explained(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    why = getattr(error, "problem", None) or str(error).splitlines()[0]
    if "undefined alias" in why or "for the tag" in why:
        why = "a text that begins with * or ! needs quotes"  # PyYAML shows the text, which may be a password
    return f"line {mark.line + 1}, column {mark.column + 1}: {why}" if mark else why
