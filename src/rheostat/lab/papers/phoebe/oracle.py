"""The oracle: the fewest workers that meet the objective at every moment, with any or a limited number of changes.

It knows the future load, the job's true capacity and the distribution of downtimes, but not the downtime of the next
failure: it meets the same target with the same confidence as ours. A change at every moment is a lower bound that no
job can run; with a limited number of changes, dynamic programming over minutes finds the cheapest sequence of sizes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np

from rheostat.lab.papers.phoebe.paper import TARGET_S
from rheostat.lab.papers.phoebe.play import Experiment, experiment
from rheostat.lab.papers.phoebe.recordings import DURATION_S, Floats
from rheostat.model.recovery import Course, recovery_time_s
from rheostat.policy.phoebe.later_failures import needed_later_per_s

BIN_S = 60
"""Seconds of a step of the dynamic program."""
MOST_CHANGES = 100
LARGEST = 24


def true_course(own: Experiment, at_s: float = 0.0) -> Course:
    """Return the true load around a moment, without noise."""
    seconds = np.arange(0.0, DURATION_S + 3600.0)
    levels = own.load.level(seconds)
    now = int(at_s)
    return Course.of(levels[:now], levels[now:], 1.0)


def lost_s(own: Experiment) -> float:
    """Return the seconds between the last checkpoint and the failure: the paper's I, from the plant."""
    failure = own.plant.failure
    assert failure.replay_s is not None
    return max(failure.replay_s - failure.detected_after_s, 0.0)


def downtime_s(own: Experiment, confidence: float) -> float:
    """Return the quantile of the downtime, from the failure on."""
    failure = own.plant.failure
    return failure.resumed_after_s + NormalDist().inv_cdf(confidence) * failure.resumed_sd_s


def true_recovery_s(own: Experiment, workers: int, at_s: float, away_s: float) -> float:
    """Return the recovery time by the equation with true capacity, load and downtime."""
    capacity_per_s = _capacities(own)[workers - 1]
    return recovery_time_s(capacity_per_s, true_course(own, at_s), lost_s(own), away_s)


def _capacities(own: Experiment) -> list[float]:
    start = own.plant.start()
    return [own.plant.capacity_per_s("job", n, start) for n in range(1, LARGEST + 1)]


@cache
def needed_workers(name: str, folder: Path, confidence: float) -> Floats:
    """Return the fewest workers that meet the objective for a failure at each second; the most if none do."""
    own = experiment(name, folder)
    moments = np.arange(0.0, DURATION_S)
    course = true_course(own)
    needed = np.concatenate(
        [
            needed_later_per_s(TARGET_S, course, lost_s(own), downtime_s(own, confidence), part)
            for part in np.array_split(moments, 20)
        ]
    )
    sizes: Floats = np.minimum(np.searchsorted(np.array(_capacities(own)), needed * (1 - 1e-9)) + 1.0, LARGEST)
    return sizes


@cache
def slot_seconds_by_changes(name: str, folder: Path, confidence: float) -> tuple[float, ...]:
    """Return the fewest slot-seconds that meet the objective with 0, 1, 2, ... changes."""
    needed = needed_workers(name, folder, confidence).reshape(-1, BIN_S).max(axis=1).astype(int)
    sizes = np.arange(1.0, LARGEST + 1)
    best = np.full((MOST_CHANGES + 1, LARGEST), np.inf)
    best[0] = 0.0
    for least in needed:
        changed = np.concatenate([[np.inf], best.min(axis=1)[:-1]])[:, None]
        best = np.minimum(best, changed) + sizes * BIN_S
        best[:, : least - 1] = np.inf
    return tuple(float(v) for v in np.minimum.accumulate(best.min(axis=1)))


def least_slot_seconds(name: str, folder: Path, confidence: float, changes: int | None = None) -> float:
    """Return the oracle's slot-seconds with at most these changes; None: with changes at every moment."""
    if changes is None:
        return float(needed_workers(name, folder, confidence).sum())
    return slot_seconds_by_changes(name, folder, confidence)[min(changes, MOST_CHANGES)]
