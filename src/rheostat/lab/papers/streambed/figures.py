"""Figures: what was measured and what follows from it, per query."""

from __future__ import annotations

from collections.abc import Sequence

from rheostat.lab.papers.charts import bars
from rheostat.lab.papers.result import Drawing
from rheostat.lab.papers.streambed import paper
from rheostat.lab.papers.streambed.paper import QUERIES
from rheostat.lab.papers.streambed.runs import Found
from rheostat.lab.papers.table import Cell
from rheostat.report.chart.pens import Pen, pens
from rheostat.report.plan_page import scaling_figure


def figures(found: Found, cells: Sequence[Cell]) -> list[Drawing]:
    """Return all figures."""
    drawn = []
    for query, asked in QUERIES.items():
        run = found.explored[query][paper.OURS][0]
        needed = found.needed[query][4.0]
        drawn.append(
            Drawing(
                f"{query}: from at most {asked.most} slots to the request",
                scaling_figure(list(run.estimates), 4096, 1.1 * asked.rate_per_s, needed),
                "Rheostat's law with its 90 % band, and the paper's three families, fitted to the first seed's runs. "
                "The line across is 110 % of the request; the star is the size that the simulator needs.",
            )
        )
    looks = pens([paper.DICHOTOMIC, paper.SEQUENTIAL])
    drawn.append(
        Drawing("Figure 9: estimates sustained at 100 %", bars(cells, "Figure 9, sustained at 100 %", looks, "share"))
    )
    shares = {share: Pen(pen.colour) for share, pen in pens(["100 %", "120 %", "150 %"]).items()}
    name = f"Figure 11, {paper.OURS}'s plan"
    drawn.append(Drawing("Figure 11: processed over requested, our plan", bars(cells, name, shares, "share")))
    return drawn
