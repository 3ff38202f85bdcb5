"""The user's function by `module:function`, from the folder in which the command runs."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from rheostat.errors import InvalidValue, nearest


def import_function(text: str) -> Callable[..., Any]:
    """Import `module:function`; the error for a missing name suggests an existing one."""
    module_name, _, name = text.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), name)):
        hint = f", as in {_dotted(module_name)}:{name or 'start'}" if module_name else ""
        raise InvalidValue(f"{text!r} is not a function: write module:function{hint}")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise InvalidValue(
                f"module {module_name!r} imports {error.name!r}, which is not installed: install it"
            ) from error
        names = [entry.name for entry in pkgutil.iter_modules([here])]
        hint = nearest(module_name, names) if names else "which has no Python file"
        raise InvalidValue(f"there is no module {module_name!r} in {here}, {hint}") from error
    function = getattr(module, name, None)
    if function is None:
        own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        hint = nearest(name, own) if own else "it has no functions"
        raise InvalidValue(f"module {module_name!r} has no function {name!r}, {hint}")
    if not callable(function) and not hasattr(function, "define"):
        raise InvalidValue(f"{text} is a {type(function).__name__}, not a function: give one that starts the query")
    return function  # type: ignore[no-any-return]


def _dotted(path: str) -> str:
    """Return a file's path as the name of a module."""
    parts = path.removesuffix(".py").replace("\\", "/").strip("./").split("/")
    return ".".join(part for part in parts if part)
