"""Each trace as SVG.

A trace is a `g` with its colour as `--c` and its group's number as `data-g`, which the legend switches. What stretches
with a zoom lies in the panel's `zoom` layer; what only moves (markers) has the class `at` and lies in the layer above.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rheostat.report.chart.figure import Area, Bars, Figure, Heat, Line, Panel, Points, Ramp, Rule, Shade, Trace
from rheostat.report.chart.markup import Floats, element, escape, line_path, significant
from rheostat.report.chart.pens import Pen
from rheostat.report.chart.scale import Scale

RAMPS: dict[Ramp, tuple[tuple[int, int, int], ...]] = {
    "viridis": ((68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129),
                (92, 200, 99), (170, 220, 50), (253, 231, 37)),
    "grey": ((110, 110, 110), (250, 250, 250)),
}  # fmt: skip
"""Colours from the least to the greatest value."""
CORNERS = {"square": (4, 45), "diamond": (4, 0), "triangle-up": (3, -90), "triangle-down": (3, 90),
           "pentagon": (5, -90), "hexagon": (6, 0)}  # fmt: skip
"""Corners of a symbol, and the angle of the first in degrees, clockwise from the right."""
DOT = 4.0
"""Diameter of a lone point between two gaps."""
LABEL_SHIFT = 5.0


@dataclass(frozen=True, slots=True)
class Layers:
    """What one trace draws: below what stretches with a zoom, above what only moves."""

    zoom: str = ""
    above: str = ""


def groups(figure: Figure) -> dict[str, int]:
    """Number the groups that the legend switches."""
    every: list[Shade | Trace] = [*figure.shades, *(trace for panel in figure.panels for trace in panel.traces)]
    return {name: k for k, name in enumerate(dict.fromkeys(group_of(one) for one in every))}


def group_of(trace: Trace | Shade) -> str:
    """Return the name under which the legend switches a trace."""
    return trace.name if isinstance(trace, Shade) else trace.group or trace.name


def extents(panel: Panel) -> tuple[Floats, Floats]:
    """Return all x and all y values of a panel."""
    x, y = [np.empty(0)], [np.empty(0)]
    for trace in panel.traces:
        match trace:
            case Line() | Points():
                x.append(trace.x)
                y.append(trace.y)
            case Area():
                x.append(trace.x)
                y += [trace.low, trace.high]
            case Bars():
                x += [trace.x - trace.width / 2, trace.x + trace.width / 2]
                y += [trace.y, trace.low, trace.high, np.zeros(1)]
            case Heat():
                x.append(trace.x_edges)
                y.append(trace.y_edges)
            case Rule():
                x.append(np.array([trace.at]))
    return np.concatenate(x), np.concatenate(y)


def draw(trace: Trace, x: Scale, y: Scale, group: int) -> Layers:
    """Return a trace as SVG."""
    match trace:
        case Line():
            return Layers(_group(trace.pen, group, *_line(trace, x, y)))
        case Points():
            return Layers(above=_group(trace.pen, group, *_points(trace, x, y)))
        case Area():
            around = np.concatenate([trace.x, trace.x[::-1]]), np.concatenate([trace.low, trace.high[::-1]])
            path = line_path(x.place(around[0]), y.place(around[1])) + "z"
            return Layers(_group(trace.pen, group, element("path", class_="area", d=path)))
        case Bars():
            return Layers(_group(trace.pen, group, *_bars(trace, x, y)))
        case Heat():
            return Layers(element("g", *_cells(trace, x, y), data_g=group))
        case Rule():
            at = x.at(trace.at)
            path = f"M{at:.2f} {y.start:.1f}V{y.end:.1f}"
            return Layers(_group(trace.pen, group, element("path", class_=line_class(trace.pen), d=path)))


def shade_path(shade: Shade, x: Scale, top: float, height: float, group: int) -> str:
    """Return shaded spans over one panel; a span that is too short to be seen is one unit wide."""
    parts = []
    for start, end in shade.spans:
        left, right = x.at(start), x.at(end)
        parts.append(f"M{left:.2f} {top:g}h{max(right - left, 1.0):.2f}v{height:g}H{left:.2f}z")
    path = element("path", class_="shade", d="".join(parts), fill_opacity=f"{shade.opacity:.3g}")
    return _group(shade.pen, group, path)


def _group(pen: Pen, group: int, *inside: str) -> str:
    width = "" if pen.width == 1.8 else f";--w:{pen.width:g}px"
    return element("g", *inside, data_g=group, style=f"--c:var(--{pen.colour}){width}")


def line_class(pen: Pen) -> str:
    """Return the classes of a line."""
    return "line" if pen.dash == "solid" else f"line {pen.dash}"


def _line(trace: Line, x: Scale, y: Scale) -> Iterator[str]:
    across, down = x.place(trace.x), y.place(trace.y)
    drawn = np.isfinite(across) & np.isfinite(down)
    hover = {}
    if trace.hover:
        hover = {
            "data_y": " ".join(map(significant, trace.y[drawn].tolist())),
            "data_name": trace.name,
            "data_unit": trace.unit or None,
            "data_format": None if trace.format == "number" else trace.format,
            "data_step": "" if trace.step else None,
        }
    yield element("path", class_=line_class(trace.pen), d=line_path(across, down, trace.step), **hover)
    lone = drawn & ~np.r_[False, drawn[:-1]] & ~np.r_[drawn[1:], False]
    if lone.any():
        dots = "".join(f"M{a:.2f} {b:.1f}h0" for a, b in zip(across[lone], down[lone], strict=True))
        yield element("path", class_="dots", d=dots, style=f"--w:{DOT:g}px")


def _points(trace: Points, x: Scale, y: Scale) -> Iterator[str]:
    places = zip(x.place(trace.x).tolist(), y.place(trace.y).tolist(), strict=True)
    for k, (across, down) in enumerate(places):
        if not (math.isfinite(across) and math.isfinite(down)):
            continue
        inside = [symbol(trace.symbols[k] if trace.symbols else trace.pen.symbol, trace.size)]
        if trace.texts:
            inside.append(element("title", escape(trace.texts[k])))
        if trace.labels and trace.labels[k]:
            inside.append(element("text", escape(trace.labels[k]), class_="mark", x=LABEL_SHIFT, y=-LABEL_SHIFT))
        opacity = None if trace.opacity == 1 else trace.opacity
        yield element("g", *inside, class_="at", transform=f"translate({across:.2f} {down:.1f})", opacity=opacity)


def _bars(trace: Bars, x: Scale, y: Scale) -> Iterator[str]:
    floor = y.at(0.0)
    left, right = x.place(trace.x - trace.width / 2), x.place(trace.x + trace.width / 2)
    tops, middles = y.place(trace.y), x.place(trace.x)
    lows, highs = y.place(trace.low), y.place(trace.high)
    for k in range(len(trace.x)):
        title = [element("title", escape(trace.texts[k]))] if trace.texts else []
        height = abs(float(tops[k]) - floor)
        yield element(
            "rect",
            *title,
            class_="bar",
            x=float(left[k]),
            y=min(float(tops[k]), floor),
            width=float(right[k] - left[k]),
            height=height,
        )
        if np.isfinite(lows[k]) and np.isfinite(highs[k]) and trace.high[k] > trace.low[k]:
            path = f"M{middles[k]:.2f} {lows[k]:.1f}V{highs[k]:.1f}m-3 0h6M{middles[k] - 3:.2f} {lows[k]:.1f}h6"
            yield element("path", class_="interval", d=path)


def _cells(trace: Heat, x: Scale, y: Scale) -> Iterator[str]:
    columns, rows = x.place(trace.x_edges), y.place(trace.y_edges)
    low, high = heat_range(trace)
    for r, line in enumerate(trace.values.tolist()):
        for c, value in enumerate(line):
            yield element(
                "rect",
                element("title", escape(trace.texts[r][c])),
                class_="cell",
                x=float(columns[c]),
                y=float(min(rows[r], rows[r + 1])),
                # A hair wider than the cell: no seam shows between two cells.
                width=float(columns[c + 1] - columns[c]) + 0.4,
                height=float(abs(rows[r + 1] - rows[r])) + 0.4,
                fill=ramp_colour(trace.ramp, (value - low) / (high - low)),
            )


def heat_range(trace: Heat) -> tuple[float, float]:
    """Return the least and the greatest value, apart from each other."""
    low, high = float(trace.values.min()), float(trace.values.max())
    return low, high if high > low else low + 1.0


def ramp_colour(ramp: Ramp, share: float) -> str:
    """Return the colour at a share of the ramp."""
    stops = np.array(RAMPS[ramp], dtype=float)
    at = np.linspace(0.0, 1.0, len(stops))
    red, green, blue = (round(float(np.interp(share, at, stops[:, k]))) for k in range(3))
    return f"#{red:02x}{green:02x}{blue:02x}"


def symbol(name: str, size: float) -> str:
    """Return a symbol around the origin; `-open` leaves it unfilled, `ring` fills it with the paper's colour."""
    shape = name.removesuffix("-open")
    look = "open" if shape != name else "ring" if shape == "ring" else "full"
    radius = size / 2
    if shape in ("circle", "ring"):
        return element("circle", class_=look, r=radius)
    if shape in ("x", "cross"):
        r = radius * (0.8 if shape == "x" else 1.0)
        path = f"M{-r:.1f} {-r:.1f}L{r:.1f} {r:.1f}M{-r:.1f} {r:.1f}L{r:.1f} {-r:.1f}"
        path = path if shape == "x" else f"M{-r:.1f} 0H{r:.1f}M0 {-r:.1f}V{r:.1f}"
        return element("path", class_="thin" if size < 10 else "thick", d=path)
    if shape == "star":
        return element("path", class_=look, d=_polygon(10, -90, radius * 1.2, radius * 0.5))
    corners, first = CORNERS[shape]
    return element("path", class_=look, d=_polygon(corners, first, radius * 1.15, radius * 1.15))


def _polygon(corners: int, first_degrees: float, outer: float, inner: float) -> str:
    points = []
    for k in range(corners):
        angle = math.radians(first_degrees + 360 / corners * k)
        radius = outer if k % 2 == 0 else inner
        points.append(f"{radius * math.cos(angle):.1f} {radius * math.sin(angle):.1f}")
    return "M" + "L".join(points) + "z"
