"""A pipeline on micro-batches: its executors, the pace of its slots, its partitions and trigger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.engine.simulated.curves import Curve, Linear, Usl
from rheostat.errors import InvalidValue, nearest
from rheostat.job.frozen import check_number
from rheostat.lab.workload.catalog import pipeline_named

STATIC_MIN, STATIC_MAX, DYNAMIC = "static-minimum", "static-maximum", "dynamic-allocation"
"""Ways to size a job without a policy."""
FIXED = (STATIC_MIN, STATIC_MAX, DYNAMIC)
CONTENDED = Usl(400.0, 0.06, 0.005)
"""Curve on which six slots have four times the capacity of one."""


@dataclass(frozen=True)
class MicroBatchJob:
    """A pipeline and its cluster."""

    name: str
    pipeline: str
    executors: tuple[int, int] = (1, 6)
    """Smallest and largest size."""
    slot_per_s: float | None = 400.0
    """Records/s of one slot; None: unpaced."""
    curve: Curve | None = None
    """Records/s by number of slots, in place of a fixed pace."""
    noise: float = 0.0
    """Share by which each wait of the pace varies, uniformly."""
    partitions: int = 12
    shuffle_partitions: int = 6
    trigger_s: float = 2.0
    level_per_s: float | None = None
    """Records/s at level 1 of the load; None: a quarter of one slot's capacity."""
    resizes: tuple[tuple[float, int], ...] = ()
    """Script of (seconds, executors); with one, the way only sets the size at the start."""
    checked: bool = True
    """Whether the output is written and compared with a batch computation; else it is discarded."""

    def __post_init__(self) -> None:
        pipeline_named(self.pipeline)
        check_number("slot_per_s", self.slot_per_s, least=1e-6)
        check_number("trigger_s", self.trigger_s)
        if not 1 <= self.executors[0] <= self.executors[1]:
            raise InvalidValue(f"executors must be (smallest, largest), both at least 1, not {self.executors}")

    @property
    def capacity(self) -> Curve | None:
        """Records/s by number of slots; None for an unpaced job."""
        return self.curve or (None if self.slot_per_s is None else Linear(self.slot_per_s))

    @property
    def unit_per_s(self) -> Mapping[str, float]:
        """Records/s at level 1; empty if they must be measured first."""
        if self.level_per_s is not None:
            return {"events": self.level_per_s}
        return {} if self.capacity is None else {"events": self.capacity.capacity_per_s(1) / 4}

    def start_executors(self, way: str) -> int:
        """Return the executors at the start."""
        return self.executors[1] if way == STATIC_MAX else self.executors[0]

    def policy(self, way: str) -> str | None:
        """Return the policy that sizes the job; None if Spark or a script does, or if the size is fixed."""
        return None if way in FIXED or self.resizes else way


MICROBATCH_JOBS: Mapping[str, MicroBatchJob] = {
    job.name: job
    for job in (
        # The demo's job, paced.
        MicroBatchJob("ysb", "ysb"),
        # Unpaced and CPU-bound: the load follows the measured capacity of a slot.
        MicroBatchJob("ysb-cpu", "ysb", (1, 2), None, partitions=4, shuffle_partitions=4),
        # Paced on a contended curve; its state grows for ever.
        MicroBatchJob("wordcount", "wordcount", slot_per_s=None, curve=CONTENDED, noise=0.1),
        # Paced as wordcount; sliding windows.
        MicroBatchJob("q5", "q5", slot_per_s=None, curve=CONTENDED, noise=0.1),
    )
}
"""Name -> job of `rheostat compare --engine spark`."""


def microbatch_job(name: str) -> MicroBatchJob:
    """Return a job by its name."""
    if name not in MICROBATCH_JOBS:
        raise InvalidValue(f"unknown Spark job {name!r}, {nearest(name, MICROBATCH_JOBS)}")
    return MICROBATCH_JOBS[name]
