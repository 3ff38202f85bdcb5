"""A function of the user's, by module and name, from the folder in which the command runs."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from rheostat.errors import InvalidValue, nearest


def imported(text: str) -> Callable[..., Any]:
    """Import `module:function`; what is not there is an error that names what is."""
    module_name, _, name = text.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), name)):
        hint = f", as in {_dotted(module_name)}:{name or 'start'}" if module_name else ""
        raise InvalidValue(f"cannot read {text!r}: write module:function{hint}")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise InvalidValue(f"module {module_name!r} needs {error.name!r}, which is not installed") from error
        found = [entry.name for entry in pkgutil.iter_modules([here])]
        hint = nearest(module_name, found) if found else "there is no Python file"
        raise InvalidValue(f"there is no module {module_name!r} in {here}, {hint}") from error
    function = getattr(module, name, None)
    if function is None:
        own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        hint = nearest(name, own) if own else "it has no functions"
        raise InvalidValue(f"module {module_name!r} has no function {name!r}, {hint}")
    if not callable(function) and not hasattr(function, "define"):
        raise InvalidValue(f"{text} is a {type(function).__name__}: give a function that starts the query")
    return function  # type: ignore[no-any-return]


def _dotted(path: str) -> str:
    """Turn a path into the module that was probably meant."""
    parts = path.removesuffix(".py").replace("\\", "/").strip("./").split("/")
    return ".".join(part for part in parts if part)
