"""The true capacity of the simulated queries at any size, and measurements with StreamBed's noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rheostat.engine.simulated.curves import Power
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.simulated import measure_together
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval, Trial
from rheostat.job.observation import Observation, OperatorReading, SourceReading
from rheostat.job.plan import Estimate
from rheostat.planner.configuration_optimizer import OperatorCapacity, bids2
from rheostat.planner.resource_explorer import Ask
from rheostat.planner.rig import Feed

EXPONENT_SD, INTERFERENCE_SD = 0.03, 0.3
"""Deviations of a varied query from the fitted one: of exponents, and of the logarithm of interference."""
FAILED = 0.08
"""Share of failed runs: 4 to 7 of 64 in the artifact."""
FLOOR = 0.06
"""Share of the true rate that a failed run measures."""
LEAST_NOISE = 0.02
MOST_SLOTS = 20_000
MOST_SIMULATED, SIDE_BY_SIDE, REFINEMENTS = 2000, 24, 3
"""Largest simulated size, sizes that run side by side, and how often they are placed between two of them again."""


@dataclass(frozen=True)
class Truth:
    """One query with its true curves."""

    plant: Plant
    memory_mb: int = 4096

    def capacities(self, memory_mb: int | None = None) -> list[OperatorCapacity]:
        """Return every operator's curve, in source records/s."""
        plant = self.plant
        demand = plant.graph.demand_per_s(dict.fromkeys(plant.graph.sources, 1.0 / len(plant.graph.sources)))
        factor = plant.memory.factor(memory_mb or self.memory_mb) if plant.memory else 1.0
        capacities = []
        for operator in plant.operators:
            if operator.pinned_tasks is None:
                assert isinstance(operator.curve, Power)
                carried = operator.curve.rate_per_s * factor / demand[operator.name]
                capacities.append(OperatorCapacity(operator.name, carried, operator.curve.exponent))
        return capacities

    def sustained_per_s(self, tasks: Allocation) -> float:
        """Return the rate that an allocation sustains without noise."""
        carried = min(a.carries_per_s(tasks.tasks[a.name]) for a in self.capacities(tasks.memory_mb))
        return carried * self.plant.interference.share(tasks.slots)

    def capacity_per_s(self, slots: int, memory_mb: int | None = None) -> float:
        """Return the rate that the best split of the slots sustains."""
        return bids2(self.capacities(memory_mb), slots).rate_per_s * self.plant.interference.share(slots)

    def slots_for(self, rate_per_s: float, memory_mb: int | None = None) -> float:
        """Return the fewest slots that sustain a rate; infinite if none do."""
        least = len(self.capacities())
        grid = np.unique(np.round(np.geomspace(least, MOST_SLOTS, 120)).astype(int))
        enough = next((k for k, s in enumerate(grid) if self.capacity_per_s(int(s), memory_mb) >= rate_per_s), None)
        if enough is None:
            return math.inf
        low, high = int(grid[max(enough - 1, 0)]), int(grid[enough])
        while high - low > 1:
            middle = (low + high) // 2
            if self.capacity_per_s(middle, memory_mb) >= rate_per_s:
                high = middle
            else:
                low = middle
        return float(high)

    def slots_with_bursts(self, rate_per_s: float, memory_mb: int) -> float:
        """Return the fewest slots that sustain a rate where windows leave in bursts; infinite if none do.

        A window that fires takes no input until its results have left. So the best splits run on the simulator, without
        noise, with more records than they can take.
        """
        if not any(o.emits_every_s for o in self.plant.operators):
            return self.slots_for(rate_per_s, memory_mb)
        least, most = len(self.capacities()), MOST_SIMULATED
        for _ in range(REFINEMENTS):
            sizes = sorted({round(float(s)) for s in np.geomspace(least, most, SIDE_BY_SIDE)})
            enough = [
                s for s, rate in zip(sizes, self.saturated_per_s(sizes, memory_mb), strict=True) if rate >= rate_per_s
            ]
            if not enough:
                return math.inf
            below = [s for s in sizes if s < enough[0]]
            if not below or enough[0] - below[-1] <= 1:
                break
            least, most = below[-1], enough[0]
        return float(enough[0])

    def saturated_per_s(self, sizes: Sequence[int], memory_mb: int) -> list[float]:
        """Return what the best split of every size takes of more records than it can process."""
        quiet = replace(self.plant, operators=tuple(replace(o, noise=0.0) for o in self.plant.operators))
        feed = Feed.of(quiet.graph.sources)
        splits = [Allocation(dict(bids2(self.capacities(memory_mb), size).tasks), memory_mb) for size in sizes]
        top = 2.0 * max(self.sustained_per_s(tasks) for tasks in splits)
        phases = (feed.phase(60.0, top), feed.phase(120.0, top, True))
        measured = measure_together(quiet, [Trial("saturated", tasks, phases) for tasks in splits], [0] * len(splits))
        return [(m.observation.throughput_per_s or 0.0) if m.observation else 0.0 for m in measured]


def varied(plant: Plant, rng: np.random.Generator) -> Plant:
    """Return a query like this one, with other exponents and another interference."""
    operators = []
    for operator in plant.operators:
        if operator.pinned_tasks is None and isinstance(operator.curve, Power):
            exponent = min(operator.curve.exponent + EXPONENT_SD * float(rng.standard_normal()), 1.05)
            operators.append(replace(operator, curve=Power(operator.curve.rate_per_s, exponent)))
        else:
            operators.append(operator)
    old = plant.interference
    per_slot, power = (math.exp(INTERFERENCE_SD * float(z)) for z in rng.standard_normal(2))
    changed = replace(old, per_slot=old.per_slot * per_slot, exponent=old.exponent * power)
    return replace(plant, operators=tuple(operators), interference=changed)


@dataclass
class Drawn:
    """An optimizer that draws measurements instead of running a job.

    Rates have the noise of StreamBed's recorded rates; some runs fail and measure a small share of the true rate.
    """

    truth: Truth
    rate_noise: float
    rng: np.random.Generator
    failed: float = FAILED
    minutes: float = 11.0

    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        """Split the slots by the rates of single tasks, as in the paper, and draw the measurement."""
        single = [replace(a, exponent=1.0) for a in self.truth.capacities(ask.memory_mb)]
        split = bids2(single, ask.slots)
        tasks = Allocation(dict(split.tasks), ask.memory_mb)
        rate = self.truth.sustained_per_s(tasks) * math.exp(self.rate_noise * float(self.rng.standard_normal()))
        if self.rng.random() < self.failed:
            rate *= FLOOR
        plant = self.truth.plant
        demand = plant.graph.demand_per_s(dict.fromkeys(plant.graph.sources, 1.0 / len(plant.graph.sources)))
        factor = plant.memory.factor(ask.memory_mb) if plant.memory else 1.0
        operators = [OperatorReading(name, 1, records_in_per_s=rate) for name in plant.graph.sources]
        for operator in plant.operators:
            if operator.pinned_tasks is None:
                count = split.tasks[operator.name]
                noise = max(operator.noise, LEAST_NOISE) * float(self.rng.standard_normal())
                true = operator.curve.capacity_per_s(count) * factor / count * math.exp(noise)
                operators.append(
                    OperatorReading(
                        operator.name, count, records_in_per_s=rate * demand[operator.name], true_rate_per_s=true
                    )
                )
        sources = tuple(SourceReading(name, rate) for name in plant.graph.sources)
        window = Observation(0.0, 0.0, 0.0, tasks, tasks, sources=sources, operators=tuple(operators))
        seconds = 60 * self.minutes
        measured, cost = Interval(rate, rate, rate), seconds * tasks.slots
        return Estimate(0.0, tasks, measured, seconds, cost, window, split.rate_per_s, why=ask.why)
