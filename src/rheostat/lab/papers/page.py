"""The page of a reproduced comparison: conclusions, figures, tables with the paper's numbers, differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rheostat.report import words
from rheostat.report.html import Cell, Plot, Table, render

if TYPE_CHECKING:
    from rheostat.lab.papers.result import Result
    from rheostat.lab.papers.table import Cell as PaperCell


def reproduction_page(result: Result) -> str:
    """Return one HTML document about a suite."""
    conclusions = [
        [
            Cell(c.table),
            Cell(c.sentence),
            Cell("holds" if c.holds else "does not hold", _look(c.holds), "" if c.holds else c.cause),
            Cell(c.numbers),
        ]
        for c in result.checks
    ]
    exceptions = [[Cell(f.table), Cell(f.what), Cell(f.cause)] for f in result.findings]
    return render(
        "reproduction.html.j2",
        title=result.title,
        notes=result.notes,
        conclusions=Table(("table", "conclusion", "ours", "numbers"), conclusions),
        tables={name: _table(cells) for name, cells in result.tables().items()},
        exceptions=Table(("table", "differs by more than 10 %", "cause"), exceptions),
        plots=[(d.title, Plot(f"figure-{k}", d.figure, d.note)) for k, d in enumerate(result.drawings)],
    )


def _look(holds: bool) -> str:
    return "verdict-kept" if holds else "verdict-missed"


def _table(cells: Sequence[PaperCell]) -> Table:
    """Return a row per method and a column per workload, with the paper's number below ours."""
    at = {(cell.row, cell.column): cell for cell in cells}
    rows, columns = (list(dict.fromkeys(place)) for place in zip(*at, strict=True))
    fitted = {cell.row for cell in cells if cell.fitted}
    lines = [
        [Cell(row, "policy", "fitted" if row in fitted else ""), *(_cell(at.get((row, column))) for column in columns)]
        for row in rows
    ]
    unit = cells[0].unit
    return Table(
        ("", *columns), lines, f"In {unit}. Below our number: the paper's, and our 95 % interval." if unit else ""
    )


def _cell(cell: PaperCell | None) -> Cell:
    if cell is None:
        return Cell(words.NONE, "number")
    under = [] if cell.paper is None else [f"paper {words.number(cell.paper, 4)}"]
    if cell.low is not None and cell.high is not None:
        under.append(f"{words.number(cell.low)} to {words.number(cell.high)}")
    return Cell(words.number(cell.ours, 4), "number", ", ".join(under))
