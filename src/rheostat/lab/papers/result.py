"""What a suite comes to: cells, conclusions that hold or not, what differs, notes and figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rheostat.lab.papers.conclusion import Check, Finding
from rheostat.lab.papers.table import Cell
from rheostat.report.chart.figure import Figure


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with a title and a sentence."""

    title: str
    figure: Figure
    note: str = ""


@dataclass(frozen=True)
class Result:
    """Everything that a suite found."""

    suite: str
    title: str
    cells: tuple[Cell, ...]
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    drawings: tuple[Drawing, ...] = ()

    def tables(self) -> dict[str, list[Cell]]:
        """Return the cells by table, in order."""
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.table, []).append(cell)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return everything that goes into a JSON file: the cells, and the conclusions as cells that are 0 or 1."""
        checks = [Cell(c.table, c.sentence, "holds", 1.0, float(c.holds), "", False) for c in self.checks]
        return [{"suite": self.suite, **asdict(cell)} for cell in (*self.cells, *checks)]
