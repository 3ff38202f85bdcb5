"""One page over all papers: claims and their verdicts, what was fitted, and room for the grounds of `compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rheostat.lab.papers.campaign import Failed
from rheostat.lab.papers.claim import FAILS, HOLDS, UNKNOWN
from rheostat.lab.papers.page import LOOKS, claim_cells, fits_table
from rheostat.lab.papers.result import Result
from rheostat.report import words
from rheostat.report.html import Cell, Table, render


@dataclass(frozen=True, slots=True)
class GroundRow:
    """A policy's cost over the oracle's on one ground, with its 95 % interval."""

    ground: str
    policy: str
    cost_over_oracle: float
    low: float
    high: float


def summary_page(results: Sequence[Result | Failed], size: str, grounds: Sequence[GroundRow] = ()) -> str:
    """Return one HTML document about all suites."""
    done = [result for result in results if isinstance(result, Result)]
    return render(
        "papers.html.j2",
        title="Claims of five papers, on the simulator",
        size=size,
        counts=counts_table(results),
        claims={r.title: Table(CLAIM_HEADS, [claim_cells(each) for each in r.judgements]) for r in done},
        fits=fits_table({result.suite: result.fits for result in done}),
        grounds=grounds_table(grounds) if grounds else None,
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


def _cost(row: GroundRow | None) -> Cell:
    if row is None:
        return Cell(words.NONE, "number")
    interval = f"{words.number(row.low)} to {words.number(row.high)}"
    return Cell(words.number(row.cost_over_oracle), "number", interval)
