"""Who knows everything: the fewest workers that keep the objective at every moment, and with so many changes only.

It knows the load to come, the job's true capacity and how downtimes scatter, but not the downtime of the next failure:
it meets the same target with the same promised share as ours. Following every moment is a lower bound that no job can
run at; with a number of changes given, the cheapest sequence of sizes is found by dynamic programming over minutes.
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
MOST_CHANGES = 100
LARGEST = 24


def true_course(chosen: Experiment, at_s: float = 0.0) -> Course:
    """Return the load as it really comes, noise apart, around a moment."""
    seconds = np.arange(0.0, DURATION_S + 3600.0)
    levels = chosen.load.level(seconds)
    now = int(at_s)
    return Course.of(levels[:now], levels[now:], 1.0)


def lost_s(chosen: Experiment) -> float:
    """Return the seconds between the last checkpoint and the failure: the paper's I, as the plant has it."""
    failure = chosen.plant.failure
    assert failure.replay_s is not None
    return max(failure.replay_s - failure.detected_after_s, 0.0)


def downtime_s(chosen: Experiment, confidence: float) -> float:
    """Return the downtime, from the failure on, that a share of all failures stays below."""
    failure = chosen.plant.failure
    return failure.resumed_after_s + NormalDist().inv_cdf(confidence) * failure.resumed_sd_s


def true_recovery_s(chosen: Experiment, workers: int, at_s: float, away_s: float) -> float:
    """Return what the equation gives when capacity, load and downtime are the true ones."""
    able = _able(chosen)[workers - 1]
    return recovery_time_s(able, true_course(chosen, at_s), lost_s(chosen), away_s)


def _able(chosen: Experiment) -> list[float]:
    start = chosen.plant.start()
    return [chosen.plant.capacity_per_s("job", n, start) for n in range(1, LARGEST + 1)]


@cache
def needed_workers(name: str, folder: Path, confidence: float) -> Floats:
    """Return the fewest workers that keep the objective, for a failure at each second; the largest where none does."""
    chosen = experiment(name, folder)
    moments = np.arange(0.0, DURATION_S)
    course = true_course(chosen)
    needed = np.concatenate(
        [
            needed_later_per_s(TARGET_S, course, lost_s(chosen), downtime_s(chosen, confidence), part)
            for part in np.array_split(moments, 20)
        ]
    )
    sizes: Floats = np.minimum(np.searchsorted(np.array(_able(chosen)), needed * (1 - 1e-9)) + 1.0, LARGEST)
    return sizes


@cache
def slot_seconds_by_changes(name: str, folder: Path, confidence: float) -> tuple[float, ...]:
    """Return the fewest slot-seconds that keep the objective with 0, 1, 2, ... changes."""
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
    """Return the oracle's slot-seconds: with at most so many changes, or at every moment anew."""
    if changes is None:
        return float(needed_workers(name, folder, confidence).sum())
    return slot_seconds_by_changes(name, folder, confidence)[min(changes, MOST_CHANGES)]
