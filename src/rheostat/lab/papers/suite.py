"""A paper's comparison: what is run at which size, and the tables, conclusions and figures that are made of it."""

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
    """One paper's comparison. `S` says how much is run, `F` holds all runs."""

    name: str
    title: str
    quick: S
    full: S
    parts: Callable[[S], Sequence[Task]]
    """What is run, on as many processes as there are cores; what takes longest comes first."""
    gather: Callable[[S, Mapping[str, Any]], F]
    """(size, what every part returned, by name) -> all runs."""
    tables: Sequence[Callable[[F], Iterable[Cell]]]
    conclusions: Sequence[Conclusion]
    findings: Callable[[Sequence[Cell]], Iterable[Finding]]
    figures: Callable[[F, Sequence[Cell]], Iterable[Drawing]]
    notes: Callable[[F], Iterable[str]]
    alone: Callable[[S], Sequence[Task]] = lambda _: ()
    """What is run after all parts, in this process, when nothing else runs: what measures time."""

    @property
    def sizes(self) -> Mapping[str, S]:
        """How much is run, by name."""
        return {"quick": self.quick, "full": self.full}

    def measure(self, size: str, progress: Progress, workers: int | None = None) -> F:
        """Run everything."""
        if size not in self.sizes:
            raise InvalidValue(f"unknown size {size!r} of {self.name}, {nearest(size, self.sizes)}")
        chosen = self.sizes[size]
        parts, alone = self.parts(chosen), self.alone(chosen)
        share = len(parts) / max(len(parts) + len(alone), 1)
        done = run_tasks(parts, lambda what, part: progress(what, share * part), workers)
        done |= run_tasks(alone, lambda what, part: progress(what, share + (1 - share) * part), 1)
        return self.gather(chosen, done)

    def result(self, found: F) -> Result:
        """Make tables, conclusions and figures of the runs."""
        cells = tuple(cell for table in self.tables for cell in table(found))
        at = index(cells)
        checks = (conclusion.check(at) for conclusion in self.conclusions)
        return Result(
            self.name,
            self.title,
            cells,
            tuple(check for check in checks if check is not None),
            tuple(self.findings(cells)),
            tuple(self.notes(found)),
            tuple(self.figures(found, cells)),
        )

    def reproduce(self, size: str, progress: Progress, workers: int | None = None) -> Result:
        """Run the comparison and set it beside the paper's."""
        return self.result(self.measure(size, progress, workers))
