"""From what was measured to a regular series: every step one rate or a gap, and a report of what was wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number

Floats = NDArray[np.float64]

SHORT_ZERO = 2
"""So many zeros in a row between busy steps are a measurement that failed; more of them are a load that stopped."""
BUSY = 0.2
"""A share of the usual rate: a neighbour above it is busy."""
MOST_STEPS = 100_000
"""A longer series is cut at its old end: a clock that jumped by years must not fill the memory with gaps."""


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A regular series, oldest first, gaps are NaN; and in words what had to be done to it."""

    values: Floats
    step_s: float
    end_s: float
    """The moment of the last value."""
    notes: tuple[str, ...] = ()


def clean(times_s: ArrayLike, rates_per_s: ArrayLike, step_s: float | None = None) -> Cleaned:
    """Sort, merge, put on a grid and mark as gaps what cannot be; nothing of it is done silently."""
    times, rates = (np.asarray(values, dtype=float).reshape(-1) for values in (times_s, rates_per_s))
    if times.size != rates.size:
        raise InvalidValue(f"a series needs one time per rate: {times.size} times, {rates.size} rates")
    check_number("step_s", step_s, least=1e-9)
    notes: list[str] = []
    odd = ~np.isfinite(times) | (times < 0)
    if odd.any():
        notes.append(f"{_counted(odd, 'value')} at a negative or unknown time dropped")
        times, rates = times[~odd], rates[~odd]
    wrong = np.isinf(rates) | (rates < 0)
    if wrong.any():
        notes.append(f"{_counted(wrong, 'negative or infinite rate')} taken as a gap")
        rates = np.where(wrong, np.nan, rates)
    back = np.diff(times) < 0
    if back.any():
        notes.append(f"time went backwards {back.sum()} times: sorted")
        order = np.argsort(times, kind="stable")
        times, rates = times[order], rates[order]
    twice = np.diff(times) == 0
    if twice.any():
        notes.append(f"{_counted(twice, 'duplicated time')}: the mean was taken")
    if not times.size:
        return Cleaned(np.empty(0), step_s or 1.0, 0.0, (*notes, "nothing is left"))
    step = step_s or _usual_step(times)
    place = np.round((times - times[-1]) / step)
    if place[0] < 1 - MOST_STEPS:
        notes.append(f"older than {MOST_STEPS} steps: cut")
    kept = place > -MOST_STEPS
    place, rates = (place[kept] - place[kept][0]).astype(int), rates[kept]
    values = _means(place, rates)
    if gaps := int(np.isnan(values).sum()):
        notes.append(f"{gaps} of {values.size} steps are gaps")
    values, dropped = _without_lost_zeros(values)
    if dropped:
        notes.append(f"{dropped} zeros between busy steps taken as gaps")
    if zeros := int((values == 0).sum()):
        notes.append(f"{zeros} of {values.size} steps have no load")
    return Cleaned(values, step, float(times[-1]), tuple(notes))


def known_rates(values: Sequence[float] | Floats) -> Floats:
    """Return a forecaster's history as an array; a rate that cannot be is the caller's mistake."""
    series = np.array(values, dtype=float)
    wrong = series[(series < 0) | np.isinf(series)]
    if wrong.size:
        raise InvalidValue(f"a rate must be finite and not negative, it is {wrong[0]:g}: mark a gap with NaN")
    return series


def without_gaps(values: Floats) -> Floats:
    """Return the series with straight lines over its gaps, from the first known value on; at its end the last stays."""
    known = np.flatnonzero(~np.isnan(values))
    if not known.size:
        raise InvalidValue("there is nothing to forecast from: the series has no known value")
    filled: Floats = np.interp(np.arange(known[0], values.size), known, values[known])
    return filled


def check_question(steps: int, quantiles: Sequence[float]) -> None:
    """Refuse a horizon or a quantile that cannot be."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InvalidValue(f"steps must be a whole number of at least 1, not {steps!r}")
    for q in quantiles:
        if not 0 < q < 1:
            raise InvalidValue(f"a quantile must lie between 0 and 1, not {q!r}")


def _usual_step(times: Floats) -> float:
    apart = np.diff(times)
    apart = apart[apart > 0]
    return float(np.median(apart)) if apart.size else 1.0


def _means(place: NDArray[np.int_], rates: Floats) -> Floats:
    known = ~np.isnan(rates)
    size = int(place[-1]) + 1
    count = np.bincount(place[known], minlength=size)
    added = np.bincount(place[known], weights=rates[known], minlength=size)
    means: Floats = np.where(count > 0, added / np.maximum(count, 1), np.nan)
    return means


def _without_lost_zeros(values: Floats) -> tuple[Floats, int]:
    usual = np.nanmedian(values) if np.isfinite(values).any() else 0.0
    if not usual > 0:
        return values, 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (values == 0).astype(int), [0]])))
    result, dropped = values.copy(), 0
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        inside = start > 0 and end < values.size
        if inside and end - start <= SHORT_ZERO and min(values[start - 1], values[end]) > BUSY * usual:
            result[start:end] = np.nan
            dropped += int(end - start)
    return result, dropped


def _counted(which: NDArray[np.bool_], what: str) -> str:
    count = int(which.sum())
    return f"{count} {what}{'' if count == 1 else 's'}"
