"""The paper's figures from our runs: paths over the grid, throughput over time, and the regret that it proves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rheostat.lab.papers.charts import chart
from rheostat.lab.papers.dragster import measures, paper
from rheostat.lab.papers.dragster.measures import Floats
from rheostat.lab.papers.dragster.play import SLOT_S, Run
from rheostat.lab.papers.dragster.runs import CONSTANT, SIX, SWITCHING, Found, Runs
from rheostat.lab.papers.result import Drawing
from rheostat.lab.papers.table import Cell
from rheostat.report import words
from rheostat.report.chart.figure import Axis, Figure, Heat, Line, Panel, Points, Trace
from rheostat.report.chart.pens import Pen, pens
from rheostat.report.chart.time_axis import TimeAxis, line, stack

SHOWN = 20
"""Slots of a drawn path."""
MOST = 10
"""Tasks of an operator in the grid."""
JOB = paper.WORDCOUNT.job


def figures(found: Found, cells: Sequence[Cell]) -> tuple[Drawing, ...]:
    """Return all figures."""
    wordcount, ysb = found.workloads["WordCount"], found.workloads["YSB"]
    path = "The first seed's path from (1, 1); the numbers are slots. Brighter is more throughput, noise apart."
    under = f"{path} The line is the budget of {paper.BUDGET} slots."
    free, budgeted = (paper.DHALION, paper.SADDLE, paper.GRADIENT), (paper.FIRST, paper.SADDLE, paper.GRADIENT)
    return (
        Drawing(
            "Figure 4a to c: WordCount without a budget",
            paths(wordcount, free),
            path,
        ),
        Drawing("Figure 4d to f: WordCount under a budget", paths(found.budget, budgeted, paper.BUDGET), under),
        Drawing("Figure 6: WordCount under a load that switches", throughput(wordcount), "The first seed."),
        Drawing("Figure 7: YSB, more load from 300 minutes on", throughput(ysb), "The first seed."),
        Drawing("Regret (Eq 10), WordCount", sums(found.long[CONSTANT], lambda r: measures.regret(JOB, r)), SLOTS),
        Drawing("Regret (Eq 10), YSB", sums(found.long[SIX], lambda r: measures.regret(paper.YSB.job, r)), SLOTS),
        Drawing("Fit (Eq 12), WordCount", sums(found.long[CONSTANT], lambda r: measures.fit(JOB, r, True)), SHORT),
        Drawing("Regret, load that switches", sums(found.long[SWITCHING], lambda r: measures.regret(JOB, r)), LATE),
    )


SLOTS = "Mean over seeds, in slots of the best throughput."
SHORT = "Mean over seeds, in slots of the load; missing capacity only, spare capacity is not subtracted."
LATE = "No method that learns of a load one slot late stays flat: the optimum moves without end here."


def paths(runs: Runs, rows: Sequence[str], budget: int | None = None) -> Figure:
    """Return a heat map of the grid per method, with the path over it."""
    rates = np.zeros((MOST, MOST))
    for allocation in measures.grid(JOB, MOST):
        map_, shuffle = allocation.tasks.values()
        rates[map_ - 1, shuffle - 1] = measures.served(JOB, allocation, paper.HIGH)
    texts = [[f"shuffle {x + 1}, map {y + 1}: {words.number(rates[y, x])}/s" for x in range(MOST)] for y in range(MOST)]
    edges = np.linspace(0.5, MOST + 0.5, MOST + 1)
    panels = []
    for row in rows:
        traces: list[Trace] = [Heat(edges, edges, rates, texts, "grey", name="throughput")]
        if budget is not None:
            ends = np.array([budget - MOST, MOST] if budget > MOST else [1, budget - 1], dtype=float)
            traces.append(
                Line("budget", ends, budget - ends, Pen("vermilion", "dash", width=1.5), hover=False, key=False)
            )
        traces += _path(runs[row][0][:SHOWN])
        panels.append(Panel(f"{row}: map tasks", 290, traces, Axis(low=0.5, high=MOST + 0.5)))
    x = Axis("shuffle tasks", low=0.5, high=MOST + 0.5)
    return Figure("Paths over the grid of tasks", x, panels, legend="none", columns=True)


def _path(run: Run) -> list[Trace]:
    sizes = [tuple(slot.tasks.tasks.values()) for slot in run]
    first = {size: k for k, size in reversed(list(enumerate(sizes)))}
    map_, shuffle = np.array(sizes, dtype=float).T
    labels = [str(k) if first[size] == k else "" for k, size in enumerate(sizes)]
    pen = Pen("blue", width=1.5)
    return [
        Line("path", shuffle, map_, pen, hover=False, key=False),
        Points("path", shuffle, map_, pen, 6.0, labels=labels, key=False),
    ]


def throughput(runs: Runs) -> Figure:
    """Return throughput and tasks over time, of the first seed."""
    looks = pens(paper.ROWS)
    count = len(runs[paper.DHALION][0])
    time, at_s = TimeAxis(0.0, count * SLOT_S), np.arange(count + 1.0) * SLOT_S
    done, held = [], []
    for row in paper.ROWS[:-2]:
        run = runs[row][0]
        rate = np.array([slot.throughput_per_s for slot in (*run, run[-1])])
        tasks = np.array([float(slot.tasks.slots) for slot in (*run, run[-1])])
        done.append(line(time, at_s, rate, row, looks[row], "/s", step=True))
        held.append(line(time, at_s, tasks, row, looks[row], " tasks", step=True, key=False))
    return stack("Throughput and tasks over time", time, [Panel("Tuples/s", 200, done), Panel("Tasks", 160, held)])


def sums(runs: Runs, total: Callable[[Run], Floats]) -> Figure:
    """Return a sum over slots, by method, mean over seeds."""
    traces = []
    for row, pen in pens(paper.ROWS).items():
        mean = np.mean([total(run) for run in runs[row]], axis=0)
        traces.append(Line(row, np.arange(1.0, len(mean) + 1), mean, pen))
    x = Axis("slots", from_zero=True, unit=" slots")
    return chart("Sum over slots", traces, x, "Slots lost", Axis(from_zero=True), 290)
