"""One operator as Algorithm 2 sees it: its rate, its capacity curve and its samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rheostat.model.capacity import CapacityCurve, Sample


@dataclass(frozen=True, slots=True)
class View:
    """Rate, capacity curve and samples of one operator."""

    tasks: int
    rate_per_s: float | None
    """Present records per useful second of one task."""
    curve: CapacityCurve | None = None
    means: Mapping[int, float] = field(default_factory=dict)
    """Mean capacity of every sampled size."""
    falls: bool = False
    """Whether the largest size is clearly slower than a smaller one; the curve then ends at the best size (ours)."""
    least: int = 1
    """Fewest tasks that have not failed at this load (ours)."""

    def distance(self, tasks: int | None) -> float:
        """Return d_nearest of a size on the curve; infinite for none."""
        return math.inf if tasks is None or self.curve is None else float(self.curve.distance[tasks - 1])


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The suggested tasks of one operator."""

    tasks: float
    demand_per_s: float
    distance: float
    """d_nearest of the model's suggestion; infinite if it has none."""
    trusted: bool
    """Whether it is fast exploitation; otherwise it is conservative exploration."""
    share: float = 1.0
    """Share of the demand that it will serve."""


def means(samples: Sequence[Sample]) -> dict[int, float]:
    """Return the mean capacity of every size."""
    by_size: dict[int, list[float]] = {}
    for sample in samples:
        by_size.setdefault(sample.tasks, []).append(sample.capacity_per_s)
    return {tasks: sum(per_s) / len(per_s) for tasks, per_s in by_size.items()}
