"""Selects the batches that a window covers, for both Spark modes and both simulated ones. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Protocol

WINDOW_S = 30.0
"""Least seconds of a window whose length is not set: several batches, and a load that jitters by the second."""
WINDOW_BATCHES = 3
"""Batches that such a window covers."""
LONGEST_S = 900.0
"""Most seconds of such a window."""


class Started(Protocol):
    """A batch: only its start matters here."""

    @property
    def start_s(self) -> float:
        """Start of the batch."""


def usual_window_s(batches: Sequence[Started]) -> float:
    """Return the length of a window that is not set: it covers a few batches, by the time between their starts."""
    gaps_s = [later.start_s - sooner.start_s for sooner, later in pairwise(batches[-2 * WINDOW_BATCHES :])]
    return min(max(WINDOW_S, WINDOW_BATCHES * median(gaps_s) if gaps_s else 0.0), LONGEST_S)


def window_start_s(
    batches: Sequence[Started],
    now_s: float,
    window_s: float,
    clean_s: float,
    *,
    last_idle_s: float = -math.inf,
    overdue: bool = False,
) -> float:
    """Return the start of the window that ends now: it covers the batches that begin at this moment or later.

    Batches are sorted by start. The window reaches back `window_s`, but not beyond `clean_s`: batches that began
    earlier ran at another size. A clean batch that began before the window is covered if it is the last one: a batch
    that outlasts the window shows overload, unless the query has been idle since (`last_idle_s`). If no batch is clean
    and the running one is `overdue`, the last batch is covered.
    """
    earliest_s = max(now_s - window_s, clean_s)
    clean = [batch for batch in batches if batch.start_s >= clean_s] or (list(batches[-1:]) if overdue else [])
    if not clean:
        return earliest_s
    last_s = clean[-1].start_s
    idle_since = last_s <= last_idle_s and now_s - last_idle_s <= window_s
    return earliest_s if idle_since else min(earliest_s, last_s)
