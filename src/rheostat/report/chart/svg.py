"""A figure as one SVG element: margins, panels, axes and ticks around the traces."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from rheostat.report.chart import legend, marks
from rheostat.report.chart.figure import Figure, Heat, Panel
from rheostat.report.chart.markup import element, escape, text, text_width
from rheostat.report.chart.scale import Scale, Tick, fit_scale

LEFT, TITLE, GAP, EDGE = 54.0, 22.0, 14.0, 16.0
"""Room for the y axis's labels, for a panel's title, between two panels, and at the right edge."""
TICKS, AXIS_TITLE, LINE = 22.0, 20.0, 13.0
"""Room for a line of tick labels, for the axis's title, and for each further line of labels."""
NUMBER_ROOM, DATE_ROOM, LEVEL_ROOM = 50.0, 88.0, 22.0
"""Room for a tick: for a number and for a date on the x axis, and for a label on the y axis."""
MOST_X_TICKS, MOST_Y_TICKS = 12, 8
MAX_LABEL_LINES = 3
"""Lines of a category's label; where one needs more, all are tilted."""
TILT_DEGREES = 40.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a panel's field lies, and its two scales."""

    panel: Panel
    left: float
    top: float
    width: float
    height: float
    x: Scale
    y: Scale


@cache
def style() -> str:
    """Return the style sheet that all charts of a page need."""
    return files("rheostat.report.chart").joinpath("chart.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the script that makes the charts of a page answer to the pointer."""
    return files("rheostat.report.chart").joinpath("chart.js").read_text(encoding="utf-8")


def render_svg(figure: Figure, name: str) -> str:
    """Return the figure as SVG; its ids start with `name`, which is unique on the page."""
    groups = marks.groups(figure)
    left, right = _left(figure), _right(figure)
    across = figure.width - left - right
    above, keys_height = "", 0.0
    if figure.legend == "above":
        every = [one for k in range(len(figure.panels)) for one in legend.entries(figure, k)]
        unique = {marks.group_of(one): one for one in reversed(every)}
        shown = [one for one in every if unique[marks.group_of(one)] is one]
        above, keys_height = legend.rows(shown, groups, left - 10, figure.width - left)
        keys_height += 6 if above else 0
    places = _places(figure, left, across, keys_height)
    bottom = max(place.top + place.height for place in places)
    height = bottom + max(_labels_height(place) for place in places) + (AXIS_TITLE if figure.x.title else 0)
    drawn = [_panel(figure, place, f"{name}-{k}", groups) for k, place in enumerate(places)]
    for k, place in enumerate(places):
        if figure.columns or k == len(places) - 1:
            drawn.append(_x_axis(place, height))
        if figure.legend == "right":
            drawn.append(legend.column(legend.entries(figure, k), groups, place.left + place.width + 14, place.top + 9))
        drawn.append(legend.colour_bar(place.panel, place.left + place.width + 16, place.top + 26))
    x = places[0].x
    zoomable = not figure.columns and not figure.x.labels and not _has_heat(figure)
    return element(
        "svg",
        element("title", escape(figure.title), id=f"{name}-title"),
        element("desc", escape(_description(figure)), id=f"{name}-text"),
        above,
        *drawn,
        class_="chart",
        role="img",
        aria_labelledby=f"{name}-title {name}-text",
        viewBox=f"0 0 {figure.width:g} {height:g}",
        data_scale=figure.x.scale if zoomable else None,
        data_low=repr(x.low) if zoomable else None,
        data_high=repr(x.high) if zoomable else None,
        data_unit=figure.x.unit or None,
        data_format=None if figure.x.format == "number" else figure.x.format,
        style=f"--width:{figure.width:g}px",
    )


def _has_heat(figure: Figure) -> bool:
    return any(isinstance(trace, Heat) for panel in figure.panels for trace in panel.traces)


def _left(figure: Figure) -> float:
    """Return the room for the labels of the y axis, and for the first label of the x axis where that is tilted."""
    names = [label for panel in figure.panels for label in panel.y.labels]
    left = max([LEFT, *(text_width(name) + 14 for name in names)])
    labels, width = figure.x.labels, figure.width - LEFT - EDGE
    if not labels or figure.columns or not _is_tilted(labels, width):
        return left
    sideways = text_width(labels[0]) * math.cos(math.radians(TILT_DEGREES))
    return max(left, sideways - width / len(labels) / 2 + 8)


def _right(figure: Figure) -> float:
    bar = any(isinstance(trace, Heat) and trace.bar for panel in figure.panels for trace in panel.traces)
    return legend.column_width(figure) if figure.legend == "right" else 84.0 if bar else EDGE


def _places(figure: Figure, left: float, across: float, top: float) -> list[Place]:
    """Lay the panels out; a panel grows where its legend is higher."""
    values = np.concatenate([marks.extents(panel)[0] for panel in figure.panels])
    places = []
    count = len(figure.panels)
    width = (across - (count - 1) * LEFT) / count if figure.columns else across
    for k, panel in enumerate(figure.panels):
        start = left + k * (width + LEFT) if figure.columns else left
        rows = len(legend.entries(figure, k)) if figure.legend == "right" else 0
        height = max(panel.height, legend.ROW * rows)
        x = fit_scale(figure.x, values, start, start + width)
        y = fit_scale(panel.y, marks.extents(panel)[1], top + TITLE + height, top + TITLE)
        places.append(Place(panel, start, top + TITLE, width, height, x, y))
        top += 0 if figure.columns else TITLE + height + GAP
    return places


def _panel(figure: Figure, place: Place, name: str, groups: dict[str, int]) -> str:
    panel, x, y = place.panel, place.x, place.y
    box = {"x": place.left, "y": place.top, "width": place.width, "height": place.height}
    shades = [marks.shade_path(one, x, place.top, place.height, groups[one.name]) for one in figure.shades]
    layers = [marks.draw(trace, x, y, groups[marks.group_of(trace)]) for trace in panel.traces]
    right, bottom = place.left + place.width, place.top + place.height
    y_ticks = y.ticks(min(max(2, round(place.height / LEVEL_ROOM)), MOST_Y_TICKS))
    levels = [y.at(tick.value) for tick in y_ticks]
    columns = [x.at(tick.value) for tick in _x_ticks(place)]
    grid = "" if panel.y.labels else "".join(f"M{place.left:.1f} {level:.1f}H{right:.1f}" for level in levels)
    upright = "" if figure.x.labels else "".join(f"M{at:.1f} {place.top:.1f}V{bottom:.1f}" for at in columns)
    numbers = [
        text(tick.label, place.left - 8, level, class_="tick y") for tick, level in zip(y_ticks, levels, strict=True)
    ]
    return element(
        "g",
        element("clipPath", element("rect", **box), id=f"clip-{name}"),
        element("rect", class_="field", **box),
        element("path", class_="grid", d=grid),
        element("path", class_="grid x", d=upright),
        element(
            "g",
            element("g", *shades, *(layer.zoom for layer in layers), class_="zoom"),
            clip_path=f"url(#clip-{name})",
        ),
        element("path", class_="axis", d=f"M{place.left:.1f} {place.top:.1f}V{bottom:.1f}H{right:.1f}"),
        element("g", *(layer.above for layer in layers), class_="marks"),
        *numbers,
        text(panel.title, place.left - 8, place.top - 8, class_="title"),
        class_="panel",
    )


def _x_ticks(place: Place) -> list[Tick]:
    room = DATE_ROOM if place.x.axis.scale == "date" else NUMBER_ROOM
    return place.x.ticks(min(max(2, round(place.width / room)), MOST_X_TICKS))


def _tick_lines(place: Place) -> list[tuple[Tick, list[str]]]:
    """Return the ticks of an x axis with the lines of their labels; categories are wrapped to their width."""
    ticks, labels = _x_ticks(place), place.x.axis.labels
    if not labels:
        return [(tick, [tick.label, tick.under] if tick.under else [tick.label]) for tick in ticks]
    return list(zip(ticks, _wrap(labels, place.width), strict=True))


def _wrap(labels: Sequence[str], width: float) -> list[list[str]]:
    most = max(int(width / len(labels) / text_width("m")), 4)
    return [textwrap.wrap(label, most) or [""] for label in labels]


def _is_tilted(labels: Sequence[str], width: float) -> bool:
    return any(len(lines) > MAX_LABEL_LINES for lines in _wrap(labels, width)) if labels else False


def _labels_height(place: Place) -> float:
    if _is_tilted(place.x.axis.labels, place.width):
        longest = max(map(text_width, place.x.axis.labels))
        return TICKS + longest * math.sin(math.radians(TILT_DEGREES))
    return TICKS + LINE * (max((len(lines) for _, lines in _tick_lines(place)), default=1) - 1)


def _x_axis(place: Place, height: float) -> str:
    level = place.top + place.height + 13
    axis = place.x.axis
    if _is_tilted(axis.labels, place.width):
        written = []
        for tick in _x_ticks(place):
            x = place.x.at(tick.value) + 4
            tilt = f"rotate({-TILT_DEGREES:g} {x:.1f} {level:.1f})"
            written.append(text(tick.label, x, level, class_="tick x tilted", transform=tilt))
    else:
        written = [
            text(line, place.x.at(tick.value), level + LINE * k, class_="tick x")
            for tick, lines in _tick_lines(place)
            for k, line in enumerate(lines)
        ]
    title = text(axis.title, place.left + place.width / 2, height - 9, class_="tick x caption") if axis.title else ""
    return element("g", *written, class_="ticks", data_y=level) + title


def _description(figure: Figure) -> str:
    """Name every panel and its series."""
    described = []
    for panel in figure.panels:
        names = ", ".join(dict.fromkeys(trace.name for trace in panel.traces if trace.name))
        described.append(f"{panel.title}: {names}" if names else panel.title)
    return "; ".join(described)
