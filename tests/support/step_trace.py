"""Which functions one step of the loop goes through: those that are entered from another file of the package.

Plain data (`job/`, `ports.py`, `clock.py`, `errors.py`) is what is handed over, not a station on the way, and
properties are read like data. What a policy calls inside `policy/` is its own affair: another one has other blocks.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import rheostat
from rheostat.control.controller import Controller, Step

PACKAGE = Path(rheostat.__file__).parent
PLAIN = ("job/", "ports.py", "clock.py", "errors.py")


class StepTrace:
    """The stations of every step, in the order in which they were first entered."""

    def __init__(self) -> None:
        self.steps: list[tuple[Step, list[str]]] = []
        self._stations: dict[str, None] = {}

    def enter(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as `sys.setprofile` reports it."""
        if event != "call" or frame.f_back is None:
            return
        file, caller = (self._file(f.f_code.co_filename) for f in (frame, frame.f_back))
        name = frame.f_code.co_qualname
        if file is None or file == caller or "<" in name or "__" in name or file.startswith(PLAIN):
            return
        if file.startswith("policy/") and (caller or "").startswith("policy/"):
            return
        self._stations.setdefault(f"{file} {name}")

    def end(self, step: Step) -> None:
        """Keep what the step went through."""
        self.steps.append((step, [station for station in self._stations if not is_property(station)]))
        self._stations = {}

    @staticmethod
    def _file(path: str) -> str | None:
        full = Path(path)
        return str(full.relative_to(PACKAGE)) if full.is_relative_to(PACKAGE) else None


def found(station: str) -> Any:
    """Return what a station (`control/cycle.py think`) names; an error where it does not exist."""
    file, name = station.split()
    module = sys.modules.get(module_name := f"rheostat.{file.removesuffix('.py').replace('/', '.')}")
    if module is None:
        module = __import__(module_name, fromlist=["_"])
    thing: Any = module
    for part in name.split("."):
        thing = inspect.getattr_static(thing, part)
    return thing


def is_property(station: str) -> bool:
    return isinstance(found(station), property | cached_property)


@contextmanager
def traced_steps() -> Iterator[StepTrace]:
    """Trace every step that a controller of this process makes."""
    trace, step = StepTrace(), Controller.step

    def traced(controller: Controller[Any]) -> Step:
        # Engines are called in threads with a deadline, which take over the profile function when they start.
        threading.setprofile(trace.enter)
        sys.setprofile(trace.enter)
        try:
            done = step(controller)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        trace.end(done)
        return done

    Controller.step = traced  # type: ignore[assignment, method-assign]
    try:
        yield trace
    finally:
        Controller.step = step  # type: ignore[method-assign]
