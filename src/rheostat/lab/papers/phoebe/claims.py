"""The paper's claims about our numbers, our own goals, and what was fitted."""

from __future__ import annotations

from collections.abc import Iterator

from rheostat.lab.papers.claim import Ablation, Claim, Comparison, at_least, at_most, less
from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.runs import CONFIDENCE, NO_LATENCY
from rheostat.lab.papers.phoebe.tables import COLUMNS, SHOWN, late_table
from rheostat.lab.papers.result import Fit
from rheostat.lab.papers.table import Place, places

COMPARABLE = 1.25
"""Largest mean ratio of comparable recovery times to static 24's."""
MOSTLY = 5
"""Failures, of eight, that count as most."""
OVER_ORACLE, PREDICTION = 1.08, 8.0
"""Our own goals: slot-seconds over those of the oracle with as many changes, and per cent of error."""
EQUAL, SAME = 3.0, 0.5
"""Points of resources saved within which two methods are equal, and do the same."""
UNKNOWN_D = "the downtime is unknown until the first failure"
COMMAND = "rheostat reproduce phoebe"

FITS = (
    Fit(
        "TSW's capacity, its downtimes after failures and changes, replay, display lag",
        "recorded runs at 4, 12 and 24 workers, and the recorded profile",
        "II TSW as displayed: static 24 and 12; the simulator against the recorded runs",
    ),
    Fit(
        "YSB's plant: TSW's capacity with kappa = 1, downtimes, display lag",
        "recorded YSB runs",
        "II YSB as displayed: static 24 and 12; all rows of YSB contain it",
    ),
    Fit("Phoebe's D = 110 s", "the savings of 25.5 and 41 %", "resources saved: Phoebe; all rows of Phoebe contain it"),
    Fit("CPU gain at saturation, 0.42", "the changes of the reactive runs", "changes: Reactive"),
    Fit(
        "prior of the downtime, 60 s with a standard deviation of 60 s (ours)",
        "chosen with the plant's 65 s in view",
        "all rows of ours; TSW, plants with other downtimes shows it elsewhere",
    ),
)


def _recovery(title: str) -> Iterator[Claim]:
    table = f"II {title}, {SHOWN}"
    own, largest = (places(table, [row], COLUMNS) for row in (paper.PHOEBE, paper.S24))
    yield Claim(
        table, f"Phoebe recovers at any load, comparably with 24 fixed workers (at most {COMPARABLE:g} times)",
        (
            Comparison(own, "at most", COMPARABLE, to=largest, measure="ratio"),
            *(Comparison((cell,), "below", paper.LONG_S) for cell in own),
        ),
    )  # fmt: skip
    late = late_table(title)
    for row in (paper.S4, paper.REACTIVE, paper.TWRES):
        yield Claim(
            table, f"{row} is short of resources: most failures take six minutes or more",
            at_least(MOSTLY, (late, row, "of 8")),
        )  # fmt: skip
    cell: Place = (late, paper.S12, "of 8")
    yield Claim(
        table, f"{paper.S12} fails above a certain load only",
        (Comparison((cell,), "above", 0.0), Comparison((cell,), "below", MOSTLY)),
    )  # fmt: skip
    table, column = f"{title}, latency", "% near the best"
    worse = [row for row in paper.ROWS if row not in (paper.OURS, paper.S24, paper.PHOEBE)]
    yield Claim(
        table, "static 24 has the best latencies, Phoebe the second best",
        (
            less((table, paper.PHOEBE, column), (table, paper.S24, column)),
            *(less((table, row, column), (table, paper.PHOEBE, column)) for row in worse),
        ),
    )  # fmt: skip


def _cost(name: str, title: str) -> Iterator[Claim]:
    table, printed = f"{title}, resources saved against static 24", paper.SAVING[name]
    smaller_d: Place = (f"{title}, Phoebe's D decides", f"D = {paper.EQUAL_D:g}", "saved, %")
    for row in (paper.PHOEBE, paper.OURS):
        ablation = Ablation(f"D = {paper.MAIN_D:g} s", at_least(printed, smaller_d), COMMAND)
        if row == paper.OURS:
            drilled: Place = (f"{title}, before the first failure", "drilled", "saved, %")
            ablation = Ablation(UNKNOWN_D, at_least(printed, drilled), COMMAND)
        yield Claim(
            table, f"{row} saves at least what the paper's Phoebe does ({printed:g} %)",
            at_least(printed, (table, row, "saved")), row == paper.OURS, ablation,
        )  # fmt: skip
    cell: Place = (table, paper.PHOEBE, "with profiling, its measuring windows")
    yield Claim(table, "profiling is bought back within six hours", (Comparison((cell,), "above", 0.0),))


def _models(title: str) -> Iterator[Claim]:
    table = f"{title}, what matters in the models"
    without, whole = ((table, row, "saved, %") for row in (NO_LATENCY, paper.PHOEBE))
    yield Claim(
        table, f"the latency model hardly matters: without it Phoebe saves the same (within {SAME:g} points)",
        (Comparison((without,), "within", 0.0, SAME, to=(whole,), measure="difference"),), goal=True, optional=True,
    )  # fmt: skip


def _ours(title: str) -> Iterator[Claim]:
    table, row = f"{title}, prediction error of recovery", f"{paper.OURS}, by offsets"
    yield Claim(
        table, f"{paper.OURS}: predictions before a failure are within {PREDICTION:g} %, in the median of a run",
        at_most(PREDICTION, (table, row, "single failures")), goal=True,
    )  # fmt: skip
    table = first = f"{title}, before the first failure"
    given, ours = f"{title}, Phoebe's D decides", (table, "drilled", "saved, %")
    if title == paper.TITLES[paper.TSW]:
        yield Claim(
            table,
            f"Phoebe with D = {paper.EQUAL_D:g} s and ours after a drill save the same (within {EQUAL:g} points)",
            (Comparison((ours,), "within", 0.0, EQUAL, to=((given, f"D = {paper.EQUAL_D:g}", "saved, %"),),
                        measure="difference"),), goal=True,
        )  # fmt: skip
    else:
        yield Claim(
            table, f"ours after a drill misses fewer targets than Phoebe with D = {paper.EQUAL_D:g} s",
            (less((table, "drilled", "missed, %"), (given, f"D = {paper.EQUAL_D:g}", "missed, %")),), goal=True,
        )  # fmt: skip
    yield Claim(
        table, f"{paper.OURS} misses no feasible target, although it knows no downtime",
        (Comparison(((table, "unknown", "missed, %"),), "at most", 0.0),), goal=True,
    )  # fmt: skip
    table, most = f"{title}, targets of {paper.TARGET_S:g} s", 100 * (1 - CONFIDENCE)
    yield Claim(
        table, f"{paper.OURS} misses at most {most:.0f} % of the feasible targets",
        at_most(most, (table, paper.OURS, "missed")), goal=True,
    )  # fmt: skip
    table = f"{title}, slot-seconds over the oracle's"
    yield Claim(
        table, f"{paper.OURS} uses at most {OVER_ORACLE:g} times the oracle's slot-seconds for as many changes",
        at_most(OVER_ORACLE, (table, paper.OURS, "no more changes than the method")), True,
        Ablation(UNKNOWN_D, at_most(OVER_ORACLE, (first, "drilled", "over the oracle")), COMMAND),
    )  # fmt: skip
    table = f"II {title}, changes"
    both = ((table, row, "changes") for row in (paper.OURS, paper.PHOEBE))
    yield Claim(table, f"{paper.OURS} changes less often than Phoebe", (less(*both),), goal=True)


CLAIMS = tuple(
    claim
    for name, title in paper.TITLES.items()
    for claim in (*_recovery(title), *_cost(name, title), *_models(title), *_ours(title))
)
"""The paper's claims and our own goals, by experiment."""
