"""The loads of `rheostat bench sight`, and the pace that they meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule

Source = Literal["kafka", "files"]
MOST_EXECUTORS = 4
RECORD_S = 0.6e-3
"""Seconds of a slot per record: a wait, because the machine may have fewer cores than executors."""
PACE_PER_S = 1 / RECORD_S
BASE_PER_S = 500.0
"""Records/s at level 1."""
HOLD_S = 5
"""Seconds per level."""
WARM_UP_S = 20
"""Seconds at level 1 before the load begins: their records are done before it does, so that the first batch, which
compiles code and starts Python workers, does not count."""
SPIKE = 10.0
"""Level of the spike."""


@dataclass(frozen=True)
class Scenario:
    """A load, and where it goes."""

    name: str
    schedule: Schedule
    """The warm-up, and then the load."""
    source: Source = "kafka"

    @property
    def seconds(self) -> int:
        """Length of the load without the warm-up."""
        return self.schedule.seconds - WARM_UP_S


def scenario(name: str, levels: tuple[float, ...], source: Source = "kafka") -> Scenario:
    """Return the scenario of these levels, each held for `HOLD_S`, after a warm-up."""
    all_levels = (1.0,) * (WARM_UP_S // HOLD_S) + levels
    schedule = Schedule(Steps(all_levels, float(HOLD_S)), BASE_PER_S, len(all_levels) * HOLD_S, HOLD_S)
    return Scenario(name, schedule, source)


RAMP = tuple(1.0 + 0.5 * step for step in range(12))
SPIKE_AND_FALL = scenario("spike", (1.0,) * 12 + (SPIKE,) * 12 + (1.0,) * 12)
LEVELS = scenario("steps", (1.0,) * 8 + (4.0,) * 8 + (2.0,) * 8 + (0.0,) * 8 + RAMP + (0.0,) * 4)
FILES = scenario("files", (1.0,) * 8 + (6.0,) * 8 + (0.0,) * 8 + (2.0,) * 8, "files")
