"""What p tasks of every operator can do now, by our capacity model over all samples (ours)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.model.capacity import CapacityCurve
from rheostat.model.experience import AllocationSample
from rheostat.model.registry import MODELS
from rheostat.policy.autrascale.space import box_of
from rheostat.policy.autrascale.stage import At
from rheostat.policy.demand import demand

SPARE = 1.05
"""Capacity per demand with which a size still serves a rate: two rates of the same samples differ by up to 5 %."""


def by_capacity(situation: At, target_per_s: float) -> Allocation:
    """Return the fewest tasks whose measured capacities serve a throughput, within the bounds.

    An operator of a wasteful steady allocation may get fewer tasks than it has: the restart happens anyway.
    """
    load = situation.window.load_per_s or target_per_s
    needed = {name: per_s * target_per_s / load for name, per_s in demand(situation).items()}
    box = box_of(situation, dict.fromkeys(situation.spec.tunable_names, 1))
    tops = [int(each[-1]) for each in box.choices]
    wanted: dict[str, float] = {}
    curves = capacity_curves(situation, tops)
    for name, curve, top in zip(situation.spec.tunable_names, curves, tops, strict=True):
        sufficient = np.flatnonzero(curve.capacity_per_s >= needed[name])
        wanted[name] = int(sufficient[0]) + 1 if len(sufficient) else top
    return situation.fit(wanted)


def capacity_curves(situation: At, most: Sequence[int]) -> list[CapacityCurve]:
    """Return the capacity of 1, 2, 3 ... tasks of every operator, from all its samples."""
    curves = []
    for name, top in zip(situation.spec.tunable_names, most, strict=True):
        samples = situation.knowledge.capacities.samples(name)
        if samples:
            curves.append(MODELS["loglog"](samples).curve(top))
            continue
        per_task = situation.window.operator(name).true_rate_per_s or 1e12
        flat = per_task * np.arange(1.0, top + 1.0)
        curves.append(CapacityCurve(flat, np.zeros(top), np.zeros(top)))
    return curves


def serving(situation: At, samples: Sequence[AllocationSample]) -> list[AllocationSample]:
    """Return the samples whose allocation serves this window's load by the capacities of now: they may have fallen."""
    if not samples:
        return []
    names, needed = situation.spec.tunable_names, demand(situation)
    curves = capacity_curves(situation, [max(s.tasks[name] for s in samples) for name in names])
    able = dict(zip(names, (curve.capacity_per_s for curve in curves), strict=True))
    return [s for s in samples if all(able[name][s.tasks[name] - 1] >= SPARE * needed[name] for name in names)]
