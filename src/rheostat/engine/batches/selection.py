"""Which batches a window covers: the one place that says so, for both Spark modes and both simulated ones. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol


class Started(Protocol):
    """A batch, as far as it matters here."""

    @property
    def start_s(self) -> float:
        """When it began."""


def window_start_s(
    batches: Sequence[Started],
    now_s: float,
    window_s: float,
    clean_s: float,
    *,
    rested_s: float = -math.inf,
    overdue: bool = False,
) -> float:
    """Return the moment from which on batches, given oldest first, belong to the window that ends now.

    The window reaches back `window_s`, but not beyond `clean_s`: batches that began earlier ran at another size. A
    clean batch that began before the window is covered when it is the last one: a batch that outlasts the window is
    itself the signal, unless the query has rested since (`rested_s`). Where no batch is clean, the last of all stands
    in when the running one is `overdue`.
    """
    earliest_s = max(now_s - window_s, clean_s)
    clean = [batch for batch in batches if batch.start_s >= clean_s] or (list(batches[-1:]) if overdue else [])
    if not clean:
        return earliest_s
    last_s = clean[-1].start_s
    rested = last_s <= rested_s and now_s - rested_s <= window_s
    return earliest_s if rested else min(earliest_s, last_s)
