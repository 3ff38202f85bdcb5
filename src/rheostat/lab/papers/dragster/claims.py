"""The paper's claims about our numbers, and what was fitted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from rheostat.lab.papers.claim import Ablation, Claim, Comparison, Direction, always, at_most, less, not_more, ratio
from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.runs import BUDGETS, CONSTANT, SIX
from rheostat.lab.papers.dragster.tables import BUDGET_ROWS, GROUPS, KEPT, RULE
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
        "margin, shortfall, step size, noise and length scale (ours)",
        "first phases of WordCount and YSB",
        "2, 3, Figure 4 and 5: the first phases of both Dragsters",
    ),
    Fit("price of a slot in Figure 4", "Figure 4's gain of 64.7 %", "Figure 4 budget: throughput of both Dragsters"),
)


def _speed() -> Iterator[Claim]:
    for number, column in (("2", "0-200"), ("3", "0-300")):
        by_change = _faster(f"{number}, convergence", column)
        for rule in ("", RULE):
            name = f"{number}, convergence{rule}"
            slow, fast, steps = places(name, (paper.DHALION, paper.SADDLE, paper.GRADIENT), [column])
            yield Claim(
                name,
                f"the saddle point converges at least {FASTER} times as fast as Dhalion at first",
                _faster(name, column),
                ablation=Ablation("the 10 % rule", by_change, COMMAND) if rule else None,
            )
            yield Claim(name, "the online gradient converges faster than Dhalion at first", (less(steps, slow),))
            yield Claim(name, "the saddle point converges at least as fast as the gradient", (not_more(fast, steps),))
    for group in GROUPS:
        slow, fast = places("Figure 5", (paper.DHALION, paper.SADDLE), [group])
        sentence = f"the saddle point is faster than Dhalion with {group}"
        yield Claim("Figure 5", sentence, (ratio(slow, fast, "above", 1.0),))
    one, _, six = places("Figure 5, speed-up over Dhalion", [paper.SADDLE], GROUPS)
    yield Claim("Figure 5", "the more operators, the more it gains on Dhalion", (less(one, six),))
    fast, slow = places("3, convergence", (paper.SADDLE, paper.DHALION), ["300-500"])
    yield Claim("3, convergence", "after the increase it converges faster than Dhalion", (less(fast, slow),))


def _faster(table: str, column: str) -> tuple[Comparison, ...]:
    return (ratio((table, paper.DHALION, column), (table, paper.SADDLE, column), "at least", FASTER),)


def _against(table: str, column: str, direction: Direction, sentence: str) -> Claim:
    ours, theirs = places(table, (paper.SADDLE, paper.DHALION), [column])
    return Claim(table, sentence, (ratio(ours, theirs, direction, 1.0),))


def _switching() -> Iterator[Claim]:
    known = places("2, convergence", [paper.SADDLE], ("400-600", "600-800", "800-1000"))
    yield Claim(
        "2, convergence",
        f"the saddle point returns to a known load in one slot, or nearly ({ONE_SLOT_MIN:g} minutes)",
        at_most(ONE_SLOT_MIN, *known),
    )
    for column in ("200-400", "600-800"):
        sentence = f"the saddle point is cheaper than Dhalion in the low phase {column}"
        yield _against("2, cost", column, "below", sentence)
    yield _against("2, tuples", "0-200", "above", "the saddle point processes more than Dhalion while both converge")
    name = "3, rate before convergence"
    yield _against(name, "0-240", "above", "the saddle point processes more than Dhalion on YSB")
    yield _against("3, cost", "0-300", "below", "the saddle point is cheaper than Dhalion on YSB")


def _best_split(row: str) -> tuple[Comparison, ...]:
    cells = places("Figure 4 budget, throughput over the best split's", [row], (f"{slots} slots" for slots in BUDGETS))
    return tuple(Comparison((cell,), "at least", 100.0, BEST) for cell in cells)


def _budget() -> Iterator[Claim]:
    yield Claim("Figure 4", "no method exceeds the budget in any slot", always(*places(KEPT, BUDGET_ROWS, ["kept"])))
    sentence = f"under every budget the split by learned capacities is the best one of the grid, within {BEST:g} %"
    yield Claim("Figure 4", sentence, _best_split(paper.SADDLE))
    yield Claim(
        "Figure 4",
        f"under every budget the Euclidean projection is the best split of the grid, within {BEST:g} %",
        _best_split(paper.EUCLIDEAN),
        ablation=Ablation("the Euclidean projection", _best_split(paper.SADDLE), COMMAND),
    )
    ours, root, first = places("Figure 4 budget, throughput", (paper.SADDLE, paper.DHALION, paper.FIRST), ["10^3/s"])
    over_first = (ratio(ours, first, "above", 1.0),)
    yield Claim("Figure 4", "under a budget it processes more than a Dhalion that serves Map first", over_first)
    yield Claim(
        "Figure 4",
        "under a budget it processes at least 1 % more than Dhalion as published",
        (ratio(ours, root, "above", CLEARLY_MORE),),
        ablation=Ablation(
            "Dhalion follows the root of the back pressure", (ratio(ours, first, "above", CLEARLY_MORE),), COMMAND
        ),
    )


def _regret() -> Iterator[Claim]:
    for kind, row, what in product(
        (CONSTANT, SIX), (paper.SADDLE, paper.GRADIENT), ("Regret (Eq 10)", "Fit (Eq 12), violations only")
    ):
        name = f"{what}, {kind}"
        yield Claim(name, f"{row}: it grows sub-linearly, and at the end hardly at all", _growth(name, row))
    for kind in (CONSTANT, SIX):
        name = f"Regret (Eq 10), {kind}"
        yield Claim(
            name,
            "Eq 18 to the letter: it grows sub-linearly, and at the end hardly at all",
            _growth(name, paper.LETTER),
            ablation=Ablation("no margin, and |mu - y| is symmetric", _growth(name, paper.SADDLE), COMMAND),
        )


def _growth(name: str, row: str) -> tuple[Comparison, ...]:
    exponent: Place = (f"{name}, exponent", row, "exponent")
    tail: Place = (f"{name}, growth per slot", row, "slots 200-400")
    return Comparison((exponent,), "below", 1.0), *at_most(VANISHING, tail)


CLAIMS = (*_speed(), *_switching(), *_budget(), *_regret())
"""The paper's claims, and conditions that any reproduction must meet."""
