"""Measures of a run: minutes to converge, tuples, costs, regret (Eq 10) and fit (Eq 12), slots that are short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated import Plant
from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO
from rheostat.lab.jobs import job
from rheostat.lab.papers.capacity import fewest_tasks, rates_per_s, share_served
from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.play import LOST_S, SLOT_MIN, SLOT_S, Run, Slot
from rheostat.policy.dragster.throughput import Dataflow

Floats = NDArray[np.float64]
NEAR = 0.9
"""Share of the best throughput that the paper calls near-optimal."""
HOURS_PER_SLOT = SLOT_S / 3600.0


@lru_cache(maxsize=64)
def plant(name: str) -> Plant:
    """Return a job; it is made once."""
    return job(name)


def load_per_s(name: str, level: float) -> float:
    """Return the records/s of all sources: no allocation can process more."""
    return sum(rates_per_s(plant(name), level).values())


def last_change_min(run: Run, phase: tuple[int, int]) -> float:
    """Return the minutes from a phase's start to its last change."""
    start, end = phase
    return SLOT_MIN * max((slot + 1 - start for slot in range(start, end) if run[slot].changed), default=0)


def near_best_min(run: Run, phase: tuple[int, int], name: str) -> float:
    """Return the minutes after which every slot of a phase has at least 90 % of the possible throughput."""
    start, end = phase
    enough = NEAR * load_per_s(name, run[start].level)
    far = (slot + 1 - start for slot in range(start, end) if run[slot].throughput_per_s < enough)
    return SLOT_MIN * max(far, default=0)


def tuples(slots: Sequence[Slot]) -> float:
    """Return the processed tuples; every slot loses the time of a restart."""
    return sum(slot.throughput_per_s for slot in slots) * (SLOT_S - LOST_S)


def pod_hours(slots: Sequence[Slot]) -> float:
    """Return the pod-hours, including the fixed pods."""
    return sum(slot.tasks.slots + paper.PODS for slot in slots) * HOURS_PER_SLOT


def per_billion(run: Run, phase: tuple[int, int]) -> float:
    """Return the pod-hours per 10^9 tuples."""
    slots = run[slice(*phase)]
    return pod_hours(slots) / (tuples(slots) / 1e9)


@lru_cache(maxsize=4096)
def served(name: str, allocation: Allocation, level: float) -> float:
    """Return f: the records/s that an allocation processes without noise."""
    share = share_served(plant(name), allocation, rates_per_s(plant(name), level))
    return load_per_s(name, level) * min(1.0, share)


@lru_cache(maxsize=4096)
def lacking(name: str, allocation: Allocation, level: float) -> tuple[float, ...]:
    """Return l_i of every tuned operator (Eq 11) without noise; below zero it has spare capacity."""
    return tuple(lacking_of(plant(name), allocation, level).values())


def lacking_of(own: Plant, allocation: Allocation, level: float) -> dict[str, float]:
    """Return l_i by operator: the output that it should have, minus its output capacity (Eq 8 and 4)."""
    flow = Dataflow(own.graph, rates_per_s(own, level))
    capacities = {
        operator: own.capacity_per_s(operator, count, allocation) * flow.per_record_in[operator]
        for operator, count in allocation.tasks.items()
    }
    return flow.lacking(capacities)


def regret(name: str, run: Run) -> Floats:
    """Return Reg_T for every T (Eq 10), in slots of the best throughput: 1 is a whole slot lost."""
    return np.cumsum([1.0 - served(name, slot.tasks, slot.level) / load_per_s(name, slot.level) for slot in run])


@lru_cache(maxsize=64)
def fewest(name: str, level: float) -> int:
    """Return the fewest slots that serve a level."""
    return fewest_tasks(plant(name), rates_per_s(plant(name), level), SLO()).slots


def regret_with_resources(name: str, run: Run) -> Floats:
    """Return Reg_T for every T, with slots above the fewest: twice the fewest costs as much as a whole slot lost."""
    extra = np.cumsum([max(slot.tasks.slots / fewest(name, slot.level) - 1.0, 0.0) for slot in run])
    total: Floats = regret(name, run) + extra
    return total


def fit(name: str, run: Run, violations: bool) -> Floats:
    """Return Fit_T for every T (Eq 12), in slots of the load; or of violations only, without compensation."""
    per_slot = []
    for slot in run:
        short = lacking(name, slot.tasks, slot.level)
        if violations:
            short = tuple(max(each, 0.0) for each in short)
        per_slot.append(sum(short) / load_per_s(name, slot.level))
    return np.cumsum(per_slot)


def exponent(total: Floats, start: int = 10) -> float:
    """Return the slope of log(total) over log(T): below 1 the growth is sub-linear; 0 without growth."""
    t = np.arange(start, len(total) + 1, dtype=float)
    values = total[start - 1 :]
    return float(np.polyfit(np.log(t), np.log(values), 1)[0]) if values[0] > 0 else 0.0


def tail(total: Floats, start: int, end: int) -> float:
    """Return the growth per slot between two slots, in per cent of a slot."""
    return 100.0 * float(total[end - 1] - total[start - 1]) / (end - start)


def grid(name: str, most: int = 10) -> Iterator[Allocation]:
    """Yield every configuration of a small job."""
    operators = plant(name).spec().tunable_names
    for sizes in product(range(1, most + 1), repeat=len(operators)):
        yield Allocation(dict(zip(operators, sizes, strict=True)))


def best_split(name: str, level: float, slots: int) -> Allocation:
    """Return the smallest configuration with the largest throughput within the slots, by brute force."""
    return max(
        (each for each in grid(name) if each.slots <= slots), key=lambda each: (served(name, each, level), -each.slots)
    )


def final_throughput_per_s(name: str, run: Run, slots: int = 5) -> float:
    """Return the mean f of the last slots."""
    return float(np.mean([served(name, slot.tasks, slot.level) for slot in run[-slots:]]))


def short_slots(name: str, run: Run, factor: float, start: int) -> float:
    """Return the number of slots from `start` on in which this share of every capacity is below the load."""
    rates = {slot.level: rates_per_s(plant(name), slot.level) for slot in run}
    return float(sum(factor * share_served(plant(name), s.tasks, rates[s.level]) < 1.0 for s in run[start:]))
