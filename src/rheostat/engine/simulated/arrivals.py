"""The records that have arrived at a simulated job, second by second, and the age of the unfinished ones."""

from __future__ import annotations

import math
from collections import deque

TINY = 1e-9
"""Tolerance for rounding errors in seconds and in counts."""


class Arrivals:
    """The number of records that have arrived by any moment since the oldest unfinished record."""

    def __init__(self) -> None:
        self._totals: deque[float] = deque([0.0])
        """Records that have arrived by each whole second, counted from the start."""
        self._first_s = 0
        """The second of the first total."""

    def add(self, records: float) -> None:
        """Add the records of the next second; they arrive evenly."""
        self._totals.append(self._totals[-1] + records)

    def count_by(self, moment: float, done: float) -> float:
        """Return the records that have arrived by a moment; `done` for moments before the oldest unfinished one."""
        place = moment - self._first_s
        second = math.floor(place + TINY)
        if second < 0:
            return done
        if second >= len(self._totals) - 1:
            return self._totals[-1]
        before, after = self._totals[second], self._totals[second + 1]
        return before + max(0.0, place - second) * (after - before)

    def per_s(self, moment: float) -> float:
        """Return the input rate between a moment and the next whole second."""
        second = math.floor(moment - self._first_s + TINY)
        return self._totals[second + 1] - self._totals[second] if 0 <= second < len(self._totals) - 1 else 0.0

    def oldest_s(self, done: float) -> float:
        """Return the arrival of the oldest record without a result, or the earliest moment of the next arrival."""
        if len(self._totals) < 2:
            return float(self._first_s)
        before, after = self._totals[0], self._totals[1]
        return self._first_s + max(0.0, done - before) / (after - before)

    def forget(self, done: float) -> None:
        """Drop the seconds without unfinished records."""
        while len(self._totals) > 1 and self._totals[1] <= done:
            self._totals.popleft()
            self._first_s += 1
