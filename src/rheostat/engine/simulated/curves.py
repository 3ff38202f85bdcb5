"""Capacity curves: records/s of a whole operator at p tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number


class Curve(Protocol):
    """Capacity as a function of tasks."""

    def capacity_per_s(self, tasks: int) -> float:
        """Return records/s of all tasks together."""


@dataclass(frozen=True, slots=True)
class Linear:
    """Every task adds the same capacity on top of a base (Phoebe's capacity regression has one)."""

    rate_per_s: float
    base_per_s: float = 0.0

    def __post_init__(self) -> None:
        check_number("rate_per_s", self.rate_per_s, least=1e-12)
        check_number("base_per_s", self.base_per_s)

    def capacity_per_s(self, tasks: int) -> float:
        """Return base + rate * p."""
        return self.base_per_s + self.rate_per_s * tasks


@dataclass(frozen=True, slots=True)
class Power:
    """rate * p ** exponent: StreamBed's measured operators follow it, q8's join with an exponent above 1."""

    rate_per_s: float
    exponent: float = 1.0

    def __post_init__(self) -> None:
        check_number("rate_per_s", self.rate_per_s, least=1e-12)
        check_number("exponent", self.exponent)

    def capacity_per_s(self, tasks: int) -> float:
        """Return rate * p ** exponent."""
        return float(self.rate_per_s * tasks**self.exponent)


@dataclass(frozen=True, slots=True)
class Usl:
    """Gunther's universal scalability law; with kappa = 0 it is Amdahl's."""

    rate_per_s: float
    sigma: float = 0.0
    """Contention: the share of the work that is serial."""
    kappa: float = 0.0
    """Coherence: the mutual cost of the tasks; above 0 the curve falls again."""

    def __post_init__(self) -> None:
        check_number("rate_per_s", self.rate_per_s, least=1e-12)
        check_number("sigma", self.sigma, most=1.0)
        check_number("kappa", self.kappa, most=1.0)

    def capacity_per_s(self, tasks: int) -> float:
        """Return p u / (1 + sigma (p - 1) + kappa p (p - 1))."""
        return self.rate_per_s * tasks / (1 + self.sigma * (tasks - 1) + self.kappa * tasks * (tasks - 1))


@dataclass(frozen=True, slots=True)
class Table:
    """Measured points with linear interpolation; outside them the rate per task of the nearest point holds."""

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        tasks = [p for p, _ in self.points]
        if not tasks or tasks != sorted(set(tasks)) or tasks[0] < 1:
            raise InvalidValue(f"the task counts of a curve's table must rise from at least 1, not {tasks}")
        for p, capacity in self.points:
            check_number(f"capacity at {p} tasks", capacity, least=1e-12)

    def capacity_per_s(self, tasks: int) -> float:
        """Return the interpolated capacity."""
        (first, low), (last, high) = self.points[0], self.points[-1]
        if tasks < first:
            return low / first * tasks
        if tasks > last:
            return high / last * tasks
        return float(np.interp(tasks, [p for p, _ in self.points], [a for _, a in self.points]))


UNLIMITED = Linear(1e12)
"""Capacity of operators that are never a bottleneck, such as a source that only reads."""
