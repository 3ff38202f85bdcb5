"""The discipline of a simulated job: how it works, as far as its plant has to know.

There are three: fluid flow with back pressure, whose numbers are the plant's own, micro-batches, and real time. What
plays a discipline second by second are its replicas: see `fleet.Replicas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.graph import Graph
from rheostat.job.slo import Bounds


class Discipline:
    """What a plant asks its discipline; these answers hold unless a discipline has its own."""

    title: ClassVar[str]
    unused: ClassVar[tuple[str, ...]] = ()
    """Settings of a plant that mean nothing to it: a plant that has them is refused."""
    unused_in_operators: ClassVar[tuple[str, ...]] = ()
    """The same for the settings of operators."""
    holds_back: ClassVar[bool] = False
    """Whether back pressure reaches the sources."""

    @property
    def quantum(self) -> int:
        """Tasks that are added and removed together."""
        return 1

    def problem(self, graph: Graph, pinned: Mapping[str, int]) -> str:
        """Say why a job with this graph and these pinned tasks cannot work so, or ""."""
        return ""

    def bounds(self, max_tasks: int) -> Bounds:
        """Return how many tasks an operator may have that can have `max_tasks` at most."""
        return Bounds(1, max_tasks)

    def usable(self, tasks: int) -> int:
        """Return how many of the tasks can work at the same time."""
        return tasks

    def sustained_per_s(self, tasks: int, capacity_per_s: float) -> float:
        """Return the load that these tasks keep up with, of which the usable ones have this capacity."""
        return capacity_per_s

    def checkpoint_interval_s(self, plant_s: float) -> float:
        """Return the seconds between two checkpoints, given the plant's setting."""
        return plant_s

    def slots_to_tune(self, available: int | None, pinned: Mapping[str, int]) -> int | None:
        """Return the slots that tunable operators may have of those in the cluster."""
        return available

    def shortage(self, tasks: Mapping[str, int], available: int | None) -> str:
        """Say why these tasks, the pinned ones among them, cannot start in a cluster with so many slots, or ""."""
        return ""


@dataclass(frozen=True, slots=True)
class Flow(Discipline):
    """Fluid flow with bounded buffers and back pressure, as Flink has it."""

    title = "fluid flow"
    holds_back = True
