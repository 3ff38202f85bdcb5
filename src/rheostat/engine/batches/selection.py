"""Selects the batches that a window covers, for both Spark modes and both simulated ones. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol


class Started(Protocol):
    """A batch: only its start matters here."""

    @property
    def start_s(self) -> float:
        """Start of the batch."""


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
