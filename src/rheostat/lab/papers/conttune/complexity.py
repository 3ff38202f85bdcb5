"""Section 6: how often the known regions are hit (Figure 3), and the bounds of the changes per tuning (Eq 7 to 9).

Only queries with one tuned operator are read: there the widest operator is the operator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.methods import named
from rheostat.lab.papers.conttune.runs import Found
from rheostat.lab.papers.table import Cell, Table
from rheostat.lab.papers.tuning import Tuned

QUERIES = ("Q1", "Q2", "Q5", "Q8")
"""Queries with one tuned operator."""
AFTER = (1, 5, 10, 15, 20)
"""Tunings after which Pr_use is printed."""
ALPHA = 3
USED, KNOWN = "tunings without exploration", "Pr_use before them"
BIG_BOUND, CBO_BOUND, BOUND = "Eq 7, Big", "Eq 8, CBO", "Eq 9, both"


def known_share(sizes: Iterable[int], alpha: float, p_max: int) -> float:
    """Return Pr_use = len_all / p_max: the share of (0, p_max) within `alpha` of a size in H^t (section 6.1)."""
    end, known = 0.0, 0.0
    for size in sorted(set(sizes)):
        low, high = max(size - alpha, end), min(size + alpha, p_max)
        known += max(high - low, 0.0)
        end = max(end, high)
    return known / p_max


def figure_3(found: Found) -> Iterator[Cell]:
    """Yield Figure 3's example, Pr_use over our tunings, and how many of the later ten used fast exploitation only."""
    example = known_share(paper.EXAMPLE_SIZES, paper.EXAMPLE_ALPHA, paper.EXAMPLE_P_MAX)
    yield Table("Figure 3").exact("the paper's example", "Pr_use", example, paper.EXAMPLE_PR_USE)
    table = Table("Figure 3", "%")
    for query in QUERIES:
        runs = found.queries[query][paper.ALPHA_3]
        shares = [known_shares(levels, paper.P_MAX[query]) for levels in runs]
        for k in AFTER:
            yield table.mean(query, f"after {k}", [100.0 * each[k] for each in shares])
        yield table.mean(query, KNOWN, [100.0 * sum(each[10:20]) / 10 for each in shares])
        used = [100.0 * sum(not t.explored for t in levels[10:]) / 10 for levels in runs]
        yield table.mean(query, USED, used)


def known_shares(levels: Sequence[Tuned], p_max: int) -> list[float]:
    """Return Pr_use before each tuning and after the last one."""
    sizes: set[int] = set()
    shares = [0.0]
    for tuned in levels:
        sizes |= {cores for _, cores in tuned.at_looks}
        shares.append(known_share(sizes, ALPHA, p_max))
    return shares


def equations(found: Found) -> Iterator[Cell]:
    """Yield the worst cases of Eq 7 to 9 beside the changes that were made, with Big, per tuning."""
    table = Table("Eq 7 to 9", "per tuning")
    for query in QUERIES:
        runs, p_max = found.queries[query][named(paper.ALPHA_3, big=True)], paper.P_MAX[query]
        count = len(runs[0])
        explored = [sum(bool(t.explored) for t in levels) for levels in runs]
        big_bound = (math.log2(p_max) + count) / count
        # χ tunings explore, with at most φ changes each; ω is at most p^max.
        cbo_bounds = [(chi * paper.PHI + (count - chi) + p_max) / count for chi in explored]
        big = [sum(t.big for t in levels) / count for levels in runs]
        all_changes = [sum(t.changes for t in levels) / count for levels in runs]
        yield table.exact(BIG_BOUND, query, big_bound)
        yield table.mean("Big", query, big)
        yield table.mean(CBO_BOUND, query, cbo_bounds)
        yield table.mean("CBO", query, [a - b for a, b in zip(all_changes, big, strict=True)])
        yield table.mean(BOUND, query, [big_bound + each for each in cbo_bounds])
        yield table.mean("ContTune", query, all_changes)
