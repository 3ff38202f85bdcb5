"""The result of a suite: cells, conclusions, differences from the paper, notes and figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rheostat.lab.papers.conclusion import Check, Finding
from rheostat.lab.papers.table import Cell
from rheostat.report.chart.figure import Figure


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with a title and a note."""

    title: str
    figure: Figure
    note: str = ""


@dataclass(frozen=True)
class Result:
    """The result of a suite."""

    suite: str
    title: str
    cells: tuple[Cell, ...]
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    drawings: tuple[Drawing, ...] = ()

    def tables(self) -> dict[str, list[Cell]]:
        """Return the cells by table, in order."""
        by_table: dict[str, list[Cell]] = {}
        for cell in self.cells:
            by_table.setdefault(cell.table, []).append(cell)
        return by_table

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the JSON file: the cells, and the conclusions as cells of 0 or 1."""
        checks = [Cell(c.table, c.sentence, "holds", 1.0, float(c.holds), "", False) for c in self.checks]
        return [{"suite": self.suite, **asdict(cell)} for cell in (*self.cells, *checks)]
