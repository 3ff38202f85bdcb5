"""The loads of `rheostat bench sight`, and the pace that they meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule

MOST_EXECUTORS = 4
RECORD_S = 0.6e-3
"""Seconds of a slot per record: a wait, because the machine may have fewer cores than executors."""
PACE_PER_S = 1 / RECORD_S
BASE_PER_S = 500.0
"""Records/s at level 1."""
SPIKE = 10.0
"""Level of the spike."""


@dataclass(frozen=True)
class Scenario:
    """A load, and where it goes."""

    name: str
    schedule: Schedule
    source: Literal["kafka", "files"] = "kafka"


def _scenario(name: str, levels: tuple[float, ...], hold_s: int, source: Literal["kafka", "files"]) -> Scenario:
    return Scenario(name, Schedule(Steps(levels, float(hold_s)), BASE_PER_S, len(levels) * hold_s, hold_s), source)


RAMP = tuple(1.0 + 0.5 * step for step in range(12))
SPIKE_AND_FALL = _scenario("spike", (1.0, SPIKE, 1.0), 60, "kafka")
LEVELS = _scenario("steps", (1.0,) * 8 + (4.0,) * 8 + (2.0,) * 8 + (0.0,) * 8 + RAMP + (0.0,) * 4, 5, "kafka")
FILES = _scenario("files", (1.0,) * 8 + (6.0,) * 8 + (0.0,) * 8 + (2.0,) * 8, 5, "files")
