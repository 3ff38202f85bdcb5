"""Jobs whose latency follows other laws than that of our model: what its advantage is worth outside its own family.

The simulator's law and our latency model are sums of the same terms, so a comparison on it alone is the model's home
game. Each job here is WordCount with one change that the model does not know. The target is the latency of a fixed
multiple of π^t under that law, so that no law is easier by choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from rheostat.engine.simulated.plant import Interference, Plant
from rheostat.lab.jobs import job
from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.truth import exhaustive, fewest, latency_s

WORDS = paper.TESTS["WC Up"]
ROOM = 1.25
"""Tasks over π^t whose latency is the target."""


def _squared(plant: Plant) -> Plant:
    """Queueing grows with the square of rho / (1 - rho): arrivals in bursts."""
    return replace(plant, latency=replace(plant.latency, exponent=2.0))


def _root(plant: Plant) -> Plant:
    """Queueing grows with the root of rho / (1 - rho): arrivals are even."""
    return replace(plant, latency=replace(plant.latency, exponent=0.5))


def _contention(plant: Plant) -> Plant:
    """All operators slow down with every slot of the job, which no metric shows."""
    return replace(plant, interference=Interference(per_slot=0.004, reference_slots=29.0))


def _skew(plant: Plant) -> Plant:
    """The hottest task of every operator has 15 % more than the mean, so operators are full before they seem so."""
    return replace(plant, operators=tuple(replace(o, skew=0.15) if o.noise else o for o in plant.operators))


LAWS: Mapping[str, Callable[[Plant], Plant]] = {
    "its own": lambda plant: plant,
    "squared queueing": _squared,
    "root queueing": _root,
    "contention": _contention,
    "skew": _skew,
}
OUTSIDE = tuple(name for name in LAWS if name != "its own")


@lru_cache(maxsize=8)
def plant_of(law: str) -> Plant:
    """Return WordCount with a law."""
    return LAWS[law](job(WORDS.job))


@lru_cache(maxsize=8)
def target_of(law: str) -> float:
    """Return the latency target: that of `ROOM` times the fewest tasks that keep up."""
    plant, load = plant_of(law), WORDS.level * 1e3
    base = np.array([list(fewest(plant, load, paper.MOST).tasks.values())])
    return float(latency_s(plant, np.ceil(ROOM * base).astype(np.int64), load)[0])


@lru_cache(maxsize=8)
def optimum_of(law: str) -> int:
    """Return the fewest tasks that meet the target, from all allocations."""
    best = exhaustive(plant_of(law), WORDS.level * 1e3, target_of(law), paper.MOST)
    assert best is not None
    return best.slots
