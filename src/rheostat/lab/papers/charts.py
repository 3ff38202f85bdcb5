"""A table's cells as bars, with the paper's numbers as dots; and lines on one pair of axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rheostat.lab.papers.table import Cell
from rheostat.report import words
from rheostat.report.chart.figure import Axis, Bars, Figure, Panel, Points, Trace
from rheostat.report.chart.pens import Pen

GROUP = 0.82
"""Share of a column's width that its bars fill."""


def bars(cells: Sequence[Cell], table: str, looks: Mapping[str, Pen], unit: str) -> Figure:
    """Return a bar per row and column of a table, with its interval, and the paper's value as a dot."""
    shown = [cell for cell in cells if cell.table == table and cell.row in looks]
    columns = list(dict.fromkeys(cell.column for cell in shown))
    width = GROUP / max(len(looks), 1)
    over: list[Trace] = []
    drawn: list[Trace] = []
    for k, (row, pen) in enumerate(looks.items()):
        own = [cell for cell in shown if cell.row == row]
        shift = (k - (len(looks) - 1) / 2) * width
        x = np.array([columns.index(cell.column) + shift for cell in own])
        low = np.array([np.nan if cell.low is None else cell.low for cell in own])
        high = np.array([np.nan if cell.high is None else cell.high for cell in own])
        ours = np.array([cell.ours for cell in own])
        texts = [f"{row}, {_words(cell, unit)}" for cell in own]
        drawn.append(Bars(row, x, ours, low, high, width, pen, texts))
        printed = [j for j, cell in enumerate(own) if cell.paper is not None]
        if printed:
            papers = np.array([float(own[j].paper or 0.0) for j in printed])
            dots = Pen("ink", symbol="ring")
            over.append(
                Points(
                    f"{row}, paper",
                    x[printed],
                    papers,
                    dots,
                    7.0,
                    (),
                    [texts[j] for j in printed],
                    group=row,
                    key=False,
                )
            )
    axis = Axis(labels=tuple(columns))
    return Figure(f"{table}: {unit}", axis, [Panel(unit[0].upper() + unit[1:], 300, [*drawn, *over])])


def _words(cell: Cell, unit: str) -> str:
    paper = "" if cell.paper is None else f" (paper {words.number(cell.paper, 4)})"
    return f"{cell.column}: {words.number(cell.ours, 4)} {unit}{paper}"


def chart(title: str, traces: Sequence[Trace], x: Axis, y_title: str, y: Axis, height: float = 280) -> Figure:
    """Return traces on one pair of axes, with the legend above them."""
    return Figure(title, x, [Panel(y_title, height, traces, y)])
