"""Records that have come to a simulated job, told a second at a time, and how old the unfinished ones are."""

from __future__ import annotations

import math
from collections import deque

TINY = 1e-9
"""Rounding of moments and counts."""


class Arrivals:
    """How many records had come by any moment, from the one on in which the oldest unfinished record came."""

    def __init__(self) -> None:
        self._came: deque[float] = deque([0.0])
        """Records that had come by every whole second, since the beginning."""
        self._from = 0
        """The second of the first of them."""

    def add(self, records: float) -> None:
        """Tell how many records come, evenly, in the second after those that are known."""
        self._came.append(self._came[-1] + records)

    def by(self, moment: float, done: float) -> float:
        """Return how many records had come by a moment; before the oldest unfinished one, those that are finished."""
        place = moment - self._from
        second = math.floor(place + TINY)
        if second < 0:
            return done
        if second >= len(self._came) - 1:
            return self._came[-1]
        before, after = self._came[second], self._came[second + 1]
        return before + max(0.0, place - second) * (after - before)

    def per_s(self, moment: float) -> float:
        """Return the rate from a moment on, until the next whole second."""
        second = math.floor(moment - self._from + TINY)
        return self._came[second + 1] - self._came[second] if 0 <= second < len(self._came) - 1 else 0.0

    def oldest_s(self, done: float) -> float:
        """Return when the oldest record without a result came, or at the earliest will come."""
        if len(self._came) < 2:
            return float(self._from)
        before, after = self._came[0], self._came[1]
        return self._from + max(0.0, done - before) / (after - before)

    def forget(self, done: float) -> None:
        """Forget the seconds all of whose records are finished, and those that brought none."""
        while len(self._came) > 1 and self._came[1] <= done:
            self._came.popleft()
            self._from += 1
