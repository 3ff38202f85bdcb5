"""The paper's tables from our runs, with the paper's conventions and, with a suffix, with others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO
from rheostat.lab.jobs import job
from rheostat.lab.papers.capacity import fewest_tasks, rates_per_s
from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.methods import (
    AF_4,
    BIG,
    DRAGSTER_LETTER,
    DRAGSTERS,
    LETTER,
    OURS,
    STOPS,
    WAITING,
    named,
    ran,
)
from rheostat.lab.papers.conttune.runs import Found, Runs
from rheostat.lab.papers.table import Cell, Table
from rheostat.lab.papers.tuning import Tuned, cores

ORACLE = "Oracle"
CONTTUNES = (paper.ALPHA_0, paper.ALPHA_3, OURS)
ROWS = (
    paper.DHALION, WAITING, LETTER, *DRAGSTERS, paper.DS2, paper.DS2_RULE, paper.BIG_DS2, *CONTTUNES,
)  # fmt: skip
READINGS: Mapping[str, str] = {
    paper.DS2_RULE: paper.DS2,
    WAITING: paper.DHALION,
    LETTER: paper.DHALION,
    DRAGSTER_LETTER: paper.DRAGSTER,
}
"""Another reading of a row of the paper -> that row."""
COUNTED = ", Big counted"
NOT_COUNTED = ", Big not counted"
SIX = 6
"""Permutations of a total, as in the paper, independent of the number of runs."""

Metric = Callable[[str, Sequence[Tuned], bool], float]
"""(query, the levels of one permutation, whether Big's changes count) -> a number."""


def count_changes(tuned: Tuned, big: bool) -> int:
    """Return the changes that count."""
    return tuned.changes if big else tuned.changes - tuned.big


def tuning_s(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the seconds of changes, for six permutations."""
    return SIX * paper.RESTART_S[query] * sum(count_changes(t, big) for t in levels)


def buffered_s(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the seconds to finish the backlogs, for six permutations."""
    return SIX * sum(t.left_s for t in levels)


def running_s(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return all seconds, for six permutations: generating, finishing, changing."""
    return SIX * paper.HOLD_S * len(levels) + buffered_s(query, levels, big) + tuning_s(query, levels, big)


def core_seconds(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the core-seconds over all that time."""
    extra = sum(cores(t.end) * (t.left_s + count_changes(t, big) * paper.RESTART_S[query]) for t in levels)
    return SIX * (sum(t.core_seconds for t in levels) + extra)


def backlogged(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the per cent of all data that waited during changes."""
    return 100.0 * sum(t.backlog for t in levels) / sum(t.arrived for t in levels)


def most_cores(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the largest number of cores."""
    return float(max(t.most_cores for t in levels))


def per_tuning(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the changes per tuning."""
    return sum(count_changes(t, big) for t in levels) / len(levels)


def cores_at_10(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the cores at the end of the last level of 10 W_u."""
    return float(cores([t for t in levels if t.level == 10.0][-1].end))


def over_fewest(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the mean ratio of the cores at the end of a level to the fewest that suffice."""
    return float(np.mean([cores(t.end) / cores(fewest(query, t.level)) for t in levels]))


@lru_cache(maxsize=1024)
def fewest(query: str, level: float) -> Allocation:
    """Return the smallest allocation that serves a level without noise."""
    plant = job(paper.QUERIES[query])
    return fewest_tasks(plant, rates_per_s(plant, level), SLO())


def needed_changes(query: str, levels: Sequence[Tuned], big: bool) -> float:
    """Return the changes per tuning of the oracle, which knows the curves."""
    sizes = [job(paper.QUERIES[query]).start(), *(fewest(query, t.level) for t in levels)]
    return sum(before != after for before, after in pairwise(sizes)) / len(levels)


def random_search(operators: int, bound: int) -> float:
    """Return the expected tries until every operator has its size.

    Each operator draws without repetition from 1 to `bound`, so its number of tries is uniform between 1 and `bound`;
    all are tried at once, so the largest of n such numbers counts: B - sum over k < B of (k / B)^n.
    """
    return bound - sum((k / bound) ** operators for k in range(bound))


# -- tables 4a to 6 ----------------------------------------------------------------------------------------------


def query_rows(
    found: Found,
    table: Table,
    metric: Metric,
    *,
    rows: Sequence[str] = ROWS,
    stop: str = "",
    big: bool = False,
    over: Callable[[Sequence[float]], float] | None = None,
) -> Iterator[Cell]:
    """Yield a table's cells: a column per query, and their mean."""
    titled_table = Table(titled(table.name, stop, big), table.unit)
    for row in rows:
        cells = row_cells(titled_table, row, by_query(found.queries, metric, named(row, stop, big), big))
        yield from cells if over is None else _extremes(cells, over)


def by_query(queries: Mapping[str, Runs], metric: Metric, name: str, count: bool = False) -> dict[str, list[float]]:
    """Return a number of every permutation, by query; `count` says whether Big's changes count."""
    return {query: [metric(query, levels, count) for levels in runs[name]] for query, runs in queries.items()}


def saved_shares(few: Sequence[float], many: Sequence[float]) -> list[float]:
    """Return how much smaller one number is than another, in per cent, permutation by permutation."""
    return [100.0 * (1.0 - a / b) for a, b in zip(few, many, strict=True)]


def rows_with_big(
    found: Found, table: Table, metric: Metric, over: Callable[[Sequence[float]], float] | None = None
) -> Iterator[Cell]:
    """Yield the rows of ContTune as published: Big answers back pressure, and its changes count or do not."""
    for row in CONTTUNES:
        for count, suffix in ((False, NOT_COUNTED), (True, COUNTED)):
            cells = row_cells(table, row + suffix, by_query(found.queries, metric, row + BIG, count), of=row)
            yield from cells if over is None else _extremes(cells, over)


def _extremes(cells: Iterable[Cell], over: Callable[[Sequence[float]], float]) -> Iterator[Cell]:
    """Yield cells that show the extreme of all permutations; the last one shows the mean of the others."""
    shown = [replace(cell, ours=over(cell.values), low=None, high=None) for cell in cells]
    yield from shown[:-1]
    yield replace(shown[-1], ours=float(np.mean([cell.ours for cell in shown[:-1]])))


def titled(name: str, stop: str = "", big: bool = False) -> str:
    """Return a table's name with a convention: `4a strict stop, Big counted`."""
    number, comma, what = name.partition(",")
    return number + stop + (COUNTED if big else "") + comma + what


def row_cells(
    table: Table,
    row: str,
    values: Mapping[str, Sequence[float]],
    closed_form: bool = False,
    of: str | None = None,
) -> Iterator[Cell]:
    """Yield one row: a cell per query from the values of its permutations, and the mean of all queries.

    `of` is the row of the paper that it reads, where its own name is another.
    """
    of = of or READINGS.get(row, row)
    # With other conventions a table has another name, for which the paper prints nothing.
    printed, fitted = paper.PRINTED.get(table.name, {}).get(of), row in paper.FITTED.get(table.name, ())
    published: Sequence[float | None] = printed or [None] * len(values)
    mean = float(np.mean(printed)) if printed else None
    if table.name == "4a":
        mean = paper.MEANS.get(of, mean)
    means = list(np.mean(list(values.values()), axis=0))
    for (query, each), theirs in zip((*values.items(), ("mean", means)), (*published, mean), strict=True):
        if closed_form:
            yield table.exact(row, query, float(each[0]), theirs, fitted)
        else:
            yield table.mean(row, query, each, theirs, fitted)


def search_space(query: str) -> tuple[int, int]:
    """Return the space of Random Search: the tuned operators, and the p_max of Big's doubling."""
    largest = fewest(query, 10.0)
    return len(largest.tasks), 2 ** math.ceil(math.log2(cores(largest)))


def tables_4_to_6(found: Found) -> Iterator[Cell]:
    """Yield Tables 4a to 4f, 5 and 6."""
    size = {query: search_space(query) for query in found.queries}
    changes = Table("4a", "per tuning")
    for big, stop in product((False, True), STOPS):
        rows = [row for row in ROWS if ran(row, stop, big)]
        yield from query_rows(found, changes, per_tuning, rows=rows, stop=stop, big=big)
        table = Table(titled("4a", stop, big), changes.unit)
        tries = {query: [random_search(*space)] for query, space in size.items()}
        yield from row_cells(table, paper.RANDOM, tries, closed_form=True)
        changes_of_oracle = {
            q: [needed_changes(q, levels, big) for levels in r[paper.DS2]] for q, r in found.queries.items()
        }
        yield from row_cells(table, ORACLE, changes_of_oracle)
        table = Table("4a, cores over the fewest", "times")
        yield from query_rows(found, table, over_fewest, rows=rows, stop=stop, big=big)
    yield from rows_with_big(found, changes, per_tuning)
    yield from saved(found)
    yield from rows_with_big(found, Table("4b", "cores"), most_cores, max)
    for big in (False, True):
        yield from query_rows(found, Table("4b", "cores"), most_cores, big=big, over=max)
        bounds = {query: [float(bound)] for query, (_, bound) in size.items()}
        yield from row_cells(Table(titled("4b", big=big), "cores"), paper.RANDOM, bounds, closed_form=True)
        yield from query_rows(found, Table("4c", "s"), running_s, big=big)
        yield from query_rows(found, Table("4d", "s"), tuning_s, big=big)
        yield from query_rows(found, Table("4e", "%"), backlogged, big=big)
        yield from query_rows(found, Table("4f", "core s"), core_seconds, big=big)
        rows = [paper.ALPHA_3, paper.DS2, paper.DS2_RULE, OURS]
        yield from query_rows(found, Table("5", "cores"), cores_at_10, rows=rows, big=big)
        yield from query_rows(found, Table("6", "s"), buffered_s, big=big)


def saved(found: Found) -> Iterator[Cell]:
    """Yield the share of reconfigurations that ContTune saves against each DS2 (section 7.2)."""
    table = Table("4a, saved", "%")
    for row, theirs in paper.SAVED.items():
        ours = np.mean(list(by_query(found.queries, per_tuning, row).values()), axis=0)
        for linear in (paper.DS2, paper.DS2_RULE):
            before = np.mean(list(by_query(found.queries, per_tuning, linear).values()), axis=0)
            yield table.mean(row, f"against {linear}", saved_shares(ours, before), theirs)


# -- tables 7 and 8, figures 5 and 7 -----------------------------------------------------------------------------


def table_7(found: Found) -> Iterator[Cell]:
    """Yield Table 7: WordCount's changes per permutation, split by their purpose."""
    table = Table("7", "changes")
    for row, printed in paper.WORDCOUNT_CHANGES.items():
        parts: list[tuple[float, float, float]] = []
        for levels in found.queries["WordCount"][row]:
            changes, under = sum(t.changes for t in levels), sum(t.under for t in levels)
            parts.append((changes, under, changes - under))
        for sign, theirs, ours in zip("κθζ", zip(*printed, strict=True), zip(*parts, strict=True), strict=True):
            for k, (published, value) in enumerate(zip(theirs, ours, strict=False)):
                yield table.cell(row, f"per{k + 1} {sign}", value, published)
            yield table.mean(row, f"mean {sign}", ours, float(np.mean(theirs)))


def table_8(found: Found) -> Iterator[Cell]:
    """Yield Table 8: Q1's changes per permutation, by acquisition function."""
    table, names = Table("8", "changes"), {paper.DS2: paper.DS2, AF_4: AF_4, "CBO (AF 5)": paper.ALPHA_3}
    for row, printed in paper.Q1_CHANGES.items():
        totals = [float(sum(t.changes for t in levels)) for levels in found.queries["Q1"][names[row]]]
        fitted = row in paper.FITTED["8"]
        for k, (theirs, ours) in enumerate(zip(printed, totals, strict=False)):
            yield table.cell(row, f"per{k + 1}", ours, theirs, fitted)
        yield table.mean(row, "sum", [SIX * total for total in totals], float(sum(printed)), fitted)


def figure_5(found: Found) -> Iterator[Cell]:
    """Yield the processing latencies of Figure 5 at the end of the second 10 W_u."""
    table = Table("Figure 5", "ms")
    for row in (paper.DS2, paper.ALPHA_3):
        for query, runs in found.queries.items():
            tail = latencies(runs[row])
            for share in (0.5, 0.99):
                yield table.cell(row, f"{query} p{share * 100:.0f}", 1e3 * float(np.quantile(tail, share)))


def latencies(runs: Sequence[Sequence[Tuned]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the latencies of all permutations at the end of their second 10 W_u."""
    return np.concatenate([[t for t in levels if t.level == 10.0][-1].latency_s for levels in runs])


def figure_7(found: Found) -> Iterator[Cell]:
    """Yield Figure 7: changes on long traces, and the saving over DS2."""
    table, saving = Table("Figure 7", "changes"), Table("Figure 7, saved against DS2", "%")
    for k, (trace, runs) in enumerate(found.traces.items()):
        linear = [float(sum(t.changes for t in levels)) for levels in runs[paper.DS2]]
        tunings = float(np.mean([sum(t.tuned for t in levels) for levels in runs[paper.DS2]]))
        for row, each in runs.items():
            totals = [float(sum(count_changes(t, False) for t in levels)) for levels in each]
            yield table.mean(row, trace, totals)
            if row == paper.DS2:
                yield table.cell("tunings", trace, tunings)
                continue
            printed = paper.REAL_CHANGES.get(row)
            theirs = None if printed is None else 100.0 * (1.0 - printed[k] / paper.REAL_CHANGES[paper.DS2][k])
            yield saving.mean(row, trace, saved_shares(totals, linear), theirs)
