"""T_max over scale-outs: a line through what profiling found, corrected by what the running job really does.

The paper fits a regression once and says that it is refreshed. A recorded profile overstated the same job's capacity by
a quarter (CALIBRATION.md), so the ratio between what runs and what the line says is worth more than the line: its
median over the newest windows corrects every scale-out. Without a profile the running job's own samples are the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FAR = 1.5
"""A scale-out beyond this many times the largest (or below the smallest divided by it) is far from what was seen."""
LEAST_SHARE = 0.05
"""A line that falls below this share of proportional scaling is cut there: T_max is never zero or negative."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a size was seen to be able to do, in records/s of the sources."""

    scale_out: int
    able_per_s: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """T_max = (base + slope * scale-out) * ratio."""

    base_per_s: float
    slope_per_s: float
    ratio: float
    least: int
    most: int
    """The smallest and the largest scale-out that were seen."""

    def per_s(self, scale_out: int) -> float:
        """Return T_max of a scale-out."""
        line = self.base_per_s + self.slope_per_s * scale_out
        middle = self.base_per_s + self.slope_per_s * self.most
        return max(line, LEAST_SHARE * middle * scale_out / self.most) * self.ratio

    def far(self, scale_out: int) -> bool:
        """Whether this is a guess: nothing near this scale-out was ever seen."""
        return scale_out > FAR * self.most or scale_out * FAR < self.least


def fitted(profile: Sequence[Sample], live: Sequence[Sample] = ()) -> Capacity | None:
    """Return the line through a profile, corrected by live samples; None where nothing was seen."""
    sound = [s for s in profile if s.able_per_s > 0 and np.isfinite(s.able_per_s)]
    recent = [s for s in live if s.able_per_s > 0 and np.isfinite(s.able_per_s)]
    base = sound or recent
    if not base:
        return None
    sizes, able = np.array([(s.scale_out, s.able_per_s) for s in base], dtype=float).T
    slope, level = float((able / sizes).mean()), 0.0
    if len(set(sizes.tolist())) > 1:
        slope, level = (float(v) for v in np.polyfit(sizes, able, 1))
        if slope <= 0:  # more workers that do less: nothing that a line could use
            slope, level = 0.0, float(able.mean())
    ratio = 1.0
    if sound and recent:
        plain = Capacity(level, slope, 1.0, int(sizes.min()), int(sizes.max()))
        ratio = float(np.median([s.able_per_s / plain.per_s(s.scale_out) for s in recent]))
    seen = [s.scale_out for s in (*sound, *recent)]
    return Capacity(level, slope, ratio, min(seen), max(seen))
