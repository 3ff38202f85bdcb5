"""The paper's figures from our runs."""

from __future__ import annotations

from collections.abc import Sequence

from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.runs import STARTS, Found
from rheostat.lab.papers.autrascale.tables import MINIMUM, ROWS_4, ROWS_10, ROWS_11, ROWS_LAWS, SIMULATED, suffix
from rheostat.lab.papers.charts import bars
from rheostat.lab.papers.result import Drawing
from rheostat.lab.papers.table import Cell
from rheostat.report.chart.pens import pens


def figures(found: Found, cells: Sequence[Cell]) -> list[Drawing]:
    """Return all figures."""
    shown = [cell for cell in cells if cell.column != "mean"]
    dots = "Lines: 95 % intervals; dots: the paper's."
    tests, after = pens([*ROWS_4, paper.EXHAUSTIVE]), pens([*ROWS_10, paper.EXHAUSTIVE])
    carried = "The old rate's model is carried over by the first two."
    laws = "What our model does not know is one change each; 1 is exhaustive search."
    drawn = [
        Drawing(
            "Figure 5(a): throughput by tasks",
            bars(shown, "Figure 5(a)", pens([SIMULATED]), "thousand records/s"),
            dots,
        ),
        Drawing("Figure 9: tasks in the scaling tests", bars(shown, "IV, tasks", tests, "tasks"), dots),
        Drawing(
            "Figure 8: latency in the scaling tests", bars(shown, "IV, latency", pens(ROWS_4), "milliseconds"), dots
        ),
        Drawing(
            "Figure 10: tasks after a change of the rate", bars(shown, "Figure 10, tasks", after, "tasks"), carried
        ),
    ]
    other = bars(shown, "Other laws, tasks over exhaustive", pens(ROWS_LAWS), "times")
    drawn.append(Drawing("Other latency laws: tasks over exhaustive search", other, laws))
    for start in STARTS:
        for part, unit in (("(a)", "minutes"), ("(b)", "tasks")):
            rows = ROWS_11 if part == "(a)" else (*ROWS_11, MINIMUM)
            title = f"Figure 11{part}: {'time' if part == '(a)' else 'tasks'} to work off a backlog, {start} start"
            figure = bars(shown, f"Figure 11{part}{suffix(start)}", pens(rows), unit)
            drawn.append(Drawing(title, figure, "Columns: backlog, target and time limit."))
    return drawn
