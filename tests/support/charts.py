"""Charts read back from a page: lines, markers, shades and legends, in the values of their axes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np

from rheostat.report.chart import marks
from rheostat.report.chart.figure import Bars, Figure, Panel
from rheostat.report.chart.svg import render_svg

Element = ElementTree.Element
NUMBERS = re.compile(r"[A-Za-z]|-?\d*\.?\d+")


@dataclass(frozen=True)
class DrawnLine:
    """A line: places in units of the drawing, None at a gap, and the values that the hover box shows."""

    name: str
    colour: str
    panel: int
    places: list[tuple[float, float] | None]
    x: list[float]
    y: list[float | None]
    unit: str
    dots: list[tuple[float, float]]


@dataclass(frozen=True)
class Marker:
    colour: str
    place: tuple[float, float]
    text: str
    markup: str


@dataclass
class Chart:
    """One SVG element, taken apart."""

    svg: str
    root: Element = field(init=False)

    def __post_init__(self) -> None:
        self.root = ElementTree.fromstring(self.svg)

    @property
    def title(self) -> str:
        return self.root.findtext("title") or ""

    @property
    def panels(self) -> list[Element]:
        return [node for node in self.root.iter("g") if node.get("class") == "panel"]

    def field(self, panel: int = 0) -> tuple[float, float, float, float]:
        """Return left, top, width and height of a panel."""
        (box,) = [node for node in self.panels[panel].iter("rect") if node.get("class") == "field"]
        left, top, width, height = (float(box.get(name, "nan")) for name in ("x", "y", "width", "height"))
        return left, top, width, height

    def x_value(self, at: float) -> float:
        """Return the value of the x axis at a place."""
        left, _, width, _ = self.field()
        low, high, share = float(self.root.get("data-low", "nan")), float(self.root.get("data-high", "nan")), 0.0
        share = (at - left) / width
        return low * (high / low) ** share if self.root.get("data-scale") == "log" else low + (high - low) * share

    @property
    def lines(self) -> list[DrawnLine]:
        return [
            self._line(number, group, path)
            for number, panel in enumerate(self.panels)
            for group in panel.iter("g")
            if group.get("data-g") is not None
            for path in group.findall("path")
            if path.get("data-name") is not None
        ]

    def _line(self, panel: int, group: Element, path: Element) -> DrawnLine:
        places = line_places(path.get("d", ""))
        values = iter(float(v) for v in path.get("data-y", "").split())
        dots = [p for other in group.findall("path") if other.get("class") == "dots" for p in moves(other.get("d", ""))]
        return DrawnLine(
            path.get("data-name", ""),
            colour(group),
            panel,
            places,
            [self.x_value(place[0]) for place in places if place],
            [next(values) if place else None for place in places],
            path.get("data-unit", ""),
            dots,
        )

    def line(self, name: str, panel: int | None = None) -> DrawnLine:
        (found,) = [one for one in self.lines if one.name == name and panel in (None, one.panel)]
        return found

    @property
    def markers(self) -> list[Marker]:
        found = []
        for group in (g for g in self.root.iter("g") if g.get("data-g") is not None and g.get("class") != "key"):
            for node in (n for n in group if n.get("class") == "at"):
                x, y = map(float, re.findall(r"-?[\d.]+", node.get("transform", "")))
                markup = ElementTree.tostring(node[0], encoding="unicode")
                found.append(Marker(colour(group), (x, y), node.findtext("title") or "", markup))
        return found

    @property
    def keys(self) -> dict[str, str]:
        """Return the legend: name -> colour."""
        return {
            (node.findtext("title") or node.findtext("text") or ""): colour(node)
            for node in self.root.iter("g")
            if node.get("class") == "key"
        }

    def shades(self, colour_name: str) -> list[tuple[float, float]]:
        """Return the shaded spans of the first panel in values of the x axis."""
        spans = []
        for group in self.panels[0].iter("g"):
            for path in (
                p for p in group.findall("path") if p.get("class") == "shade" and colour(group) == colour_name
            ):
                for left, width in re.findall(r"M(-?[\d.]+) -?[\d.]+h([\d.]+)", path.get("d", "")):
                    spans.append((self.x_value(float(left)), self.x_value(float(left) + float(width))))
        return spans

    @property
    def tips(self) -> list[str]:
        return [node.text or "" for node in self.root.iter("title")][1:]

    @property
    def words(self) -> list[str]:
        return [node.text or "" for node in self.root.iter("text")]


def charts(html: str) -> dict[str, Chart]:
    """Return the charts of a page by their names."""
    found = re.findall(r'<figure id="plot-([^"]+)">.*?(<svg.*?</svg>)', html, re.DOTALL)
    return {name: Chart(svg) for name, svg in found}


def has_nan(figure: Figure) -> bool:
    """Return whether a value of a figure is missing, or leaves no mark when it is drawn."""
    traces = [trace for panel in figure.panels for trace in panel.traces if not isinstance(trace, Bars)]
    bars = [trace.y for panel in figure.panels for trace in panel.traces if isinstance(trace, Bars)]
    assert "nan" not in render_svg(figure, "figure").lower()
    own = [marks.extents(Panel("", 1.0, [trace])) for trace in traces]
    return any(bool(np.isnan(array).any()) for array in (*bars, *(array for pair in own for array in pair)))


def colour(group: Element) -> str:
    match = re.search(r"--c:var\(--(\w+)\)", group.get("style", ""))
    return match.group(1) if match else ""


def line_places(path: str) -> list[tuple[float, float] | None]:
    """Return the points of a line's path, with None between two pieces."""
    tokens = NUMBERS.findall(path)
    places: list[tuple[float, float] | None] = []
    x = y = math.nan
    at = 0
    while at < len(tokens):
        command = tokens[at]
        if command == "h":
            x, y = x + float(tokens[at + 1]), y + float(tokens[at + 3])
            at += 4
        else:
            dx, dy = float(tokens[at + 1]), float(tokens[at + 2])
            if command == "M" and places:
                places.append(None)
            x, y = (dx, dy) if command == "M" else (x + dx, y + dy)
            at += 3
        places.append((x, y))
    return places


def moves(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"M(-?[\d.]+) (-?[\d.]+)", path)]
