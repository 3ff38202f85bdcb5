"""The paper's figures from our runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rheostat.engine.simulated.fleet import Floats
from rheostat.lab.jobs import job
from rheostat.lab.papers.capacity import rates_per_s, share_served
from rheostat.lab.papers.charts import bars, chart
from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.complexity import QUERIES, known_shares
from rheostat.lab.papers.conttune.methods import OURS
from rheostat.lab.papers.conttune.runs import ON_TRACES, Found
from rheostat.lab.papers.conttune.tables import latencies
from rheostat.lab.papers.result import Drawing
from rheostat.lab.papers.table import Cell
from rheostat.lab.papers.tuning import Tuned
from rheostat.report.chart.figure import Axis, Figure, Line, Panel
from rheostat.report.chart.pens import Dash, Pen, pens
from rheostat.report.chart.time_axis import TimeAxis, line, stack

ROWS = (paper.DHALION, paper.DS2, paper.BIG_DS2, paper.ALPHA_0, paper.ALPHA_3, OURS)
QUERY = "Q2"
"""The query of Figure 6."""
ROWS_PER_HOUR = 4
"""Rows of a trace in an hour."""


def figures(found: Found, cells: Sequence[Cell]) -> list[Drawing]:
    """Return all figures."""
    shares = "Through the job, over the last 100 s of the second 10 W_u, all permutations. The paper prints no numbers."
    timeline = "The latter ten tunings of the first permutation. Above 100 % the job is under-provisioned."
    traces = "Two days of a real-shaped trace each, in place of the paper's, which have no licence."
    looks, unit, dots = pens(ROWS), "reconfigurations", "Lines: 95 % intervals; dots: paper."
    drawn = [
        Drawing("Table 4a: reconfigurations per tuning", bars(cells, "4a", looks, unit), dots),
        Drawing("Figure 5: latency", latency_figure(found), shares),
        Drawing(f"Figure 6: {QUERY}, cores and utilisation", timeline_figure(found), timeline),
    ]
    known = "Share of (0, p^max) within alpha = 3 tasks of a size in H^t, mean of all permutations."
    drawn.insert(1, Drawing("Figure 3: known regions", known_figure(found), known))
    if found.traces:
        drawn.insert(2, Drawing("Figure 4: loads", load_figure(found), traces))
        shown = {row: looks[row] for row in ON_TRACES}
        figure = bars(cells, "Figure 7", shown, unit)
        drawn.append(Drawing("Figure 7: reconfigurations on long traces", figure, traces))
    return drawn


def known_figure(found: Found) -> Figure:
    """Return Pr_use over the tunings, a line per query."""
    lines = []
    for query, pen in pens(list(QUERIES)).items():
        shares = np.mean(
            [known_shares(levels, paper.P_MAX[query]) for levels in found.queries[query][paper.ALPHA_3]], axis=0
        )
        lines.append(Line(query, np.arange(float(len(shares))), shares, pen, format="percent"))
    return chart("Pr_use", lines, Axis("tunings", from_zero=True), "Pr_use", Axis(low=0.0, high=1.01, format="percent"))


def load_figure(found: Found) -> Figure:
    """Return the loads of the traces, in levels."""
    lines = []
    for trace, pen in pens(list(found.traces)).items():
        levels = np.array([tuned.level for tuned in found.traces[trace][paper.DS2][0]])
        lines.append(Line(trace, np.arange(len(levels)) / ROWS_PER_HOUR, levels, pen))
    return chart("Load", lines, Axis("hours", from_zero=True), "Level (10 is the highest rate)", Axis(from_zero=True))


def latency_figure(found: Found) -> Figure:
    """Return the latency CDFs: DS2 solid, ContTune dashed, a colour per query."""
    shares = np.linspace(0.0, 1.0, 101)
    traces = []
    for query, pen in pens(list(found.queries)).items():
        rows: tuple[tuple[str, Dash], ...] = ((paper.DS2, "solid"), (paper.ALPHA_3, "dash"))
        for row, dash in rows:
            at_ms = 1e3 * np.quantile(latencies(found.queries[query][row]), shares)
            traces.append(Line(f"{query}, {row}", at_ms, shares, replace(pen, dash=dash), format="percent"))
    x = Axis("latency, milliseconds", from_zero=True, unit=" ms")
    return chart("Latency", traces, x, "Share of all seconds", Axis(low=0.0, high=1.01, format="percent"), 320)


def timeline_figure(found: Found) -> Figure:
    """Return load, cores and utilisation over the latter ten tunings of Figure 6's query."""
    looks = pens(ROWS)
    runs = {row: found.queries[QUERY][row][0][10:] for row in (paper.DS2, paper.ALPHA_3)}
    time = TimeAxis(0.0, 10.0 * paper.HOLD_S)
    plant = job(paper.QUERIES[QUERY])
    unit = sum(plant.unit_per_s.values())
    at_s = np.arange(11.0) * paper.HOLD_S
    levels = np.array([t.level for t in runs[paper.DS2]])
    load = line(time, at_s, np.append(levels, levels[-1]) * unit, "load", Pen("ink"), "/s", step=True)
    held, used = [], []
    for row, tuned in runs.items():
        moments, counts, shares = _steps(tuned)
        held.append(line(time, moments, counts, row, looks[row], " cores", step=True))
        used.append(line(time, moments, shares, row, looks[row], "", step=True, format="percent", key=False))
    panels = [
        Panel("Records/s of the sources", 110, [load]),
        Panel("CPU cores", 190, held),
        Panel("CPU utilisation: demand over capacity", 190, used, Axis(format="percent", from_zero=True)),
    ]
    return stack(f"Load, cores and utilisation of {QUERY} over time", time, panels)


def _steps(tuned: Sequence[Tuned]) -> tuple[Floats, Floats, Floats]:
    """Return moments, cores and utilisation; the size holds from one moment to the next."""
    plant = job(paper.QUERIES[QUERY])
    moments, counts, shares = [], [], []
    for k, level in enumerate(tuned):
        rates = rates_per_s(plant, level.level)
        for second, count in level.at_looks:
            moments.append(k * paper.HOLD_S + second)
            counts.append(float(count))
            allocation = level.end.with_tasks(dict.fromkeys(level.end.tasks, count))
            shares.append(1.0 / share_served(plant, allocation, rates))
    moments.append(float(len(tuned) * paper.HOLD_S))
    return np.array(moments), np.array([*counts, counts[-1]]), np.array([*shares, shares[-1]])
