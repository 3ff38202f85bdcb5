"""Allocation: the tasks of every tunable operator, and the memory where that is a choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.errors import InvalidValue
from rheostat.job.frozen import FrozenMap, put


@dataclass(frozen=True, slots=True)
class Allocation:
    """Operator -> tasks. Only tunable operators are named; pinned ones stand in the `JobSpec`."""

    tasks: Mapping[str, int]
    memory_mb: int | None = None

    def __post_init__(self) -> None:
        for operator, count in self.tasks.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise InvalidValue(f"tasks of {operator!r} must be a whole number of at least 1, not {count!r}")
        if self.memory_mb is not None and self.memory_mb < 1:
            raise InvalidValue(f"memory_mb must be at least 1, not {self.memory_mb!r}")
        put(self, tasks=FrozenMap(self.tasks))

    @property
    def slots(self) -> int:
        """Slots that this allocation holds: one per task."""
        return sum(self.tasks.values())

    def with_tasks(self, tasks: Mapping[str, int]) -> Allocation:
        """Return a copy in which the named operators have other task counts."""
        return Allocation({**self.tasks, **tasks}, self.memory_mb)

    def __str__(self) -> str:
        text = " ".join(f"{operator}={count}" for operator, count in self.tasks.items())
        return text if self.memory_mb is None else f"{text} memory={self.memory_mb}MB"
