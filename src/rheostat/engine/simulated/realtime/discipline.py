"""How a simulated job works in real time, and what a change costs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rheostat.engine.simulated.discipline import Discipline
from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number
from rheostat.job.graph import Graph

Span = tuple[float, float]
"""From, to: drawn evenly in between."""


@dataclass(frozen=True, slots=True)
class RealTime(Discipline):
    """How a real-time job works and how it is changed, by stop and restart; defaults as in Spark 4.3 (SPARK.md)."""

    title = "real time"
    unused = ("memory", "latency", "restart", "failure", "buffer_s", "checkpoint_interval_s")
    unused_in_operators = ("emits_every_s", "queueing_records")

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

    def problem(self, graph: Graph, pinned: Mapping[str, int]) -> str:
        """Refuse everything but a chain."""
        first, *rest = graph.order
        fans = any(len(graph.outputs[name]) > 1 or len(graph.inputs[name]) > 1 for name in graph.order)
        chain = rest and len(graph.sources) == 1 and not fans and first in pinned
        return "" if chain else "a real-time job is a chain behind one source with pinned_tasks"

    def sustained_per_s(self, tasks: int, capacity_per_s: float) -> float:
        """Return the load at which batches do not stretch: what comes in the gaps is read with the next one."""
        return capacity_per_s * self.batch_s / (self.batch_s + sum(self.gap_s) / 2)

    def checkpoint_interval_s(self, plant_s: float) -> float:
        """Return the length of a batch, which ends with a checkpoint."""
        return self.batch_s

    def slots_to_tune(self, available: int | None, pinned: Mapping[str, int]) -> int | None:
        """Return what is left beside the pinned operators, which hold their slots at the same time."""
        return None if available is None else max(1, available - sum(pinned.values()))

    def shortage(self, tasks: Mapping[str, int], available: int | None) -> str:
        """Refuse more tasks than slots: all of them, the source's too, run at the same time."""
        if available is None or sum(tasks.values()) <= available:
            return ""
        counts = ", ".join(f"{name} {count}" for name, count in tasks.items())
        return f"needs {sum(tasks.values())} slots at once ({counts}), {available} are there"
