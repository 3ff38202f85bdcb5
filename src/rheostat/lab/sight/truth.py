"""What really happened to the records of a run, by the accounts of the producer and of the job's own workers. Pure.

Nothing here comes from Rheostat or from Spark's metrics. Records are numbered from 0 in the order of their arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SAMPLES = 41
"""Moments at which a second is looked at."""


@dataclass(frozen=True)
class Truth:
    """The life of every record."""

    counted_s: Floats
    """Moments at which the producer counted, rising."""
    counts: Floats
    """Records that had arrived at each of them: acknowledged by the broker, or in the folder."""
    processed_s: Floats
    """Record -> when the pandas UDF had worked on it for the first time; infinite if it never has."""
    finished_s: Floats
    """Ends of the batches, rising: the moments at which results were written."""

    def arrived(self, at_s: float) -> float:
        """Return the records that had arrived by a moment."""
        place = int(np.searchsorted(self.counted_s, at_s, side="right"))
        return float(self.counts[place - 1]) if place else 0.0

    def processed(self, at_s: float) -> int:
        """Return the records that had been worked on by a moment."""
        return int(np.searchsorted(self._processed_in_order_s, at_s, side="right"))

    def backlog(self, at_s: float) -> float:
        """Return the records that had arrived and not been worked on."""
        # A worker's line can be milliseconds older than the broker's acknowledgement.
        return max(0.0, self.arrived(at_s) - self.processed(at_s))

    def backlog_within(self, start_s: float, end_s: float) -> tuple[float, float]:
        """Return the smallest and the largest backlog between two moments."""
        values = [self.backlog(at_s) for at_s in np.linspace(start_s, end_s, SAMPLES)]
        return min(values), max(values)

    def rate_per_s(self, start_s: float, end_s: float) -> float:
        """Return the input rate between two moments."""
        return (self.arrived(end_s) - self.arrived(start_s)) / (end_s - start_s)

    def lag_s(self, at_s: float) -> float:
        """Return the age of the oldest record whose batch had not finished; 0 if there was none."""
        without = self._result_s[: int(self.arrived(at_s))] > at_s
        if not without.any():
            return 0.0
        return float(max(0.0, at_s - self._arrived_s[int(np.argmax(without))]))

    def stretch_above(self, per_s: float, start_s: float, seconds: int) -> tuple[float, float] | None:
        """Return start and end of the longest stretch of whole seconds with more than `per_s` arrivals, if any.

        Seconds are counted from `start_s`. A producer that makes up for a pause has a short one, too.
        """
        edges_s = start_s + np.arange(seconds + 1)
        above = np.diff([self.arrived(edge_s) for edge_s in edges_s]) > per_s
        # Both edges of every stretch, in turn.
        changes = np.flatnonzero(np.diff(np.concatenate([[False], above, [False]]).astype(int)))
        firsts, lasts = changes[::2], changes[1::2]
        if not len(firsts):
            return None
        longest = int(np.argmax(lasts - firsts))
        return float(edges_s[firsts[longest]]), float(edges_s[lasts[longest]])

    @cached_property
    def _processed_in_order_s(self) -> Floats:
        return np.sort(self.processed_s)

    @cached_property
    def _arrived_s(self) -> Floats:
        """Record -> when it arrived."""
        total = int(self.counts[-1]) if len(self.counts) else 0
        moments_s: Floats = self.counted_s[np.searchsorted(self.counts, np.arange(1, total + 1))]
        return moments_s

    @cached_property
    def _result_s(self) -> Floats:
        """Record -> the end of its batch: batches of a query run one after another."""
        ends_s = np.append(self.finished_s, np.inf)
        known = ends_s[np.searchsorted(self.finished_s, self.processed_s)]
        return np.append(known, np.full(max(0, len(self._arrived_s) - len(known)), np.inf))
