"""The executors of a simulated micro-batch job: they start one after another, and stop between two batches."""

from __future__ import annotations

import math

from rheostat.engine.simulated.microbatch.discipline import MicroBatch


class Executors:
    """The registered and the requested executors, and the moments of their starts and stops.

    As on Spark, a request is the total number of executors, not a difference.
    """

    def __init__(self, discipline: MicroBatch, count: int) -> None:
        self._discipline = discipline
        self.count = self.wanted = count
        self.cold = 0
        """Executors that have not run a task yet."""
        self.starting_together = 0
        """Number of executors of the last growth."""
        self._arriving: list[float] = []
        self._leaving_s: float | None = None
        """Moment after which surplus executors stop, as soon as no task runs."""

    def request(self, count: int, now_s: float) -> None:
        """Request a total number of executors; starting executors above it are cancelled."""
        self.wanted = count
        missing = max(0, count - self.count)
        del self._arriving[missing:]
        if missing > len(self._arriving):
            self.starting_together = missing
        while len(self._arriving) < missing:
            after_s = self._arriving[-1] + self._discipline.grow_each_s if self._arriving else 0.0
            self._arriving.append(max(now_s + self._discipline.grow_s, after_s))
        if count >= self.count:
            self._leaving_s = None
        elif self._leaving_s is None:
            self._leaving_s = now_s + self._discipline.shrink_s

    def lose(self, now_s: float) -> bool:
        """Remove one executor at once; return False if there was none."""
        if not self.count:
            return False
        self.count -= 1
        self.request(self.wanted, now_s)
        return True

    def next_s(self, now_s: float, boundary: bool) -> float:
        """Return when the number changes next; `boundary` says that no task runs now."""
        moment = self._arriving[0] if self._arriving else math.inf
        if self._leaving_s is not None:
            moment = min(moment, self._leaving_s + (0.0 if boundary else self._discipline.boundary_s))
        return max(moment, now_s)

    def step(self, now_s: float) -> None:
        """Register the executors that have started, or stop the surplus."""
        while self._arriving and self._arriving[0] <= now_s:
            self._arriving.pop(0)
            self.count += 1
            self.cold += 1
        if self._leaving_s is not None:
            self.count, self._leaving_s = self.wanted, None
        self.cold = min(self.cold, self.count)
