"""A regular series from measurements: one rate or a gap per step, and notes on every defect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number

Floats = NDArray[np.float64]

SHORT_ZERO = 2
"""Most zeros in a row that count as a failed measurement between busy steps; more of them are a load that stopped."""
BUSY = 0.2
"""Share of the median rate above which a step counts as busy."""
MOST_STEPS = 100_000
"""Longest series; older steps are dropped, so that a clock that jumps by years does not fill the memory with gaps."""


@dataclass(frozen=True, eq=False)
class RegularSeries:
    """A regular series, oldest first, with NaN for gaps; `notes` lists the corrections."""

    values: Floats
    step_s: float
    end_s: float
    """Moment of the last value."""
    notes: tuple[str, ...] = ()


def clean(times_s: ArrayLike, rates_per_s: ArrayLike, step_s: float | None = None) -> RegularSeries:
    """Sort, merge, align to a grid and mark impossible values as gaps; every correction is noted."""
    times, rates = (np.asarray(values, dtype=float).reshape(-1) for values in (times_s, rates_per_s))
    if times.size != rates.size:
        raise InvalidValue(f"a series needs one time per rate: {times.size} times, {rates.size} rates")
    check_number("step_s", step_s, least=1e-9)
    notes: list[str] = []
    odd = ~np.isfinite(times) | (times < 0)
    if odd.any():
        notes.append(f"{_count(odd, 'value')} at a negative or non-finite time dropped")
        times, rates = times[~odd], rates[~odd]
    wrong = np.isinf(rates) | (rates < 0)
    if wrong.any():
        notes.append(f"{_count(wrong, 'negative or infinite rate')} treated as a gap")
        rates = np.where(wrong, np.nan, rates)
    back = np.diff(times) < 0
    if back.any():
        notes.append(f"time went backwards {back.sum()} times: sorted")
        order = np.argsort(times, kind="stable")
        times, rates = times[order], rates[order]
    twice = np.diff(times) == 0
    if twice.any():
        notes.append(f"{_count(twice, 'duplicate time')}: averaged")
    if not times.size:
        return RegularSeries(np.empty(0), step_s or 1.0, 0.0, (*notes, "no values are left"))
    step = step_s or _median_step(times)
    place = np.round((times - times[-1]) / step)
    if place[0] < 1 - MOST_STEPS:
        notes.append(f"steps older than the newest {MOST_STEPS} dropped")
    recent = place > -MOST_STEPS
    place, rates = (place[recent] - place[recent][0]).astype(int), rates[recent]
    values = _means(place, rates)
    if gaps := int(np.isnan(values).sum()):
        notes.append(f"{gaps} of {values.size} steps are gaps")
    values, dropped = _drop_short_zeros(values)
    if dropped:
        notes.append(f"{dropped} zeros between busy steps treated as gaps")
    if zeros := int((values == 0).sum()):
        notes.append(f"{zeros} of {values.size} steps have no load")
    return RegularSeries(values, step, float(times[-1]), tuple(notes))


def check_rates(values: Sequence[float] | Floats) -> Floats:
    """Return a forecaster's history as an array; refuse negative and infinite rates."""
    series = np.array(values, dtype=float)
    wrong = series[(series < 0) | np.isinf(series)]
    if wrong.size:
        raise InvalidValue(f"a rate must be finite and not negative, not {wrong[0]:g}; mark a gap with NaN")
    return series


def fill_gaps(values: Floats) -> Floats:
    """Return the series from its first rate on, with gaps interpolated and the last rate repeated at the end."""
    present = np.flatnonzero(~np.isnan(values))
    if not present.size:
        raise InvalidValue("there is nothing to forecast from: the series has no rate")
    filled: Floats = np.interp(np.arange(present[0], values.size), present, values[present])
    return filled


def check_request(steps: int, quantiles: Sequence[float]) -> None:
    """Refuse an impossible horizon or quantile."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InvalidValue(f"steps must be a whole number of at least 1, not {steps!r}")
    for q in quantiles:
        if not 0 < q < 1:
            raise InvalidValue(f"a quantile must lie between 0 and 1, not {q!r}")


def _median_step(times: Floats) -> float:
    steps = np.diff(times)
    steps = steps[steps > 0]
    return float(np.median(steps)) if steps.size else 1.0


def _means(place: NDArray[np.int_], rates: Floats) -> Floats:
    present = ~np.isnan(rates)
    size = int(place[-1]) + 1
    count = np.bincount(place[present], minlength=size)
    added = np.bincount(place[present], weights=rates[present], minlength=size)
    means: Floats = np.where(count > 0, added / np.maximum(count, 1), np.nan)
    return means


def _drop_short_zeros(values: Floats) -> tuple[Floats, int]:
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


def _count(which: NDArray[np.bool_], what: str) -> str:
    count = int(which.sum())
    return f"{count} {what}{'' if count == 1 else 's'}"
