"""BIDS2 as a mixed-integer program (Eq 1 to 4), solved by HiGHS, with constraints that couple operators.

Examples are memory per executor, or operators with the same parallelism. Without such constraints `bids2` returns the
same answer in a fraction of the time. Needs scipy (`pip install rheostat[plan]`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rheostat.errors import InvalidValue
from rheostat.planner.configuration_optimizer import OperatorCapacity, Split


@dataclass(frozen=True, slots=True)
class Side:
    """least <= sum of coefficient x tasks <= most."""

    coefficients: Mapping[str, float]
    least: float = -math.inf
    most: float = math.inf


def solve(
    capacities: Sequence[OperatorCapacity], slots: int, sides: Sequence[Side] = (), *, exactly: bool = True
) -> Split:
    """Return the best split under side constraints; raises InvalidValue if none fulfils them."""
    if all(a.exponent == 1.0 for a in capacities):
        tasks = _program(capacities, slots, sides, exactly, None)
    else:
        tasks = _curved(capacities, slots, sides, exactly)
    if tasks is None:
        raise InvalidValue(f"no split of {slots} slots fulfils the bounds and the {len(sides)} side constraints")
    rate = min(a.carries_per_s(p) for a, p in zip(capacities, tasks, strict=True))
    return Split({a.name: p for a, p in zip(capacities, tasks, strict=True)}, rate)


def _curved(
    capacities: Sequence[OperatorCapacity], slots: int, sides: Sequence[Side], exactly: bool
) -> list[int] | None:
    """Bisect the rate: whether a rate can be sustained is a linear program."""
    best = _program(capacities, slots, sides, exactly, [a.least for a in capacities])
    if best is None:
        return None
    low = min(a.carries_per_s(p) for a, p in zip(capacities, best, strict=True))
    top = min(a.carries_per_s(min(slots, a.most)) for a in capacities)
    while top > low * (1 + 1e-9):
        middle = math.sqrt(low * top)
        tasks = _program(capacities, slots, sides, exactly, [a.needs(middle) for a in capacities])
        if tasks is None:
            top = middle
        else:
            best = tasks
            low = max(middle, min(a.carries_per_s(p) for a, p in zip(capacities, best, strict=True)))
    return best


def _program(
    capacities: Sequence[OperatorCapacity],
    slots: int,
    sides: Sequence[Side],
    exactly: bool,
    least: Sequence[int] | None,
) -> list[int] | None:
    """Solve for the rate or, with `least`, for any tasks of at least these numbers."""
    try:
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError as error:
        raise InvalidValue("side constraints need scipy: pip install 'rheostat[plan]'") from error
    n = len(capacities)
    scale = min(a.source_per_s for a in capacities)  # keeps the program's numbers near one
    low = [a.least if least is None else max(a.least, least[k]) for k, a in enumerate(capacities)]
    high = [min(a.most, slots) for a in capacities]
    if any(one > other for one, other in zip(low, high, strict=True)):
        return None
    steps = [a.quantum for a in capacities]
    rows, lows, highs = [[*steps, 0.0]], [float(slots) if exactly else 0.0], [float(slots)]
    for side in sides:
        rows.append([side.coefficients.get(a.name, 0.0) * q for a, q in zip(capacities, steps, strict=True)] + [0.0])
        lows.append(side.least)
        highs.append(side.most)
    for k, a in enumerate(capacities):
        if math.isfinite(a.source_per_s):
            row = [0.0] * (n + 1)
            row[k], row[n] = -float(a.quantum), scale / a.source_per_s  # Eq 2 and 3
            rows.append(row)
            lows.append(-math.inf)
            highs.append(0.0)
    bounds = Bounds(
        np.array([-(-one // q) for one, q in zip(low, steps, strict=True)] + [0.0]),
        np.array([other // q for other, q in zip(high, steps, strict=True)] + [float(slots) if least is None else 0.0]),
    )
    objective = np.zeros(n + 1)
    objective[n] = -1.0  # Eq 1
    solution = milp(
        objective,
        constraints=LinearConstraint(np.array(rows), np.array(lows), np.array(highs)),  # Eq 4, and the sides
        integrality=np.array([1] * n + [0]),
        bounds=bounds,
        options={"mip_rel_gap": 0.0},
    )
    if not solution.success:
        return None
    return [round(float(solution.x[k])) * steps[k] for k in range(n)]
