"""Cells of a paper's tables: our number and the paper's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

T_975 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)
"""Student's t for 95 % intervals, by degrees of freedom from 1 on."""

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
    """Whether a parameter is fitted to this cell; conclusions use the others."""
    low: float | None = None
    """95 % interval of the mean over seeds; None without several seeds."""
    high: float | None = None

    def __format__(self, spec: str) -> str:
        return format(self.ours, spec)

    def off(self, within: float) -> bool:
        """Return whether our number differs from the paper's by more than this share."""
        return bool(self.paper) and abs(self.ours / self.paper - 1) > within  # type: ignore[operator]

    @property
    def inside(self) -> bool:
        """Whether the paper's value lies within our interval."""
        complete = self.paper is not None and self.low is not None and self.high is not None
        return complete and self.low <= self.paper <= self.high  # type: ignore[operator]

    def overlaps(self, other: Cell) -> bool:
        """Return whether two intervals overlap; cells without intervals count as overlapping."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return True
        return self.low <= other.high and other.low <= self.high

    def beside(self) -> str:
        """Return our number and the paper's, which must exist, in one sentence."""
        assert self.paper
        off = f"{self.ours:,.4g}, paper {self.paper:,.4g} ({self.ours / self.paper - 1:+.0%})"
        return f"{self.row}, {self.column}: {off}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name and unit, for all of its cells."""

    name: str
    unit: str = ""

    def cell(self, row: str, column: str, ours: float, paper: float | None = None, fitted: bool = False) -> Cell:
        """Return a cell of one number."""
        return Cell(self.name, row, column, paper, ours, self.unit, fitted)

    def mean(
        self, row: str, column: str, values: Sequence[float], paper: float | None = None, fitted: bool = False
    ) -> Cell:
        """Return a cell of the mean of all seeds, with its 95 % interval."""
        ours, low, high = mean_with_interval(values)
        return Cell(self.name, row, column, paper, ours, self.unit, fitted, low, high)

    def median(
        self, row: str, column: str, values: Sequence[float], paper: float | None = None, fitted: bool = False
    ) -> Cell:
        """Return a cell of the median of all seeds, with their range as interval."""
        low, high = (min(values), max(values)) if len(values) > 1 else (None, None)
        return Cell(self.name, row, column, paper, statistics.median(values), self.unit, fitted, low, high)


def places(table: str, rows: Iterable[str], columns: Iterable[str]) -> tuple[Place, ...]:
    """Return the places of some rows and columns, row by row."""
    return tuple(product((table,), rows, columns))


def index(cells: Iterable[Cell]) -> Mapping[Place, Cell]:
    """Return the cells by table, row and column."""
    return {(cell.table, cell.row, cell.column): cell for cell in cells}


def mean_with_interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Return the mean and its 95 % interval; None for the interval of a single value."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None, None
    t = T_975[min(len(values) - 1, len(T_975)) - 1]
    half = t * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, mean - half, mean + half
