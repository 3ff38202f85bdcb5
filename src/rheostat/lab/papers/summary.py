"""One page over all papers and grounds: claims and their verdicts, the cost over the oracle's, what was fitted."""

from __future__ import annotations

from collections.abc import Sequence

from rheostat.lab.papers.campaign import Failed
from rheostat.lab.papers.claim import FAILS, HOLDS, UNKNOWN
from rheostat.lab.papers.grounds.rows import BETTER, WORSE, GroundRow, Standing, ground_rows, standings
from rheostat.lab.papers.page import LOOKS, claim_cells, fits_table
from rheostat.lab.papers.result import Result
from rheostat.report import words
from rheostat.report.html import Cell, Table, render

STANDING_LOOKS = {BETTER: LOOKS[HOLDS], WORSE: LOOKS[FAILS], UNKNOWN: LOOKS[UNKNOWN]}
"""How ours compares -> how it looks."""


def summary_page(results: Sequence[Result | Failed], size: str) -> str:
    """Return one HTML document about all suites."""
    done = [result for result in results if isinstance(result, Result)]
    rows = [row for result in done for row in ground_rows(result)]
    compared = [standing for result in done for standing in standings(result)]
    return render(
        "papers.html.j2",
        title="Claims of five papers, and all policies on all grounds, on the simulator",
        size=size,
        counts=counts_table(results),
        claims={r.title: Table(CLAIM_HEADS, [claim_cells(each) for each in r.judgements]) for r in done},
        fits=fits_table({result.suite: result.fits for result in done}),
        grounds=grounds_table(rows) if rows else None,
        notes=[note for result in done if any(ground_rows(result)) for note in result.notes],
        courses=courses_table(rows),
        standings={ours: standings_table([s for s in compared if s.ours == ours]) for ours in _names(compared)},
    )


CLAIM_HEADS = ("table", "claim", "verdict", "numbers")


def counts_table(results: Sequence[Result | Failed]) -> Table:
    """Return the number of claims per paper and verdict, with those about fitted cells in brackets."""
    rows = []
    for result in results:
        if isinstance(result, Failed):
            rows.append([Cell(result.suite, "policy"), Cell("failed", "ending-failed", result.error)])
            rows[-1] += [Cell(words.NONE, "number")] * 3
            continue
        counts = (
            Cell(f"{result.count(verdict)} ({result.count(verdict, True)})", f"number {LOOKS[verdict]}")
            for verdict in (HOLDS, FAILS, UNKNOWN)
        )
        rows.append([Cell(result.suite, "policy"), Cell(str(len(result.judgements)), "number"), *counts])
    heads = ("paper", "claims", HOLDS, FAILS, UNKNOWN)
    return Table(heads, rows, "In brackets: claims with cells to which a parameter was fitted.")


def grounds_table(rows: Sequence[GroundRow]) -> Table:
    """Return the cost over the oracle's: a row per policy, a column per ground, the interval below the number."""
    grounds = list(dict.fromkeys(row.ground for row in rows))
    at = {(row.policy, row.ground): row for row in rows}
    lines = []
    for policy in dict.fromkeys(row.policy for row in rows):
        cells = (at.get((policy, ground)) for ground in grounds)
        lines.append([Cell(policy, "policy"), *(_cost(cell) for cell in cells)])
    return Table(("policy", *grounds), lines, "Cost over the oracle's (1 is the bound), with its 95 % interval.")


def courses_table(rows: Sequence[GroundRow]) -> Table:
    """Return changes per day, minutes over the SLO and windows short of the demand, policy by policy and ground."""
    grounds = list(dict.fromkeys(row.ground for row in rows))
    at = {(row.policy, row.ground): row for row in rows}
    lines = []
    for policy in dict.fromkeys(row.policy for row in rows):
        cells = (at.get((policy, ground)) for ground in grounds)
        lines.append([Cell(policy, "policy"), *(_course(cell) for cell in cells)])
    note = "Changes per day; below them the minutes over the SLO and the windows short of the demand, of a run."
    return Table(("policy", *grounds), lines, note)


def standings_table(standings: Sequence[Standing]) -> Table:
    """Return how one of our policies compares with the others: a row per policy, a column per ground."""
    grounds = list(dict.fromkeys(standing.ground for standing in standings))
    at = {(standing.policy, standing.ground): standing for standing in standings}
    lines = [
        [Cell(policy, "policy"), *(_standing(at[policy, ground]) for ground in grounds)]
        for policy in dict.fromkeys(standing.policy for standing in standings)
    ]
    note = "Its cost over theirs, seed by seed: below 1 ours is better, if the 95 % interval is."
    return Table(("over", *grounds), lines, note)


def _names(standings: Sequence[Standing]) -> list[str]:
    return list(dict.fromkeys(standing.ours for standing in standings))


def _cost(row: GroundRow | None) -> Cell:
    if row is None:
        return Cell(words.NONE, "number")
    return Cell(words.number(row.cost_over_oracle), "number", _interval(row.low, row.high))


def _course(row: GroundRow | None) -> Cell:
    if row is None:
        return Cell(words.NONE, "number")
    under = f"{words.number(row.over_min)} min, {words.number(row.windows_short)} short"
    return Cell(words.number(row.changes_per_day), "number", under)


def _standing(standing: Standing) -> Cell:
    under = f"{standing.verdict}{', ' if standing.low is not None else ''}{_interval(standing.low, standing.high)}"
    return Cell(words.number(standing.ratio), f"number {STANDING_LOOKS[standing.verdict]}", under)


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{words.number(low)} to {words.number(high)}"
