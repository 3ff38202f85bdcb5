"""The discipline of a simulated job: its execution model, as far as the plant depends on it.

There are three: fluid flow with back pressure, whose parameters are the plant's own, micro-batches, and real time.
The replicas simulate a discipline second by second: see `fleet.Replicas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.graph import Graph
from rheostat.job.slo import Bounds


class Discipline:
    """The interface between a plant and its discipline, with default answers."""

    title: ClassVar[str]
    unused: ClassVar[tuple[str, ...]] = ()
    """Settings of a plant without effect here: a plant that sets one is refused."""
    unused_in_operators: ClassVar[tuple[str, ...]] = ()
    """Settings of an operator without effect here."""
    holds_back: ClassVar[bool] = False
    """Whether back pressure reaches the sources."""

    @property
    def quantum(self) -> int:
        """Number of tasks that are added and removed together."""
        return 1

    def problem(self, graph: Graph, pinned: Mapping[str, int]) -> str:
        """Return why this discipline cannot run a job with this graph and these pinned tasks, or ""."""
        return ""

    def bounds(self, max_tasks: int) -> Bounds:
        """Return the bounds of an operator with at most `max_tasks` tasks."""
        return Bounds(1, max_tasks)

    def usable(self, tasks: int) -> int:
        """Return the number of tasks that can run at the same time."""
        return tasks

    def sustained_per_s(self, tasks: int, capacity_per_s: float) -> float:
        """Return the highest load that the tasks sustain if the usable ones have this capacity."""
        return capacity_per_s

    def checkpoint_interval_s(self, plant_s: float) -> float:
        """Return the seconds between two checkpoints, given the plant's setting."""
        return plant_s

    def slots_to_tune(self, available: int | None, pinned: Mapping[str, int]) -> int | None:
        """Return the slots of the cluster that are left for tunable operators."""
        return available

    def shortage(self, tasks: Mapping[str, int], available: int | None) -> str:
        """Return why these tasks, pinned ones included, cannot start in a cluster with `available` slots, or ""."""
        return ""


@dataclass(frozen=True, slots=True)
class Flow(Discipline):
    """Fluid flow with bounded buffers and back pressure, as in Flink."""

    title = "fluid flow"
    holds_back = True
