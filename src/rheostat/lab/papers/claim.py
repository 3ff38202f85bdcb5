"""Claims about cells as data, and their verdicts from paired runs over seeds.

A claim says that one or several quantities lie in a region: the mean of a cell, the difference or the ratio of two
cells of the same seeds, or how often something is true. It holds if the 95 % interval of every quantity lies inside
its region, and does not hold if that of one lies outside. Otherwise it cannot be told. Of several quantities one is
outside by chance more easily, so the intervals that refute are wider by Bonferroni's rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rheostat.lab.papers import interval
from rheostat.lab.papers.interval import Estimate
from rheostat.lab.papers.table import Cell, Place

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"
VERDICTS = (FAILS, UNKNOWN, HOLDS)
"""Verdicts, the worst first."""
UNEXPLAINED = "not explained"
"""Cause without an ablation behind it."""
UNDECIDED = "the 95 % interval of these runs does not decide"
ALMOST_ALWAYS = 0.8
"""Share of all runs that must be shown for `always`: 20 runs without an exception show 0.83."""

NOTHING = Estimate(math.nan, -math.inf, math.inf)
"""The estimate without runs."""

Direction = Literal["below", "at most", "above", "at least", "within", "always"]
Measure = Literal["value", "difference", "ratio", "paper"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity of some cells and the region in which a claim has it."""

    of: tuple[Place, ...]
    """Cells; several are averaged, seed by seed."""
    direction: Direction
    limit: float
    tolerance: float = 0.0
    """Distance from the limit at which the claim still holds, in units of the quantity."""
    to: tuple[Place, ...] = ()
    """Cells that they are compared with, by the same seeds."""
    measure: Measure = "value"
    """`paper` is the relative distance from the paper's own value, or the distance where that is zero."""

    @property
    def places(self) -> tuple[Place, ...]:
        """All cells."""
        return self.of + self.to

    @property
    def region(self) -> tuple[float, float]:
        """The smallest and the largest value with which the claim holds."""
        if self.direction in ("below", "at most"):
            return -math.inf, self.limit + self.tolerance
        if self.direction == "within":
            return self.limit - self.tolerance, self.limit + self.tolerance
        return self.limit - self.tolerance, math.inf

    @property
    def text(self) -> str:
        """The region in words."""
        what = {"value": "", "difference": "difference ", "ratio": "ratio ", "paper": "off the paper's "}[self.measure]
        low, high = self.region
        if self.direction == "within":
            return f"{what}between {low:g} and {high:g}"
        if self.direction == "always":
            return "in every run"
        return f"{what}{self.direction} {high if math.isinf(low) else low:g}"

    def estimate(self, at: Mapping[Place, Cell], confidence: float = interval.CONFIDENCE) -> Estimate:
        """Return the quantity with its interval."""
        cells = [at[place] for place in self.of]
        if self.measure == "value" and len(cells) == 1 and cells[0].flags and cells[0].values:
            return interval.share([value > 0 for value in cells[0].values], confidence).scale(cells[0].scale)
        left = _by_seed(cells)
        if self.measure == "value":
            return _mean(left, confidence)
        if self.measure == "paper":
            (paper,) = {cell.paper for cell in cells}
            assert paper is not None
            return _mean(left, confidence).shift(-paper).scale(1 / abs(paper) if paper else 1.0)
        right = _by_seed([at[place] for place in self.to])
        subtracts = self.measure == "difference"
        if left is None or right is None or (right == 0.0 and not subtracts):
            return NOTHING
        if isinstance(left, float) and isinstance(right, float):
            return interval.exact(left - right if subtracts else left / right)
        count = max(len(side) for side in (left, right) if not isinstance(side, float))
        lefts, rights = ([side] * count if isinstance(side, float) else side for side in (left, right))
        return (interval.paired_difference if subtracts else interval.paired_ratio)(lefts, rights, confidence)

    def published(self, at: Mapping[Place, Cell]) -> float | None:
        """Return the same quantity of the paper's own numbers; None where it prints none."""
        if self.measure == "paper":
            return 0.0
        printed = [[at[place].paper for place in side] for side in (self.of, self.to) if side]
        if any(value is None for side in printed for value in side):
            return None
        means = [sum(value for value in side if value is not None) / len(side) for side in printed]
        if self.measure == "value":
            return means[0]
        if self.measure == "difference":
            return means[0] - means[1]
        return means[0] / means[1] if means[1] else None

    def judge(self, at: Mapping[Place, Cell], comparisons: int = 1) -> str:
        """Return the verdict as one of several comparisons."""
        if self.direction == "always":
            # One counterexample refutes it, whatever the share.
            if not all(value > 0 for place in self.of for value in at[place].values):
                return FAILS
            return HOLDS if self.estimate(at).low >= ALMOST_ALWAYS * at[self.of[0]].scale else UNKNOWN
        if self._holds(self.estimate(at)):
            return HOLDS
        wider = self.estimate(at, 1 - (1 - interval.CONFIDENCE) / comparisons)
        return FAILS if self._fails(wider) else UNKNOWN

    def _holds(self, estimate: Estimate) -> bool:
        low, high = self.region
        if self.strict:
            return low < estimate.low and estimate.high < high
        return low - self.slack <= estimate.low and estimate.high <= high + self.slack

    def _fails(self, estimate: Estimate) -> bool:
        low, high = self.region
        if self.strict:
            return estimate.low >= high or estimate.high <= low
        return estimate.low > high + self.slack or estimate.high < low - self.slack

    @property
    def strict(self) -> bool:
        """Whether the limit itself lies outside."""
        return self.direction in ("below", "above")

    @property
    def slack(self) -> float:
        """Distance within which rounding does not decide about a value that equals its limit."""
        return 1e-9 * max(1.0, abs(self.limit))


def _by_seed(cells: Sequence[Cell]) -> list[float] | float | None:
    """Return the mean of some cells, seed by seed; one number if all are exact, None without runs."""
    if all(cell.exact for cell in cells):
        return float(sum(cell.ours for cell in cells) / len(cells))
    counts = {len(cell.values) for cell in cells if not cell.exact}
    if counts == {0}:
        return None
    if len(counts) > 1 or 0 in counts:
        names = ", ".join(f"{cell.table} {cell.row} {cell.column}: {len(cell.values)}" for cell in cells)
        raise ValueError(f"a claim needs the same seeds in all of its cells, not {names}")
    (count,) = counts
    rows = [[cell.ours] * count if cell.exact else cell.values for cell in cells]
    return [sum(values) / len(rows) for values in zip(*rows, strict=True)]


def _mean(values: Sequence[float] | float | None, confidence: float) -> Estimate:
    if values is None:
        return NOTHING
    return interval.exact(values) if isinstance(values, float) else interval.mean(values, confidence)


@dataclass(frozen=True, slots=True)
class Ablation:
    """The same claim with one factor changed: where it holds then, the factor is the cause."""

    factor: str
    """The factor, as a cause: `Big's changes count`."""
    parts: tuple[Comparison, ...]
    command: str
    """The command that shows it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, or a goal of ours, about some cells."""

    table: str
    sentence: str
    parts: tuple[Comparison, ...]
    goal: bool = False
    """Whether it is a goal of ours, which no paper states."""
    ablation: Ablation | None = None
    optional: bool = False
    """Whether it is skipped if a cell is missing: its data are not on this machine, or the quick size leaves it out."""

    @property
    def key(self) -> str:
        """The name of its stored verdict."""
        return f"{self.table}: {self.sentence}"

    @property
    def places(self) -> tuple[Place, ...]:
        """All cells."""
        return tuple(dict.fromkeys(place for part in self.parts for place in part.places))

    def judge(self, at: Mapping[Place, Cell]) -> Judgement | None:
        """Return its verdict; None if it is skipped."""
        if self.optional and not all(place in at for place in self.places):
            return None
        verdict, decisive = judge_all(self.parts, at)
        held = sum(part.judge(at) == HOLDS for part in self.parts)
        fitted = tuple(dict.fromkeys((place[0], place[1]) for place in self.places if at[place].fitted))
        cause = self._cause(at) if verdict == FAILS else UNDECIDED if verdict == UNKNOWN else ""
        return Judgement(self, verdict, decisive, decisive.estimate(at), decisive.published(at), held, fitted, cause)

    def _cause(self, at: Mapping[Place, Cell]) -> str:
        """Return the factor without which it holds in the same runs, and the command that shows it."""
        if self.ablation is None or judge_all(self.ablation.parts, at)[0] != HOLDS:
            return UNEXPLAINED
        tables = dict.fromkeys(place[0] for part in self.ablation.parts for place in part.of)
        return f"{self.ablation.factor}; without that it holds: {self.ablation.command}, {', '.join(tables)}"


def judge_all(parts: Sequence[Comparison], at: Mapping[Place, Cell]) -> tuple[str, Comparison]:
    """Return the worst verdict of all parts, and the first part that has it."""
    verdicts = [part.judge(at, len(parts)) for part in parts]
    worst = min(verdicts, key=VERDICTS.index)
    return worst, parts[verdicts.index(worst)]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim with its verdict, and the comparison that decides it."""

    claim: Claim
    verdict: str
    decisive: Comparison
    estimate: Estimate
    paper: float | None
    held: int
    """Number of its comparisons that hold."""
    fitted: tuple[tuple[str, str], ...]
    """Tables and rows of its cells that a parameter is fitted to."""
    cause: str
    """Why it does not hold, or cannot be told; "" if it holds."""

    @property
    def numbers(self) -> str:
        """The decisive comparison in words."""
        of, to = (_names(side) for side in (self.decisive.of, self.decisive.to))
        over = f" {'less' if self.decisive.measure == 'difference' else 'over'} {to}" if to else ""
        low, high = self.estimate.low, self.estimate.high
        known = f"{low:.4g} to {high:.4g}" if math.isfinite(low) and math.isfinite(high) else "no interval"
        parts = f"; {self.held} of {len(self.claim.parts)} comparisons hold" if len(self.claim.parts) > 1 else ""
        paper = "" if self.paper is None or self.decisive.measure == "paper" else f", paper {self.paper:.4g}"
        return f"{of}{over}: {self.estimate.value:.4g} ({known}{paper}), claimed {self.decisive.text}{parts}"

    @property
    def fitted_text(self) -> str:
        """The fitted inputs in words; "" without any."""
        return "fitted: " + ", ".join(f"{row} in {table}" for table, row in self.fitted) if self.fitted else ""


def _names(places: Sequence[Place]) -> str:
    """Return the rows and columns of some cells."""
    rows, columns = (list(dict.fromkeys(place[k] for place in places)) for k in (1, 2))
    shown = ", ".join(columns) if len(columns) <= 3 else f"{len(columns)} columns"
    return f"{', '.join(rows)} ({shown})" if places else ""


# -- comparisons by their sense ----------------------------------------------------------------------------------------


def less(few: Place, many: Place) -> Comparison:
    """Return that one cell is below another."""
    return Comparison((few,), "below", 0.0, to=(many,), measure="difference")


def not_more(few: Place, many: Place, tolerance: float = 0.0) -> Comparison:
    """Return that one cell is at most another, by an absolute tolerance."""
    return Comparison((few,), "at most", 0.0, tolerance, to=(many,), measure="difference")


def ratio(of: Place, to: Place, direction: Direction, limit: float, tolerance: float = 0.0) -> Comparison:
    """Return that the ratio of two cells has a limit."""
    return Comparison((of,), direction, limit, tolerance, to=(to,), measure="ratio")


def near_paper(cell: Place, within: float) -> Comparison:
    """Return that a cell is within this share of the paper's value."""
    return Comparison((cell,), "within", 0.0, within, measure="paper")


def at_least(limit: float, *cells: Place) -> tuple[Comparison, ...]:
    """Return that every cell is at least `limit`."""
    return tuple(Comparison((cell,), "at least", limit) for cell in cells)


def at_most(limit: float, *cells: Place) -> tuple[Comparison, ...]:
    """Return that every cell is at most `limit`."""
    return tuple(Comparison((cell,), "at most", limit) for cell in cells)


def always(*cells: Place) -> tuple[Comparison, ...]:
    """Return that yes/no cells are true in every run."""
    return tuple(Comparison((cell,), "always", ALMOST_ALWAYS) for cell in cells)


def columns(table: str, few: str, many: str, names: Iterable[str]) -> Iterator[tuple[Place, Place]]:
    """Yield the cells of two rows, column by column."""
    for name in names:
        yield (table, few, name), (table, many, name)
