"""Cells that differ from the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rheostat.lab.papers.claim import UNEXPLAINED
from rheostat.lab.papers.table import Cell

WITHIN = 0.1
"""Share by which a cell may differ from the paper's."""
INSIDE = "the paper's value lies within our 95 % interval"


@dataclass(frozen=True, slots=True)
class Difference:
    """A cell that differs from the paper's."""

    table: str
    what: str
    cause: str


def differences(
    cells: Iterable[Cell],
    comparable: Callable[[Cell], bool] = lambda _: True,
    describe: Callable[[Cell], str] = Cell.beside,
) -> Iterator[Difference]:
    """Yield the comparable cells that differ; causes need an ablation, which claims have and cells do not."""
    for cell in cells:
        if cell.off(WITHIN) and comparable(cell):
            yield Difference(cell.table, describe(cell), INSIDE if cell.inside else UNEXPLAINED)
