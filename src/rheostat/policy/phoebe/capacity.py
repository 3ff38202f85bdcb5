"""T_max over scale-outs: a line through the profile, corrected by the running job.

The paper fits a regression once and says that it is refreshed. A recorded profile overstated the same job's capacity by
a quarter, so the ratio of the running job's capacity to the line is worth more than the line: its median over the
newest windows corrects every scale-out. Without a profile the line goes through the running job's own samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

FAR = 1.5
"""Ratio to the largest (or smallest) sampled scale-out above (or below) which a scale-out is far from any sample."""
LEAST_SHARE = 0.05
"""Lower bound of the line, as a share of proportional scaling: T_max is always positive."""


@dataclass(frozen=True, slots=True)
class CapacitySample:
    """A measured capacity of the job, in source records/s."""

    scale_out: int
    capacity_per_s: float


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """T_max = (base + slope * scale-out) * ratio."""

    base_per_s: float
    slope_per_s: float
    ratio: float
    least: int
    most: int
    """Smallest and largest sampled scale-out."""

    def per_s(self, scale_out: int) -> float:
        """Return T_max of a scale-out."""
        line = self.base_per_s + self.slope_per_s * scale_out
        middle = self.base_per_s + self.slope_per_s * self.most
        return max(line, LEAST_SHARE * middle * scale_out / self.most) * self.ratio

    def is_far(self, scale_out: int) -> bool:
        """Whether no sample is near this scale-out."""
        return scale_out > FAR * self.most or scale_out * FAR < self.least


def fit_line(profile: Sequence[CapacitySample], live: Sequence[CapacitySample] = ()) -> CapacityLine | None:
    """Return the line through a profile, corrected by live samples; None without any sample."""
    sound = [s for s in profile if s.capacity_per_s > 0 and np.isfinite(s.capacity_per_s)]
    recent = [s for s in live if s.capacity_per_s > 0 and np.isfinite(s.capacity_per_s)]
    base = sound or recent
    if not base:
        return None
    sizes = [s.scale_out for s in base]
    level, slope = _fit(tuple(base))
    ratio = 1.0
    if sound and recent:
        uncorrected = CapacityLine(level, slope, 1.0, min(sizes), max(sizes))
        ratio = float(np.median([s.capacity_per_s / uncorrected.per_s(s.scale_out) for s in recent]))
    scale_outs = [s.scale_out for s in (*sound, *recent)]
    return CapacityLine(level, slope, ratio, min(scale_outs), max(scale_outs))


@lru_cache(maxsize=64)
def _fit(samples: tuple[CapacitySample, ...]) -> tuple[float, float]:
    """Return level and slope of the line through the samples: a profile is the same in every step."""
    sizes, capacities = np.array([(s.scale_out, s.capacity_per_s) for s in samples], dtype=float).T
    slope, level = float((capacities / sizes).mean()), 0.0
    if len(set(sizes.tolist())) > 1:
        slope, level = (float(v) for v in np.polyfit(sizes, capacities, 1))
        if slope <= 0:  # more workers with less capacity: a falling line would be useless
            slope, level = 0.0, float(capacities.mean())
    return level, slope
