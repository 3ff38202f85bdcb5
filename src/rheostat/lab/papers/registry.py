"""Suites by name, imported on first use: five papers, and the grounds."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from rheostat.errors import InvalidValue, nearest
from rheostat.lab.papers.suite import Suite

SUITES: Mapping[str, str] = {
    name: f"rheostat.lab.papers.{name}:SUITE"
    for name in ("conttune", "dragster", "autrascale", "phoebe", "streambed", "grounds")
}


def suite(name: str) -> Suite[Any, Any]:
    """Return a suite by name."""
    if name not in SUITES:
        raise InvalidValue(f"unknown suite {name!r}, {nearest(name, [*SUITES, 'all'])}")
    module, _, attribute = SUITES[name].partition(":")
    imported: Suite[Any, Any] = getattr(importlib.import_module(module), attribute)
    return imported
