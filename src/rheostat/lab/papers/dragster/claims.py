"""The paper's claims about our numbers, goals of ours, and what was fitted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from rheostat.lab.papers.claim import (
    Ablation,
    Claim,
    Comparison,
    Direction,
    always,
    at_least,
    at_most,
    less,
    not_more,
    ratio,
)
from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.runs import BUDGETS, CONSTANT, DROPS, RISES, SIX
from rheostat.lab.papers.dragster.tables import (
    BUDGET_ROWS,
    CLEARED_AFTER,
    ERRORS_AT,
    FUNCTIONS,
    GOODPUT,
    GROUPS,
    IMPROVEMENT,
    KEPT,
    OVER_SPLIT,
    RULE,
    SHORT,
    THEOREM_ROWS,
    WAITING,
)
from rheostat.lab.papers.result import Fit
from rheostat.lab.papers.table import Place, places

FASTER = 1.8
"""The smallest speed-up that the paper claims."""
ONE_SLOT_MIN = 15.0
"""Most mean minutes that count as one slot, with an occasional second one."""
VANISHING = 0.05
"""Growth per slot, in per cent of a slot, below which regret has stopped growing."""
BEST = 1.0
"""Per cent of throughput by which the best split may be missed."""
CLEARLY_MORE = 1.01
"""Ratio of throughputs that is more than noise."""
NOTICED = 3.0
"""Most slots that may be short after a drop of capacity."""
COMMAND = "rheostat reproduce dragster"

FITS = (
    Fit(
        "curves of WordCount, YSB and Figure 5's jobs; Dhalion's CPU thresholds",
        "Dhalion's minutes in Tables 2 and 3, Figures 4 and 5",
        "2, 3, Figure 4 and 5: Dhalion's convergence",
    ),
    Fit("loads", "tuples of Table 2's phases without changes", "2, tuples: phases without changes"),
    Fit("price of a pod, fixed pods", "Dhalion's costs in Tables 2 and 3", "2 and 3, cost: Dhalion"),
    Fit(
        "step size, noise and length scale (free in the paper); margin and shortfall (ours)",
        "first phases of WordCount and YSB",
        "2, 3, Figure 4 and 5: the first phases of all Dragsters",
    ),
    Fit("price of a slot in Figure 4", "Figure 4's gain of 64.7 %", "Figure 4 budget: throughput of all Dragsters"),
    Fit(
        "catch-up in one step, by at most half of the load, without shrinking meanwhile (ours)",
        "our own runs with a backlog, four seeds",
        "Backlog that remains: ours",
    ),
)

PRINTED = (paper.SADDLE, paper.GRADIENT)
OWN = (paper.OWN_SADDLE, paper.OWN_GRADIENT)


UNBOUNDED = "Eq 14 has no maximum while a multiplier is positive"
WITHOUT = {
    paper.SADDLE: (UNBOUNDED, paper.PLAIN),
    paper.GRADIENT: ("Eq 16 never lowers a target above the demand", paper.DESCENT),
    paper.OWN_SADDLE: ("our margin", paper.NO_MARGIN),
}
"""Row -> one of its properties, and the row without it."""


def _speed() -> Iterator[Claim]:
    for number, column in (("2", "0-200"), ("3", "0-300")):
        for rule, (fast, steps) in product(("", RULE), ((paper.SADDLE, paper.GRADIENT), OWN)):
            yield _fast(f"{number}, convergence{rule}", column, fast)
            yield _below(f"{number}, convergence{rule}", column, steps, "converges faster than Dhalion at first")
            one, other = places(f"{number}, convergence{rule}", (fast, steps), [column])
            yield Claim(one[0], f"{fast}: converges at least as fast as the gradient", (not_more(one, other),))
    for group, row in product(GROUPS, (paper.SADDLE, paper.OWN_SADDLE)):
        yield _below("Figure 5", group, row, f"faster than Dhalion with {group}")
    for row in (paper.SADDLE, paper.OWN_SADDLE):
        one, _, six = places("Figure 5, speed-up over Dhalion", [row], GROUPS)
        yield Claim("Figure 5", f"{row}: the more operators, the more it gains on Dhalion", (less(one, six),))
        yield _below("3, convergence", "300-500", row, "converges faster than Dhalion after the increase")


def _fast(table: str, column: str, row: str) -> Claim:
    """Return the claim of the paper's speed-up."""
    slow, own, plain = places(table, (paper.DHALION, row, paper.PLAIN), [column])
    return Claim(
        table,
        f"{row}: converges at least {FASTER} times as fast as Dhalion at first",
        (ratio(slow, own, "at least", FASTER),),
        ablation=Ablation(UNBOUNDED, (ratio(slow, plain, "at least", FASTER),), COMMAND)
        if row == paper.SADDLE
        else None,
    )


def _below(table: str, column: str, row: str, sentence: str) -> Claim:
    return _against(table, column, row, "below", sentence)


def _against(table: str, column: str, row: str, direction: Direction, sentence: str) -> Claim:
    """Return a claim about the ratio to Dhalion; the row without one of its properties is the ablation."""
    own, theirs = places(table, (row, paper.DHALION), [column])
    ablation = None
    if row in WITHOUT and (WITHOUT[row][1] in paper.ROWS or not table.startswith("Figure 5")):
        cause, other = WITHOUT[row]
        ablation = Ablation(cause, (ratio((table, other, column), theirs, direction, 1.0),), COMMAND)
    return Claim(table, f"{row}: {sentence}", (ratio(own, theirs, direction, 1.0),), ablation=ablation)


def _switching() -> Iterator[Claim]:
    returned = ("400-600", "600-800", "800-1000")
    for row in (paper.SADDLE, paper.OWN_SADDLE):
        again = at_most(ONE_SLOT_MIN, *places("2, convergence", [row], returned))
        plain = at_most(ONE_SLOT_MIN, *places("2, convergence", [paper.PLAIN], returned))
        yield Claim(
            "2, convergence",
            f"{row}: returns to a known load in one slot, or nearly ({ONE_SLOT_MIN:g} minutes)",
            again,
            ablation=Ablation(UNBOUNDED, plain, COMMAND) if row == paper.SADDLE else None,
        )
    for row in (*PRINTED, *OWN):
        for column in ("200-400", "600-800"):
            yield _below("2, cost", column, row, f"cheaper than Dhalion in the low phase {column}")
        for column in ("400-600", "800-1000"):
            yield _below("2, cost", column, row, f"cheaper than Dhalion in the high phase {column}")
        sentence = "processes more than Dhalion while both converge"
        yield _against("2, tuples", "0-200", row, "above", sentence)
        yield _against("3, rate", "0-300", row, "above", "processes more than Dhalion on YSB")
        yield _below("3, cost", "0-300", row, "cheaper than Dhalion on YSB")
        for name, least in (("WordCount", paper.GOODPUT_GAIN[0]), ("YSB", paper.YSB_GAIN)):
            sentence = f"{row}: at least {least:.1f} % more tuples than Dhalion in {name}'s first phase"
            yield Claim(GOODPUT, sentence, at_least(least, (GOODPUT, row, name)))
        low, high = paper.IMPROVEMENT
        gain = Comparison(((IMPROVEMENT, row, "WordCount"),), "within", (low + high) / 2, (high - low) / 2)
        yield Claim(IMPROVEMENT, f"{row}: {low:g} to {high:g} times on WordCount", (gain,))
    for row, column in product((paper.SADDLE, paper.OWN_SADDLE), ("200-400", "600-800")):
        own, unmultiplied, theirs = places("2, cost", (row, paper.PLAIN, paper.DHALION), [column])
        most = 1 - paper.SAVINGS / 100
        without = Ablation(UNBOUNDED, (ratio(unmultiplied, theirs, "at most", most),), COMMAND)
        yield Claim(
            "2, cost",
            f"{row}: at least {paper.SAVINGS:g} % cheaper than Dhalion in the low phase {column}",
            (ratio(own, theirs, "at most", most),),
            ablation=without if row == paper.SADDLE else None,
        )
    served = places("2, load served at the end of a phase", (paper.SADDLE, paper.SHORTFALL), ("200-400", "600-800"))
    yield Claim(
        "2, load served at the end of a phase",
        f"{paper.SADDLE}: serves the low load",
        at_least(99.0, *served[:2]),
        ablation=Ablation("|mu - y| is symmetric", at_least(99.0, *served[2:]), COMMAND),
    )


def _best_split(row: str) -> tuple[Comparison, ...]:
    cells = places(OVER_SPLIT, [row], (f"{slots} slots" for slots in BUDGETS))
    return tuple(Comparison((cell,), "at least", 100.0, BEST) for cell in cells)


def _budget() -> Iterator[Claim]:
    yield Claim("Figure 4", "no method exceeds the budget in any slot", always(*places(KEPT, BUDGET_ROWS, ["kept"])))
    for row in (paper.SADDLE, paper.PLAIN, paper.OWN_SADDLE):
        yield Claim(
            "Figure 4",
            f"{row}: under every budget it ends in the best split of the grid, within {BEST:g} %",
            _best_split(row),
            ablation=Ablation("the Euclidean projection", _best_split(paper.SPLIT), COMMAND)
            if row == paper.PLAIN
            else None,
        )
    for row in (paper.SADDLE, paper.OWN_SADDLE):
        own, root, first = places("Figure 4 budget, throughput", (row, paper.DHALION, paper.FIRST), ["10^3/s"])
        sentence = f"{row}: under a budget it processes more than a Dhalion that serves Map first"
        yield Claim("Figure 4", sentence, (ratio(own, first, "above", 1.0),))
        yield Claim(
            "Figure 4",
            f"{row}: under a budget it processes at least 1 % more than Dhalion as published",
            (ratio(own, root, "above", CLEARLY_MORE),),
            ablation=Ablation(
                "Dhalion follows the root of the back pressure", (ratio(own, first, "above", CLEARLY_MORE),), COMMAND
            ),
        )


def _regret() -> Iterator[Claim]:
    for kind, row, what in product(
        (CONSTANT, SIX), (*PRINTED, *OWN), ("Regret (Eq 10)", "Regret with resources", "Fit (Eq 12), violations only")
    ):
        name = f"{what}, {kind}"
        letter = Ablation("Eq 14 to 18 to the letter", _growth(name, paper.OWN_SADDLE), COMMAND)
        yield Claim(
            name,
            f"{row}: it grows sub-linearly, and at the end hardly at all",
            _growth(name, row),
            ablation=letter if row == paper.SADDLE else None,
        )
    for kind in (CONSTANT, SIX):
        name = f"Regret (Eq 10), {kind}"
        yield Claim(
            name,
            f"{paper.PLAIN}: it grows sub-linearly, and at the end hardly at all",
            _growth(name, paper.PLAIN),
            ablation=Ablation("no margin, and |mu - y| is symmetric", _growth(name, paper.OWN_SADDLE), COMMAND),
        )


def _growth(name: str, row: str) -> tuple[Comparison, ...]:
    exponent: Place = (f"{name}, exponent", row, "exponent")
    tail: Place = (f"{name}, growth per slot", row, "second half")
    return Comparison((exponent,), "below", 1.0), *at_most(VANISHING, tail)


def _theorems() -> Iterator[Claim]:
    for kind, row in product((CONSTANT, SIX), THEOREM_ROWS):
        table = f"Theorem 1, {kind}"
        for measured, equation in (("fit", "Eq 19"), ("regret", "Eq 20"), ("variances", "Eq 24")):
            of, most = places(table, [row], (measured, equation))
            yield Claim(table, f"{row}: {measured} below {equation}", (less(of, most),))
    for kind in (CONSTANT, SIX):
        table = f"Theorem 1, {kind}"
        bound, slots = places(table, [paper.SADDLE], ("Eq 20", "slots"))
        yield Claim(table, "Eq 20 excludes the loss of every record within these slots", (less(bound, slots),))
    early, late = (f"T = {slots}" for slots in (ERRORS_AT[0], ERRORS_AT[-1]))
    for row in ("all windows", "32 windows, ours"):
        at_first, at_last = places(FUNCTIONS, [row], (early, late))
        yield Claim(FUNCTIONS, f"{row}: it falls, as Theorem 2 requires", (ratio(at_last, at_first, "at most", 0.5),))


def _ours() -> Iterator[Claim]:
    for name in DROPS:
        cells = places(SHORT, OWN, [name])
        sentence = f"{name}: after a drop of 10 % at most {NOTICED:g} slots are short"
        yield Claim(SHORT, sentence, at_most(NOTICED, *cells), goal=True)
        own, without = places(SHORT, (paper.OWN_SADDLE, paper.REMEMBERS), [name])
        yield Claim(SHORT, f"{name}: forgetting makes fewer slots short", (less(own, without),), goal=True)
    for name, table in product(RISES, (WAITING, CLEARED_AFTER)):
        own, without = places(table, (paper.OWN_SADDLE, paper.NO_CATCH_UP), [name])
        yield Claim(table, f"{name}: multipliers that act shorten a backlog", (less(own, without),), goal=True)


CLAIMS = (*_speed(), *_switching(), *_budget(), *_regret(), *_theorems(), *_ours())
"""The paper's claims, and conditions that any reproduction must meet."""
