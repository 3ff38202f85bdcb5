"""How micro-batch and real-time jobs work and are resized: plain numbers that a file can set and a fit can turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """How a micro-batch job works and how it is resized, live; the defaults are what Spark 4.3 showed (SPARK.md)."""

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
            check_number(f"discipline.{what}", getattr(self, what))
        for what in ("grow_s", "grow_each_s", "cold_s", "shrink_s", "boundary_s"):
            check_number(f"discipline.{what}", getattr(self, what))
        for what in ("partitions", "quantum"):
            check_number(f"discipline.{what}", getattr(self, what), least=1)
        check_number("discipline.trigger_phase_s", self.trigger_phase_s, most=self.trigger_s)
        check_number("discipline.max_records_per_batch", self.max_records_per_batch, least=1e-6)
        if not self.trigger_s + self.fixed_s + self.source_step_s:
            raise InvalidValue("discipline: trigger_s, fixed_s and source_step_s are all 0, so batches would never end")
        if self.task_s and self.partitions is None:
            raise InvalidValue(f"discipline.task_s is {self.task_s:g} without tasks: set partitions")

    def usable(self, slots: int) -> int:
        """Return how many of the slots a batch can use."""
        return slots if self.partitions is None else min(slots, self.partitions)

    def waves(self, slots: int) -> int:
        """Return how often tasks start one after another on a slot."""
        return 1 if self.partitions is None else -(-self.partitions // slots)

    def sustained_per_s(self, slots: int, ability_per_s: float) -> float:
        """Return the load that these slots keep up with, of which the usable ones have this ability.

        Batches grow with the load, so what they cost besides their records vanishes, unless they are capped.
        """
        waves, even = self.waves(slots), ability_per_s
        if self.partitions is not None:
            even *= self.partitions / (waves * self.usable(slots))
        if self.max_records_per_batch is None:
            return even
        batch_s = self.fixed_s + waves * self.task_s + self.max_records_per_batch / even
        return self.max_records_per_batch / max(batch_s, self.trigger_s)


Span = tuple[float, float]
"""From, to: drawn evenly in between."""


@dataclass(frozen=True, slots=True)
class RealTime:
    """How a real-time job works and how it is changed, by stop and restart; defaults as in Spark 4.3 (SPARK.md)."""

    batch_s: float = 5.0
    """Seconds for which the source reads; after them a batch ends as soon as its slowest stage has drained."""
    gap_s: Span = (0.12, 0.39)
    """Seconds between two batches."""
    latency_s: float = 0.07
    """Seconds that a record takes which nothing holds up."""
    stateless_s: Span = (0.4, 0.6)
    """Downtime of a change that leaves stages with state alone."""
    stop_s: float = 0.2
    """Of a change that does not: seconds to stop,"""
    repartition_s: float = 0.6
    """to split the state anew, whatever its size,"""
    per_key_us: Span = (3.0, 9.0)
    """microseconds more for every key,"""
    start_s: Span = (0.3, 0.6)
    """and seconds to start again."""
    keys: int = 1000
    """Keys in the state."""
    boundary_s: float = 10.0
    """For so long a change that grows waits for the end of a batch at least; longer, the less it grows and the longer
    the batch has run. Then it stops inside the batch, which is repeated. One that does not grow waits to the end."""
    failure_s: Span = (1.6, 3.9)
    """Seconds from the loss of an executor, which fails the query, to its restart; the batch is repeated."""

    def __post_init__(self) -> None:
        check_number("realtime.batch_s", self.batch_s, least=1e-3)
        check_number("realtime.keys", self.keys)
        for what in ("latency_s", "stop_s", "repartition_s"):
            check_number(f"realtime.{what}", getattr(self, what))
        check_number("realtime.boundary_s", self.boundary_s, infinite=True)
        for what in ("gap_s", "stateless_s", "per_key_us", "start_s", "failure_s"):
            low, high = getattr(self, what)
            check_number(f"realtime.{what}", low)
            check_number(f"realtime.{what}", high)
            if low > high:
                raise InvalidValue(f"realtime.{what} goes from {low:g} to {high:g}: give the smaller one first")

    def change_s(self, stateful: bool, draw: Callable[[Span], float]) -> float:
        """Return the downtime of a change."""
        if not stateful:
            return draw(self.stateless_s)
        return self.stop_s + self.repartition_s + draw(self.per_key_us) * 1e-6 * self.keys + draw(self.start_s)

    def sustained_per_s(self, ability_per_s: float) -> float:
        """Return the load at which batches do not stretch: what comes in the gaps is read with the next one."""
        return ability_per_s * self.batch_s / (self.batch_s + sum(self.gap_s) / 2)
