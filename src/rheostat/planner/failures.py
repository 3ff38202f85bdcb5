"""Runs that simply failed: the estimator ended far below what the other sizes say, or had nothing to measure.

4 to 7 of 64 of StreamBed's own runs ended at a floor. One such run among eight ruins any model. A run is judged by its
rate relative to what its own operators' true rates allow: when that is less than half of what a robust line through the
others says, it is doubted and repeated, and left out unless the repeat comes out alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rheostat.job.plan import Estimate
from rheostat.planner.configuration_optimizer import readings

Floats = NDArray[np.float64]

HALF = math.log(2.0)
SPREADS = 3.0
FEWEST = 4
TRIES = 2
"""Runs of one budget that give nothing before it is given up."""
ALIKE = math.log(1.35)
"""Two runs of one budget this close to each other are no accident."""


def doubtful(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return usable runs far below a robust line (Theil and Sen's) through the other sizes."""
    good = [e for e in estimates if e.usable]
    if len(good) < FEWEST:
        return []
    x = np.log([e.slots for e in good])
    y = np.array([math.log(e.middle_per_s) - _allowed(e) for e in good])
    found = []
    for k, estimate in enumerate(good):
        others = np.arange(len(good)) != k
        level, slope, spread = _line(x[others], y[others])
        if y[k] < level + slope * x[k] - max(HALF, SPREADS * spread) and not _confirmed(estimate, good):
            found.append(estimate)
    return found


def kept(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return what may be learned from."""
    odd = doubtful(estimates)
    return [e for e in estimates if e.usable and not any(e is other for other in odd)]


def to_repeat(done: Sequence[Estimate]) -> tuple[Estimate, str] | None:
    """Return a run that has to be made again, and why; None where all is well, or was tried often enough."""
    for estimate in done:
        same = [e for e in done if e.slots == estimate.slots and e.memory_mb == estimate.memory_mb]
        failed = estimate.problem is not None and not any(e.usable for e in same)
        if failed and len(same) < TRIES:
            return estimate, f"again, because the last run failed: {estimate.problem}"
    for estimate in doubtful(done):
        same = [e for e in done if e.slots == estimate.slots and e.memory_mb == estimate.memory_mb]
        if len(same) < TRIES:
            return estimate, "again, because the last run gave less than half of what other sizes say"
    return None


def _allowed(estimate: Estimate) -> float:
    """Return the logarithm of what the run's own true rates allow; of its slots, where they were not measured."""
    rates, ratios = readings(estimate)
    tasks = estimate.allocation.tasks
    carried = [rates[name] * tasks[name] / ratios[name] for name in rates if ratios.get(name, 0.0) > 0]
    return math.log(min(carried)) if carried else math.log(estimate.slots)


def _confirmed(estimate: Estimate, good: Sequence[Estimate]) -> bool:
    """Whether another run of the same budget came out alike."""
    same = [e for e in good if e is not estimate and e.allocation == estimate.allocation]
    return any(abs(math.log(e.middle_per_s / estimate.middle_per_s)) < ALIKE for e in same)


def _line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Return level, slope and scaled median deviation of the median line."""
    slopes = [(y[j] - y[i]) / (x[j] - x[i]) for i, j in combinations(range(len(x)), 2) if abs(x[j] - x[i]) > 0.05]
    slope = float(np.clip(np.median(slopes), -1.0, 0.5)) if slopes else 0.0
    level = float(np.median(y - slope * x))
    return level, slope, 1.48 * float(np.median(np.abs(y - slope * x - level)))
