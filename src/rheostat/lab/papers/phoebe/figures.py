"""The paper's Figure 6 from our runs: workers over the load, latencies, and what was used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rheostat.lab.papers.charts import chart
from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.play import Run, experiment
from rheostat.lab.papers.phoebe.recordings import DURATION_S, RECORDED_EVERY_S
from rheostat.lab.papers.phoebe.runs import Found
from rheostat.lab.papers.result import Drawing
from rheostat.lab.papers.table import Cell
from rheostat.report.chart.figure import Axis, Figure, Line, Panel
from rheostat.report.chart.markup import Floats
from rheostat.report.chart.pens import pens
from rheostat.report.chart.time_axis import TimeAxis, line, stack

POINTS = 200
"""Points of a distribution."""
THIN = 12
"""Recorded points per drawn point: they are five seconds apart, and one per minute is drawn."""


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
    panels = [Panel("Records/s", 140, [line(time, at_s, load, "load", looks[paper.S24], "/s", key=False)])]
    for row in paper.SCALING:
        run = found.experiments[name][row][0]
        held = line(time, at_s, run.workers[::THIN], row, looks[row], " workers", step=True)
        panels.append(Panel(f"Workers, {row}", 110, [held]))
    return stack(f"Load and workers, {paper.TITLES[name]}", time, panels)


def distributions(found: Found, name: str) -> Figure:
    """Return the share of latencies below each value."""
    shares = np.linspace(0.0, 1.0, POINTS)

    def latency_s(runs: list[Run]) -> Floats:
        latencies: Floats = np.quantile(np.concatenate([run.latency_s for run in runs]), shares)
        return latencies

    traces = [
        Line(row, latency_s(found.experiments[name][row]), shares, pen, format="percent")
        for row, pen in pens(paper.ROWS).items()
    ]
    x = Axis("latency, seconds (log scale)", "log", unit=" s")
    y = Axis(low=0.0, high=1.01, format="percent")
    return chart(f"Latencies, {paper.TITLES[name]}", traces, x, "Share of all latencies", y)


def sums(found: Found, name: str) -> Figure:
    """Return the slot-seconds used so far, as a share of static 24's whole run."""
    whole = 24.0 * DURATION_S
    traces = []
    for row, pen in pens(paper.ROWS).items():
        used = np.cumsum(found.experiments[name][row][0].workers) * RECORDED_EVERY_S / whole
        hours = np.arange(len(used)) * RECORDED_EVERY_S / 3600.0
        traces.append(Line(row, hours[:: 5 * THIN], used[:: 5 * THIN], pen, format="percent"))
    x, y = Axis("time, hours", low=0.0, unit=" hours"), Axis(format="percent", from_zero=True)
    return chart(f"Resources used, {paper.TITLES[name]}", traces, x, "Share of static 24's slot-seconds", y)
