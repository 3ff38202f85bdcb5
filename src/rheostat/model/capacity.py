"""Input and output of every capacity model: samples of an operator, and a curve over its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.job.fit import MOST_TASKS
from rheostat.job.frozen import check_number

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured capacity: records/s of the whole operator with `tasks` tasks."""

    tasks: int
    capacity_per_s: float
    number: int = 0
    """Its position in the order of all samples; a sample's age is counted in samples."""

    def __post_init__(self) -> None:
        check_number("tasks of a sample", self.tasks, least=1, most=MOST_TASKS)
        check_number("capacity_per_s of a sample", self.capacity_per_s, least=5e-324)


@dataclass(frozen=True, slots=True)
class CapacityCurve:
    """Capacities at 1, 2, 3 ... tasks: the expected value, its uncertainty, and the distance to the nearest sample."""

    capacity_per_s: Floats
    sd_per_s: Floats
    """Standard deviation of the capacity itself, without the noise of a single measurement."""
    distance: Floats
    """Tasks to the nearest sample (the paper's d_nearest)."""
    noise: float = 0.0
    """Standard deviation of a single window, as a share of the capacity; 0 where a model does not estimate it."""


class CapacityModel(Protocol):
    """A fitted model."""

    def curve(self, most: int) -> CapacityCurve:
        """Return the capacities at 1 to `most` tasks."""


def columns(samples: Sequence[Sample]) -> tuple[Floats, Floats, Floats]:
    """Return tasks, capacities and ages (0 is the newest) as arrays, oldest first.

    The rounding error of a sum depends on its order, and the choice between two equally good models depends on the
    rounding error. This order makes the same samples always give the same model.
    """
    if not samples:
        raise InvalidValue("a capacity model needs at least one sample")
    ordered = sorted(samples, key=lambda s: s.number)
    rows = np.array([(s.tasks, s.capacity_per_s, s.number) for s in ordered], dtype=float)
    order = np.argsort(np.argsort(-rows[:, 2], kind="stable"), kind="stable")
    return rows[:, 0], rows[:, 1], order.astype(float)


def distances(tasks: Floats, most: int) -> Floats:
    """Return the distance, in tasks, of 1 to `most` tasks to the nearest of these sizes."""
    nearest: Floats = np.abs(np.arange(1.0, most + 1.0)[:, None] - tasks[None, :]).min(axis=1)
    return nearest
