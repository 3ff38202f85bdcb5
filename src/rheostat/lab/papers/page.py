"""The page of a reproduced comparison: claims, figures, tables with the paper's numbers, differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rheostat.lab.papers.claim import FAILS, HOLDS, UNKNOWN
from rheostat.report import words
from rheostat.report.html import Cell, Plot, Table, render

if TYPE_CHECKING:
    from rheostat.lab.papers.claim import Judgement
    from rheostat.lab.papers.result import Fit, Result
    from rheostat.lab.papers.table import Cell as PaperCell

LOOKS = {HOLDS: "verdict-kept", FAILS: "verdict-missed", UNKNOWN: "verdict-load-changed"}
"""Verdict -> how it looks."""


def reproduction_page(result: Result) -> str:
    """Return one HTML document about a suite."""
    differences = [[Cell(d.table), Cell(d.what), Cell(d.cause)] for d in result.differences]
    return render(
        "reproduction.html.j2",
        title=result.title,
        notes=result.notes,
        claims=Table(("table", "claim", "verdict", "numbers"), [claim_cells(each) for each in result.judgements]),
        fits=fits_table({result.suite: result.fits}, names=False),
        tables={name: _table(cells) for name, cells in result.tables().items()},
        differences=Table(("table", "differs by more than 10 %", "cause"), differences),
        plots=[(d.title, Plot(f"figure-{k}", d.figure, d.note)) for k, d in enumerate(result.drawings)],
    )


def claim_cells(judgement: Judgement) -> list[Cell]:
    """Return a claim's row: its fitted inputs below its sentence, its cause below its verdict."""
    claim = judgement.claim
    beside = [text for text in ("our goal" if claim.goal else "", judgement.fitted_text) if text]
    return [
        Cell(claim.table),
        Cell(claim.sentence, "", "; ".join(beside)),
        Cell(judgement.verdict, LOOKS[judgement.verdict], judgement.cause),
        Cell(judgement.numbers),
    ]


def fits_table(fits: dict[str, Sequence[Fit]], names: bool = True) -> Table:
    """Return what was fitted on which data, with the name of its suite or without."""
    heads = ("fitted or chosen", "by looking at", "cells that contain it")
    rows = [
        [*([Cell(suite, "policy")] if names else []), Cell(fit.what), Cell(fit.data), Cell(fit.cells)]
        for suite, own in fits.items()
        for fit in own
    ]
    return Table(("paper", *heads) if names else heads, rows)


def _table(cells: Sequence[PaperCell]) -> Table:
    """Return a row per method and a column per workload, with the paper's number below ours."""
    at = {(cell.row, cell.column): cell for cell in cells}
    rows, columns = (list(dict.fromkeys(place)) for place in zip(*at, strict=True))
    fitted = {cell.row for cell in cells if cell.fitted}
    lines = [
        [Cell(row, "policy", "fitted" if row in fitted else ""), *(_cell(at.get((row, column))) for column in columns)]
        for row in rows
    ]
    return Table(("", *columns), lines, _note(cells))


def _note(cells: Iterable[PaperCell]) -> str:
    units = dict.fromkeys(cell.unit for cell in cells if cell.unit)
    return f"In {', '.join(units)}. Below our number: the paper's, and our 95 % interval." if units else ""


def _cell(cell: PaperCell | None) -> Cell:
    if cell is None:
        return Cell(words.NONE, "number")
    under = [] if cell.paper is None else [f"paper {words.number(cell.paper, 4)}"]
    if cell.low is not None and cell.high is not None:
        under.append(f"{words.number(cell.low)} to {words.number(cell.high)}")
    return Cell(words.number(cell.ours, 4), "number", ", ".join(under))
