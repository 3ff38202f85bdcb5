"""The paper's tables and figures from our runs; where it has one number for a convergence, both rules are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.measures import (
    Floats,
    best_split,
    exponent,
    fit,
    last_change_min,
    near_best_min,
    per_billion,
    regret,
    served,
    settled,
    tail,
    tuples,
)
from rheostat.lab.papers.dragster.paper import Workload
from rheostat.lab.papers.dragster.play import Run
from rheostat.lab.papers.dragster.runs import BUDGETS, LONG, WORKLOADS, Found, Runs
from rheostat.lab.papers.table import Cell, Table

RULE = " by the 10 % rule"
JOB = paper.WORDCOUNT.job
MINUTES_BEFORE = 240
"""Table 3's rate before convergence is taken over the time that Dhalion needs, for all."""
TAILS = ((100, 200), (200, 400))
GROUPS: Mapping[str, Sequence[str]] = {
    "1 operator": tuple(paper.ONE),
    "2 operators": ("Window", "WordCount"),
    "6 operators": ("YSB",),
}
"""Figure 5's columns, and the workloads in each."""
BUDGET_ROWS = (paper.DHALION, paper.FIRST, paper.SADDLE, paper.GRADIENT, paper.EUCLIDEAN, paper.OURS)
LONG_ROWS = (*paper.ROWS, paper.LETTER)

Metric = Callable[[Run], Sequence[float]]


def method_rows(
    table: Table,
    runs: Runs,
    columns: Sequence[str],
    metric: Metric,
    printed: paper.Row | None = None,
    rows: Sequence[str] = paper.ROWS,
) -> Iterator[Cell]:
    """Yield a row per method: what the metric makes of every seed, as a mean with its interval."""
    for row in rows:
        values = np.array([metric(run) for run in runs[row]], dtype=float)
        known = (printed or {}).get(row, ())
        for k, column in enumerate(columns):
            theirs = known[k] if k < len(known) else None
            yield table.mean(row, column, [float(v) for v in values[:, k]], theirs, _fitted(table, row, k))


def _fitted(table: Table, row: str, column: int) -> bool:
    return column in paper.FITTED.get(table.name, {}).get(row, ())


def price(runs: Runs, workload: Workload, printed: Sequence[float | None]) -> float:
    """Return the dollars per pod and hour with which Dhalion's costs are the paper's, on the mean of the phases."""
    ratios = []
    for phase, dollars in zip(workload.phases.values(), printed, strict=False):
        if dollars is not None:
            ratios.append(dollars / np.mean([per_billion(run, phase) for run in runs[paper.DHALION]]))
    return float(np.mean(ratios))


def table_2(found: Found) -> Iterator[Cell]:
    """Yield Table 2: WordCount under a load that switches every 200 minutes."""
    runs, workload = found.workloads["WordCount"], paper.WORDCOUNT
    columns, spans = list(workload.phases), list(workload.phases.values())
    dollars = price(runs, workload, paper.COST[paper.DHALION])
    yield from _convergence("2", runs, workload, paper.CONVERGENCE)
    yield from method_rows(
        Table("2, tuples", "10^9"),
        runs,
        columns,
        lambda run: [tuples(run[slice(*p)]) / 1e9 for p in spans],
        paper.TUPLES,
    )
    yield from method_rows(
        Table("2, cost", "$ per 10^9"),
        runs,
        columns,
        lambda run: [dollars * per_billion(run, p) for p in spans],
        paper.COST,
    )


def table_3(found: Found) -> Iterator[Cell]:
    """Yield Table 3 and the increase at 300 minutes: the Yahoo streaming benchmark."""
    runs, workload = found.workloads["YSB"], paper.YSB
    phase, span = next(iter(workload.phases.items()))
    dollars = price(runs, workload, paper.YSB_COST[paper.DHALION])
    yield from _convergence("3", runs, workload, paper.YSB_CONVERGENCE)
    table, column = Table("3, rate before convergence", "10^5/s"), f"0-{MINUTES_BEFORE}"
    yield from method_rows(
        table,
        runs,
        [column],
        lambda run: [tuples(run[: MINUTES_BEFORE // 10]) / (MINUTES_BEFORE * 60.0) / 1e5],
        paper.YSB_RATE,
    )
    yield from method_rows(
        Table("3, cost", "$ per 10^9"), runs, [phase], lambda run: [dollars * per_billion(run, span)], paper.YSB_COST
    )


def _convergence(number: str, runs: Runs, workload: Workload, printed: paper.Row) -> Iterator[Cell]:
    """Yield the minutes to converge in every phase, by both rules."""
    columns, spans = list(workload.phases), list(workload.phases.values())
    yield from method_rows(
        Table(f"{number}, convergence", "min"),
        runs,
        columns,
        lambda run: [last_change_min(run, p) for p in spans],
        printed,
    )
    yield from method_rows(
        Table(f"{number}, convergence{RULE}", "min"),
        runs,
        columns,
        lambda run: [near_best_min(run, p, workload.job) for p in spans],
    )


def figure_4(found: Found) -> Iterator[Cell]:
    """Yield what Figure 4 tells of the paths over the 10 x 10 grid, without and with a budget."""
    runs, first = found.workloads["WordCount"], (0, paper.WORDCOUNT.slots[0])
    printed = {row: (slots,) for row, slots in paper.SLOTS_TO_CONVERGE.items()}
    operators = ["map", "shuffle"]
    yield from method_rows(
        Table("Figure 4, slots"), runs, ["slots"], lambda r: [last_change_min(r, first) / 10], printed
    )
    yield from method_rows(
        Table("Figure 4, tasks at the end", "tasks"), runs, operators, lambda r: _at_end(r[: first[1]])
    )
    under = Table(f"Figure 4 budget of {paper.BUDGET} slots, tasks at the end", "tasks")
    yield from method_rows(under, found.budget, operators, _at_end, rows=BUDGET_ROWS)
    most = served(JOB, best_split(JOB, paper.HIGH, paper.BUDGET), paper.HIGH)
    first_dhalion = float(np.mean([settled(JOB, run) for run in found.budget[paper.FIRST]]))
    yield from method_rows(
        Table("Figure 4 budget, throughput"),
        found.budget,
        ["10^3/s", "% above Dhalion that looks at the first operator", "% of the best split"],
        lambda r: [
            settled(JOB, r) / 1e3,
            100 * (settled(JOB, r) / first_dhalion - 1),
            100 * settled(JOB, r) / most,
        ],
        {paper.SADDLE: (None, paper.BUDGET_GAIN), paper.GRADIENT: (None, paper.BUDGET_GAIN)},
        BUDGET_ROWS,
    )
    held = Table("Figure 4 budget, most slots held")
    yield from method_rows(held, found.budget, ["slots"], lambda r: [most_slots(r)], rows=BUDGET_ROWS)
    over = Table("Figure 4 budget, throughput over the best split's", "%")
    for row in (paper.SADDLE, paper.EUCLIDEAN):
        for slots in BUDGETS:
            best = served(JOB, best_split(JOB, paper.HIGH, slots), paper.HIGH)
            yield over.mean(row, f"{slots} slots", [100 * settled(JOB, run) / best for run in found.splits[slots][row]])


def most_slots(run: Run) -> float:
    """Return the most slots that were ever held."""
    return float(max(slot.tasks.slots for slot in run))


def _at_end(run: Run) -> list[float]:
    return [float(count) for count in run[-1].tasks.tasks.values()]


def figure_5(found: Found) -> Iterator[Cell]:
    """Yield Figure 5: minutes to converge by the number of operators, and how much faster than Dhalion that is."""
    for rule in ("", RULE):
        table = Table(f"Figure 5{rule}", "min")
        means: dict[tuple[str, str], float] = {}
        for row in paper.ROWS:
            for k, (column, members) in enumerate(GROUPS.items()):
                values = [_first_phase(found, member, row, bool(rule)) for member in members]
                known = None if rule or row not in paper.BY_OPERATORS else paper.BY_OPERATORS[row][k]
                cell = table.mean(row, column, list(np.mean(values, axis=0)), known, _fitted(table, row, k))
                means[row, column] = cell.ours
                yield cell
        faster = Table(f"Figure 5{rule}, speed-up over Dhalion", "times")
        for row in (paper.SADDLE, paper.GRADIENT, paper.OURS):
            for k, column in enumerate(GROUPS):
                known = None if rule else paper.speed_up(row, k)
                yield faster.cell(row, column, means[paper.DHALION, column] / means[row, column], known)


def _first_phase(found: Found, name: str, row: str, near: bool) -> list[float]:
    workload = WORKLOADS[name]
    phase = (0, workload.slots[0])
    runs = found.workloads[name][row]
    return [near_best_min(run, phase, workload.job) if near else last_change_min(run, phase) for run in runs]


def regrets(found: Found) -> Iterator[Cell]:
    """Yield exponents and tail slopes of regret (Eq 10) and fit (Eq 12) over 400 slots."""
    for kind, runs in found.long.items():
        job = LONG[kind].job
        yield from _growth(f"Regret (Eq 10), {kind}", runs, partial(regret, job))
        yield from _growth(f"Fit (Eq 12), violations only, {kind}", runs, partial(fit, job, violations=True))
        total = Table(f"Fit (Eq 12), {kind}, after 400 slots")
        for row in LONG_ROWS:
            yield total.mean(row, "slots of load", [fit(job, run, False)[-1] for run in runs[row]])


def _growth(name: str, runs: Runs, total: Callable[[Run], Floats]) -> Iterator[Cell]:
    columns = [f"slots {start}-{end}" for start, end in TAILS]
    yield from method_rows(
        Table(f"{name}, exponent"), runs, ["exponent"], lambda run: [exponent(total(run))], rows=LONG_ROWS
    )
    yield from method_rows(
        Table(f"{name}, growth per slot", "% of a slot"),
        runs,
        columns,
        lambda run: [tail(total(run), *span) for span in TAILS],
        rows=LONG_ROWS,
    )
