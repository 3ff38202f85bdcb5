"""Predicts the downtime of a change in real-time mode from its kind and the state size, corrected by past changes.

A restart takes a fixed time; repartitioning state takes another fixed time and some microseconds per key. The
correction is the median of measured over predicted downtime, of changes of the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RESTART_S = 0.6
"""Seconds of a restart, measured on Spark 4.3."""
MOVE_S = 0.6
"""Fixed seconds to repartition state, measured on Spark 4.3."""
MOVE_S_PER_KEY = 6e-6
"""Seconds per key to repartition state, measured on Spark 4.3."""
RECENT_CHANGES = 20
"""Past changes in the median of the correction."""


@dataclass(frozen=True, slots=True)
class Downtime:
    """The measured downtime of one change."""

    moved: bool
    """Whether the state was repartitioned."""
    keys: int
    seconds: float


def nominal_downtime_s(moved: bool, keys: int) -> float:
    """Return the downtime on the machine of the measurements."""
    return RESTART_S + (MOVE_S + MOVE_S_PER_KEY * keys if moved else 0.0)


def expected_downtime_s(past: Sequence[Downtime], moved: bool, keys: int) -> float:
    """Return the expected downtime of the next change."""
    same_kind = [change for change in past if change.moved is moved]
    ratios = [change.seconds / nominal_downtime_s(change.moved, change.keys) for change in same_kind]
    return nominal_downtime_s(moved, keys) * (median(ratios[-RECENT_CHANGES:]) if ratios else 1.0)
