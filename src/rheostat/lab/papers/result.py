"""What a suite comes to: cells with the paper's number beside ours, conclusions that hold or not, and exceptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rheostat.report.drawing import Figure

T_975 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)
"""Student's t for 95 % intervals, by degrees of freedom from 1 on."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table, under the names that the paper gives it."""

    suite: str
    table: str
    row: str
    column: str
    paper: float | None
    ours: float
    unit: str
    fitted: bool
    """Whether a parameter was tuned to this very cell: conclusions rest on the others."""
    low: float | None = None
    """95 % interval of the mean over permutations; None where there is nothing to vary."""
    high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a JSON file."""
        return asdict(self)

    def off(self, within: float) -> bool:
        """Whether ours differs from the paper's by more than this share."""
        return bool(self.paper) and abs(self.ours / self.paper - 1) > within  # type: ignore[operator]

    @property
    def inside(self) -> bool:
        """Whether the paper's value lies within our interval."""
        known = self.paper is not None and self.low is not None and self.high is not None
        return known and self.low <= self.paper <= self.high  # type: ignore[operator]

    def beside(self) -> str:
        """Say what is ours and what is the paper's, which must be there."""
        assert self.paper
        off = f"{self.ours:,.4g}, paper {self.paper:,.4g} ({self.ours / self.paper - 1:+.0%})"
        return f"{self.row}, {self.column}: {off}"


@dataclass(frozen=True, slots=True)
class Check:
    """A conclusion of the paper, looked for in our numbers."""

    table: str
    sentence: str
    holds: bool
    told: str = ""
    """The numbers behind it."""
    cause: str = "not explained"
    """Why, where it does not hold."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A place where ours differs from the paper's, and why."""

    table: str
    what: str
    cause: str


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
    drawings: tuple[Drawing, ...] = field(default=())

    def tables(self) -> dict[str, list[Cell]]:
        """Return the cells by table, in order."""
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.table, []).append(cell)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return everything that goes into a JSON file: the cells, and the conclusions as cells that are 0 or 1."""
        checks = [Cell(self.suite, c.table, c.sentence, "holds", 1.0, float(c.holds), "", False) for c in self.checks]
        return [cell.as_dict() for cell in (*self.cells, *checks)]


def mean_with_interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Return the mean and its 95 % interval; no interval from a single value."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None, None
    t = T_975[min(len(values) - 1, len(T_975)) - 1]
    half = t * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, mean - half, mean + half
