"""How long a change in real-time mode will stop the output: by kind and state size, corrected by what was seen.

A restart takes a fixed time, moving state another one and some microseconds per key (measured before this was built).
A machine's own level is the median of seen over expected, of changes of the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RESTART_S = 0.6
MOVE_S = 0.6
MOVE_S_PER_KEY = 6e-6
KEPT = 20
"""Of the last so many changes the level is taken."""


@dataclass(frozen=True, slots=True)
class Downtime:
    """One change, as it was."""

    moved: bool
    """Whether the state got another number of partitions."""
    keys: int
    seconds: float


def usual_s(moved: bool, keys: int) -> float:
    """Return the downtime of a machine like the one that was measured."""
    return RESTART_S + (MOVE_S + MOVE_S_PER_KEY * keys if moved else 0.0)


def expected_downtime_s(seen: Sequence[Downtime], moved: bool, keys: int) -> float:
    """Return the downtime to expect of the next change."""
    ratios = [change.seconds / usual_s(change.moved, change.keys) for change in seen if change.moved is moved]
    return usual_s(moved, keys) * (median(ratios[-KEPT:]) if ratios else 1.0)
