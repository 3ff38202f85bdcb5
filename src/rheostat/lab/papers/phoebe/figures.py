"""The paper's Figure 6 from our runs: workers over the load, latencies, and what was used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rheostat.lab.papers.charts import chart, curve
from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.play import Run, experiment
from rheostat.lab.papers.phoebe.recordings import DURATION_S, RECORDED_EVERY_S
from rheostat.lab.papers.phoebe.runs import Found
from rheostat.lab.papers.result import Drawing
from rheostat.lab.papers.table import Cell
from rheostat.report.drawing import GREY, Figure, Panel, TimeAxis, line, pens, stack

POINTS = 200
"""Of a distribution."""
THIN = 12
"""Every so many-th of the points five seconds apart is drawn: one per minute."""


def figures(found: Found, cells: Sequence[Cell]) -> list[Drawing]:
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
    return drawn


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

    data = [
        curve(row, *points(found.experiments[name][row]), pen, "%{x:.3~g} s: %{y:.0%}")
        for row, pen in pens(paper.ROWS).items()
    ]
    x = {"title": {"text": "latency in seconds"}, "type": "log", "linecolor": GREY}
    return chart(data, x, {"title": {"text": "share below"}, "tickformat": ".0%"})


def sums(found: Found, name: str) -> Figure:
    """Return the slot-seconds used so far, as a share of static 24's whole run."""
    whole = 24.0 * DURATION_S
    data = []
    for row, pen in pens(paper.ROWS).items():
        used = np.cumsum(found.experiments[name][row][0].workers) * RECORDED_EVERY_S / whole
        hours = np.arange(len(used)) * RECORDED_EVERY_S / 3600.0
        x, y = ([round(float(v), 4) for v in each[:: 5 * THIN]] for each in (hours, used))
        data.append(curve(row, x, y, pen, "%{y:.0%}"))
    axis = {"title": {"text": "hours"}, "linecolor": GREY}
    return chart(data, axis, {"title": {"text": "of static 24"}, "tickformat": ".0%"})
