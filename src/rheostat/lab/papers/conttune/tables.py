"""The paper's tables from our runs, each under its own conventions and, with a suffix, under others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from rheostat.control.limits import limits
from rheostat.job.allocation import Allocation
from rheostat.job.slo import Slo
from rheostat.lab.experiment.clairvoyant import smallest
from rheostat.lab.jobs import job
from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.methods import AF_4, DRAGSTERS, OURS, STOPS, named, ran
from rheostat.lab.papers.conttune.runs import Found
from rheostat.lab.papers.result import Cell, mean_with_interval
from rheostat.lab.papers.tuning import Tuned, cores

SUITE = "conttune"
CLAIRVOYANT = "Clairvoyant"
ROWS = (paper.DHALION, *DRAGSTERS, paper.DS2, paper.BIG_DS2, paper.ALPHA_0, paper.ALPHA_3, OURS)
COUNTED = ", Big counted"
SIX = 6
"""Totals are of six permutations, as in the paper, however many ran."""

Metric = Callable[[str, Sequence[Tuned], bool], float]
"""(query, the levels of one permutation, whether Big's changes count) -> a number."""


def counted(tuned: Tuned, big: bool) -> int:
    """Return the changes that count."""
    return tuned.changes if big else tuned.changes - tuned.big


def tuning_s(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the time that changes take, for six permutations."""
    return SIX * paper.RESTART_S[query] * sum(counted(t, big) for t in levels)


def buffered_s(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the time that it takes to finish what waits, for six permutations."""
    return SIX * sum(t.left_s for t in levels)


def running_s(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return all time, for six permutations: generating, finishing, changing."""
    return SIX * paper.HOLD_S * len(levels) + buffered_s(query, levels, big) + tuning_s(query, levels, big)


def core_seconds(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the cores held over all that time."""
    extra = sum(cores(t.end) * (t.left_s + counted(t, big) * paper.RESTART_S[query]) for t in levels)
    return SIX * (sum(t.core_seconds for t in levels) + extra)


def backlogged(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the per cent of all data that waited while a change was made."""
    return 100.0 * sum(t.backlog for t in levels) / sum(t.arrived for t in levels)


def per_tuning(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the changes per tuning."""
    return sum(counted(t, big) for t in levels) / len(levels)


def cores_at_10(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the cores at the end of the last level of 10 W_u."""
    return float(cores([t for t in levels if t.level == 10.0][-1].end))


def over_fewest(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return how many times the fewest cores that suffice are held at the end of a level, on the mean."""
    return float(np.mean([cores(t.end) / cores(fewest(query, t.level)) for t in levels]))


@lru_cache(maxsize=1024)
def fewest(query: str, level: float) -> Allocation:
    """Return the smallest allocation that serves a level, noise apart."""
    plant = job(paper.QUERIES[query])
    demand = plant.graph.demand_per_s({name: unit * level for name, unit in plant.unit_per_s.items()})
    return smallest(plant.ability_per_s, demand, plant.start(), limits(plant.spec(), Slo()))


def needed_changes(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the changes per tuning of one who knows the curves."""
    sizes = [job(paper.QUERIES[query]).start(), *(fewest(query, t.level) for t in levels)]
    return sum(before != after for before, after in pairwise(sizes)) / len(levels)


def random_search(operators: int, bound: int) -> float:
    """Return the expected tries until every operator has met its size.

    Each draws without repetition from 1 to `bound`, so the number of its tries is even between 1 and `bound`; all
    are tried at once, so the largest of n such numbers counts: B - sum over k < B of (k / B)^n.
    """
    return bound - sum((k / bound) ** operators for k in range(bound))


# -- tables 4a to 6 ----------------------------------------------------------------------------------------------


def table(
    found: Found,
    name: str,
    metric: Metric,
    unit: str,
    printed: Mapping[str, Sequence[float]] | None = None,
    *,
    rows: Sequence[str] = ROWS,
    stop: str = "",
    big: bool = False,
    count: bool | None = None,
    over: Callable[[Sequence[float]], float] | None = None,
) -> Iterator[Cell]:
    """Yield a table's cells: a column per query, and their mean. What Big does counts where it runs, unless told."""
    count = big if count is None else count
    title, own = titled(name, stop, big and count), not stop and not big
    for row in rows:
        values = {
            query: [metric(query, levels, count) for levels in runs[named(row, stop, big)]]
            for query, runs in found.queries.items()
        }
        known = (printed or {}).get(row)
        yield from row_cells(title, row, values, unit, known, own, over)


def titled(name: str, stop: str = "", big: bool = False) -> str:
    """Return a table's name under a convention: `4a strict stop, Big counted`."""
    number, comma, what = name.partition(",")
    return number + stop + (COUNTED if big else "") + comma + what


def row_cells(
    table_name: str,
    row: str,
    values: Mapping[str, Sequence[float]],
    unit: str,
    known: Sequence[float] | None,
    own: bool,
    over: Callable[[Sequence[float]], float] | None = None,
) -> Iterator[Cell]:
    """Yield one row: a cell per query from the values of its permutations, and the mean of all queries."""
    fitted = own and row in paper.FITTED.get(table_name, ())
    for k, (query, each) in enumerate(values.items()):
        ours, low, high = (over(each), None, None) if over else mean_with_interval(each)
        yield Cell(SUITE, table_name, row, query, known[k] if known and own else None, ours, unit, fitted, low, high)
    mean = None if not known or not own else float(np.mean(known))
    if table_name == "4a":
        mean = paper.MEANS.get(row, mean)
    together = np.mean(list(values.values()), axis=0)
    ours, low, high = mean_with_interval(list(together))
    if over:
        ours, low, high = float(np.mean([over(each) for each in values.values()])), None, None
    yield Cell(SUITE, table_name, row, "mean", mean, ours, unit, fitted, low, high)


def searched(query: str) -> tuple[int, int]:
    """Return what Random Search has to search: the tuned operators, and the p_max that Big's doubling comes to."""
    largest = fewest(query, 10.0)
    return len(largest.tasks), 2 ** math.ceil(math.log2(cores(largest)))


def tables_4_to_6(found: Found) -> list[Cell]:
    """Return Tables 4a to 4f, 5 and 6."""
    cells: list[Cell] = []
    size = {query: searched(query) for query in found.queries}
    for big in (False, True):
        for stop in STOPS:
            printed = paper.RECONFIGURATIONS
            rows = [row for row in ROWS if ran(row, stop, big)]
            cells += table(found, "4a", per_tuning, "per tuning", printed, rows=rows, stop=stop, big=big)
            name, own = titled("4a", stop, big), not stop and not big
            tries = {query: [random_search(*space)] for query, space in size.items()}
            cells += row_cells(name, paper.RANDOM, tries, "per tuning", printed[paper.RANDOM], own)
            known = {q: [needed_changes(q, levels, big) for levels in r[paper.DS2]] for q, r in found.queries.items()}
            cells += row_cells(name, CLAIRVOYANT, known, "per tuning", None, own)
            cells += table(found, "4a, cores over the fewest", over_fewest, "times", rows=rows, stop=stop, big=big)
    run = "4a, Big run and not counted"
    cells += table(found, run, per_tuning, "per tuning", rows=ROWS[4:], big=True, count=False)
    for big in (False, True):
        cells += table(
            found,
            "4b",
            lambda _, levels, __: float(max(t.most_cores for t in levels)),
            "cores",
            paper.MOST_CORES,
            big=big,
            over=max,
        )
        bounds = {query: [float(bound)] for query, (_, bound) in size.items()}
        cells += row_cells(
            "4b" + (COUNTED if big else ""), paper.RANDOM, bounds, "cores", paper.MOST_CORES[paper.RANDOM], not big, max
        )
        cells += table(found, "4c", running_s, "s", paper.RUNNING_S, big=big)
        cells += table(found, "4d", tuning_s, "s", paper.TUNING_S, big=big)
        cells += table(found, "4e", backlogged, "%", paper.BACKLOGGED, big=big)
        cells += table(found, "4f", core_seconds, "core s", paper.CORE_SECONDS, big=big)
        cells += table(
            found, "5", cores_at_10, "cores", paper.CORES_AT_10, rows=(paper.ALPHA_3, paper.DS2, OURS), big=big
        )
        cells += table(found, "6", buffered_s, "s", paper.BUFFERED_S, big=big)
    return cells


# -- tables 7 and 8, figures 5 and 7 -----------------------------------------------------------------------------


def table_7(found: Found) -> Iterator[Cell]:
    """Yield Table 7: WordCount's changes per permutation, split by what they were made for."""
    for row, printed in paper.WORDCOUNT_CHANGES.items():
        parts: list[tuple[float, float, float]] = []
        for levels in found.queries["WordCount"][row]:
            every, under = sum(t.changes for t in levels), sum(t.under for t in levels)
            parts.append((every, under, every - under))
        for sign, theirs, ours in zip("κθζ", zip(*printed, strict=True), zip(*parts, strict=True), strict=True):
            for k, (known, value) in enumerate(zip(theirs, ours, strict=False)):
                yield Cell(SUITE, "7", row, f"per{k + 1} {sign}", known, value, "changes", False)
            mean, low, high = mean_with_interval(ours)
            yield Cell(SUITE, "7", row, f"mean {sign}", float(np.mean(theirs)), mean, "changes", False, low, high)


def table_8(found: Found) -> Iterator[Cell]:
    """Yield Table 8: Q1's changes per permutation, by acquisition function."""
    names = {paper.DS2: paper.DS2, AF_4: AF_4, "CBO (AF 5)": paper.ALPHA_3}
    for row, printed in paper.Q1_CHANGES.items():
        totals = [float(sum(t.changes for t in levels)) for levels in found.queries["Q1"][names[row]]]
        fitted = row in paper.FITTED["8"]
        for k, (theirs, ours) in enumerate(zip(printed, totals, strict=False)):
            yield Cell(SUITE, "8", row, f"per{k + 1}", theirs, ours, "changes", fitted)
        mean, low, high = mean_with_interval([SIX * total for total in totals])
        yield Cell(SUITE, "8", row, "sum", float(sum(printed)), mean, "changes", fitted, low, high)


def figure_5(found: Found) -> Iterator[Cell]:
    """Yield the latencies behind Figure 5: through the job, at the end of the second 10 W_u."""
    for row in (paper.DS2, paper.ALPHA_3):
        for query, runs in found.queries.items():
            tail = latencies(runs[row])
            for share in (0.5, 0.99):
                ours = 1e3 * float(np.quantile(tail, share))
                yield Cell(SUITE, "Figure 5", row, f"{query} p{share * 100:.0f}", None, ours, "ms", False)


def latencies(runs: Sequence[Sequence[Tuned]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the latencies of all permutations at the end of their second 10 W_u."""
    return np.concatenate([[t for t in levels if t.level == 10.0][-1].latency_s for levels in runs])


def figure_7(found: Found) -> Iterator[Cell]:
    """Yield Figure 7: changes on long traces, and what is saved against DS2."""
    for k, (trace, runs) in enumerate(found.traces.items()):
        linear = [float(sum(t.changes for t in levels)) for levels in runs[paper.DS2]]
        tunings = float(np.mean([sum(t.looked_at for t in levels) for levels in runs[paper.DS2]]))
        for row, each in runs.items():
            totals = [float(sum(counted(t, False) for t in levels)) for levels in each]
            ours, low, high = mean_with_interval(totals)
            yield Cell(SUITE, "Figure 7", row, trace, None, ours, "changes", False, low, high)
            saved = [100.0 * (1.0 - a / b) for a, b in zip(totals, linear, strict=True)]
            ours, low, high = mean_with_interval(saved)
            printed = paper.REAL_CHANGES.get(row)
            theirs = None if printed is None else 100.0 * (1.0 - printed[k] / paper.REAL_CHANGES[paper.DS2][k])
            if row == paper.DS2:
                yield Cell(SUITE, "Figure 7", "tunings", trace, None, tunings, "changes", False)
            else:
                yield Cell(SUITE, "Figure 7, saved against DS2", row, trace, theirs, ours, "%", False, low, high)
