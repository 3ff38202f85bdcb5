"""Suites by name, imported only when asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from rheostat.errors import InvalidValue, nearest
from rheostat.lab.papers.result import Result

SUITES: Mapping[str, str] = {
    "conttune": "rheostat.lab.papers.conttune:reproduce",
    "dragster": "rheostat.lab.papers.dragster:reproduce",
    "autrascale": "rheostat.lab.papers.autrascale:reproduce",
    "phoebe": "rheostat.lab.papers.phoebe:reproduce",
    "streambed": "rheostat.lab.papers.streambed:reproduce",
}

Reproduce = Callable[[bool, Callable[[str, float], None]], Result]
"""(quick, progress) -> result; progress is told what is done and the share of all work."""


def suite(name: str) -> Reproduce:
    """Return a suite's function."""
    if name not in SUITES:
        raise InvalidValue(f"unknown suite {name!r}, {nearest(name, [*SUITES, 'all'])}")
    module, _, function = SUITES[name].partition(":")
    found: Reproduce = getattr(importlib.import_module(module), function)
    return found
