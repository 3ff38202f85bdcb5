"""How a simulated job works in micro-batches: triggers, waves of tasks, executors that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.engine.simulated.discipline import Discipline
from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number
from rheostat.job.graph import Graph
from rheostat.job.slo import Bounds


@dataclass(frozen=True, slots=True)
class MicroBatch(Discipline):
    """How a micro-batch job works and how it is resized, live; the defaults are what Spark 4.3 showed (SPARK.md)."""

    title = "micro-batches"
    unused = ("memory", "latency", "restart", "failure", "buffer_s")
    unused_in_operators = ("skew", "emits_every_s", "queueing_records", "pinned_tasks")

    trigger_s: float = 0.0
    """Seconds from trigger to trigger; a batch that outlasts them is followed at once. 0: always at once."""
    trigger_phase_s: float = 0.0
    """When the first trigger comes; the others are whole intervals later. Spark goes by the clock, not by the start."""
    fixed_s: float = 0.1
    """Planning and commits: seconds of a batch in which no task runs."""
    partitions: int | None = None
    """Equal tasks of a batch: they run in waves, and more slots are of no use. None: infinitely many small ones."""
    task_s: float = 0.0
    """Seconds that every task costs besides its records: launching it, and reporting back."""
    max_records_per_batch: float | None = None
    """The most that a batch takes; None: everything that waits."""
    source_step_s: float = 1.0
    """The source hands out whole steps of this length, as `rate` does; 0: every record as it comes."""
    quantum: int = 1
    """Slots of one executor."""
    grow_s: float = 5.5
    """Seconds until the first new executor is there."""
    grow_each_s: float = 2.0
    """Seconds from one new executor to the next."""
    cold_s: float = 0.0
    """Seconds more that the first task of a new executor takes, times the executors that come together: they load and
    compile the same code on cores that they share. Measured on two cores: about 2 s."""
    shrink_s: float = 1.0
    """Seconds before executors leave; then they do so between two batches."""
    boundary_s: float = 5.0
    """How much longer they wait for a moment without tasks before they leave under a running batch."""

    def __post_init__(self) -> None:
        for what in ("trigger_s", "fixed_s", "task_s", "source_step_s"):
            check_number(f"microbatch.{what}", getattr(self, what))
        for what in ("grow_s", "grow_each_s", "cold_s", "shrink_s", "boundary_s"):
            check_number(f"microbatch.{what}", getattr(self, what))
        for what in ("partitions", "quantum"):
            check_number(f"microbatch.{what}", getattr(self, what), least=1)
        check_number("microbatch.trigger_phase_s", self.trigger_phase_s, most=self.trigger_s)
        check_number("microbatch.max_records_per_batch", self.max_records_per_batch, least=1e-6)
        if not self.trigger_s + self.fixed_s + self.source_step_s:
            raise InvalidValue("microbatch: trigger_s, fixed_s and source_step_s are all 0, so batches would never end")
        if self.task_s and self.partitions is None:
            raise InvalidValue(f"microbatch.task_s is {self.task_s:g} without tasks: set partitions")

    def problem(self, graph: Graph, pinned: Mapping[str, int]) -> str:
        """Refuse more than one operator."""
        one = len(graph.operators) == 1 and graph.sources == graph.operators
        return "" if one else "a micro-batch job is one operator that is also the source"

    def bounds(self, max_tasks: int) -> Bounds:
        """Return whole executors; as on Spark, never more than it takes to run all tasks of a batch at once."""
        most = max_tasks // self.quantum
        if self.partitions is not None:
            most = min(most, -(-self.partitions // self.quantum))
        return Bounds(self.quantum, most * self.quantum)

    def usable(self, slots: int) -> int:
        """Return how many of the slots a batch can use."""
        return slots if self.partitions is None else min(slots, self.partitions)

    def waves(self, slots: int) -> int:
        """Return how often tasks start one after another on a slot."""
        return 1 if self.partitions is None else -(-self.partitions // slots)

    def sustained_per_s(self, slots: int, capacity_per_s: float) -> float:
        """Return the load that these slots keep up with, of which the usable ones have this capacity.

        Batches grow with the load, so what they cost besides their records vanishes, unless they are capped.
        """
        waves, even = self.waves(slots), capacity_per_s
        if self.partitions is not None:
            even *= self.partitions / (waves * self.usable(slots))
        if self.max_records_per_batch is None:
            return even
        batch_s = self.fixed_s + waves * self.task_s + self.max_records_per_batch / even
        return self.max_records_per_batch / max(batch_s, self.trigger_s)
