"""A simulated job without noise: its latency in a steady state, and the fewest tasks that suffice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.plant import Plant
from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO, Bounds
from rheostat.lab.papers.capacity import fewest_tasks
from rheostat.model.capacity import Floats

MOST_EXTRA = 30
"""Most tasks above the fewest in the exhaustive search."""


def bounded(plant: Plant, most: int) -> SLO:
    """Return an SLO that bounds every operator by the paper's P_max."""
    return SLO(operators={name: Bounds(1, most) for name in plant.spec().tunable_names})


def latency_s(plant: Plant, rows: NDArray[np.int64], load_per_s: float) -> Floats:
    """Return the latency of every row of tasks by the plant's law; infinite if it does not keep up."""
    law, names = plant.latency, plant.spec().tunable_names
    demand = plant.graph.demand_per_s(dict.fromkeys(plant.graph.sources, load_per_s))
    tasks = {o.name: np.full(len(rows), o.pinned_tasks or 1) for o in plant.operators}
    tasks |= {name: rows[:, k] for k, name in enumerate(names)}
    total = np.full(len(rows), law.base_s)
    share = np.array([plant.interference.share(float(slots)) for slots in rows.sum(axis=1)])
    for operator in plant.operators:
        counts = tasks[operator.name]
        each = {int(p): plant.nominal_per_s(operator, int(p), None) for p in np.unique(counts)}
        nominal = np.array([each[int(p)] for p in counts])
        even = np.array([operator.evenness(int(p)) for p in counts])
        capacity_per_s = np.minimum(nominal * even, operator.limit_per_s or np.inf) * share
        rho = demand[operator.name] / capacity_per_s
        total = np.where(rho >= 1.0, np.inf, total)
        busy = np.minimum(rho, 0.999)
        total += np.minimum(
            operator.queueing_records * counts / nominal * (busy / (1 - busy)) ** law.exponent, law.cap_s
        )
    for edge in plant.graph.edges:
        rate = demand[edge.upstream] * edge.selectivity
        filling = law.buffer_records * tasks[edge.upstream] * tasks[edge.downstream] / max(rate, 1e-9)
        total += 0.5 * np.minimum(filling, law.timeout_s)
    return total


def fewest(plant: Plant, load_per_s: float, most: int) -> Allocation:
    """Return the fewest tasks that keep up with a load."""
    return fewest_tasks(plant, dict.fromkeys(plant.graph.sources, load_per_s), bounded(plant, most))


def exhaustive(plant: Plant, load_per_s: float, target_s: float, most: int) -> Allocation | None:
    """Return the fewest tasks of all allocations that meet a latency target; None if none does."""
    base = fewest(plant, load_per_s, most)
    low = np.array(list(base.tasks.values()))
    for extra in range(MOST_EXTRA + 1):
        rows = low + _spread(extra, len(low))
        rows = rows[(rows <= most).all(axis=1)]
        if not len(rows):
            return None
        latencies_s = latency_s(plant, rows, load_per_s)
        if latencies_s.min() <= target_s:
            best = rows[int(np.argmin(latencies_s))]
            return base.with_tasks({name: int(count) for name, count in zip(base.tasks, best, strict=True)})
    return None


def _spread(extra: int, operators: int) -> NDArray[np.int64]:
    """Return every distribution of `extra` tasks over the operators."""
    where: Sequence[tuple[int, ...]] = list(combinations_with_replacement(range(operators), extra))
    counts = np.zeros((len(where), operators), dtype=np.int64)
    for row, picked in enumerate(where):
        for k in picked:
            counts[row, k] += 1
    return counts
