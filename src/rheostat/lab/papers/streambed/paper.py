"""StreamBed's published numbers (arXiv 2309.03377: Tables II to IV, Figures 9 to 11), and the settings of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.planner.capacity_estimator import COMPLEX, SIMPLE, Phases

GB = (0.5, 1.0, 2.0, 4.0)
SLOTS_PER_MANAGER = 16
"""Slots of a task manager, whose memory Table III and the artifact give."""


@dataclass(frozen=True)
class Query:
    """One query: its simulated job, its search space (Table III), its request and answer (Table IV)."""

    job: str
    operators: int
    least: int
    most: int
    gb: tuple[float, ...]
    calls_co: int
    calls_ce: int
    minutes: float
    family: str
    a: float
    b: float
    c: float
    rate_per_s: float
    slots: Mapping[float, int]
    """GB per slot -> slots."""
    rate_noise: float
    """Log deviation of a measured maximum rate, fitted to the artifact."""
    small: tuple[int, ...]
    """Sizes of Figure 9."""
    single_per_s: float
    """Rate of one task per operator with 4 GB (Table II)."""
    minutes_11: float = 30.0
    """Minutes of the production runs (Figure 11)."""
    phases: Phases = SIMPLE


def _slots(*values: int | None) -> dict[float, int]:
    return {gb: value for gb, value in zip(GB, values, strict=True) if value is not None}


QUERIES: Mapping[str, Query] = {
    "q1": Query(
        "streambed-q1", 2, 2, 16, GB, 9, 10, 139, "linear", 1.0, 9.9e5, -7.6e5, 160e6, _slots(179, 179, 179, 178),
        0.054, (3, 6, 11, 16), 1.6e6,
    ),
    "q2": Query(
        "streambed-q2", 2, 2, 6, GB, 14, 20, 248, "linear", 7.5, 3.0e6, -2.7e6, 190e6, _slots(69, 69, 69, 69),
        0.044, (3, 4, 5, 6), 3.6e6,
    ),
    "q5": Query(
        "streambed-q5", 9, 9, 48, (2.0, 4.0), 14, 14, 252, "log", -7.6e3, 5.7e5, -1.2e6, 2.5e6,
        _slots(None, None, 1069, 1079), 0.076, (12, 24, 36, 48), 50e3, 90.0, COMPLEX,
    ),
    "q8": Query(
        "streambed-q8", 9, 9, 32, (2.0, 4.0), 13, 13, 234, "sqrt", 2.6e3, 1.4e6, -3.9e6, 15e6,
        _slots(None, None, 179, 176), 0.32, (12, 24, 32, 48), 1.4e6, 120.0, COMPLEX,
    ),
    "q11": Query(
        "q11", 4, 4, 48, GB, 16, 20, 252, "linear", 4.1, 3.9e4, -2.1e5, 20e6, _slots(565, 564, 562, 559),
        0.06, (12, 24, 36, 48), 60e3,
    ),
}  # fmt: skip
"""The queries; q11's third and fourth operator have almost no load."""

SIMPLE_QUERIES = ("q1", "q2", "q11")
FAMILY, RULE, OURS, TRUTH = "StreamBed, its family given", "StreamBed", "auto", "really needed"
DICHOTOMIC, SEQUENTIAL = "StreamBed", "auto"
