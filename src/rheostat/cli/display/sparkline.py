"""A series as a line of blocks: enough to see a shape in a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 48) -> str:
    """Draw a series from zero to its peak; where several values share a column, the highest is drawn."""
    known = [value if math.isfinite(value) else 0.0 for value in values]
    if not known:
        return ""
    columns = min(width, len(known))
    edges = [round(column * len(known) / columns) for column in range(columns + 1)]
    peaks = [max(known[start:end]) for start, end in pairwise(edges)]
    top = max(peaks)
    if top <= 0:
        return BLOCKS[0] * columns
    return "".join(BLOCKS[min(int(max(peak, 0.0) / top * len(BLOCKS)), len(BLOCKS) - 1)] for peak in peaks)
