"""Cells of a paper's tables: our number and the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from rheostat.lab.papers import interval
from rheostat.lab.papers.interval import Estimate

Place = tuple[str, str, str]
"""Table, row and column."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table, with the paper's names; it formats as our number."""

    table: str
    row: str
    column: str
    paper: float | None
    ours: float
    unit: str
    fitted: bool
    """Whether a parameter is fitted to this cell."""
    low: float | None = None
    """95 % interval over seeds; None without enough seeds."""
    high: float | None = None
    values: tuple[float, ...] = ()
    """Our number of every seed: cells with the same seeds are compared in pairs."""
    exact: bool = False
    """Whether it has no uncertainty: a closed form, or a fit to recorded data."""
    flags: bool = False
    """Whether it is a yes/no cell: our number is the share of runs, the paper's 0 or all."""

    def __format__(self, spec: str) -> str:
        return format(self.ours, spec)

    @property
    def scale(self) -> float:
        """Our number of a yes/no cell that is true in all runs."""
        return 100.0 if self.unit.startswith("%") else 1.0

    def off(self, within: float) -> bool:
        """Return whether our number differs from the paper's.

        By more than this share; from zero, if our interval leaves it out; a yes/no cell, if most runs say otherwise.
        """
        if self.paper is None:
            return False
        if self.flags:
            return (self.ours >= self.scale / 2) != (self.paper >= self.scale / 2)
        if self.paper == 0.0:
            return self.ours != 0.0 and not self.inside
        return abs(self.ours / self.paper - 1) > within

    @property
    def inside(self) -> bool:
        """Whether the paper's value lies within our interval."""
        complete = self.paper is not None and self.low is not None and self.high is not None
        return complete and self.low <= self.paper <= self.high  # type: ignore[operator]

    def beside(self) -> str:
        """Return our number and the paper's, which must exist, in one sentence."""
        assert self.paper is not None
        if self.flags:
            says = "yes" if self.paper >= self.scale / 2 else "no"
            ours = f"{self.ours / self.scale:.0%}".replace("%", " % of the runs")
            ours = ("yes" if self.ours else "no") if self.exact else f"yes in {ours}"
            return f"{self.row}, {self.column}: {ours}, paper {says}"
        share = f" ({self.ours / self.paper - 1:+.0%})" if self.paper else ""
        return f"{self.row}, {self.column}: {self.ours:,.4g}, paper {self.paper:,.4g}{share}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name and unit, for all of its cells."""

    name: str
    unit: str = ""

    def cell(self, row: str, column: str, ours: float, paper: float | None = None, fitted: bool = False) -> Cell:
        """Return a cell of one number without seeds: too little for any claim."""
        return Cell(self.name, row, column, paper, ours, self.unit, fitted)

    def exact(
        self,
        row: str,
        column: str,
        ours: float,
        paper: float | None = None,
        fitted: bool = False,
        flags: bool = False,
    ) -> Cell:
        """Return a cell of a number without uncertainty: a closed form, or a fit to recorded data."""
        return Cell(self.name, row, column, paper, ours, self.unit, fitted, exact=True, flags=flags)

    def mean(
        self, row: str, column: str, values: Sequence[float], paper: float | None = None, fitted: bool = False
    ) -> Cell:
        """Return a cell of the mean of all seeds, with its 95 % interval."""
        return self._sampled(row, column, interval.mean(values), values, paper, fitted)

    def median(
        self, row: str, column: str, values: Sequence[float], paper: float | None = None, fitted: bool = False
    ) -> Cell:
        """Return a cell of the median of all seeds, with its 95 % interval; claims use their mean."""
        return self._sampled(row, column, interval.median(values), values, paper, fitted)

    def share(
        self, row: str, column: str, flags: Sequence[bool], paper: bool | None = None, fitted: bool = False
    ) -> Cell:
        """Return a yes/no cell: the share of the runs in which it is true, with its 95 % interval."""
        scale = 100.0 if self.unit.startswith("%") else 1.0
        printed = None if paper is None else scale * paper
        values = [scale * flag for flag in flags]
        return self._sampled(row, column, interval.share(flags).scale(scale), values, printed, fitted, True)

    def _sampled(
        self,
        row: str,
        column: str,
        of: Estimate,
        values: Sequence[float],
        paper: float | None,
        fitted: bool,
        flags: bool = False,
    ) -> Cell:
        low, high = (of.low, of.high) if math.isfinite(of.low) and math.isfinite(of.high) else (None, None)
        kept = tuple(float(value) for value in values)
        return Cell(self.name, row, column, paper, of.value, self.unit, fitted, low, high, kept, flags=flags)


def places(table: str, rows: Iterable[str], columns: Iterable[str]) -> tuple[Place, ...]:
    """Return the places of some rows and columns, row by row."""
    return tuple(product((table,), rows, columns))


def index(cells: Iterable[Cell]) -> Mapping[Place, Cell]:
    """Return the cells by table, row and column."""
    return {(cell.table, cell.row, cell.column): cell for cell in cells}
