"""The paper's figures from our runs."""

from __future__ import annotations

from collections.abc import Sequence

from rheostat.report.drawing import MARGIN, SMALL, Figure, Trace, base, grid, label, pens
from rheostat.suite.autrascale import paper
from rheostat.suite.autrascale.runs import STARTS
from rheostat.suite.autrascale.tables import MINIMUM, ROWS_4, ROWS_10, ROWS_11, suffix
from rheostat.suite.result import Cell, Drawing

LEGEND = {**SMALL, "orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}


def drawings(cells: Sequence[Cell]) -> tuple[Drawing, ...]:
    """Return all figures."""
    dots = "Lines: 95 % intervals; dots: the paper's."
    found = [
        Drawing(
            "Figure 9: tasks in the scaling tests", bars(cells, "IV, tasks", (*ROWS_4, paper.EXHAUSTIVE), "tasks"), dots
        ),
        Drawing("Figure 8: latency in the scaling tests", bars(cells, "IV, latency", ROWS_4, "milliseconds"), dots),
        Drawing(
            "Figure 10: tasks after a change of the rate",
            bars(cells, "Figure 10, tasks", (*ROWS_10, paper.EXHAUSTIVE), "tasks"),
            "The old rate's model is carried over by the first two.",
        ),
    ]
    for start in STARTS:
        for part, unit in (("(a)", "minutes"), ("(b)", "tasks")):
            rows = ROWS_11 if part == "(a)" else (*ROWS_11, MINIMUM)
            title = f"Figure 11{part}: {'time' if part == '(a)' else 'tasks'} to work off a backlog, {start} start"
            figure = bars(cells, f"Figure 11{part}{suffix(start)}", rows, unit)
            found.append(Drawing(title, figure, "Columns: backlog, target and time limit."))
    return tuple(found)


def bars(cells: Sequence[Cell], table: str, rows: Sequence[str], unit: str) -> Figure:
    """Return a bar per row and column, with its interval, and the paper's value as a dot."""
    data: list[Trace] = []
    for row, pen in pens(list(rows)).items():
        own = [cell for cell in cells if cell.table == table and cell.row == row and cell.column != "mean"]
        half = [0.0 if cell.high is None else cell.high - cell.ours for cell in own]
        data.append(
            {
                "type": "bar",
                "name": label(row),
                "x": [cell.column for cell in own],
                "y": [round(cell.ours, 4) for cell in own],
                "error_y": {"type": "data", "array": half, "thickness": 1},
                "marker": {"color": pen.colour},
                "offsetgroup": row,
                "legendgroup": row,
                "hovertemplate": "%{x}: %{y:.3~g}",
            }
        )
        printed = [cell for cell in own if cell.paper is not None]
        if printed:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": f"{label(row)}, paper",
                    "x": [cell.column for cell in printed],
                    "y": [cell.paper for cell in printed],
                    "offsetgroup": row,
                    "legendgroup": row,
                    "showlegend": False,
                    "marker": {"color": "#FFFFFF", "size": 7, "line": {"width": 1.5, "color": "#222222"}},
                    "hovertemplate": "%{x}: %{y:.3~g}",
                }
            )
    layout = base(420)
    layout |= {"barmode": "group", "scattermode": "group", "legend": LEGEND, "margin": {**MARGIN, "t": 64}}
    layout["yaxis"] = {**grid(), "title": {"text": unit}}
    return {"data": data, "layout": layout}
