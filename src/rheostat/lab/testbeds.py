"""Testbeds by the engine's name: the one place where planning learns what it measures on."""

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
ON_SPARK = Phases(warm_up_s=15.0, cool_down_s=0.0, ramp_up_s=0.0, observe_s=30.0, sustained=0.97)
"""Every question is a query of its own on a warm cluster; batches of a second blur a window of thirty by 3 %."""
LARGEST = 12
"""Executors that a testbed on Spark can have: the embedded one's are processes of this machine."""
PACE_PER_S = 400.0
"""What a slot of a paced pipeline does."""
UNPACED = "-cpu"
"""Behind the name of a pipeline that is to run as fast as it can."""


Tell = Callable[[str], None]
"""Told what is going on."""


@dataclass(frozen=True)
class Place:
    """Where a job can be measured, and what there is to know before."""

    spec: JobSpec
    feed: Feed
    opened: Callable[[int, Tell], AbstractContextManager[Testbed]]
    """Opens the testbed, given a seed for whatever is random there."""
    memory_mb: int | None = None
    """The profile that is used unless another one is asked for."""
    phases: Phases = Phases()
    verify_s: tuple[float, float] = (120.0, 600.0)
    """Warm-up and observation when a plan is verified."""
    profile_s: tuple[float, float] = (300.0, 120.0)
    """How long a profiled deployment settles, and is looked at; the paper's."""
    profiled_slots: int = 24
    """The largest deployment that is profiled; the paper's."""
    max_slots: int = 48
    """Slots that are measured unless told otherwise; the paper's testbed has 48."""


def place(engine: str, job: str, master: str | None = None) -> Place:
    """Return the testbed of an engine for a job; on Spark a cluster of this machine unless a master is named."""
    if engine not in ENGINES:
        raise InvalidValue(f"unknown engine {engine!r}, {nearest(engine, ENGINES)}")
    if engine == "spark":
        return _on_spark(job, master)
    if master is not None:
        raise InvalidValue(f"--master {master} goes with --engine spark, not with {engine}")
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
    from rheostat.lab.workload.injection import injected

    if master is not None and (problem := check_master(master)):
        raise InvalidValue(problem)
    pipeline = job.removesuffix(UNPACED)
    inject = injected(pipeline, slot_per_s=None if pipeline != job else PACE_PER_S)
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    spec = describe_job(job, LARGEST)

    def opened(_: int, tell: Tell) -> AbstractContextManager[Testbed]:
        return closing(SparkTestbed(job, inject, LARGEST, master=master or "local-cluster", conf=conf, notify=tell))

    return Place(spec, Feed.of(spec.graph.sources), opened, MEMORY_MB, ON_SPARK, (45.0, 45.0), (15.0, 30.0), 4, 4)
