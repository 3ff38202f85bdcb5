"""The result of a suite: cells, judged claims, differences from the paper, notes, fits and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rheostat.lab.papers.claim import Judgement
from rheostat.lab.papers.difference import Difference
from rheostat.lab.papers.table import Cell
from rheostat.report.chart.figure import Figure


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with a title and a note."""

    title: str
    figure: Figure
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """A parameter that was fitted or chosen by looking at data."""

    what: str
    data: str
    """The data that it was fitted to."""
    cells: str
    """The cells that contain it."""


@dataclass(frozen=True)
class Result:
    """The result of a suite."""

    suite: str
    title: str
    cells: tuple[Cell, ...]
    judgements: tuple[Judgement, ...]
    differences: tuple[Difference, ...]
    fits: tuple[Fit, ...] = ()
    notes: tuple[str, ...] = ()
    drawings: tuple[Drawing, ...] = ()

    def tables(self) -> dict[str, list[Cell]]:
        """Return the cells by table, in order."""
        by_table: dict[str, list[Cell]] = {}
        for cell in self.cells:
            by_table.setdefault(cell.table, []).append(cell)
        return by_table

    def verdicts(self) -> dict[str, str]:
        """Return the verdicts by claim."""
        return {judgement.claim.key: judgement.verdict for judgement in self.judgements}

    def count(self, verdict: str, fitted: bool | None = None) -> int:
        """Return the number of claims with a verdict; with or without fitted inputs, or both."""
        same = [judgement for judgement in self.judgements if judgement.verdict == verdict]
        return sum(fitted is None or bool(judgement.fitted) == fitted for judgement in same)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the JSON file: the cells, and the claims with their verdicts."""
        cells = [_row(self.suite, cell, cell.low, cell.high) for cell in self.cells]
        return [*cells, *(self._claim_row(judgement) for judgement in self.judgements)]

    def _claim_row(self, judgement: Judgement) -> dict[str, Any]:
        estimate, claim = judgement.estimate, judgement.claim
        cell = Cell(
            claim.table, claim.sentence, judgement.decisive.text, judgement.paper, estimate.value,
            judgement.decisive.measure, bool(judgement.fitted),
        )  # fmt: skip
        added = {"claim": claim.key, "verdict": judgement.verdict, "cause": judgement.cause}
        return _row(self.suite, cell, estimate.low, estimate.high) | added


def _row(suite: str, cell: Cell, low: float | None, high: float | None) -> dict[str, Any]:
    names = ("table", "row", "column", "paper", "ours", "unit", "fitted")
    return {"suite": suite, **{name: getattr(cell, name) for name in names}, "low": low, "high": high}
