"""A series as one line of block characters, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 48) -> str:
    """Draw a series from zero to its peak; of several values in one column the highest is drawn."""
    finite = [value if math.isfinite(value) else 0.0 for value in values]
    if not finite:
        return ""
    columns = min(width, len(finite))
    edges = [round(column * len(finite) / columns) for column in range(columns + 1)]
    peaks = [max(finite[start:end]) for start, end in pairwise(edges)]
    top = max(peaks)
    if top <= 0:
        return BLOCKS[0] * columns
    return "".join(BLOCKS[min(int(max(peak, 0.0) / top * len(BLOCKS)), len(BLOCKS) - 1)] for peak in peaks)
