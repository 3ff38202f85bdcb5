"""StreamBed's claims about our numbers, those about our planner, and what was fitted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from rheostat.lab.papers.claim import Claim, Comparison, at_least, at_most, less, near_paper, ratio
from rheostat.lab.papers.result import Fit
from rheostat.lab.papers.streambed import paper
from rheostat.lab.papers.streambed.paper import QUERIES, SIMPLE_QUERIES
from rheostat.lab.papers.streambed.runs import TABLE_IV
from rheostat.lab.papers.streambed.tables import CHOOSES, COVERED, NEAR, NEAR_PERCENT, NEARER, NEVER, RECORDED, WIDTH
from rheostat.lab.papers.table import Cell, Place, places
from rheostat.planner.verification import BACKLOG_S

BOTH = (paper.OURS, paper.RULE)
MOST_TIME = 0.7
"""Our estimator's time over the paper's."""
SUSTAINED = 0.99
"""Share of the request from which it counts as sustained: the paper's rule."""

FITS = (
    Fit(
        "capacities, exponents, noise and interference of q1, q2, q5 and q8",
        "the artifact's small runs (true rates of operators, maximum rates)",
        "II: all; all other tables are predicted from them",
    ),
    Fit("curves of q11", "the artifact's maximum rates of q11", "II: q11"),
    Fit(
        "drift of exponents beyond the testbed (0.05, ours)",
        "the production run of q2, which a law without it excludes",
        "all rows of ours in III, IV and Figure 11",
    ),
    Fit("rows of q11's fit", "Table III's printed coefficients of q11", "III and IV, recorded measurements: q11"),
)


def _recorded() -> Iterator[Claim]:
    for query, settings in QUERIES.items():
        cell: Place = (f"IV, {max(settings.gb):g} GB{RECORDED}", paper.FAMILY, query)
        yield Claim(
            "IV", f"{query}: the paper's family, fitted to its recorded runs, gives Table IV's slots within 2 %",
            (near_paper(cell, 0.02),), optional=True,
        )  # fmt: skip
    yield Claim(
        "III", "on the recorded runs the rule chooses the paper's families",
        at_least(1.0, *places(f"III{RECORDED}", [CHOOSES], QUERIES)), optional=True,
    )  # fmt: skip


def _single_tasks() -> Iterator[Claim]:
    for query in QUERIES:
        cell: Place = ("II, rate of single tasks", "simulated", query)
        yield Claim("II", f"{query}: single tasks sustain Table II's rate within 15 %", (near_paper(cell, 0.15),))


def _estimates() -> Iterator[Claim]:
    for what, way in product(("sustained at 100 %", "failing at 150 %"), (paper.DICHOTOMIC, paper.SEQUENTIAL)):
        cells = places(f"Figure 9, {what}", [way], SIMPLE_QUERIES)
        yield Claim(
            "Figure 9", f"{way}: estimates of q1, q2 and q11 are {what}, nine in ten at least",
            tuple(Comparison((cell,), "at least", 0.9, 0.05) for cell in cells), goal=way == paper.SEQUENTIAL,
        )  # fmt: skip
    for query in QUERIES:
        fast, slow = places("Figure 9, minutes per estimate", BOTH, [query])
        yield Claim(
            "Figure 9", f"{query}: our estimator takes at least 30 % less time",
            (ratio(fast, slow, "at most", MOST_TIME),), goal=True,
        )  # fmt: skip


def _plans() -> Iterator[Claim]:
    def most(table: str, query: str) -> tuple[Comparison, ...]:
        return (Comparison(((table, paper.OURS, query),), "above", 0.5),)

    for query in SIMPLE_QUERIES:
        sentence = f"{query}: in most runs our plan is nearer to what is needed than the paper's"
        yield Claim("IV", sentence, most(NEARER, query), goal=True, optional=True)
        sentence = f"{query}: most of our plans are within {NEAR_PERCENT:g} %"
        yield Claim("IV", sentence, most(NEAR, query), goal=True, optional=True)
    for query in ("q5", "q8"):
        yield Claim(
            "IV", f"{query}: our interval holds the slots really needed in most runs",
            most("IV, share of our intervals that hold the slots really needed", query), goal=True,
        )  # fmt: skip
    for query in QUERIES:
        both = places("III, minutes", BOTH, [query])
        yield Claim("III", f"{query}: our exploration is shorter", (less(*both),), goal=True)


def _production() -> Iterator[Claim]:
    for query in QUERIES:
        cell: Place = (COVERED, paper.OURS, query)
        yield Claim(
            "Figure 11", f"{query}: our interval from the recorded small runs meets the production runs",
            at_least(1.0, cell), goal=True, optional=True,
        )  # fmt: skip
    for query in SIMPLE_QUERIES:
        width: Place = (WIDTH, paper.OURS, query)
        sentence = f"{query}: our interval from the recorded small runs is within a factor of 1.5"
        yield Claim("Figure 11", sentence, at_most(1.5, width), goal=True, optional=True)


def _verified() -> Iterator[Claim]:
    plans = (TABLE_IV, f"{paper.RULE}'s plan", f"{paper.OURS}'s plan")
    for plan, query in product(plans, QUERIES):
        request, more = places(f"Figure 11, {plan}", ("100 %", "150 %"), [query])
        (pending,) = places(f"Figure 11, {plan}, pending records", ["100 %"], [query])
        yield Claim(
            "Figure 11", f"{query}: {plan} sustain 100 % of the request and fail at 150 %",
            (*at_least(SUSTAINED, request), *at_most(BACKLOG_S, pending), Comparison((more,), "below", SUSTAINED)),
            goal=plan == plans[-1],
        )  # fmt: skip


CLAIMS = (*_single_tasks(), *_recorded(), *_estimates(), *_plans(), *_production(), *_verified())
"""The paper's claims, and those about our planner."""


def describe(cell: Cell) -> str:
    """Return our number and the paper's in one sentence."""
    return f"{cell.row}, {cell.column}: never enough, paper {cell.paper:,.4g}" if cell.ours == NEVER else cell.beside()
