"""Which of StreamBed's conclusions hold in our numbers, and every place where ours differ, with the cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rheostat.lab.papers.result import Cell, Check, Finding
from rheostat.lab.papers.streambed import paper
from rheostat.lab.papers.streambed.paper import QUERIES, SIMPLE_QUERIES
from rheostat.lab.papers.streambed.tables import NEVER, RECORDED, SIMULATED

WITHIN = 0.1
At = Mapping[tuple[str, str, str], Cell]

CHANCE = (
    "noise, failed runs and the budgets that expected improvement happens to pick decide which family tests best: over "
    "seeds the rule takes all three of them"
)
UNTOLD = "sizes up to 48 slots do not tell how q5 and q8 go on: several laws fit them, and differ by factors beyond"
NOISE = "the simulated estimate has noise of 60 s at every operator, and a replay of ten minutes averages over it"
COUNTS = "how many runs the rule makes depends on when its error first rises by 10 %"
GULPS = "with one task of a slow window behind fast operators, buffers take records in gulps that a window of 30 s sees"
CURVE = "the simulated curves were fitted on small sizes; at full size they carry a few per cent less than the request"
BENT = (
    "the operators' true rates fall with every task, so that a straight line through the smallest sizes asks for too "
    "little; the paper's size sustained the request itself, ours has the 110 % left"
)
CAUSES: Mapping[str, str] = {
    "III, calls of the optimizer": COUNTS,
    "III, calls of the estimator": COUNTS,
    "III, minutes": COUNTS + "; the paper's minutes contain deployments, ours are injection only",
    "III, share of runs that choose the paper's family": CHANCE,
    f"III{RECORDED}": "the artifact's rows are not those of the paper's run in every query (q5), or the rule chooses "
    "otherwise on them",
    "Figure 9, sustained at 100 %": NOISE,
    "Figure 9, failing at 150 %": GULPS,
    "Figure 9, least processed at 100 %": NOISE,
    "Figure 10, q8": "skew is not part of the simulated join",
    "Figure 11, Table IV's slots": CURVE,
}


def checks(cells: Sequence[Cell]) -> Iterator[Check]:
    """Yield the paper's conclusions, and those of our own way beside it."""
    at = {(cell.table, cell.row, cell.column): cell for cell in cells}
    yield from _recorded(at)
    yield from _estimates(at)
    yield from _plans(at)
    yield from _verified(at)


def _recorded(at: At) -> Iterator[Check]:
    for query, asked in QUERIES.items():
        gb = max(asked.gb)
        cell = at.get((f"IV, {gb:g} GB{RECORDED}", paper.FAMILY, query))
        if cell is None or cell.paper is None:
            continue
        told = f"{cell.ours:.0f} slots, paper {cell.paper:.0f}"
        sentence = (
            f"{query}: the paper's family, fitted to its recorded measurements, gives Table IV's slots within 2 %"
        )
        cause = "the artifact's rows of q5 give another intercept than Table III"
        yield Check("IV", sentence, abs(cell.ours / cell.paper - 1) <= 0.02, told, cause)
    rule = [at[f"III{RECORDED}", "the rule chooses the paper's family", q].ours for q in QUERIES if _has(at, q)]
    if rule:
        told = f"{sum(rule):.0f} of {len(rule)} queries"
        yield Check("III", "on the recorded runs the rule chooses the paper's families", sum(rule) == 5, told, CHANCE)


def _has(at: At, query: str) -> bool:
    return (f"III{RECORDED}", "the rule chooses the paper's family", query) in at


def _estimates(at: At) -> Iterator[Check]:
    for what in ("sustained at 100 %", "failing at 150 %"):
        for way in (paper.DICHOTOMIC, paper.SEQUENTIAL):
            shares = {q: at[f"Figure 9, {what}", way, q].ours for q in SIMPLE_QUERIES}
            told = ", ".join(f"{q} {share:.0%}" for q, share in shares.items())
            sentence = f"{way}: estimates of q1, q2 and q11 are {what}, nine in ten at least"
            yield Check("Figure 9", sentence, min(shares.values()) >= 0.9, told, NOISE)
    for query in QUERIES:
        slow, fast = (at["Figure 9, minutes per estimate", way, query].ours for way in ("StreamBed", "auto"))
        told = f"{fast:.1f} against {slow:.1f} minutes"
        sentence = f"{query}: our estimator takes at least 30 % less time"
        yield Check("Figure 9", sentence, fast <= 0.7 * slow, told, GULPS)


def _plans(at: At) -> Iterator[Check]:
    name = "IV, distance from the slots really needed"
    for query in SIMPLE_QUERIES:
        theirs, ours = at.get((name, paper.RULE, query)), at.get((name, paper.OURS, query))
        if theirs is None or ours is None:
            continue
        told = f"{ours.ours:.0f} % off against {theirs.ours:.0f} %"
        yield Check("IV", f"{query}: our plan is nearer to what is needed", ours.ours < theirs.ours, told)
        yield Check("IV", f"{query}: our plan is within 8 %", ours.ours <= 8.0, told, "few seeds, and their noise")
    for query in ("q5", "q8"):
        cell = at["IV, share of our intervals that hold the slots really needed", paper.OURS, query]
        sentence = f"{query}: our interval holds the slots really needed in most runs"
        yield Check("IV", sentence, cell.ours >= 0.5, f"{cell.ours:.0%} of the runs", UNTOLD)
    for query in QUERIES:
        slow, fast = (at["III, minutes", way, query].ours for way in (paper.RULE, paper.OURS))
        yield Check(
            "III", f"{query}: our exploration is shorter", fast < slow, f"{fast:.0f} against {slow:.0f} minutes"
        )


def _verified(at: At) -> Iterator[Check]:
    for plan in ("Table IV's slots", f"{paper.OURS}'s plan"):
        for query in QUERIES:
            shares = {s: at.get((f"Figure 11, {plan}", s, query)) for s in ("100 %", "120 %", "150 %")}
            known = {share: cell.ours for share, cell in shares.items() if cell is not None}
            if len(known) < 3:
                continue
            told = ", ".join(f"{share}: {processed:.2f}" for share, processed in known.items())
            holds = known["100 %"] >= 0.99 and known["150 %"] < 0.99
            sentence = f"{query}: {plan} sustain 100 % of the request and fail at 150 %"
            cause = UNTOLD if query in ("q5", "q8") else CURVE
            yield Check("Figure 11", sentence, holds, told, cause)


def findings(cells: Sequence[Cell]) -> Iterator[Finding]:
    """Yield every cell that is more than 10 % off, with its cause."""
    for cell in cells:
        if not cell.off(WITHIN):
            continue
        ours = "never enough" if cell.ours == NEVER else f"{cell.ours:,.4g}"
        what = f"{cell.row}, {cell.column}: {ours}, paper {cell.paper:,.4g}"
        cause = CAUSES.get(cell.table, "")
        if cell.table.startswith("IV") and cell.table.endswith(SIMULATED):
            cause = UNTOLD if cell.column in ("q5", "q8") else CHANCE
        elif cell.table.startswith("IV"):
            bent = cell.row == paper.OURS and cell.column in SIMPLE_QUERIES
            cause = (
                BENT
                if bent
                else UNTOLD
                if cell.row == paper.OURS
                else CHANCE
                if cell.row == paper.RULE
                else CAUSES[f"III{RECORDED}"]
            )
        yield Finding(cell.table, what, cause or "not explained")
