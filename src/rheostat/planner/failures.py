"""Failed runs: the estimator ended far below the rate that the other sizes suggest, or measured nothing.

Of StreamBed's own 64 runs, 4 to 7 ended at a floor, and one such run among eight ruins any model. A run is judged by
its rate relative to the rate that its own operators' true rates allow. If that ratio is less than half of what a robust
line through the other runs predicts, the run is doubtful: it is repeated, and dropped unless the repeat confirms it.
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
"""Least distance of a doubtful run below the line, in logarithms: a factor of two."""
SPREADS = 3.0
"""Least distance of a doubtful run below the line, in scaled median deviations."""
FEWEST = 4
"""Fewest runs of a line."""
TRIES = 2
"""Failed runs of one budget after which it is given up."""
CONFIRMS = math.log(1.35)
"""Largest distance, in logarithms, of a repeat that confirms a run."""


def find_doubtful(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return the usable runs far below a robust line (Theil and Sen) through the other sizes."""
    good = [e for e in estimates if e.usable]
    if len(good) < FEWEST:
        return []
    x = np.log([e.slots for e in good])
    y = np.array([math.log(e.middle_per_s) - _log_allowed(e) for e in good])
    doubtful = []
    for k, estimate in enumerate(good):
        others = np.arange(len(good)) != k
        level, slope, spread = _line(x[others], y[others])
        if y[k] < level + slope * x[k] - max(HALF, SPREADS * spread) and not _confirmed(estimate, good):
            doubtful.append(estimate)
    return doubtful


def drop_doubtful(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return the usable estimates without the doubtful ones."""
    doubtful = find_doubtful(estimates)
    return [e for e in estimates if e.usable and not any(e is other for other in doubtful)]


def run_to_repeat(done: Sequence[Estimate]) -> tuple[Estimate, str] | None:
    """Return a run to repeat, and why; None if there is none, or it was repeated often enough."""
    for estimate in done:
        same = [e for e in done if e.slots == estimate.slots and e.memory_mb == estimate.memory_mb]
        failed = estimate.problem is not None and not any(e.usable for e in same)
        if failed and len(same) < TRIES:
            return estimate, f"again, because the last run failed: {estimate.problem}"
    for estimate in find_doubtful(done):
        same = [e for e in done if e.slots == estimate.slots and e.memory_mb == estimate.memory_mb]
        if len(same) < TRIES:
            return estimate, "again, because the last run gave less than half of the rate that other sizes suggest"
    return None


def _log_allowed(estimate: Estimate) -> float:
    """Return the logarithm of the rate that the run's own true rates allow; of its slots, if there are none."""
    rates, ratios = readings(estimate)
    tasks = estimate.allocation.tasks
    carried = [rates[name] * tasks[name] / ratios[name] for name in rates if ratios.get(name, 0.0) > 0]
    return math.log(min(carried)) if carried else math.log(estimate.slots)


def _confirmed(estimate: Estimate, good: Sequence[Estimate]) -> bool:
    """Whether another run of the same budget gave the same rate."""
    same = [e for e in good if e is not estimate and (e.slots, e.memory_mb) == (estimate.slots, estimate.memory_mb)]
    return any(abs(math.log(e.middle_per_s / estimate.middle_per_s)) < CONFIRMS for e in same)


def _line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Return level, slope and scaled median deviation of the median line."""
    slopes = [(y[j] - y[i]) / (x[j] - x[i]) for i, j in combinations(range(len(x)), 2) if abs(x[j] - x[i]) > 0.05]
    slope = float(np.clip(np.median(slopes), -1.0, 0.5)) if slopes else 0.0
    level = float(np.median(y - slope * x))
    return level, slope, 1.48 * float(np.median(np.abs(y - slope * x - level)))
