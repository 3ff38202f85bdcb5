"""The paper's Figure 6 from our runs: workers over the load, latencies, and what was used."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rheostat.lab.papers.bars import LEGEND
from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.play import DURATION_S, Run, experiment
from rheostat.lab.papers.phoebe.recorded import RECORDED_EVERY_S
from rheostat.lab.papers.phoebe.runs import Found
from rheostat.lab.papers.result import Drawing
from rheostat.report.drawing import GREY, MARGIN, Figure, Panel, TimeAxis, Trace, base, grid, line, pens, stack

POINTS = 200
"""Of a distribution."""
THIN = 12
"""Every so many-th of the points five seconds apart is drawn: one per minute."""


def drawings(found: Found) -> tuple[Drawing, ...]:
    """Return all figures."""
    drawn = []
    for name, letters in ((paper.TSW, "ace"), (paper.YSB, "bdf")):
        title = paper.TITLES[name]
        over, latency, used = (f"Figure 6{letter}, {title}" for letter in letters)
        drawn += [
            Drawing(f"{over}: load and workers", workers(found, name), "The first seed."),
            Drawing(
                f"{latency}: displayed latencies", distributions(found, name), "All seeds; the axis is logarithmic."
            ),
            Drawing(f"{used}: resources used", sums(found, name), "The first seed, without profiling."),
        ]
    return tuple(drawn)


def workers(found: Found, name: str) -> Figure:
    """Return the load, and the workers of every method that scales."""
    looks, time = pens(paper.ROWS), TimeAxis(0.0, float(DURATION_S))
    at_s = np.arange(0.0, DURATION_S, RECORDED_EVERY_S * THIN)
    load = experiment(name, found.folder).load.level(at_s)
    panels = [Panel("Records/s", 140, [line(time, at_s, load, "load", looks[paper.S24], "/s", showlegend=False)])]
    for row in paper.SCALING:
        run = found.experiments[name][row][0]
        held = line(time, at_s, run.workers[::THIN], row, looks[row], " workers", step=True, legendgroup=row)
        panels.append(Panel(row, 110, [held], ticks="~g"))
    return stack(time, panels, right=150)


def distributions(found: Found, name: str) -> Figure:
    """Return the share of latencies below each value."""

    def points(runs: list[Run]) -> tuple[list[float], list[float]]:
        shares = np.linspace(0.0, 1.0, POINTS)
        values = np.quantile(np.concatenate([run.latency_s for run in runs]), shares)
        return [round(float(v), 3) for v in values], [round(float(v), 4) for v in shares]

    data = []
    for row, (x, y) in ((row, points(found.experiments[name][row])) for row in paper.ROWS):
        data.append(_curve(row, x, y, "%{x:.3~g} s: %{y:.0%}"))
    axis = {"title": {"text": "latency in seconds"}, "type": "log"}
    return _chart(data, axis, {"title": {"text": "share below"}, "tickformat": ".0%"})


def sums(found: Found, name: str) -> Figure:
    """Return the slot-seconds used so far, as a share of static 24's whole run."""
    whole = 24.0 * DURATION_S
    data = []
    for row in paper.ROWS:
        used = np.cumsum(found.experiments[name][row][0].workers) * RECORDED_EVERY_S / whole
        hours = np.arange(len(used)) * RECORDED_EVERY_S / 3600.0
        x, y = ([round(float(v), 4) for v in each[:: 5 * THIN]] for each in (hours, used))
        data.append(_curve(row, x, y, "%{y:.0%}"))
    return _chart(data, {"title": {"text": "hours"}}, {"title": {"text": "of static 24"}, "tickformat": ".0%"})


def _curve(row: str, x: list[float], y: list[float], hover: str) -> Trace:
    pen = pens(paper.ROWS)[row]
    style = {"color": pen.colour, "dash": pen.dash, "width": pen.width}
    return {"type": "scatter", "mode": "lines", "name": row, "x": x, "y": y, "line": style, "hovertemplate": hover}


def _chart(data: list[Trace], x: Mapping[str, object], y: Mapping[str, object]) -> Figure:
    layout = base(380)
    layout |= {"xaxis": {**grid(), **x, "linecolor": GREY}, "yaxis": {**grid(), **y}, "legend": LEGEND}
    layout["margin"] = {**MARGIN, "t": 70}
    return {"data": data, "layout": layout}
