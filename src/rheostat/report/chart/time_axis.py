"""Time on the x axis: lines with gaps, limits, shaded periods, and panels stacked on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rheostat.report.chart.figure import Axis, Figure, Format, Line, Panel, Shade
from rheostat.report.chart.pens import SLO, Colour, Pen
from rheostat.report.series import MAX_POINTS, Floats, corners, shade_spans, thin
from rheostat.report.words import EPOCH_FROM_S

UNITS = ((600.0, 1.0, "seconds"), (4 * 3600.0, 60.0, "minutes"), (5 * 86400.0, 3600.0, "hours"))
"""The longest period in seconds that is shown in a unit, and the unit; longer ones are shown in days."""


@dataclass(frozen=True)
class TimeAxis:
    """Time as dates, or in the unit that fits the period on a clock that starts at zero."""

    start_s: float
    end_s: float
    dated: bool = field(init=False)
    unit_s: float = field(init=False)
    unit: str = field(init=False)

    def __post_init__(self) -> None:
        dated = self.start_s >= EPOCH_FROM_S
        span_s = self.end_s - self.start_s
        fitting = next(((size, name) for most, size, name in UNITS if span_s <= most), (86400.0, "days"))
        size, name = (1.0, "UTC") if dated else fitting
        for attribute, value in (("dated", dated), ("unit_s", size), ("unit", name)):
            object.__setattr__(self, attribute, value)

    @property
    def finest_s(self) -> float:
        """The shortest period that can be seen."""
        return (self.end_s - self.start_s) / MAX_POINTS

    def place(self, at_s: Floats) -> Floats:
        """Return moments in the axis's unit."""
        return at_s / self.unit_s

    def axis(self) -> Axis:
        """Return the axis from the first moment to the last."""
        low, high = self.start_s / self.unit_s, self.end_s / self.unit_s
        return Axis(f"time, {self.unit}", "date" if self.dated else "linear", low, high, unit=f" {self.unit}")


def line(
    time: TimeAxis,
    at_s: Floats,
    values: Floats,
    name: str,
    pen: Pen,
    unit: str,
    *,
    step: bool = False,
    format: Format = "number",  # noqa: A002
    group: str = "",
    key: bool = True,
) -> Line:
    """Return a thinned line; a gap stays a gap, and a lone point between two gaps shows as a dot."""
    x, y = thin(*(corners(at_s, values) if step else (at_s, values)))
    return Line(name, time.place(x), y, pen, unit, format, step, group, key)


def limit(time: TimeAxis, most: float, name: str) -> Line:
    """Return the objective's line over the whole period."""
    return line(time, np.array([time.start_s, time.end_s]), np.full(2, most), name, SLO, " s")


def shade(time: TimeAxis, starts_s: Floats, ends_s: Floats, colour: Colour, opacity: float, name: str) -> list[Shade]:
    """Return these periods as shades over all panels: the denser they lie, the darker."""
    return [
        Shade(
            name,
            [(start_s / time.unit_s, max(end_s, start_s + time.finest_s) / time.unit_s) for start_s, end_s in spans],
            Pen(colour),
            opacity * share,
            key=k == 0,
        )
        for k, (share, spans) in enumerate(shade_spans(starts_s, ends_s, time.start_s, time.end_s))
    ]


def stack(title: str, time: TimeAxis, panels: Sequence[Panel], shades: Sequence[Shade] = ()) -> Figure:
    """Return panels one above the other on one time axis, each with its own legend at its right."""
    return Figure(title, time.axis(), panels, shades, "right")
