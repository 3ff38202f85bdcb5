"""Series reduced to what a page can show; extremes and gaps survive. NaN is a gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_POINTS = 2000
"""Points of one drawn line: least, greatest and a gap for each pixel column that a screen has room for."""
MAX_SPANS = 600
"""Shaded periods of one kind; more become shares of a bucket."""


def thin(x: Floats, y: Floats, most: int = MAX_POINTS) -> tuple[Floats, Floats]:
    """Return at most `most` points: of every bucket its least, its greatest and its first gap, in their order."""
    if len(x) <= most:
        return x, y
    # Three points per bucket; first and last are added to them.
    buckets = max((most - 2) // 3, 1)
    width = -(-len(x) // buckets)
    rows = -(-len(x) // width)
    padded = np.full(rows * width, np.nan)
    padded[: len(y)] = y
    grid = padded.reshape(rows, width)
    gaps = np.isnan(grid)
    starts = np.arange(rows) * width
    least = starts + np.where(gaps, np.inf, grid).argmin(axis=1)
    greatest = starts + np.where(gaps, -np.inf, grid).argmax(axis=1)
    # The padding of the last bucket is not a gap.
    first_gap = (starts + gaps.argmax(axis=1))[gaps.any(axis=1)]
    keep = np.unique(np.concatenate([[0, len(x) - 1], least, greatest, first_gap]))
    keep = keep[keep < len(x)]
    return x[keep], y[keep]


def corners(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Drop the points of a step line that change nothing: those between two equal neighbours."""
    if len(x) < 3:
        return x, y
    same = (y[1:] == y[:-1]) | (np.isnan(y[1:]) & np.isnan(y[:-1]))
    keep = np.ones(len(x), dtype=bool)
    keep[1:-1] = ~(same[:-1] & same[1:])
    return x[keep], y[keep]


def insert_gaps(x: Floats, columns: dict[str, Floats], breaks: Floats) -> tuple[Floats, dict[str, Floats]]:
    """Put a gap into every column at the moments before which no controller ran."""
    if not len(breaks):
        return x, columns
    at = np.searchsorted(x, breaks)
    return np.insert(x, at, breaks), {name: np.insert(y, at, np.nan) for name, y in columns.items()}


def join_spans(starts: Floats, ends: Floats) -> list[tuple[float, float]]:
    """Join spans of time that touch."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted(zip(starts.tolist(), ends.tolist(), strict=True)):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def shade_spans(
    starts: Floats, ends: Floats, first: float, last: float, most: int = MAX_SPANS
) -> list[tuple[float, list[tuple[float, float]]]]:
    """Return the spans to shade, darkest first, each list with its share of the full shade.

    More spans than a page can show become buckets. A bucket is shaded in quarters, by the share that spans cover: a
    tenth of all windows must not look like all of them.
    """
    spans = join_spans(starts, ends)
    if len(spans) <= most or last <= first:
        return [(1.0, spans)] if spans else []
    edges = np.linspace(first, last, most + 1)
    knots = np.array(spans).ravel()
    covered = np.cumsum(np.diff(knots, prepend=knots[0]) * (np.arange(len(knots)) % 2))
    share = np.diff(np.interp(edges, knots, covered)) / np.diff(edges)
    quarters = np.ceil(share * 4 - 1e-9).astype(int)
    shaded = []
    for level in (4, 3, 2, 1):
        where = quarters == level
        if where.any():
            shaded.append((level / 4, join_spans(edges[:-1][where], edges[1:][where])))
    return shaded
