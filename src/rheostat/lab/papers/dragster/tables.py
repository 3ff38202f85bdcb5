"""The paper's tables and figures from our runs, with convergence by both rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from rheostat.lab.papers.dragster import measures, paper
from rheostat.lab.papers.dragster.measures import (
    Floats,
    best_split,
    final_throughput_per_s,
    last_change_min,
    near_best_min,
    served,
)
from rheostat.lab.papers.dragster.paper import Workload
from rheostat.lab.papers.dragster.play import Run
from rheostat.lab.papers.dragster.runs import BUDGETS, LONG, WORKLOADS, Found, Runs
from rheostat.lab.papers.table import Cell, Table

RULE = " by the 10 % rule"
JOB = paper.WORDCOUNT.job
MINUTES_BEFORE = 240
"""Minutes of Table 3's rate before convergence: Dhalion's time to converge, for all methods."""
TAILS = ((100, 200), (200, 400))
GROUPS: Mapping[str, Sequence[str]] = {
    "1 operator": tuple(paper.ONE),
    "2 operators": ("Window", "WordCount"),
    "6 operators": ("YSB",),
}
"""Columns of Figure 5 -> workloads."""
BUDGET_ROWS = (paper.DHALION, paper.FIRST, paper.SADDLE, paper.GRADIENT, paper.EUCLIDEAN, paper.OURS)
KEPT = "Figure 4 budget, kept in every slot"
LONG_ROWS = (*paper.ROWS, paper.LETTER)

Metric = Callable[[Run], float]


def method_rows(
    table: Table,
    runs: Runs,
    columns: Mapping[str, Metric],
    printed: paper.Row | None = None,
    rows: Sequence[str] = paper.ROWS,
) -> Iterator[Cell]:
    """Yield a row per method: the mean of each column's metric over the seeds, with its interval."""
    for row in rows:
        published = (printed or {}).get(row, ())
        for k, (column, metric) in enumerate(columns.items()):
            theirs = published[k] if k < len(published) else None
            yield table.mean(row, column, [float(metric(run)) for run in runs[row]], theirs, _fitted(table, row, k))


def _fitted(table: Table, row: str, column: int) -> bool:
    return column in paper.FITTED.get(table.name, {}).get(row, ())


def price(runs: Runs, workload: Workload, printed: Sequence[float | None]) -> float:
    """Return the dollars per pod and hour with which Dhalion's mean cost over the phases is the paper's."""
    ratios = []
    for phase, dollars in zip(workload.phases.values(), printed, strict=False):
        if dollars is not None:
            ratios.append(dollars / np.mean([measures.per_billion(run, phase) for run in runs[paper.DHALION]]))
    return float(np.mean(ratios))


def table_2(found: Found) -> Iterator[Cell]:
    """Yield Table 2: WordCount under a load that switches every 200 minutes."""
    runs, workload = found.workloads["WordCount"], paper.WORDCOUNT
    dollars = price(runs, workload, paper.COST[paper.DHALION])
    yield from _convergence("2", runs, workload, paper.CONVERGENCE)
    columns = {phase: partial(_billions, span) for phase, span in workload.phases.items()}
    yield from method_rows(Table("2, tuples", "10^9"), runs, columns, paper.TUPLES)
    columns = {phase: partial(_dollars, dollars, span) for phase, span in workload.phases.items()}
    yield from method_rows(Table("2, cost", "$ per 10^9"), runs, columns, paper.COST)


def table_3(found: Found) -> Iterator[Cell]:
    """Yield Table 3 and the increase at 300 minutes: the Yahoo streaming benchmark."""
    runs, workload = found.workloads["YSB"], paper.YSB
    phase, span = next(iter(workload.phases.items()))
    dollars = price(runs, workload, paper.YSB_COST[paper.DHALION])
    yield from _convergence("3", runs, workload, paper.YSB_CONVERGENCE)
    before, column = MINUTES_BEFORE // 10, f"0-{MINUTES_BEFORE}"
    rate = {column: lambda run: measures.tuples(run[:before]) / (MINUTES_BEFORE * 60.0) / 1e5}
    yield from method_rows(Table("3, rate before convergence", "10^5/s"), runs, rate, paper.YSB_RATE)
    yield from method_rows(
        Table("3, cost", "$ per 10^9"), runs, {phase: partial(_dollars, dollars, span)}, paper.YSB_COST
    )


def _billions(span: tuple[int, int], run: Run) -> float:
    return measures.tuples(run[slice(*span)]) / 1e9


def _dollars(price: float, span: tuple[int, int], run: Run) -> float:
    return price * measures.per_billion(run, span)


def _convergence(number: str, runs: Runs, workload: Workload, printed: paper.Row) -> Iterator[Cell]:
    """Yield the minutes to converge in every phase, by both rules."""
    columns: dict[str, Metric] = {name: partial(last_change_min, phase=p) for name, p in workload.phases.items()}
    yield from method_rows(Table(f"{number}, convergence", "min"), runs, columns, printed)
    columns = {name: partial(near_best_min, phase=p, name=workload.job) for name, p in workload.phases.items()}
    yield from method_rows(Table(f"{number}, convergence{RULE}", "min"), runs, columns)


def figure_4(found: Found) -> Iterator[Cell]:
    """Yield the numbers of Figure 4's paths over the 10 x 10 grid, without and with a budget."""
    runs, first = found.workloads["WordCount"], (0, paper.WORDCOUNT.slots[0])
    printed = {row: (slots,) for row, slots in paper.SLOTS_TO_CONVERGE.items()}
    slots_needed = {"slots": lambda run: last_change_min(run, first) / 10}
    yield from method_rows(Table("Figure 4, slots"), runs, slots_needed, printed)
    at_end = {name: partial(_tasks, name, first[1] - 1) for name in ("map", "shuffle")}
    yield from method_rows(Table("Figure 4, tasks at the end", "tasks"), runs, at_end)
    under = Table(f"Figure 4 budget of {paper.BUDGET} slots, tasks at the end", "tasks")
    at_end = {name: partial(_tasks, name, -1) for name in ("map", "shuffle")}
    yield from method_rows(under, found.budget, at_end, rows=BUDGET_ROWS)
    most = served(JOB, best_split(JOB, paper.HIGH, paper.BUDGET), paper.HIGH)
    first_dhalion = float(np.mean([final_throughput_per_s(JOB, run) for run in found.budget[paper.FIRST]]))
    columns: dict[str, Metric] = {
        "10^3/s": lambda run: final_throughput_per_s(JOB, run) / 1e3,
        "% above Dhalion that looks at the first operator": lambda run: (
            100 * (final_throughput_per_s(JOB, run) / first_dhalion - 1)
        ),
        "% of the best split": lambda run: 100 * final_throughput_per_s(JOB, run) / most,
    }
    gain = dict.fromkeys((paper.SADDLE, paper.GRADIENT), (None, paper.BUDGET_GAIN))
    yield from method_rows(Table("Figure 4 budget, throughput"), found.budget, columns, gain, BUDGET_ROWS)
    held = Table("Figure 4 budget, most slots held")
    yield from method_rows(held, found.budget, {"slots": most_slots}, rows=BUDGET_ROWS)
    for row in BUDGET_ROWS:
        yield Table(KEPT, "share of runs").share(
            row, "kept", [most_slots(run) <= paper.BUDGET for run in found.budget[row]]
        )
    over = Table("Figure 4 budget, throughput over the best split's", "%")
    for row, slots in product((paper.SADDLE, paper.EUCLIDEAN), BUDGETS):
        best = served(JOB, best_split(JOB, paper.HIGH, slots), paper.HIGH)
        yield over.mean(
            row, f"{slots} slots", [100 * final_throughput_per_s(JOB, run) / best for run in found.splits[slots][row]]
        )


def most_slots(run: Run) -> float:
    """Return the largest number of slots."""
    return float(max(slot.tasks.slots for slot in run))


def _tasks(operator: str, slot: int, run: Run) -> float:
    return float(run[slot].tasks.tasks[operator])


def figure_5(found: Found) -> Iterator[Cell]:
    """Yield Figure 5: minutes to converge by number of operators, and the speed-up over Dhalion."""
    for rule in ("", RULE):
        table, faster = Table(f"Figure 5{rule}", "min"), Table(f"Figure 5{rule}, speed-up over Dhalion", "times")
        minutes = {
            (row, column): np.mean([_first_phase(found, member, row, bool(rule)) for member in members], axis=0)
            for row, (column, members) in product(paper.ROWS, GROUPS.items())
        }
        for row, (k, column) in product(paper.ROWS, enumerate(GROUPS)):
            published = None if rule or row not in paper.BY_OPERATORS else paper.BY_OPERATORS[row][k]
            yield table.mean(row, column, list(minutes[row, column]), published, _fitted(table, row, k))
        for row, (k, column) in product((paper.SADDLE, paper.GRADIENT, paper.OURS), enumerate(GROUPS)):
            slow, fast = minutes[paper.DHALION, column], minutes[row, column]
            if rule:
                # Some seeds are near the best from the start: only the ratio of the means is finite.
                yield faster.cell(row, column, float(slow.mean() / fast.mean()))
            else:
                yield faster.mean(row, column, list(slow / fast), paper.speed_up(row, k))


def _first_phase(found: Found, name: str, row: str, near: bool) -> list[float]:
    workload = WORKLOADS[name]
    phase = (0, workload.slots[0])
    runs = found.workloads[name][row]
    return [near_best_min(run, phase, workload.job) if near else last_change_min(run, phase) for run in runs]


def regrets(found: Found) -> Iterator[Cell]:
    """Yield exponents and tail slopes of regret (Eq 10) and fit (Eq 12) over 400 slots."""
    for kind, runs in found.long.items():
        job = LONG[kind].job
        yield from _growth(f"Regret (Eq 10), {kind}", runs, partial(measures.regret, job))
        yield from _growth(f"Fit (Eq 12), violations only, {kind}", runs, partial(measures.fit, job, violations=True))
        total = Table(f"Fit (Eq 12), {kind}, after 400 slots")
        for row in LONG_ROWS:
            yield total.mean(row, "slots of load", [measures.fit(job, run, False)[-1] for run in runs[row]])


def _growth(name: str, runs: Runs, total: Callable[[Run], Floats]) -> Iterator[Cell]:
    columns: dict[str, Metric] = {"exponent": lambda run: measures.exponent(total(run))}
    yield from method_rows(Table(f"{name}, exponent"), runs, columns, rows=LONG_ROWS)
    columns = {f"slots {a}-{b}": partial(_slope, total, a, b) for a, b in TAILS}
    yield from method_rows(Table(f"{name}, growth per slot", "% of a slot"), runs, columns, rows=LONG_ROWS)


def _slope(total: Callable[[Run], Floats], start: int, end: int, run: Run) -> float:
    return measures.tail(total(run), start, end)
