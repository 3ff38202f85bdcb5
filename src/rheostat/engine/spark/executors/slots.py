"""The slots of an application: fixed in one process, else those of its executors."""

from __future__ import annotations

import threading
from typing import Protocol

from rheostat.engine.spark.executors.pool import Executors
from rheostat.job.observation import Change
from rheostat.ports import Note


class Slots(Protocol):
    """The slots of the application, and requests for more or fewer."""

    most: int
    """Largest possible number of slots."""

    def available(self) -> int:
        """Return the number of slots now."""

    def request(self, slots: int, note: Note) -> None:
        """Request the fewest executors that have at least these slots."""

    def state(self, patience_s: float, now_s: float) -> Change:
        """Return the state of the last request."""


class FixedSlots:
    """Slots of one process: `local[n]`."""

    def __init__(self, slots: int) -> None:
        self.most = slots

    def available(self) -> int:
        """Return the fixed number."""
        return self.most

    def request(self, slots: int, note: Note) -> None:
        """Do nothing: there are no executors to add or remove."""

    def state(self, patience_s: float, now_s: float) -> Change:
        """Return NONE: the number never changes."""
        return Change.NONE


class ExecutorSlots:
    """Slots of executors that can be added and removed."""

    def __init__(self, executors: Executors, least: int, most: int) -> None:
        self._executors, self._least, self._most = executors, least, most
        self._lock = threading.Lock()
        self.most = most * executors.cores_per_executor

    def available(self) -> int:
        """Count the executors that take tasks."""
        with self._lock:
            return len(self._executors.running()) * self._executors.cores_per_executor

    def request(self, slots: int, note: Note) -> None:
        """Request the executors for these slots. Fewer than now are requested only while no query runs."""
        with self._lock:
            count = -(-slots // self._executors.cores_per_executor)
            self._executors.request(min(max(count, self._least), self._most), note, at_boundary=lambda: True)

    def state(self, patience_s: float, now_s: float) -> Change:
        """Return the state of the executors."""
        with self._lock:
            return self._executors.state(patience_s, now_s)
