"""The bound where sizes change while the job runs, as on Spark: dynamic programming over the backlog alone.

Changes are free and happen at any moment, so in a cell of time a job may use any mix of sizes. Its mean capacity c
costs at least the lower convex hull of (capacity, slots) at c. Backlogs are rounded down to a grid, and a second is
over the SLO only if it would be so with the largest size.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rheostat.engine.simulated.draws import Floats
from rheostat.lab.experiment.oracle.cost import OVER_WEIGHT, Cost
from rheostat.lab.experiment.oracle.server import SLACK, Server

CELL_S = 30
"""Seconds of a cell."""
GRID = 96
"""Backlogs of the grid."""
DEEPEST_S = 4.0
"""Largest backlog of the grid, in multiples of the SLO's seconds of the highest load."""


def live_cost(server: Server, peak_slots: float) -> Cost:
    """Return the least cost of a server whose size changes freely."""
    work, seconds = server.work, len(server.work)
    arrived = np.concatenate([[0.0], np.cumsum(work)])
    objective_s = _objective_s(server)
    deepest = DEEPEST_S * min(objective_s, 60.0) * float(work.max())
    grid: Floats = np.append(deepest * (np.arange(GRID) / (GRID - 1)) ** 2, np.inf)
    total, held, over = (np.full(GRID, np.inf), np.zeros(GRID), np.zeros(GRID))
    total[0] = 0.0
    # Before the first decision the size is that of the start.
    first = int(server.course.moments[0]) if len(server.course.moments) else seconds
    edges = [*range(0, first, CELL_S), *range(first, seconds, CELL_S), seconds]
    running = (server.course.trial.start or server.course.trial.job.start()).tasks[server.operator.name]
    for begin, end in pairwise(edges):
        length = end - begin
        chosen = [server.tasks.index(running)] if begin < first else slice(None)
        capacity = server.capacity(begin, end)[chosen]
        corners, slots = hull(capacity.max(axis=1), _least_slots(server)[chosen])
        late = _late_seconds(server, arrived, objective_s, grid[:-1], capacity.max(axis=0), begin, end)
        came = float(arrived[end] - arrived[begin])
        # From grid[i] to any backlog in [grid[j], grid[j + 1]): the least work that must be done, rounded down.
        needed = np.maximum((grid[:-1, None] + came - grid[None, 1:]) / length, 0.0)
        price = np.interp(needed, corners, slots) * length
        price[needed > corners[-1] * SLACK] = np.inf
        cost = total[:, None] + price + OVER_WEIGHT * peak_slots * late[:, None]
        best = cost.argmin(axis=0)
        places = np.arange(GRID)
        held, over = (
            held[best] + np.where(np.isfinite(price[best, places]), price[best, places], 0.0),
            over[best] + late[best],
        )
        total = cost[best, places]
    last = int(np.argmin(total))
    return Cost(float(held[last]), float(over[last]), 0.0, peak_slots)


def hull(capacity: Floats, slots: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the lower convex hull of slots over capacity; less capacity never costs more."""
    order = np.lexsort((slots, capacity))
    corners: list[tuple[float, float]] = [(0.0, float(slots.min()))]
    for k in order:
        point = (float(capacity[k]), float(slots[k]))
        while len(corners) > 1 and _turns_down(corners[-2], corners[-1], point):
            corners.pop()
        if point[0] > corners[-1][0]:
            corners.append(point)
    x, y = zip(*corners, strict=True)
    # Beyond a cheaper point to the right nothing to the left costs more.
    least: Floats = np.minimum.accumulate(np.array(y)[::-1])[::-1]
    return np.array(x), least


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) <= 0


def _least_slots(server: Server) -> Floats:
    """Return the slots of each size; after a failure a job may run with none."""
    return server.slots - (server.slots.min() if server.course.trial.failures_s else 0.0)


def _objective_s(server: Server) -> float:
    """Return the age of the oldest record without a result above which a second is over the SLO."""
    slo = server.course.trial.slo
    given = [value for value in (slo.max_latency_s, slo.max_lag_s) if value is not None]
    return min(given, default=np.inf)


def _late_seconds(
    server: Server, arrived: Floats, objective_s: float, backlog: Floats, most: Floats, begin: int, end: int
) -> Floats:
    """Return, by the backlog at the start of a cell, the seconds over the SLO even with the largest size."""
    if not np.isfinite(objective_s):
        return np.zeros(len(backlog))
    moments = np.arange(begin + 1, end + 1, dtype=float)
    # The oldest record is older than the objective where more waits than arrived in that time.
    allowed = arrived[begin + 1 : end + 1] - np.interp(moments - objective_s, np.arange(len(arrived)), arrived)
    left = arrived[begin + 1 : end + 1] - arrived[begin] - np.cumsum(most)
    over: Floats = ((backlog[:, None] + left) > allowed * SLACK + 1e-6).sum(axis=1).astype(float)
    return over
