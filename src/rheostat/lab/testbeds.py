"""Testbeds by engine, for `plan` and `profile`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass

from rheostat.errors import InvalidValue, nearest
from rheostat.job.graph import JobSpec
from rheostat.planner.capacity_estimator import Phases
from rheostat.planner.rig import Feed
from rheostat.ports import Testbed

ENGINES = ("simulated", "spark")
"""Values of --engine."""
ON_SPARK = Phases(warm_up_s=15.0, cool_down_s=0.0, ramp_up_s=0.0, observe_s=30.0, sustained=0.97)
"""Phases of a measurement on Spark. Each measurement is its own query on a warm cluster; one-second batches blur a
window of thirty seconds by 3 %."""
LARGEST = 12
"""Most executors of a testbed on Spark: those of the embedded cluster are processes of this machine."""
PACE_PER_S = 400.0
"""Records/s of one slot of a paced pipeline."""
UNPACED = "-cpu"
"""Suffix of a pipeline's name that makes it run unpaced."""


Notify = Callable[[str], None]
"""Takes a progress message."""


@dataclass(frozen=True)
class Place:
    """A testbed for a job, and the defaults of measurements on it."""

    spec: JobSpec
    feed: Feed
    open: Callable[[int, Notify], AbstractContextManager[Testbed]]
    """Opens the testbed with a seed."""
    memory_mb: int | None = None
    """Default memory of a slot."""
    phases: Phases = Phases()
    verify_s: tuple[float, float] = (120.0, 600.0)
    """Seconds of warm-up and observation when a plan is verified."""
    profile_s: tuple[float, float] = (300.0, 120.0)
    """Seconds of warm-up and observation of a profiled deployment; Phoebe's."""
    profiled_slots: int = 24
    """Slots of the largest profiled deployment; Phoebe's."""
    max_slots: int = 48
    """Default slots of the testbed; StreamBed's has 48."""


def place(engine: str, job: str, master: str | None = None) -> Place:
    """Return an engine's testbed for a job; on Spark it is the embedded cluster unless `master` names another."""
    if engine not in ENGINES:
        raise InvalidValue(f"unknown engine {engine!r}, {nearest(engine, ENGINES)}")
    if engine == "spark":
        return _on_spark(job, master)
    if master is not None:
        raise InvalidValue(f"--master {master} needs --engine spark, not {engine}")
    return _simulated(job)


def _simulated(job: str) -> Place:
    from rheostat.engine.testbed.simulated import SimulatedTestbed
    from rheostat.lab.jobs import job as plant_of

    plant = plant_of(job)
    memory = plant.memory.reference_mb if plant.memory else None
    feed = Feed.of(plant.graph.sources, plant.unit_per_s)
    return Place(plant.spec(), feed, lambda seed, _: nullcontext(SimulatedTestbed(plant, seed)), memory)


def _on_spark(job: str, master: str | None) -> Place:
    from rheostat.engine.spark.session.settings import check_master
    from rheostat.engine.testbed.spark import MEMORY_MB, SparkTestbed, describe_job
    from rheostat.lab.workload.injection import pipeline_starter

    if master is not None and (problem := check_master(master)):
        raise InvalidValue(problem)
    pipeline = job.removesuffix(UNPACED)
    inject = pipeline_starter(pipeline, slot_per_s=None if pipeline != job else PACE_PER_S)
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    spec = describe_job(job, LARGEST)

    def open_testbed(_: int, notify: Notify) -> AbstractContextManager[Testbed]:
        return closing(SparkTestbed(job, inject, LARGEST, master=master or "local-cluster", conf=conf, notify=notify))

    return Place(spec, Feed.of(spec.graph.sources), open_testbed, MEMORY_MB, ON_SPARK, (45.0, 45.0), (15.0, 30.0), 4, 4)
