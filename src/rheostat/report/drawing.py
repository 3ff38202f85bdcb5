"""What all figures share: colours, the time axis, lines with gaps, shaded periods, and panels stacked on one axis.

Figures are plotly's own JSON as plain dictionaries, so nothing of plotly is loaded here. plotly reads a little HTML
and `%{...}` in its texts: whatever a user named goes through `plain`, and never into a template.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np

from rheostat.report.series import MAX_POINTS, Floats, corners, shades, thin
from rheostat.report.words import EPOCH_FROM_S

Trace = dict[str, Any]
Figure = dict[str, Any]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333")
"""Okabe and Ito's palette, without its yellow, which paper swallows."""
GREY = "#7A7A7A"
INK = "#222222"
LIMIT = "#B00020"
"""The SLO's lines."""
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "star", "hexagon", "cross")
NAME_LENGTH = 40
MARGIN = {"l": 64, "r": 24, "t": 34, "b": 62}


@dataclass(frozen=True, slots=True)
class Pen:
    """How one policy or operator looks, in every figure of a page."""

    colour: str
    dash: str = "solid"
    symbol: str = "circle"
    width: float = 1.8


SLO = Pen(LIMIT, "dash", width=1.4)


def pens(names: Sequence[str]) -> dict[str, Pen]:
    """Give every name a colour; past the last colour the line's pattern changes."""
    colours, dashes = len(COLOURS), len(DASHES)
    return {
        name: Pen(COLOURS[k % colours], DASHES[k // colours % dashes], SYMBOLS[k % len(SYMBOLS)])
        for k, name in enumerate(names)
    }


def plain(text: object, width: int | None = None) -> str:
    """Return a user's text as plotly will show it literally, wrapped where a width is given."""
    lines = textwrap.wrap(str(text), width) if width else [str(text)]
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def label(name: str) -> str:
    """Return a name short enough for a legend."""
    return plain(name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…")


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
        units = ((600.0, 1.0, "seconds"), (4 * 3600.0, 60.0, "minutes"), (5 * 86400.0, 3600.0, "hours"))
        span_s = self.end_s - self.start_s
        fitting = next(((size, name) for most, size, name in units if span_s <= most), (86400.0, "days"))
        size, name = (1e-3, "UTC") if dated else fitting
        for attribute, value in (("dated", dated), ("unit_s", size), ("unit", name)):
            object.__setattr__(self, attribute, value)

    @property
    def finest_s(self) -> float:
        """The shortest stretch of time that can be seen."""
        return (self.end_s - self.start_s) / MAX_POINTS

    def place(self, at_s: Floats) -> list[float]:
        """Return moments as plotly wants them."""
        return [float(v) for v in np.round(at_s / self.unit_s, 0 if self.dated else 4)]

    def in_path(self, at_s: float) -> str:
        """Return a moment as it stands in the path of a shape."""
        if self.dated:
            return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d_%H:%M:%S.%f")
        return f"{at_s / self.unit_s:.6g}"

    def axis(self) -> dict[str, Any]:
        """Return plotly's description of the axis."""
        kind: dict[str, Any] = {"type": "date"} if self.dated else {"type": "linear"}
        ends = self.place(np.array([self.start_s, self.end_s]))
        title = "time, UTC" if self.dated else f"time, {self.unit}"
        look = {"range": ends, "title": {"text": title, "standoff": 10}, "hoverformat": "" if self.dated else ".5~g"}
        return {**kind, **look, "unifiedhovertitle": {"text": f"%{{x}} {self.unit}"}}


def line(
    time: TimeAxis,
    at_s: Floats,
    values: Floats,
    name: str,
    pen: Pen,
    unit: str,
    *,
    step: bool = False,
    **more: Any,
) -> Trace:
    """Return a thinned line; a gap stays a gap, and a lone point between two gaps shows as a dot."""
    x, y = thin(*(corners(at_s, values) if step else (at_s, values)))
    known = ~np.isnan(y)
    before, after = np.r_[False, known[:-1]], np.r_[known[1:], False]
    lone = known & ~before & ~after
    trace: Trace = {
        "type": "scatter",
        "x": time.place(x),
        "y": [float(f"{v:.5g}") if k else None for v, k in zip(y.tolist(), known.tolist(), strict=True)],
        "name": label(name),
        "mode": "lines",
        "line": {"color": pen.colour, "dash": pen.dash, "width": pen.width, "shape": "hv" if step else "linear"},
        "hovertemplate": f"%{{y:{'.3~s' if unit != ' s' else '.3~g'}}}{unit}",
        **more,
    }
    if lone.any():
        trace["mode"] = "lines+markers"
        trace["marker"] = {"color": pen.colour, "size": [4 if alone else 0 for alone in lone.tolist()], "opacity": 1}
    return trace


def limit(time: TimeAxis, most: float, name: str, **more: Any) -> Trace:
    """Return the SLO's line over the whole period."""
    ends = np.array([time.start_s, time.end_s])
    return line(time, ends, np.full(2, most), name, SLO, " s", **more)


def band(
    time: TimeAxis, starts_s: Floats, ends_s: Floats, rgb: str, opacity: float, name: str, legend: str = "legend"
) -> list[Trace]:
    """Return shapes that shade these periods over all panels: the denser they lie, the darker."""
    shapes: list[Trace] = []
    for share, spans in shades(starts_s, ends_s, time.start_s, time.end_s):
        parts = []
        for start_s, end_s in spans:
            # What is too short to be seen is drawn as wide as a line.
            left, right = time.in_path(start_s), time.in_path(max(end_s, start_s + time.finest_s))
            parts.append(f"M {left},0 L {right},0 L {right},1 L {left},1 Z")
        shapes.append(
            {
                "type": "path",
                "path": " ".join(parts),
                "xref": "x",
                "yref": "paper",
                "fillcolor": f"rgba({rgb},{opacity * share:.3g})",
                "line": {"width": 0},
                "layer": "below",
                "name": name,
                "legendgroup": name,
                "showlegend": not shapes,
                "legend": legend,
            }
        )
    return shapes


@dataclass
class Panel:
    """One row of a stack: what it shows, in which unit, and how high it is."""

    title: str
    height: int
    traces: list[Trace]
    scale: Literal["linear", "log"] = "linear"
    ticks: str = "~s"
    legend: bool = True


def stack(time: TimeAxis, panels: Sequence[Panel], shapes: Sequence[Trace] = (), right: int = 190) -> Figure:
    """Return panels one above the other on one time axis, each with its own legend at its right."""
    gap = 36
    inner = sum(panel.height for panel in panels) + gap * (len(panels) - 1)
    data: list[Trace] = []
    layout = base(inner + MARGIN["t"] + MARGIN["b"])
    layout["margin"] = {**MARGIN, "r": right}
    layout["hovermode"] = "x unified"
    layout["xaxis"] = {
        **grid(),
        **time.axis(),
        "anchor": f"y{len(panels)}" if len(panels) > 1 else "y",
        "showspikes": True,
        "spikemode": "across",
        "spikesnap": "cursor",
        "spikethickness": 1,
        "spikedash": "dot",
        "spikecolor": GREY,
    }
    layout["shapes"] = list(shapes)
    layout["annotations"] = []
    top = float(inner)
    for k, panel in enumerate(panels):
        suffix = "" if k == 0 else str(k + 1)
        domain = [max(top - panel.height, 0.0) / inner, top / inner]
        layout[f"yaxis{suffix}"] = {
            **grid(),
            "domain": domain,
            "type": panel.scale,
            "tickformat": panel.ticks,
            "rangemode": "tozero" if panel.scale == "linear" else "normal",
            "nticks": 6,
            "zeroline": False,
        }
        if panel.scale == "log":
            shown = np.array([v if v is not None else np.nan for t in panel.traces for v in t["y"]], dtype=float)
            # Decades, or where there are few of them also twos and fives.
            layout[f"yaxis{suffix}"]["dtick"] = 1 if spread(shown) > 50 else "D2"
        layout["annotations"].append(heading(panel.title, domain[1]))
        if panel.legend:
            layout[f"legend{suffix}"] = {"x": 1.01, "y": domain[1], "xanchor": "left", "yanchor": "top", **SMALL}
        for trace in panel.traces:
            own = {"legend": f"legend{suffix}"} if panel.legend else {}
            data.append({"xaxis": "x", "yaxis": f"y{suffix}", **own, **trace})
        top -= panel.height + gap
    return {"data": data, "layout": layout}


SMALL: dict[str, Any] = {"font": {"size": 11}, "tracegroupgap": 0, "bgcolor": "rgba(255,255,255,0)"}


def spread(values: Floats) -> float:
    """Return the ratio of the greatest to the least; 0 where there is none, or where zero is among them."""
    known = values[~np.isnan(values)]
    return float(known.max() / known.min()) if len(known) and known.min() > 0 else 0.0


def heading(text: str, y: float) -> dict[str, Any]:
    """Return a panel's title, above its left corner."""
    return {
        "text": f"<b>{text}</b>",
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": y,
        "yanchor": "bottom",
        "xanchor": "left",
        "showarrow": False,
        "font": {"size": 12.5},
        "yshift": 3,
    }


def grid() -> dict[str, Any]:
    """Return the look of an axis."""
    return {"showgrid": True, "gridcolor": "#E3E3E3", "linecolor": "#888888", "showline": True, "ticks": "outside"}


def base(height: int) -> dict[str, Any]:
    """Return the layout that every figure starts from."""
    return {
        "height": height,
        "autosize": True,
        "margin": MARGIN,
        "paper_bgcolor": "#FFFFFF",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 12, "color": INK},
        "hoverlabel": {"align": "left", "font": {"size": 11.5}, "namelength": NAME_LENGTH},
        "showlegend": True,
    }
