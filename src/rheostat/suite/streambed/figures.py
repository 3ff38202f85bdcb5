"""Figures: what was measured and what follows from it, per query."""

from __future__ import annotations

import numpy as np

from rheostat.job.plan import Estimate
from rheostat.planner.extrapolation import FAMILIES, Points, fitted
from rheostat.planner.failures import kept
from rheostat.planner.scaling import Scaling
from rheostat.report.drawing import MARGIN, Figure, Pen, Trace, base, grid, pens
from rheostat.suite.bars import LEGEND, bars
from rheostat.suite.result import Cell, Drawing
from rheostat.suite.streambed import paper
from rheostat.suite.streambed.paper import QUERIES
from rheostat.suite.streambed.runs import Found


def drawings(found: Found, cells: tuple[Cell, ...]) -> tuple[Drawing, ...]:
    """Return all figures."""
    drawn = []
    for query, asked in QUERIES.items():
        run = found.explored[query][paper.OURS][0]
        needed = found.needed[query][4.0]
        drawn.append(
            Drawing(
                f"{query}: from at most {asked.most} slots to the request",
                scaling_figure(list(run.estimates), 4096, 1.1 * asked.rate_per_s, needed),
                "Ours with its 90 % band, and the paper's three families, fitted to the same runs of the first seed. "
                "The line across is 110 % of the request; the star is what the simulator really needs.",
            )
        )
    looks = pens([paper.DICHOTOMIC, paper.SEQUENTIAL])
    drawn.append(
        Drawing("Figure 9: estimates sustained at 100 %", bars(cells, "Figure 9, sustained at 100 %", looks, "share"))
    )
    shares = {share: Pen(pen.colour) for share, pen in pens(["100 %", "120 %", "150 %"]).items()}
    name = f"Figure 11, {paper.OURS}'s plan"
    drawn.append(Drawing("Figure 11: processed over requested, our plan", bars(cells, name, shares, "share")))
    return tuple(drawn)


def scaling_figure(estimates: list[Estimate], memory_mb: int | None, wanted_per_s: float, needed: float) -> Figure:
    """Return rate over slots on two logarithmic axes."""
    good = kept(estimates)
    scaling, points = Scaling.fit(good), Points.of(good)
    top = max(needed * 2 if np.isfinite(needed) else 0.0, float(points.slots.max()) * 30)
    slots = np.unique(np.round(np.geomspace(float(points.slots.min()), top, 40)))
    rates = scaling.rates(slots, memory_mb)
    x = slots.tolist()
    data: list[Trace] = [
        _line(x, rates[:, 2].tolist(), "", "rgba(0,114,178,0)"),
        {**_line(x, rates[:, 0].tolist(), "90 % band", "rgba(0,114,178,0)"), "fill": "tonexty",
         "fillcolor": "rgba(0,114,178,0.18)", "showlegend": True},
        {**_line(x, rates[:, 1].tolist(), "auto", "#0072B2"), "showlegend": True},
    ]  # fmt: skip
    for family, colour in zip(FAMILIES, ("#D55E00", "#009E73", "#CC79A7"), strict=True):
        fit = fitted(points, family)
        y = [max(fit.rate_per_s(s, float(memory_mb or 1)), 1e-9) for s in x]
        shown = [value if value > 0.1 * float(points.rate_per_s.min()) else None for value in y]
        data.append({**_line(x, shown, family, colour), "line": {"color": colour, "dash": "dot"}, "showlegend": True})
    data.append(
        {"type": "scatter", "mode": "markers", "name": "measured", "x": points.slots.tolist(),
         "y": points.rate_per_s.tolist(), "marker": {"color": "#222222", "size": 7, "symbol": "circle-open"}}
    )  # fmt: skip
    ends = [x[0], x[-1]]
    data.append({**_line(ends, [wanted_per_s] * 2, "wanted", "#B00020"), "showlegend": True})
    if np.isfinite(needed):
        data.append(
            {"type": "scatter", "mode": "markers", "name": "really needed", "x": [needed], "y": [wanted_per_s],
             "marker": {"color": "#B00020", "size": 11, "symbol": "star"}}
        )  # fmt: skip
    layout = base(420)
    layout |= {"legend": LEGEND, "margin": {**MARGIN, "t": 64}}
    layout["xaxis"] = {**grid(), "type": "log", "title": {"text": "slots"}}
    layout["yaxis"] = {**grid(), "type": "log", "title": {"text": "records/s"}, "tickformat": "~s"}
    return {"data": data, "layout": layout}


def _line(x: list[float], y: list[float | None] | list[float], name: str, colour: str) -> Trace:
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": {"color": colour},
            "showlegend": False, "hovertemplate": "%{x} slots: %{y:.3~s}/s"}  # fmt: skip
