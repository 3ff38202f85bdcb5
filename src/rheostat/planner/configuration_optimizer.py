"""BIDS2: the split of a number of slots over operators with the highest source rate.

Rosinosky, Schmitz, Rivière: "StreamBed: capacity planning for stream processing", section V.

| paper | here |
|---|---|
| o^i / r^i, the source rate that one task carries | `OperatorCapacity.source_per_s` |
| π^i | `Split.tasks` |
| λ_src (Eq 1) | `Split.rate_per_s` |
| 𝒫 (Eq 4) | `slots` |

The rate is the least of π^i o^i / r^i (Eq 2 and 3), and every term rises with its tasks. So bisection on the rate, with
the fewest whole tasks that carry it, brackets the best rate; from there every further slot goes to the operator that
limits the others. This is exact, for straight lines (the paper's) and for any rising curve p ** b (ours). Side
constraints that couple operators need a solver: see `lab/papers/streambed/side_constraints.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number
from rheostat.job.graph import JobSpec
from rheostat.job.plan import Estimate

MANY = 1_000_000
"""Most tasks of an operator without an upper bound."""
NEAR = 1.002
"""Ratio of the bracket's ends at which bisection stops; the last slots are assigned one by one."""


@dataclass(frozen=True, slots=True)
class OperatorCapacity:
    """One operator: p tasks carry source_per_s * p ** exponent records/s of the sources."""

    name: str
    source_per_s: float
    """Infinite for an operator without input."""
    exponent: float = 1.0
    least: int = 1
    most: int = MANY
    quantum: int = 1
    """Tasks are multiples of this."""

    def __post_init__(self) -> None:
        check_number(f"source_per_s of {self.name}", self.source_per_s, least=1e-300, infinite=True)
        check_number(f"exponent of {self.name}", self.exponent, least=1e-3, most=10.0)
        if not 1 <= self.quantum <= self.least <= self.most or self.least % self.quantum:
            raise InvalidValue(
                f"{self.name} cannot have {self.least} to {self.most} tasks in steps of {self.quantum}: "
                "the bounds must be multiples of the step"
            )

    def carries_per_s(self, tasks: int) -> float:
        """Return the source rate that these tasks carry."""
        return self.source_per_s * tasks if self.exponent == 1.0 else float(self.source_per_s * tasks**self.exponent)

    def needs(self, rate_per_s: float) -> int:
        """Return the fewest tasks that carry a rate, even beyond `most`."""
        ratio = rate_per_s / self.source_per_s
        raw = ratio if self.exponent == 1.0 else ratio ** (1.0 / self.exponent)
        # The tolerance is below a task: 3 tasks that carry exactly the rate must not become 4.
        steps = math.ceil(min(raw, float(MANY)) / self.quantum - 1e-9)
        return max(self.least, steps * self.quantum)


@dataclass(frozen=True, slots=True)
class Split:
    """Tasks per operator, and the source rate that they carry together."""

    tasks: Mapping[str, int]
    rate_per_s: float


def bids2(capacities: Sequence[OperatorCapacity], slots: int) -> Split:
    """Return the best split of exactly these slots (with a quantum above 1, of as many as can be assigned)."""
    if not capacities:
        raise InvalidValue("BIDS2 needs at least one operator")
    fewest = sum(a.least for a in capacities)
    if slots < fewest:
        raise InvalidValue(f"{slots} slots are too few: {len(capacities)} operators need at least {fewest}")
    if all(a.quantum == 1 for a in capacities) and slots > (room := sum(a.most for a in capacities)):
        raise InvalidValue(f"{slots} slots are too many: the operators may use at most {room}")
    tasks = _initial_tasks(capacities, slots)
    free = slots - sum(tasks)
    carried = [a.carries_per_s(p) for a, p in zip(capacities, tasks, strict=True)]
    while free > 0:
        open_ = [k for k, a in enumerate(capacities) if tasks[k] + a.quantum <= a.most and a.quantum <= free]
        if not open_:
            break
        k = min(open_, key=carried.__getitem__)
        tasks[k] += capacities[k].quantum
        free -= capacities[k].quantum
        carried[k] = capacities[k].carries_per_s(tasks[k])
    return Split({a.name: p for a, p in zip(capacities, tasks, strict=True)}, min(carried))


def _initial_tasks(capacities: Sequence[OperatorCapacity], slots: int) -> list[int]:
    """Return the fewest tasks that carry a rate slightly below the best one."""
    within = min(a.carries_per_s(a.most) for a in capacities)
    top = min(within, min(a.carries_per_s(slots) for a in capacities))
    low = min(a.carries_per_s(a.least) for a in capacities)
    if math.isinf(top):
        return [a.least for a in capacities]
    # With straight lines the start is known: rounding up costs at most one step per operator.
    spare = slots - sum(a.quantum for a in capacities)
    if spare > 0 and all(a.exponent == 1.0 for a in capacities):
        low = max(low, min(top, spare / sum(1.0 / a.source_per_s for a in capacities)))
        if sum(a.needs(low) for a in capacities) <= slots:
            return [a.needs(low) for a in capacities]
        low = min(a.carries_per_s(a.least) for a in capacities)
    while top > low * NEAR:
        middle = math.sqrt(low * top)
        if sum(a.needs(middle) for a in capacities) <= slots:
            low = middle
        else:
            top = middle
    return [a.needs(low) for a in capacities]


def slots_for(capacities: Sequence[OperatorCapacity], rate_per_s: float) -> dict[str, int]:
    """Return the fewest tasks that carry a rate (the inverse of BIDS2, which is DS2)."""
    return {a.name: min(a.needs(rate_per_s), a.most) for a in capacities}


def operator_capacities(
    spec: JobSpec, rates_per_s: Mapping[str, float], ratios: Mapping[str, float]
) -> tuple[OperatorCapacity, ...]:
    """Return the capacities from the true rate of one task (o^i) and the input's ratio to the sources' (r^i)."""
    capacities = []
    for tunable in spec.tunable:
        name, bounds = tunable.operator, tunable.bounds
        rate, ratio = rates_per_s.get(name, math.inf), ratios.get(name, 0.0)
        most = MANY if bounds.max is None else bounds.max // tunable.quantum * tunable.quantum
        least = -(-bounds.min // tunable.quantum) * tunable.quantum
        source = rate / ratio if ratio > 0 else math.inf
        capacities.append(OperatorCapacity(name, source, 1.0, least, most, tunable.quantum))
    return tuple(capacities)


def readings(estimate: Estimate) -> tuple[dict[str, float], dict[str, float]]:
    """Return the true rate of one task, and the ratio of the input to the sources' rate, of every measured operator."""
    window = estimate.observation
    if window is None or not (throughput := window.throughput_per_s):
        return {}, {}
    rates, ratios = {}, {}
    for name in estimate.allocation.tasks:
        reading = window.operator(name)
        if reading.records_in_per_s is not None:
            ratios[name] = reading.records_in_per_s / throughput
        if reading.true_rate_per_s:
            rates[name] = reading.true_rate_per_s
    return rates, ratios
