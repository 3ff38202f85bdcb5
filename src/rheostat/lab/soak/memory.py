"""Resident memory of processes over time, the live objects in a JVM's heap, and their trends."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from rheostat.job.frozen import from_json

KB_PER_MB = 1024
HEAPS = "heap-"
"""Beginning of the name of the file in which a driver notes its heap."""
L = TypeVar("L", "Sample", "Heap")


@dataclass(frozen=True, slots=True)
class Sample:
    """The resident memory of a driver at one moment. Its scaler is a thread of the Python process."""

    at_s: float
    python_mb: float
    jvm_mb: float


@dataclass(frozen=True, slots=True)
class Heap:
    """A JVM's memory just after all garbage was collected. Resident memory beyond the two sizes is native."""

    at_s: float
    live_mb: float
    """Live objects."""
    heap_mb: float
    """Size of the heap, which grows up to its maximum before a JVM gives memory back."""
    other_mb: float
    """Size of classes, compiled code and the like."""

    def __str__(self) -> str:
        return f"heap {self.heap_mb:.0f} MB, classes and code {self.other_mb:.0f} MB"


@dataclass(frozen=True, slots=True)
class Trend:
    """How memory moved over the samples of one process."""

    first_mb: float
    """Mean of the first quarter of the time."""
    last_mb: float
    """Mean of the last quarter."""
    mb_per_hour: float
    """Slope of the least-squares line."""
    minutes: float

    def __str__(self) -> str:
        return (
            f"{self.first_mb:,.0f} MB in the first quarter, {self.last_mb:,.0f} in the last, of {self.minutes:.1f} min"
        )


def memory_trend(at_s: Sequence[float], resident_mb: Sequence[float]) -> Trend | None:
    """Return the trend of a memory; None with fewer than two moments."""
    moments, sizes = np.asarray(at_s, dtype=float), np.asarray(resident_mb, dtype=float)
    if moments.size < 2 or moments[-1] <= moments[0]:
        return None
    quarter_s = (moments[-1] - moments[0]) / 4
    centred = moments - moments.mean()
    slope_per_s = float((centred * (sizes - sizes.mean())).sum() / (centred**2).sum())
    return Trend(
        first_mb=float(sizes[moments <= moments[0] + quarter_s].mean()),
        last_mb=float(sizes[moments >= moments[-1] - quarter_s].mean()),
        mb_per_hour=slope_per_s * 3600,
        minutes=float(moments[-1] - moments[0]) / 60,
    )


def longest_life(lives: Sequence[Sequence[L]]) -> Sequence[L]:
    """Return the samples of the driver that was sampled for the longest time; none without samples."""
    return max(lives, key=lambda life: life[-1].at_s - life[0].at_s if life else -1.0, default=())


def read_heaps(folder: Path) -> list[list[Heap]]:
    """Read what every driver has noted about its heap; a line that is half written is left out."""
    texts = [file.read_text().rpartition("\n")[0] for file in sorted(folder.glob(f"{HEAPS}*"))]
    return [[from_json(Heap, line) for line in text.splitlines()] for text in texts]


def resident_mb(pid: int) -> float | None:
    """Return the resident memory of a process; None if it is gone."""
    listed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return int(listed) / KB_PER_MB if listed.strip() else None
