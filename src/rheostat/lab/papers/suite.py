"""A paper's comparison: its runs in two sizes, and their tables, conclusions and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rheostat.errors import InvalidValue, nearest
from rheostat.lab.papers.conclusion import Conclusion, Finding
from rheostat.lab.papers.parallel import Progress, Task, run_tasks
from rheostat.lab.papers.result import Drawing, Result
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
    conclusions: Sequence[Conclusion]
    findings: Callable[[Sequence[Cell]], Iterable[Finding]]
    figures: Callable[[F, Sequence[Cell]], Iterable[Drawing]]
    notes: Callable[[F], Iterable[str]]
    alone: Callable[[S], Sequence[Task]] = lambda _: ()
    """Parts that measure time: they run after the others, in this process, with nothing beside them."""

    @property
    def sizes(self) -> Mapping[str, S]:
        """The sizes by name."""
        return {"quick": self.quick, "full": self.full}

    def measure(self, size: str, progress: Progress, workers: int | None = None) -> F:
        """Run all parts."""
        if size not in self.sizes:
            raise InvalidValue(f"unknown size {size!r} of {self.name}, {nearest(size, self.sizes)}")
        selected = self.sizes[size]
        parts, alone = self.parts(selected), self.alone(selected)
        share = len(parts) / max(len(parts) + len(alone), 1)
        results = run_tasks(parts, lambda what, part: progress(what, share * part), workers)
        results |= run_tasks(alone, lambda what, part: progress(what, share + (1 - share) * part), 1)
        return self.gather(selected, results)

    def result(self, runs: F) -> Result:
        """Return tables, conclusions and figures of the runs."""
        cells = tuple(cell for table in self.tables for cell in table(runs))
        at = index(cells)
        checks = (conclusion.check(at) for conclusion in self.conclusions)
        return Result(
            self.name,
            self.title,
            cells,
            tuple(check for check in checks if check is not None),
            tuple(self.findings(cells)),
            tuple(self.notes(runs)),
            tuple(self.figures(runs, cells)),
        )

    def reproduce(self, size: str, progress: Progress, workers: int | None = None) -> Result:
        """Run the comparison and compare it with the paper's."""
        return self.result(self.measure(size, progress, workers))
