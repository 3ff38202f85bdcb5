"""StreamBed's conclusions as tests of our numbers, and the causes of differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from rheostat.lab.papers.conclusion import UNKNOWN, Conclusion, at_least, each, less
from rheostat.lab.papers.streambed import paper
from rheostat.lab.papers.streambed.paper import QUERIES, SIMPLE_QUERIES
from rheostat.lab.papers.streambed.tables import CHOOSES, NEVER, RECORDED, SIMULATED
from rheostat.lab.papers.table import Cell, places

BOTH = (paper.OURS, paper.RULE)
CHANCE = (
    "noise, failed runs and the budgets that expected improvement selects decide which family tests best: over the "
    "seeds the rule selects all three of them"
)
UNTOLD = "sizes up to 48 slots do not determine q5 and q8 beyond: several laws fit them and differ there by factors"
NOISE = "the simulated estimate has noise of 60 s at every operator, and a replay of ten minutes averages over it"
COUNTS = "the number of runs depends on when the rule's error first rises by 10 %"
GULPS = "with one task of a slow window behind fast operators, buffers fill in bursts that a window of 30 s sees"
CURVE = "the simulated curves are fitted to small sizes; at full size they sustain a few per cent less than the request"
BENT = (
    "the operators' true rates fall with every task, so that a straight line through the smallest sizes gives too few "
    "slots; the paper's size sustains the request itself, ours includes the 110 %"
)
CAUSES: Mapping[str, str] = {
    "III, calls of the optimizer": COUNTS,
    "III, calls of the estimator": COUNTS,
    "III, minutes": COUNTS + "; the paper's minutes contain deployments, ours are injection only",
    "III, share of runs that choose the paper's family": CHANCE,
    f"III{RECORDED}": "the artifact's rows are not those of the paper's run in every query (q5), or the rule selects "
    "another family on them",
    "Figure 9, sustained at 100 %": NOISE,
    "Figure 9, failing at 150 %": GULPS,
    "Figure 9, least processed at 100 %": NOISE,
    "Figure 10, q8": "the simulated join has no skew",
    "Figure 11, Table IV's slots": CURVE,
}


def _recorded() -> Iterator[Conclusion]:
    for query, settings in QUERIES.items():
        yield Conclusion(
            "IV",
            f"{query}: the paper's family, fitted to its recorded measurements, gives Table IV's slots within 2 %",
            places(f"IV, {max(settings.gb):g} GB{RECORDED}", [paper.FAMILY], [query]),
            lambda cell: abs(cell.ours / cell.paper - 1) <= 0.02, "{0:.0f} slots, paper {0.paper:.0f}",
            "the artifact's rows of q5 give another intercept than Table III", optional=True,
        )  # fmt: skip
    yield Conclusion(
        "III", "on the recorded runs the rule chooses the paper's families",
        places(f"III{RECORDED}", [CHOOSES], QUERIES), at_least(1.0),
        lambda *same: f"{sum(cell.ours for cell in same):.0f} of {len(same)} queries", CHANCE, optional=True,
    )  # fmt: skip


def _estimates() -> Iterator[Conclusion]:
    for what, way in product(("sustained at 100 %", "failing at 150 %"), (paper.DICHOTOMIC, paper.SEQUENTIAL)):
        yield Conclusion(
            "Figure 9", f"{way}: estimates of q1, q2 and q11 are {what}, nine in ten at least",
            places(f"Figure 9, {what}", [way], SIMPLE_QUERIES), at_least(0.9), each("{0.column} {0:.0%}"), NOISE,
        )  # fmt: skip
    for query in QUERIES:
        yield Conclusion(
            "Figure 9", f"{query}: our estimator takes at least 30 % less time",
            places("Figure 9, minutes per estimate", BOTH, [query]), lambda fast, slow: fast.ours <= 0.7 * slow.ours,
            "{:.1f} against {:.1f} minutes", GULPS,
        )  # fmt: skip


def _plans() -> Iterator[Conclusion]:
    for query in SIMPLE_QUERIES:
        both = places("IV, distance from the slots really needed", BOTH, [query])
        numbers, cause = "{:.0f} % off against {:.0f} %", "few seeds, and their noise"
        sentence = f"{query}: our plan is nearer to what is needed"
        yield Conclusion("IV", sentence, both, less, numbers, optional=True)
        sentence = f"{query}: our plan is within 8 %"
        yield Conclusion("IV", sentence, both, lambda ours, theirs: ours.ours <= 8.0, numbers, cause, optional=True)
    for query in ("q5", "q8"):
        yield Conclusion(
            "IV", f"{query}: our interval holds the slots really needed in most runs",
            places("IV, share of our intervals that hold the slots really needed", [paper.OURS], [query]),
            at_least(0.5), "{:.0%} of the runs", UNTOLD,
        )  # fmt: skip
    for query in QUERIES:
        both, sentence = places("III, minutes", BOTH, [query]), f"{query}: our exploration is shorter"
        yield Conclusion("III", sentence, both, less, "{:.0f} against {:.0f} minutes")


def _verified() -> Iterator[Conclusion]:
    for plan, query in product(("Table IV's slots", f"{paper.OURS}'s plan"), QUERIES):
        yield Conclusion(
            "Figure 11", f"{query}: {plan} sustain 100 % of the request and fail at 150 %",
            places(f"Figure 11, {plan}", ("100 %", "120 %", "150 %"), [query]),
            lambda all_, more, half_more: all_.ours >= 0.99 and half_more.ours < 0.99, each("{0.row}: {0:.2f}"),
            UNTOLD if query in ("q5", "q8") else CURVE, optional=True,
        )  # fmt: skip


CONCLUSIONS = (*_recorded(), *_estimates(), *_plans(), *_verified())
"""The paper's conclusions, and those about our planner."""


def describe(cell: Cell) -> str:
    """Return our number and the paper's in one sentence."""
    ours = "never enough" if cell.ours == NEVER else f"{cell:,.4g}"
    return f"{cell.row}, {cell.column}: {ours}, paper {cell.paper:,.4g}"


def cause(cell: Cell) -> str:
    """Return why a cell differs from the paper's."""
    if not cell.table.startswith("IV"):
        return CAUSES.get(cell.table, UNKNOWN)
    if cell.table.endswith(SIMULATED):
        return UNTOLD if cell.column in ("q5", "q8") else CHANCE
    if cell.row == paper.OURS:
        return BENT if cell.column in SIMPLE_QUERIES else UNTOLD
    return CHANCE if cell.row == paper.RULE else CAUSES[f"III{RECORDED}"]
