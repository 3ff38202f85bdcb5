"""Testbeds by the engine's name: the one place where planning learns what it measures on."""

from __future__ import annotations

from dataclasses import dataclass

from rheostat.errors import InvalidValue, nearest
from rheostat.job.graph import JobSpec
from rheostat.planner.rig import Feed
from rheostat.ports import Testbed

ENGINES = ("simulated", "spark")


@dataclass(frozen=True)
class Place:
    """A testbed with what it can run."""

    testbed: Testbed
    spec: JobSpec
    feed: Feed
    memory_mb: int | None = None
    """The profile that is used unless another one is asked for."""


def place(engine: str, job: str, seed: int = 0) -> Place:
    """Return the testbed of an engine for a job."""
    if engine == "simulated":
        from rheostat.engine.simulated import SimulatedTestbed
        from rheostat.engine.simulated.jobs import job as plant_of

        plant = plant_of(job)
        memory = plant.memory.reference_mb if plant.memory else None
        feed = Feed.of(plant.graph.sources, plant.unit_per_s)
        return Place(SimulatedTestbed(plant, seed), plant.spec(), feed, memory)
    if engine == "spark":
        raise InvalidValue("planning on Spark is not there yet: use --engine simulated")
    raise InvalidValue(f"unknown engine {engine!r}, {nearest(engine, ENGINES)}")
