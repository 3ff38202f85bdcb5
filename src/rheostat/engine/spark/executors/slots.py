"""The slots of an application: fixed in one process, else those of executors that come and go."""

from __future__ import annotations

import threading
from typing import Protocol

from rheostat.engine.spark.executors.pool import Executors
from rheostat.job.observation import Change
from rheostat.ports import Note


class Slots(Protocol):
    """The slots of the application, and what can be done about their number."""

    most: int
    """The largest number that there can be."""

    def available(self) -> int:
        """Return how many there are now."""

    def want(self, slots: int, note: Note) -> None:
        """Ask for at least so many, and no more executors than that takes."""

    def state(self, patience_s: float, now_s: float) -> Change:
        """Say how far what was asked for has come."""


class FixedSlots:
    """Slots of one process: `local[n]`."""

    def __init__(self, slots: int) -> None:
        self.most = slots

    def available(self) -> int:
        """Return what there always is."""
        return self.most

    def want(self, slots: int, note: Note) -> None:
        """Do nothing: there are no executors to add or remove."""

    def state(self, patience_s: float, now_s: float) -> Change:
        """Say that nothing ever changes."""
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

    def want(self, slots: int, note: Note) -> None:
        """Ask for as many executors as it takes. Called between two queries where that is fewer than there are."""
        with self._lock:
            count = -(-slots // self._executors.cores_per_executor)
            self._executors.want(min(max(count, self._least), self._most), note, at_boundary=lambda: True)

    def state(self, patience_s: float, now_s: float) -> Change:
        """Ask the executors."""
        with self._lock:
            return self._executors.state(patience_s, now_s)
