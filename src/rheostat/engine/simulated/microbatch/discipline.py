"""The parameters of a simulated micro-batch job: triggers, waves of tasks, starts and stops of executors."""

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
    """The parameters of a micro-batch job, which is resized while it runs. Defaults are measured on Spark 4.3."""

    title = "micro-batches"
    unused = ("memory", "latency", "restart", "failure", "buffer_s")
    unused_in_operators = ("output_drift", "skew", "emits_every_s", "queueing_records", "pinned_tasks")

    trigger_s: float = 0.0
    """Trigger interval in seconds; after a longer batch the next one starts at once. 0: always at once."""
    trigger_phase_s: float = 0.0
    """Moment of the first trigger in seconds: Spark aligns triggers to the clock, not to the start of the query."""
    fixed_s: float = 0.1
    """Seconds of planning per batch, before its tasks."""
    commit_s: float = 0.0
    """Seconds per batch after its tasks, for commits and for stages that read no source; then it has its results."""
    partitions: int | None = None
    """Equal tasks of a batch: they run in waves, and more slots stay idle. None: infinitely many small ones."""
    task_s: float = 0.0
    """Fixed seconds per task, for its launch and its report to the driver."""
    max_records_per_batch: float | None = None
    """Largest number of records in a batch; None: unlimited."""
    source_step_s: float = 1.0
    """Seconds of input that the source releases at once, as `rate` does; 0: every record when it arrives."""
    quantum: int = 1
    """Slots of one executor."""
    grow_s: float = 5.5
    """Seconds until the first new executor registers."""
    grow_each_s: float = 2.0
    """Seconds between two new executors."""
    cold_s: float = 0.0
    """Extra seconds of the first task of a new executor, times the executors that start together: they load and
    compile the same code on shared cores. Measured on two cores: about 2 s."""
    shrink_s: float = 1.0
    """Seconds before executors stop; then they do so between two batches."""
    boundary_s: float = 5.0
    """Further seconds to wait for the end of the batch before executors stop inside it."""

    def __post_init__(self) -> None:
        for what in ("trigger_s", "fixed_s", "commit_s", "task_s", "source_step_s"):
            check_number(f"microbatch.{what}", getattr(self, what))
        for what in ("grow_s", "grow_each_s", "cold_s", "shrink_s", "boundary_s"):
            check_number(f"microbatch.{what}", getattr(self, what))
        for what in ("partitions", "quantum"):
            check_number(f"microbatch.{what}", getattr(self, what), least=1)
        check_number("microbatch.trigger_phase_s", self.trigger_phase_s, most=self.trigger_s)
        check_number("microbatch.max_records_per_batch", self.max_records_per_batch, least=1e-6)
        if not self.trigger_s + self.fixed_s + self.commit_s + self.source_step_s:
            raise InvalidValue(
                "microbatch: trigger_s, fixed_s, commit_s and source_step_s are all 0, so batches would take no time"
            )
        if self.task_s and self.partitions is None:
            raise InvalidValue(f"microbatch.task_s is {self.task_s:g} without tasks: set partitions")

    def problem(self, graph: Graph, pinned: Mapping[str, int]) -> str:
        """Return why the graph is refused: a micro-batch job has one operator."""
        one = len(graph.operators) == 1 and graph.sources == graph.operators
        return "" if one else "a micro-batch job is one operator that is also the source"

    def bounds(self, max_tasks: int) -> Bounds:
        """Return bounds in whole executors, at most as many as run all tasks of a batch at once."""
        most = max_tasks // self.quantum
        if self.partitions is not None:
            most = min(most, -(-self.partitions // self.quantum))
        return Bounds(self.quantum, most * self.quantum)

    def usable(self, slots: int) -> int:
        """Return the number of slots that a batch can use."""
        return slots if self.partitions is None else min(slots, self.partitions)

    def waves(self, slots: int) -> int:
        """Return the number of tasks that run one after another on a slot."""
        return 1 if self.partitions is None else -(-self.partitions // slots)

    def sustained_per_s(self, slots: int, capacity_per_s: float) -> float:
        """Return the highest load that the slots sustain if the usable ones have this capacity.

        Batches grow with the load, so their fixed cost vanishes, unless `max_records_per_batch` limits them.
        """
        waves, even = self.waves(slots), capacity_per_s
        if self.partitions is not None:
            even *= self.partitions / (waves * self.usable(slots))
        if self.max_records_per_batch is None:
            return even
        batch_s = self.fixed_s + self.commit_s + waves * self.task_s + self.max_records_per_batch / even
        return self.max_records_per_batch / max(batch_s, self.trigger_s)
