"""What is concluded from cells: sentences that hold or not, and places where ours differs from the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rheostat.lab.papers.table import Cell, Place

WITHIN = 0.1
"""Share by which a cell may differ from the paper's without being listed."""
UNKNOWN = "not explained"
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
    """Why, where it does not hold."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A sentence of the paper's, or a goal of ours, about some cells; functions get these cells, in order."""

    table: str
    sentence: str
    cells: tuple[Place, ...]
    holds: Callable[..., bool]
    numbers: str | Callable[..., str]
    """A template for the cells, or a function of them."""
    cause: str | Callable[..., str] = UNKNOWN
    optional: bool = False
    """Whether it is left out where a cell is missing, because its data are not here."""

    def check(self, at: Mapping[Place, Cell]) -> Check | None:
        """Return whether it holds; None where it is left out."""
        if self.optional and not all(place in at for place in self.cells):
            return None
        cells = [at[place] for place in self.cells]
        numbers = self.numbers.format(*cells) if isinstance(self.numbers, str) else self.numbers(*cells)
        cause = self.cause if isinstance(self.cause, str) else self.cause(*cells)
        return Check(self.table, self.sentence, bool(self.holds(*cells)), numbers, cause)


def less(low: Cell, high: Cell) -> bool:
    """Whether the first is less than the second."""
    return low.ours < high.ours


def not_more(low: Cell, high: Cell) -> bool:
    """Whether the first is at most the second."""
    return low.ours <= high.ours


def at_least(limit: float) -> Callable[..., bool]:
    """Return whether every cell is at least so much."""
    return lambda *cells: all(cell.ours >= limit for cell in cells)


def at_most(limit: float) -> Callable[..., bool]:
    """Return whether every cell is at most so much."""
    return lambda *cells: all(cell.ours <= limit for cell in cells)


def each(template: str) -> Callable[..., str]:
    """Return every cell by a template: `each("{0.column} {0:.0f} %")` gives `Q1 3 %, Q2 4 %`."""
    return lambda *cells: ", ".join(template.format(cell) for cell in cells)


def all_pairs(holds: Callable[[Cell, Cell], bool]) -> Callable[..., bool]:
    """Return whether something holds of the cells of two rows, column by column."""
    return lambda *cells: all(holds(a, b) for a, b in pairs(cells))


def each_pair(template: str) -> Callable[..., str]:
    """Return the cells of two rows by a template, column by column."""
    return lambda *cells: ", ".join(template.format(a, b) for a, b in pairs(cells))


def pairs(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Return the cells of two rows, which stand one after the other, column by column."""
    half = len(cells) // 2
    return list(zip(cells[:half], cells[half:], strict=True))


@dataclass(frozen=True, slots=True)
class Finding:
    """A place where ours differs from the paper's, and why."""

    table: str
    what: str
    cause: str


def far_cells(
    cells: Iterable[Cell], cause: Callable[[Cell], str | None], describe: Callable[[Cell], str] = Cell.beside
) -> Iterator[Finding]:
    """Yield the cells that are too far from the paper's, with their cause; those without one are not listed."""
    for cell in cells:
        if cell.off(WITHIN) and (why := cause(cell)) is not None:
            yield Finding(cell.table, describe(cell), why)
