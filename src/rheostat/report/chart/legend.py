"""Legend entries: a sample of the line or the symbol and a name; the script makes each a switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rheostat.report.chart.figure import Area, Bars, Figure, Heat, Panel, Points, Shade, Trace
from rheostat.report.chart.marks import group_of, heat_range, line_class, ramp_colour, symbol
from rheostat.report.chart.markup import element, ellipsis, escape, text, text_width
from rheostat.report.words import number

ROW = 17.0
"""Height of an entry."""
SAMPLE = 24.0
"""Width of a line's sample."""
WIDEST = 200.0
"""Width at which the names of a legend beside the panels are cut."""
NARROWEST = 196.0
"""Width of a legend beside the panels at least: charts of one page line up."""
BAR_WIDTH, BAR_HEIGHT = 14.0, 90.0

Entry = Trace | Shade


def entries(figure: Figure, panel: int) -> list[Entry]:
    """Return what one panel's legend holds; shades stand in the first."""
    shades: list[Entry] = list(figure.shades) if panel == 0 else []
    return [one for one in (*figure.panels[panel].traces, *shades) if one.key]


def column_width(figure: Figure) -> float:
    """Return the width of a legend beside the panels."""
    names = [one.name for k in range(len(figure.panels)) for one in entries(figure, k)]
    return max(min(max(map(text_width, names), default=0.0), WIDEST) + SAMPLE + 24, NARROWEST)


def column(shown: Sequence[Entry], groups: Mapping[str, int], x: float, y: float) -> str:
    """Return the entries one below the other."""
    return "".join(_entry(one, groups, x, y + ROW * k, WIDEST) for k, one in enumerate(shown))


def rows(shown: Sequence[Entry], groups: Mapping[str, int], left: float, width: float) -> tuple[str, float]:
    """Return the entries one after the other, in as many rows as they need, and the height of all."""
    x, y, written = left, 8.0, []
    for one in shown:
        needed = SAMPLE + 8 + text_width(one.name) + 14
        if x > left and x + needed > left + width:
            x, y = left, y + ROW
        written.append(_entry(one, groups, x, y, width - SAMPLE - 8))
        x += needed
    return "".join(written), y + ROW / 2 if written else 0.0


def _entry(one: Entry, groups: Mapping[str, int], x: float, y: float, width: float) -> str:
    shown = ellipsis(one.name, width)
    inside = [
        element("rect", class_="field", x=x - 2, y=y - ROW / 2, width=SAMPLE + 12 + text_width(shown), height=ROW),
        _sample(one, x, y),
        text(shown, x + SAMPLE + 6, y, class_="name"),
    ]
    if shown != one.name:
        inside.append(element("title", escape(one.name)))
    colour = "grey" if isinstance(one, Heat) else one.pen.colour
    width_ = "" if isinstance(one, Heat) or one.pen.width == 1.8 else f";--w:{one.pen.width:g}px"
    return element("g", *inside, class_="key", data_g=groups[group_of(one)], style=f"--c:var(--{colour}){width_}")


def _sample(one: Entry, x: float, y: float) -> str:
    match one:
        case Points():
            return element(
                "g", symbol(one.pen.symbol, min(one.size, 10)), transform=f"translate({x + SAMPLE / 2:g} {y:g})"
            )
        case Bars():
            return element("rect", class_="bar", x=x + 6, y=y - 5, width=SAMPLE - 12, height=10.0)
        case Area():
            return element("rect", class_="area", x=x, y=y - 5, width=SAMPLE, height=10.0)
        case Shade():
            opacity = f"{one.opacity:.3g}"
            return element(
                "rect", class_="shade", x=x + 4, y=y - 6, width=SAMPLE - 8, height=12.0, fill_opacity=opacity
            )
        case Heat():
            return ""
    return element("path", class_=line_class(one.pen), d=f"M{x:g} {y:g}h{SAMPLE:g}")


def colour_bar(panel: Panel, x: float, y: float) -> str:
    """Return the colours of a heat map with the values at their ends; nothing where it has no title."""
    heat = next((trace for trace in panel.traces if isinstance(trace, Heat) and trace.bar), None)
    if heat is None:
        return ""
    low, high = heat_range(heat)
    steps = 24
    edges = [y + BAR_HEIGHT * k / steps for k in range(steps + 1)]
    cells = [
        element(
            "rect", x=x, y=top, width=BAR_WIDTH, height=bottom - top + 0.4, fill=ramp_colour(heat.ramp, 1 - k / steps)
        )
        for k, (top, bottom) in enumerate(pairwise(edges))
    ]
    beside = x + BAR_WIDTH + 6
    return "".join(
        [*cells, text(number(high), beside, y + 4), text(number(low), beside, edges[-1] - 4), text(heat.bar, x, y - 12)]
    )
