"""What every capacity model starts from and answers with: samples of an operator, and a curve over its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured capacity: records/s of the whole operator, at so many tasks."""

    tasks: int
    capacity_per_s: float
    number: int = 0
    """Its place in the order of all samples; a sample's age is counted in samples."""

    def __post_init__(self) -> None:
        check_number("tasks of a sample", self.tasks, least=1)
        check_number("capacity_per_s of a sample", self.capacity_per_s, least=5e-324)


@dataclass(frozen=True, slots=True)
class CapacityCurve:
    """Capacities at 1, 2, 3 ... tasks: what is expected, how sure that is, and how far away the nearest sample is."""

    capacity_per_s: Floats
    sd_per_s: Floats
    """Standard deviation of the capacity itself, without the noise of a single measurement."""
    distance: Floats
    """Tasks to the nearest sample (the paper's d_nearest)."""


class CapacityModel(Protocol):
    """A model that has seen its samples."""

    def curve(self, most: int) -> CapacityCurve:
        """Return the capacities at 1 to `most` tasks."""


def columns(samples: Sequence[Sample]) -> tuple[Floats, Floats, Floats]:
    """Return tasks, capacities and ages (0 is the newest) as arrays, oldest first.

    Sums depend on their order by a rounding error, and a choice between two models that are equally good on that: in
    this order the same samples always give the same model.
    """
    if not samples:
        raise InvalidValue("a capacity model needs at least one sample")
    ordered = sorted(samples, key=lambda s: s.number)
    rows = np.array([(s.tasks, s.capacity_per_s, s.number) for s in ordered], dtype=float)
    order = np.argsort(np.argsort(-rows[:, 2], kind="stable"), kind="stable")
    return rows[:, 0], rows[:, 1], order.astype(float)


def distances(tasks: Floats, most: int) -> Floats:
    """Return how many tasks 1 to `most` are away from the nearest of these sizes."""
    nearest: Floats = np.abs(np.arange(1.0, most + 1.0)[:, None] - tasks[None, :]).min(axis=1)
    return nearest
