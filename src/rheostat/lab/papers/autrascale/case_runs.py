"""Runs without a policy: the case studies of section III (Figures 4 and 5), and the sizes of Figure 7(b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.engine.simulated import Fleet, Plant
from rheostat.engine.testbed.loads import Constant, Steps
from rheostat.job.allocation import Allocation
from rheostat.lab.jobs import job
from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.scaling_runs import prepared

TAIL_S = 300
"""Last seconds of a level over which a throughput is taken."""
HOLD_S = 600
"""Seconds per level; both case studies take ten minutes for each."""


@dataclass(frozen=True, slots=True)
class Held:
    """A level of one run with a fixed size."""

    throughput_per_s: float
    latency_s: float
    """Processing latency in the last second."""
    event_s: float
    """Event-time latency in the last second: processing, and the wait of the backlog."""
    backlog: float
    """Records waiting at the end."""


def run_cases(seeds: int) -> tuple[list[list[Held]], list[list[Held]]]:
    """Return case 1 by level and seed, and case 2 by size and seed."""
    plant = job(paper.CASE_JOB)
    two = [_even(plant, paper.CASE_1_TASKS)] * seeds
    rising = Fleet(prepared(plant), [Steps(paper.CASE_1, HOLD_S)] * seeds, range(seeds), start=two)
    levels = [_hold(rising) for _ in paper.CASE_1]
    sizes = [(tasks, seed) for tasks in paper.CASE_2 for seed in range(seeds)]
    fleet = Fleet(
        prepared(plant),
        [Constant(paper.CASE_2_LEVEL)] * len(sizes),
        [seed for _, seed in sizes],
        start=[_even(plant, tasks) for tasks, _ in sizes],
    )
    held = _hold(fleet)
    return levels, [held[k : k + seeds] for k in range(0, len(held), seeds)]


def run_sizes(job_name: str, level: float, sizes: Sequence[Sequence[int]], seeds: int) -> list[list[Held]]:
    """Return a level of every size, by size and seed."""
    plant = job(job_name)
    names = plant.spec().tunable_names
    starts = [Allocation(dict(zip(names, size, strict=True))) for size in sizes for _ in range(seeds)]
    fleet = Fleet(prepared(plant), [Constant(level)] * len(starts), [*range(seeds)] * len(sizes), start=starts)
    held = _hold(fleet)
    return [held[k : k + seeds] for k in range(0, len(held), seeds)]


def _even(plant: Plant, tasks: int) -> Allocation:
    return Allocation(dict.fromkeys(plant.spec().tunable_names, tasks))


def _hold(fleet: Fleet) -> list[Held]:
    """Run one level and return its end, by replica."""
    fleet.advance(HOLD_S - TAIL_S)
    before = fleet.taken.sum(axis=0)
    fleet.advance(TAIL_S)
    per_s = (fleet.taken.sum(axis=0) - before) / TAIL_S
    backlog = (fleet.arrived - fleet.taken).sum(axis=0)
    latency_s = fleet.latency[0]
    wait_s = backlog / np.maximum(per_s, 1e-9)
    return [Held(*(float(v) for v in row)) for row in zip(per_s, latency_s, latency_s + wait_s, backlog, strict=True)]
