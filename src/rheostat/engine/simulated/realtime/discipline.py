"""The parameters of a simulated real-time job, and the cost of its changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rheostat.engine.simulated.discipline import Discipline
from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number
from rheostat.job.graph import Graph

Span = tuple[float, float]
"""Lower and upper end of a uniform distribution."""


@dataclass(frozen=True, slots=True)
class RealTime(Discipline):
    """The parameters of a real-time job, which changes by a restart. Defaults are measured on Spark 4.3."""

    title = "real time"
    unused = ("memory", "latency", "restart", "failure", "buffer_s", "checkpoint_interval_s")
    unused_in_operators = ("output_drift", "emits_every_s", "queueing_records")

    batch_s: float = 5.0
    """Seconds for which the source reads; then the batch ends as soon as its slowest stage has drained."""
    gap_s: Span = (0.12, 0.39)
    """Seconds between two batches."""
    latency_s: float = 0.07
    """Seconds that a record takes without queueing."""
    stateless_s: Span = (0.4, 0.6)
    """Seconds of downtime of a change to stages without state."""
    stop_s: float = 0.2
    """Seconds to stop before a change to a stage with state."""
    repartition_s: float = 0.6
    """Fixed seconds to repartition the state."""
    per_key_us: Span = (3.0, 9.0)
    """Microseconds per key to repartition the state."""
    start_s: Span = (0.3, 0.6)
    """Seconds to start after the state is repartitioned."""
    keys: int = 1000
    """Number of keys in the state."""
    boundary_s: float = 10.0
    """Shortest wait, in seconds, of a growing change for the end of the batch. It waits longer if it grows little or
    if the batch has run for long. Then it interrupts the batch, which is repeated. Other changes wait for the end."""
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
                raise InvalidValue(f"realtime.{what} is [{low:g}, {high:g}]: give the smaller value first")

    def change_s(self, stateful: bool, draw: Callable[[Span], float]) -> float:
        """Return the downtime of a change."""
        if not stateful:
            return draw(self.stateless_s)
        return self.stop_s + self.repartition_s + draw(self.per_key_us) * 1e-6 * self.keys + draw(self.start_s)

    def problem(self, graph: Graph, pinned: Mapping[str, int]) -> str:
        """Return why the graph is refused: a real-time job is a chain."""
        first, *rest = graph.order
        fans = any(len(graph.outputs[name]) > 1 or len(graph.inputs[name]) > 1 for name in graph.order)
        chain = rest and len(graph.sources) == 1 and not fans and first in pinned
        return "" if chain else "a real-time job is a chain behind one source with pinned_tasks"

    def sustained_per_s(self, tasks: int, capacity_per_s: float) -> float:
        """Return the highest load at which batches are on time: each also reads the input of the gap before it."""
        return capacity_per_s * self.batch_s / (self.batch_s + sum(self.gap_s) / 2)

    def checkpoint_interval_s(self, plant_s: float) -> float:
        """Return the length of a batch: each ends with a checkpoint."""
        return self.batch_s

    def slots_to_tune(self, available: int | None, pinned: Mapping[str, int]) -> int | None:
        """Return the slots left by the pinned operators, whose tasks run at the same time."""
        return None if available is None else max(1, available - sum(pinned.values()))

    def shortage(self, tasks: Mapping[str, int], available: int | None) -> str:
        """Return why the tasks do not fit: all of them, also the source's, run at the same time."""
        if available is None or sum(tasks.values()) <= available:
            return ""
        counts = ", ".join(f"{name} {count}" for name, count in tasks.items())
        return f"needs {sum(tasks.values())} slots at once ({counts}), the cluster has {available}"
