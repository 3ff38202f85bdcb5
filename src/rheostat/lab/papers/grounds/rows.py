"""What the page over all papers shows of the grounds: the cost over the oracle's, and how ours compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rheostat.lab.experiment.grounds import OURS
from rheostat.lab.papers.claim import UNKNOWN
from rheostat.lab.papers.grounds.tables import CHANGES, OVER_ORACLE, OVER_SLO, SHORT, over_name
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.table import index

BETTER, WORSE = "better", "worse"


@dataclass(frozen=True, slots=True)
class GroundRow:
    """A policy's cost over the oracle's on one ground, with its 95 % interval if there are enough seeds."""

    ground: str
    policy: str
    cost_over_oracle: float
    low: float | None
    high: float | None
    seeds: int = 0
    changes_per_day: float = 0.0
    over_min: float = 0.0
    """Minutes over the SLO."""
    windows_short: float = 0.0
    """Decision intervals in which less than the demand was taken in."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The cost of a policy of ours over that of another one on the same seeds of a ground."""

    ground: str
    ours: str
    policy: str
    ratio: float
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        """Whether ours is better or worse by the 95 % interval of the ratio."""
        if self.low is None or self.high is None or self.low <= 1.0 <= self.high:
            return UNKNOWN
        return BETTER if self.high < 1.0 else WORSE


def ground_rows(result: Result) -> Iterator[GroundRow]:
    """Yield the rows of the suite `grounds`, ground by ground."""
    at = index(result.cells)
    for (table, policy, ground), cell in at.items():
        if table == OVER_ORACLE:
            more = (at[measure, policy, ground].ours for measure in (CHANGES, OVER_SLO, SHORT))
            yield GroundRow(ground, policy, cell.ours, cell.low, cell.high, len(cell.values), *more)


def standings(result: Result) -> Iterator[Standing]:
    """Yield how each policy of ours compares with each other one, ground by ground."""
    tables = {over_name(ours): ours for ours in OURS}
    for cell in result.cells:
        if cell.table in tables:
            yield Standing(cell.column, tables[cell.table], cell.row, cell.ours, cell.low, cell.high)
