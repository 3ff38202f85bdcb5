"""A paper's comparison: its runs in two sizes, and their tables, claims and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rheostat.errors import InvalidValue, nearest
from rheostat.lab.papers.claim import Claim
from rheostat.lab.papers.difference import differences
from rheostat.lab.papers.parallel import Progress, Task, run_tasks
from rheostat.lab.papers.result import Drawing, Fit, Result
from rheostat.lab.papers.table import Cell, index

S = TypeVar("S")
F = TypeVar("F")


@dataclass(frozen=True)
class Suite(Generic[S, F]):
    """One paper's comparison. `S` is the size of the suite, `F` has all runs."""

    name: str
    title: str
    quick: S
    full: S
    parts: Callable[[S], Sequence[Task]]
    """Parts to run in parallel, the longest first."""
    gather: Callable[[S, Mapping[str, Any]], F]
    """(size, results of the parts by name) -> all runs."""
    tables: Sequence[Callable[[F], Iterable[Cell]]]
    claims: Sequence[Claim]
    fits: Sequence[Fit]
    """Every parameter that was fitted or chosen by looking at data."""
    figures: Callable[[F, Sequence[Cell]], Iterable[Drawing]]
    notes: Callable[[F], Iterable[str]]
    comparable: Callable[[Cell], bool] = lambda _: True
    """Whether a cell is listed if it differs from the paper's."""
    describe: Callable[[Cell], str] = Cell.beside
    alone: Callable[[S], Sequence[Task]] = lambda _: ()
    """Parts that measure time: they run after the others, in this process, with nothing beside them."""

    @property
    def sizes(self) -> Mapping[str, S]:
        """The sizes by name."""
        return {"quick": self.quick, "full": self.full}

    def size(self, name: str) -> S:
        """Return a size by name."""
        if name not in self.sizes:
            raise InvalidValue(f"unknown size {name!r} of {self.name}, {nearest(name, self.sizes)}")
        return self.sizes[name]

    def measure(self, size: str, progress: Progress, workers: int | None = None) -> F:
        """Run all parts."""
        selected = self.size(size)
        parts, alone = self.parts(selected), self.alone(selected)
        share = len(parts) / max(len(parts) + len(alone), 1)
        results = run_tasks(parts, lambda what, part: progress(what, share * part), workers)
        results |= run_tasks(alone, lambda what, part: progress(what, share + (1 - share) * part), 1)
        return self.gather(selected, results)

    def result(self, runs: F) -> Result:
        """Return tables, claims and figures of the runs."""
        cells = tuple(cell for table in self.tables for cell in table(runs))
        at = index(cells)
        judged = (claim.judge(at) for claim in self.claims)
        return Result(
            self.name,
            self.title,
            cells,
            tuple(judgement for judgement in judged if judgement is not None),
            tuple(differences(cells, self.comparable, self.describe)),
            tuple(self.fits),
            tuple(self.notes(runs)),
            tuple(self.figures(runs, cells)),
        )

    def reproduce(self, size: str, progress: Progress, workers: int | None = None) -> Result:
        """Run the comparison and compare it with the paper's."""
        return self.result(self.measure(size, progress, workers))
