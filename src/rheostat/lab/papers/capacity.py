"""The capacity of an allocation of a simulated job, without noise."""

from __future__ import annotations

from collections.abc import Mapping

from rheostat.control.limits import limits
from rheostat.engine.simulated import Plant
from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO
from rheostat.lab.experiment.oracle.sizes import smallest


def rates_per_s(plant: Plant, level: float) -> dict[str, float]:
    """Return the rates of the sources at a level of the load."""
    return {source: unit * level for source, unit in plant.unit_per_s.items()}


def share_served(plant: Plant, allocation: Allocation, rates_per_s: Mapping[str, float]) -> float:
    """Return the share of these rates that an allocation serves; above 1 it has spare capacity."""
    demand = plant.graph.demand_per_s(rates_per_s)
    served = [
        plant.capacity_per_s(name, tasks, allocation) / demand[name]
        for name, tasks in allocation.tasks.items()
        if demand[name] > 0
    ]
    return min(served, default=1.0)


def fewest_tasks(plant: Plant, rates_per_s: Mapping[str, float], slo: SLO) -> Allocation:
    """Return the fewest tasks that serve these rates within the bounds."""
    demand = plant.graph.demand_per_s(rates_per_s)
    return smallest(plant.capacity_per_s, demand, plant.start(), limits(plant.spec(), slo))
