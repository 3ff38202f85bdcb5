"""The paper's claims about our numbers, and what was fitted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from rheostat.lab.papers.claim import (
    Ablation,
    Claim,
    Comparison,
    columns,
    less,
    near_paper,
    not_more,
    ratio,
)
from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.complexity import BIG_BOUND, BOUND, CBO_BOUND, KNOWN, QUERIES, USED
from rheostat.lab.papers.conttune.drift import FACTORS
from rheostat.lab.papers.conttune.methods import BIG, OURS, STOPS
from rheostat.lab.papers.conttune.runs import FITTED_WITH_RULE, TRACES
from rheostat.lab.papers.conttune.sensitivity import named
from rheostat.lab.papers.conttune.tables import COUNTED, NOT_COUNTED, titled
from rheostat.lab.papers.difference import WITHIN
from rheostat.lab.papers.result import Fit
from rheostat.lab.papers.table import Cell

ORDER = (
    (paper.RANDOM, paper.DHALION), (paper.DHALION, paper.DS2), (paper.DHALION, paper.BIG_DS2),
    (paper.DS2, paper.ALPHA_0), (paper.BIG_DS2, paper.ALPHA_0), (paper.ALPHA_0, paper.ALPHA_3),
)  # fmt: skip
"""Table 4a: pairs whose first row needs more reconfigurations than the second."""
ORDERED = "Random > Dhalion > DS2, Big + DS2 > alpha=0 > alpha=3"
FEWER_AT_10 = ("WordCount", "Q1", "Q2", "Q5", "Q8")
"""Table 5: queries on which alpha=3 holds fewer cores than DS2."""
HARDLY_MORE = 0.03
"""Share of core-seconds by which alpha=3 may exceed DS2."""
COMMAND = "rheostat reproduce conttune"
COUNTS, LENIENT = "Big's changes count", "all methods stop at the first window without back pressure"
RULE = "DS2 ignores single decreases"
MOST_SHORT, MOST_CHANGES = 2.0, 4.0
"""Goals of ours after capacities have changed: per cent of the windows that are short, and changes."""

FITS = (
    Fit("curves and noise of the six queries", "DS2's counts in Table 4a, and Table 5", "4a and 8: DS2; 5: alpha=3"),
    Fit(
        "the same for a DS2 that ignores single decreases",
        "DS2's counts in Table 4a",
        f"4a {FITTED_WITH_RULE}: {paper.DS2_RULE}",
    ),
    Fit("seconds of a restart", "Table 4d over Table 4a, DS2", "4d: DS2"),
    Fit("seconds between two decisions (20, not 50)", "DS2's backlogs in Tables 4e and 6", "4e and 6: DS2"),
)


def _ordered(table: str) -> tuple[Comparison, ...]:
    return tuple(less((table, fewer, "mean"), (table, more, "mean")) for more, fewer in ORDER)


def _gain(table: str) -> tuple[Comparison, ...]:
    return (ratio((table, paper.ALPHA_3, "mean"), (table, paper.DS2, "mean"), "below", 1.0),)


def _conventions() -> Iterator[Claim]:
    """Yield the order and the gain under every convention, with the convention itself as a possible cause."""
    sentences = ((ORDERED, _ordered), ("alpha=3 needs fewer reconfigurations than DS2", _gain))
    for (sentence, parts), big, stop in product(sentences, (False, True), STOPS):
        name = titled("4a", stop, big)
        ablation = None
        if big:
            ablation = Ablation(COUNTS, parts(titled("4a", stop)), COMMAND)
        elif stop == STOPS[2]:
            ablation = Ablation(LENIENT, parts("4a"), COMMAND)
        yield Claim(name, sentence, parts(name), ablation=ablation)


def _savings() -> Iterator[Claim]:
    """Yield what ContTune saves: against a DS2 that takes every suggestion, and one with its own controller's rule."""
    for row, percent in paper.SAVED.items():
        cells = {linear: ("4a, saved", row, f"against {linear}") for linear in (paper.DS2, paper.DS2_RULE)}
        for linear, cell in cells.items():
            sentence = f"{row} saves {percent:g} % of the reconfigurations of {linear}, within a tenth of that"
            by_rule = linear == paper.DS2_RULE
            other = Ablation(RULE, (near_paper(cells[paper.DS2], WITHIN),), COMMAND) if by_rule else None
            yield Claim("4a, saved", sentence, (near_paper(cell, WITHIN),), ablation=other)
    table, fitted = f"{named(FITTED_WITH_RULE)}, saved", f"against {paper.DS2_RULE}"
    sentence = "fitted to DS2 with its rule, alpha=3 still saves reconfigurations"
    yield Claim(table, sentence, (Comparison(((table, paper.ALPHA_3, fitted),), "above", 0.0),))


def _means() -> Iterator[Claim]:
    for row in paper.MEANS:
        sentence = f"{row}: the mean is within {WITHIN:.0%} of the paper's".replace("%", " %")
        yield Claim("4a", sentence, (near_paper(("4a", row, "mean"), WITHIN),))
    for row in (paper.ALPHA_0, paper.ALPHA_3):
        cell, not_counted = (("4a", row + suffix, "mean") for suffix in (COUNTED, NOT_COUNTED))
        sentence = f"{row}, with Big run and counted: the mean is within {WITHIN:.0%} of the paper's".replace("%", " %")
        yield Claim(
            "4a", sentence, (near_paper(cell, WITHIN),),
            ablation=Ablation(COUNTS, (near_paper(not_counted, WITHIN),), COMMAND),
        )  # fmt: skip


def _fewer(table: str, few: str, many: str, sentence: str, column: str = "mean") -> Claim:
    return Claim(table, sentence, (ratio((table, few, column), (table, many, column), "below", 1.0),))


def _others() -> Iterator[Claim]:
    big = titled("4b", big=True)
    yield _fewer(big, paper.DS2, paper.ALPHA_3, "Big asks for more cores at the most than DS2 does")
    for table, what in (
        ("4c", "running time"),
        ("4d", "tuning time"),
        ("4e", "backlogged data"),
        ("6", "buffered data"),
    ):
        yield _fewer(table, paper.ALPHA_3, paper.DS2, f"alpha=3 has less {what} than DS2")
        yield _fewer(table, paper.ALPHA_3, paper.DHALION, f"alpha=3 has less {what} than Dhalion")
    both = (("4f", paper.ALPHA_3, "mean"), ("4f", paper.DS2, "mean"))
    yield Claim("4f", "alpha=3 costs hardly more than DS2 (at most 3 %)", (ratio(*both, "at most", 1.0, HARDLY_MORE),))
    yield _fewer("4f", paper.DHALION, paper.DS2, "Dhalion holds fewer core-seconds than DS2")
    yield Claim(
        "5", "alpha=3 holds no more cores than DS2 at 10 W_u",
        tuple(not_more(a, b) for a, b in columns("5", paper.ALPHA_3, paper.DS2, paper.QUERIES)),
    )  # fmt: skip
    ruled = tuple(less(("5", paper.ALPHA_3, query), ("5", paper.DS2_RULE, query)) for query in FEWER_AT_10)
    every = tuple(less(("5", paper.ALPHA_3, query), ("5", paper.DS2, query)) for query in FEWER_AT_10)
    sentence = "alpha=3 holds fewer cores at 10 W_u than {} on all queries but Q3"
    yield Claim("5", sentence.format(paper.DS2), every)
    yield Claim("5", sentence.format(paper.DS2_RULE), ruled)
    yield _fewer("7", paper.ALPHA_3, paper.DS2, "ContTune ends back pressure with fewer changes than DS2", "mean θ")
    yield _fewer("8", "CBO (AF 5)", "CBO (AF 4)", "Eq 5 needs fewer changes than Eq 4", "sum")
    yield _fewer("8", "CBO (AF 4)", paper.DS2, "Eq 4 needs fewer changes than DS2", "sum")
    for trace, other in product(TRACES, (paper.DS2, paper.ALPHA_0)):
        cells = ("Figure 7", paper.ALPHA_3, trace), ("Figure 7", other, trace)
        sentence = f"{trace}: alpha=3 makes fewer changes than {other}"
        yield Claim("Figure 7", sentence, (ratio(*cells, "below", 1.0),), optional=True)


def _analysis() -> Iterator[Claim]:
    """Yield the claims of section 6."""
    used = tuple(
        Comparison(
            (("Figure 3", query, USED),), "at least", 0.0, to=(("Figure 3", query, KNOWN),), measure="difference"
        )
        for query in QUERIES
    )
    yield Claim("Figure 3", "fast exploitation is used at least as often as Pr_use says", used)
    pairs = (("Big", BIG_BOUND), ("CBO", CBO_BOUND), ("ContTune", BOUND))
    parts = tuple(
        not_more(("Eq 7 to 9", row, query), ("Eq 7 to 9", top, query)) for row, top in pairs for query in QUERIES
    )
    yield Claim("Eq 7 to 9", "no phase makes more changes per tuning than its worst case", parts)


def _goals() -> Iterator[Claim]:
    """Yield our goals after capacities have changed, for our model with and without Big."""
    for change, row in product(FACTORS, (OURS, OURS + BIG)):
        parts = (
            Comparison((("drift, windows short", row, change),), "at most", MOST_SHORT),
            Comparison((("drift, changes", row, change),), "at most", MOST_CHANGES),
        )
        sentence = f"{row}, {change}: at most 2 % of the windows are short, and at most 4 changes"
        yield Claim("drift, windows short", sentence, parts, goal=True)


CLAIMS = (*_conventions(), *_savings(), *_means(), *_others(), *_analysis(), *_goals())
"""The paper's claims."""


def comparable(cell: Cell) -> bool:
    """Return whether a cell is listed if it differs: single queries of Table 4a, and means of the other tables."""
    if cell.table == "4a":
        return cell.column != "mean"
    if cell.table in ("7", "8"):
        return cell.column == "sum" or cell.column.startswith("mean")
    return cell.table.startswith("Figure") or (cell.table in paper.PRINTED and cell.column == "mean")
