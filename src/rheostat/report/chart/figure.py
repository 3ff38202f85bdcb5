"""What a chart shows, as plain data: a figure of panels that share one x axis, and the traces in them.

NaN in a series is a gap. `group` ties traces together that the legend switches at once; it defaults to the name.
`key` says whether the trace has an entry in the legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rheostat.report.chart.markup import Floats
from rheostat.report.chart.pens import Pen

Format = Literal["number", "percent"]
Ramp = Literal["viridis", "grey"]


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction: its scale and its ends, which come from the data where they are None."""

    title: str = ""
    scale: Literal["linear", "log", "date"] = "linear"
    """On a date axis values are seconds since 1970, in UTC."""
    low: float | None = None
    high: float | None = None
    format: Format = "number"
    from_zero: bool = False
    """Whether zero is on the axis even where no value is near it."""
    labels: tuple[str, ...] = ()
    """Categories, at 0, 1, 2, ...; the axis then has no other ticks."""
    unit: str = ""
    """What follows a value of the axis in the hover box."""


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """A line through points, or a step line that keeps each value until the next point."""

    name: str
    x: Floats
    y: Floats
    pen: Pen
    unit: str = ""
    format: Format = "number"
    step: bool = False
    group: str = ""
    key: bool = True
    hover: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    """Markers; each may have a symbol, a text for the hover box and a label beside it."""

    name: str
    x: Floats
    y: Floats
    pen: Pen
    size: float = 8.0
    symbols: Sequence[str] = ()
    """One per point; without them all have the pen's."""
    texts: Sequence[str] = ()
    labels: Sequence[str] = ()
    opacity: float = 1.0
    group: str = ""
    key: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Area:
    """The space between two lines."""

    name: str
    x: Floats
    low: Floats
    high: Floats
    pen: Pen
    group: str = ""
    key: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Bars:
    """Bars from zero, with an interval each where `low` and `high` are finite."""

    name: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    width: float
    pen: Pen
    texts: Sequence[str] = ()
    group: str = ""
    key: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Heat:
    """A grid of coloured cells: `values[row, column]` lies between the edges of its row and its column."""

    x_edges: Floats
    y_edges: Floats
    values: Floats
    texts: Sequence[Sequence[str]]
    ramp: Ramp = "viridis"
    bar: str = ""
    """Title of the colour bar; without a title there is none."""
    name: str = ""
    group: str = ""
    key: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """A straight line over the whole panel at one x."""

    name: str
    at: float
    pen: Pen
    group: str = ""
    key: bool = True


Trace = Line | Points | Area | Bars | Heat | Rule


@dataclass(frozen=True, eq=False, slots=True)
class Shade:
    """Shaded spans of x, over all panels."""

    name: str
    spans: Sequence[tuple[float, float]]
    pen: Pen
    opacity: float
    key: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Panel:
    """One pair of axes: what it shows, in which unit, and how high it is."""

    title: str
    height: float
    traces: Sequence[Trace]
    y: Axis = Axis(from_zero=True)


@dataclass(frozen=True, eq=False, slots=True)
class Figure:
    """Panels on one x axis, one above the other, or side by side with an x axis each."""

    title: str
    """What it shows, for a reader who does not see it."""
    x: Axis
    panels: Sequence[Panel]
    shades: Sequence[Shade] = ()
    legend: Literal["right", "above", "none"] = "above"
    columns: bool = False
    width: float = 1080.0
    """Units of the drawing; a browser scales it to the page."""


HALF = 600.0
"""Width of a figure that shares its row with another one."""
