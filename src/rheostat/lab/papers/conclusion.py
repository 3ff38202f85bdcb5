"""Conclusions about cells, which hold or not, and differences from the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rheostat.lab.papers.table import Cell, Place

WITHIN = 0.1
"""Share by which a cell may differ from the paper's without a finding."""
UNKNOWN = "not explained"
"""Cause of a difference without an experiment behind it."""
INSIDE = "the paper's value lies within our 95 % interval"


@dataclass(frozen=True, slots=True)
class Check:
    """A conclusion, and whether it holds in our numbers."""

    table: str
    sentence: str
    holds: bool
    numbers: str = ""
    """The numbers behind it."""
    cause: str = UNKNOWN
    """Why it does not hold."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A sentence of the paper, or a goal of ours, about some cells; its functions take these cells in order."""

    table: str
    sentence: str
    cells: tuple[Place, ...]
    holds: Callable[..., bool]
    numbers: str | Callable[..., str]
    """A template for the cells, or a function of them."""
    cause: str | Callable[..., str] = UNKNOWN
    optional: bool = False
    """Whether it is skipped if a cell is missing because its data are not on this machine."""

    def check(self, at: Mapping[Place, Cell]) -> Check | None:
        """Return whether it holds; None if it is skipped."""
        if self.optional and not all(place in at for place in self.cells):
            return None
        cells = [at[place] for place in self.cells]
        numbers = self.numbers.format(*cells) if isinstance(self.numbers, str) else self.numbers(*cells)
        cause = self.cause if isinstance(self.cause, str) else self.cause(*cells)
        return Check(self.table, self.sentence, bool(self.holds(*cells)), numbers, cause)


def less(low: Cell, high: Cell) -> bool:
    """Return whether the first cell is less than the second."""
    return low.ours < high.ours


def not_more(low: Cell, high: Cell) -> bool:
    """Return whether the first cell is at most the second."""
    return low.ours <= high.ours


def at_least(limit: float) -> Callable[..., bool]:
    """Return the test that every cell is at least `limit`."""
    return lambda *cells: all(cell.ours >= limit for cell in cells)


def at_most(limit: float) -> Callable[..., bool]:
    """Return the test that every cell is at most `limit`."""
    return lambda *cells: all(cell.ours <= limit for cell in cells)


def each(template: str) -> Callable[..., str]:
    """Return the text of every cell by a template: `each("{0.column} {0:.0f} %")` gives `Q1 3 %, Q2 4 %`."""
    return lambda *cells: ", ".join(template.format(cell) for cell in cells)


def all_pairs(holds: Callable[[Cell, Cell], bool]) -> Callable[..., bool]:
    """Return the test that `holds` is true of the cells of two rows, column by column."""
    return lambda *cells: all(holds(a, b) for a, b in pairs(cells))


def each_pair(template: str) -> Callable[..., str]:
    """Return the text of two rows' cells by a template, column by column."""
    return lambda *cells: ", ".join(template.format(a, b) for a, b in pairs(cells))


def pairs(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Return the cells of two consecutive rows in pairs, column by column."""
    half = len(cells) // 2
    return list(zip(cells[:half], cells[half:], strict=True))


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference from the paper, and its cause."""

    table: str
    what: str
    cause: str


def far_cells(
    cells: Iterable[Cell], cause: Callable[[Cell], str | None], describe: Callable[[Cell], str] = Cell.beside
) -> Iterator[Finding]:
    """Yield a finding for each cell that differs from the paper and has a cause."""
    for cell in cells:
        if cell.off(WITHIN) and (why := cause(cell)) is not None:
            yield Finding(cell.table, describe(cell), why)
