"""The paper's figures from our runs: paths over the grid, throughput over time, and the regret that it only proves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rheostat.lab.papers.charts import chart, curve
from rheostat.lab.papers.dragster import measures, paper
from rheostat.lab.papers.dragster.measures import Floats
from rheostat.lab.papers.dragster.play import SLOT_S, Run
from rheostat.lab.papers.dragster.runs import CONSTANT, SIX, SWITCHING, Found, Runs
from rheostat.lab.papers.dragster.tables import LONG_ROWS
from rheostat.lab.papers.result import Drawing
from rheostat.lab.papers.table import Cell
from rheostat.report.drawing import GREY, MARGIN, Figure, Panel, TimeAxis, Trace, base, heading, line, pens, stack

SHOWN = 20
"""Slots of a path."""
JOB = paper.WORDCOUNT.job


def figures(found: Found, cells: Sequence[Cell]) -> tuple[Drawing, ...]:
    """Return all figures."""
    wordcount, ysb = found.workloads["WordCount"], found.workloads["YSB"]
    path = "The first seed's path from (1, 1); the numbers are slots. Brighter is more throughput, noise apart."
    under = f"{path} The line is the budget of {paper.BUDGET} slots."
    budgeted = (paper.FIRST, paper.SADDLE, paper.GRADIENT)
    return (
        Drawing("Figure 4a to c: WordCount without a budget", paths(wordcount, paper.ROWS[:3]), path),
        Drawing("Figure 4d to f: WordCount under a budget", paths(found.budget, budgeted, paper.BUDGET), under),
        Drawing("Figure 6: WordCount under a load that switches", throughput(wordcount), "The first seed."),
        Drawing("Figure 7: YSB, more load from 300 minutes on", throughput(ysb), "The first seed."),
        Drawing("Regret (Eq 10), WordCount", sums(found.long[CONSTANT], lambda r: measures.regret(JOB, r)), SLOTS),
        Drawing("Regret (Eq 10), YSB", sums(found.long[SIX], lambda r: measures.regret(paper.YSB.job, r)), SLOTS),
        Drawing("Fit (Eq 12), WordCount", sums(found.long[CONSTANT], lambda r: measures.fit(JOB, r, True)), SHORT),
        Drawing("Regret, load that switches", sums(found.long[SWITCHING], lambda r: measures.regret(JOB, r)), LATE),
    )


SLOTS = "Mean over seeds, in slots of the best throughput."
SHORT = "Mean over seeds, in slots of the load; only what was lacking, spare capacity makes up for nothing."
LATE = "Nobody who learns of a load one slot late stays flat: the sum of all moves of the optimum has no bound here."


def paths(runs: Runs, rows: Sequence[str], budget: int | None = None) -> Figure:
    """Return a heat map of the grid per method, with the path over it."""
    most = 10
    z = [[0.0] * most for _ in range(most)]
    for allocation in measures.grid(JOB, most):
        y, x = allocation.tasks.values()
        z[y - 1][x - 1] = round(measures.served(JOB, allocation, paper.HIGH) / 1e3, 1)
    sizes = list(range(1, most + 1))
    layout = base(380)
    layout |= {"annotations": [], "showlegend": False, "margin": {**MARGIN, "t": 60}}
    data: list[Trace] = []
    width = 1.0 / len(rows)
    for k, row in enumerate(rows):
        axis = "" if k == 0 else str(k + 1)
        place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        data.append(
            {"type": "heatmap", "x": sizes, "y": sizes, "z": z, "colorscale": "Greys", "reversescale": True,
             "showscale": False, "hovertemplate": "shuffle %{x}, map %{y}: %{z}k/s", **place}
        )  # fmt: skip
        data.append(_path(runs[row][0][:SHOWN], place))
        if budget is not None:
            ends = [budget - most, most] if budget > most else [1, budget - 1]
            data.append(
                {"type": "scatter", "mode": "lines", "x": ends, "y": [budget - end for end in ends],
                 "line": {"color": "#D55E00", "dash": "dash", "width": 1.5}, "hoverinfo": "skip", **place}
            )  # fmt: skip
        domain = [k * width, (k + 1) * width - 0.05]
        title = {"text": "shuffle tasks"}
        layout[f"xaxis{axis}"] = {"domain": domain, "title": title, "dtick": 1, "anchor": f"y{axis}"}
        layout[f"yaxis{axis}"] = {"title": {"text": "map tasks"} if k == 0 else {}, "dtick": 1, "anchor": f"x{axis}"}
        layout["annotations"].append({**heading(row, 1.0), "x": domain[0]})
    return {"data": data, "layout": layout}


def _path(run: Run, place: dict[str, str]) -> Trace:
    tasks = [tuple(slot.tasks.tasks.values()) for slot in run]
    first = {size: k for k, size in reversed(list(enumerate(tasks)))}
    return {
        "type": "scatter", "mode": "lines+markers+text",
        "x": [shuffle for _, shuffle in tasks], "y": [map_ for map_, _ in tasks],
        "text": [str(k) if first[size] == k else "" for k, size in enumerate(tasks)], "textposition": "top right",
        "textfont": {"color": "#0072B2", "size": 11}, "line": {"color": "#0072B2", "width": 1.5},
        "marker": {"color": "#0072B2", "size": 6}, "hoverinfo": "skip", **place,
    }  # fmt: skip


def throughput(runs: Runs) -> Figure:
    """Return throughput and tasks over time, of the first seed."""
    looks = pens(LONG_ROWS)
    count = len(runs[paper.DHALION][0])
    time, at_s = TimeAxis(0.0, count * SLOT_S), np.arange(count + 1.0) * SLOT_S
    done, held = [], []
    for row in paper.ROWS[:4]:
        run = runs[row][0]
        rate = np.array([slot.throughput_per_s for slot in (*run, run[-1])])
        tasks = np.array([float(slot.tasks.slots) for slot in (*run, run[-1])])
        done.append(line(time, at_s, rate, row, looks[row], "/s", step=True, legendgroup=row))
        held.append(line(time, at_s, tasks, row, looks[row], " tasks", step=True, legendgroup=row, showlegend=False))
    return stack(time, [Panel("Tuples/s", 200, done), Panel("Tasks", 160, held, ticks="~g")], right=210)


def sums(runs: Runs, total: Callable[[Run], Floats]) -> Figure:
    """Return a sum over slots, by method, mean over seeds."""
    data: list[Trace] = []
    for row, pen in pens(LONG_ROWS).items():
        mean = np.mean([total(run) for run in runs[row]], axis=0)
        data.append(
            curve(row, list(range(1, len(mean) + 1)), [round(float(v), 3) for v in mean], pen, "slot %{x}: %{y:.3~g}")
        )
    x = {"title": {"text": "slots"}, "linecolor": GREY}
    return chart(data, x, {"title": {"text": "slots lost"}, "rangemode": "tozero"}, height=400)
