"""Bars of a table's cells, with the paper's values as dots; and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rheostat.lab.papers.table import Cell
from rheostat.report.drawing import MARGIN, SMALL, Figure, Pen, Trace, base, grid, label

LEGEND = {**SMALL, "orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}
Axis = Mapping[str, object]
"""Settings of an axis besides its grid."""
DOTS = {"color": "#FFFFFF", "size": 7, "line": {"width": 1.5, "color": "#222222"}}


def bars(cells: Sequence[Cell], table: str, looks: Mapping[str, Pen], unit: str) -> Figure:
    """Return a bar per row and column of a table, with its interval, and the paper's value as a dot."""
    data: list[Trace] = []
    for row, pen in looks.items():
        own = [cell for cell in cells if cell.table == table and cell.row == row]
        half = [0.0 if cell.high is None else cell.high - cell.ours for cell in own]
        shared = {"offsetgroup": row, "legendgroup": row, "hovertemplate": "%{x}: %{y:.3~g}"}
        data.append(
            {"type": "bar", "name": label(row), "x": [cell.column for cell in own],
             "y": [round(cell.ours, 4) for cell in own], "marker": {"color": pen.colour},
             "error_y": {"type": "data", "array": half, "thickness": 1}, **shared}
        )  # fmt: skip
        printed = [cell for cell in own if cell.paper is not None]
        if printed:
            data.append(
                {"type": "scatter", "mode": "markers", "name": f"{label(row)}, paper", "marker": DOTS, **shared,
                 "x": [cell.column for cell in printed], "y": [cell.paper for cell in printed], "showlegend": False}
            )  # fmt: skip
    more = {"barmode": "group", "scattermode": "group"}
    return chart(data, None, {"title": {"text": unit}}, 420, 64, **more)


def curve(name: str, x: Sequence[float], y: Sequence[float], pen: Pen, hover: str) -> Trace:
    """Return a line."""
    style = {"color": pen.colour, "dash": pen.dash, "width": pen.width}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": style, "hovertemplate": hover}


def chart(data: list[Trace], x: Axis | None, y: Axis, height: int = 380, top: int = 70, **more: object) -> Figure:
    """Return traces on one pair of axes, with the legend above them."""
    layout = {**base(height), "legend": LEGEND, "margin": {**MARGIN, "t": top}, "yaxis": {**grid(), **y}, **more}
    return {"data": data, "layout": layout if x is None else {**layout, "xaxis": {**grid(), **x}}}
