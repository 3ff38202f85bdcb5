"""Testbeds by the engine's name: the one place where planning learns what it measures on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rheostat.errors import InvalidValue, nearest
from rheostat.job.graph import JobSpec
from rheostat.planner.capacity_estimator import Phases
from rheostat.planner.rig import Feed
from rheostat.ports import Testbed

ENGINES = ("simulated", "spark")
ON_SPARK = Phases(warm_up_s=15.0, cool_down_s=0.0, ramp_up_s=0.0, observe_s=30.0, sustained=0.97)
"""Every question is a query of its own on a warm cluster; batches of a second blur a window of thirty by 3 %."""
LARGEST = 12
"""Executors that an embedded testbed can have: processes of this machine."""
PACE_PER_S = 400.0
"""What a slot of a paced pipeline does."""
UNPACED = "-cpu"
"""Behind the name of a pipeline that is to run as fast as it can."""


@dataclass(frozen=True)
class Place:
    """A testbed with what it can run."""

    testbed: Testbed
    spec: JobSpec
    feed: Feed
    memory_mb: int | None = None
    """The profile that is used unless another one is asked for."""
    phases: Phases = Phases()
    verify_s: tuple[float, float] = (120.0, 600.0)
    """Warm-up and observation when a plan is verified."""
    max_slots: int = 48
    """Slots that are measured unless told otherwise; the paper's testbed has 48."""
    close: Callable[[], None] = lambda: None


def place(engine: str, job: str, seed: int = 0, tell: Callable[[str], None] = lambda _: None) -> Place:
    """Return the testbed of an engine for a job."""
    if engine == "simulated":
        from rheostat.engine.simulated import SimulatedTestbed
        from rheostat.engine.simulated.jobs import job as plant_of

        plant = plant_of(job)
        memory = plant.memory.reference_mb if plant.memory else None
        feed = Feed.of(plant.graph.sources, plant.unit_per_s)
        return Place(SimulatedTestbed(plant, seed), plant.spec(), feed, memory)
    if engine == "spark":
        return _on_spark(job, tell)
    raise InvalidValue(f"unknown engine {engine!r}, {nearest(engine, ENGINES)}")


def _on_spark(job: str, tell: Callable[[str], None]) -> Place:
    from rheostat.engine.spark.testbed import MEMORY_MB, SparkTestbed
    from rheostat.workload.injection import injected

    pipeline = job.removesuffix(UNPACED)
    inject = injected(pipeline, slot_per_s=None if pipeline != job else PACE_PER_S)
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
    testbed = SparkTestbed(job, inject, LARGEST, conf=conf, tell=tell)
    spec = testbed.describe()
    return Place(testbed, spec, Feed.of(spec.graph.sources), MEMORY_MB, ON_SPARK, (15.0, 45.0), 4, testbed.close)
