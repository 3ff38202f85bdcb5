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
from rheostat.lab.papers.result import Cell, mean_with_interval

SUITE = "dragster"
RULE = " by the 10 % rule"
JOB = paper.WORDCOUNT.job
MINUTES_BEFORE = 240
"""Table 3's rate before convergence is taken over the time that Dhalion needs, for all."""
TAILS = ((100, 200), (200, 400))

Metric = Callable[[Run], Sequence[float]]


def table(
    name: str,
    runs: Runs,
    columns: Sequence[str],
    metric: Metric,
    unit: str,
    printed: paper.Row | None = None,
    rows: Sequence[str] = paper.ROWS,
) -> Iterator[Cell]:
    """Yield a row per method: what the metric makes of every seed, as a mean with its interval."""
    for row in rows:
        values = np.array([metric(run) for run in runs[row]], dtype=float)
        known = (printed or {}).get(row, ())
        for k, column in enumerate(columns):
            ours, low, high = mean_with_interval([float(v) for v in values[:, k]])
            fitted = k in paper.FITTED.get(name, {}).get(row, ())
            theirs = known[k] if k < len(known) else None
            yield Cell(SUITE, name, row, column, theirs, ours, unit, fitted, low, high)


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
    phases = workload.phases
    columns, spans = list(phases), list(phases.values())
    dollars = price(runs, workload, paper.COST[paper.DHALION])
    yield from table(
        "2, convergence", runs, columns, lambda r: [last_change_min(r, p) for p in spans], "min", paper.CONVERGENCE
    )
    yield from table(
        f"2, convergence{RULE}", runs, columns, lambda r: [near_best_min(r, p, workload.job) for p in spans], "min"
    )
    yield from table(
        "2, tuples", runs, columns, lambda r: [tuples(r[slice(*p)]) / 1e9 for p in spans], "10^9", paper.TUPLES
    )
    yield from table(
        "2, cost", runs, columns, lambda r: [dollars * per_billion(r, p) for p in spans], "$ per 10^9", paper.COST
    )


def table_3(found: Found) -> Iterator[Cell]:
    """Yield Table 3 and the increase at 300 minutes: the Yahoo streaming benchmark."""
    runs, workload = found.workloads["YSB"], paper.YSB
    columns, spans = list(workload.phases), list(workload.phases.values())
    dollars = price(runs, workload, paper.YSB_COST[paper.DHALION])
    before = MINUTES_BEFORE // 10
    yield from table(
        "3, convergence", runs, columns, lambda r: [last_change_min(r, p) for p in spans], "min", paper.YSB_CONVERGENCE
    )
    yield from table(
        f"3, convergence{RULE}", runs, columns, lambda r: [near_best_min(r, p, workload.job) for p in spans], "min"
    )
    yield from table(
        "3, rate before convergence",
        runs,
        [f"0-{MINUTES_BEFORE}"],
        lambda r: [tuples(r[:before]) / (MINUTES_BEFORE * 60.0) / 1e5],
        "10^5/s",
        paper.YSB_RATE,
    )
    yield from table(
        "3, cost", runs, columns[:1], lambda r: [dollars * per_billion(r, spans[0])], "$ per 10^9", paper.YSB_COST
    )


def figure_4(found: Found) -> Iterator[Cell]:
    """Yield what Figure 4 tells of the paths over the 10 x 10 grid, without and with a budget."""
    runs, first = found.workloads["WordCount"], (0, paper.WORDCOUNT.slots[0])
    printed = {row: (slots,) for row, slots in paper.SLOTS_TO_CONVERGE.items()}
    yield from table("Figure 4, slots", runs, ["slots"], lambda r: [last_change_min(r, first) / 10], "", printed)
    yield from table("Figure 4, tasks at the end", runs, ["map", "shuffle"], lambda r: _at_end(r[: first[1]]), "tasks")
    rows = (paper.DHALION, paper.FIRST, paper.SADDLE, paper.GRADIENT, paper.EUCLIDEAN, paper.OURS)
    under = f"Figure 4 budget of {paper.BUDGET} slots"
    yield from table(f"{under}, tasks at the end", found.budget, ["map", "shuffle"], _at_end, "tasks", rows=rows)
    most = served(JOB, best_split(JOB, paper.HIGH, paper.BUDGET), paper.HIGH)
    first_dhalion = float(np.mean([settled(JOB, run) for run in found.budget[paper.FIRST]]))
    yield from table(
        "Figure 4 budget, throughput",
        found.budget,
        ["10^3/s", "% above Dhalion that looks at the first operator", "% of the best split"],
        lambda r: [
            settled(JOB, r) / 1e3,
            100 * (settled(JOB, r) / first_dhalion - 1),
            100 * settled(JOB, r) / most,
        ],
        "",
        {paper.SADDLE: (None, paper.BUDGET_GAIN), paper.GRADIENT: (None, paper.BUDGET_GAIN)},
        rows,
    )
    yield from table(
        "Figure 4 budget, most slots held", found.budget, ["slots"], lambda r: [most_slots(r)], "", rows=rows
    )
    for row in (paper.SADDLE, paper.EUCLIDEAN):
        for slots in BUDGETS:
            best = served(JOB, best_split(JOB, paper.HIGH, slots), paper.HIGH)
            shares = [100 * settled(JOB, run) / best for run in found.splits[slots][row]]
            ours, low, high = mean_with_interval(shares)
            name = "Figure 4 budget, throughput over the best split's"
            yield Cell(SUITE, name, row, f"{slots} slots", None, ours, "%", False, low, high)


def most_slots(run: Run) -> float:
    """Return the most slots that were ever held."""
    return float(max(slot.tasks.slots for slot in run))


def _at_end(run: Run) -> list[float]:
    return [float(count) for count in run[-1].tasks.tasks.values()]


def figure_5(found: Found) -> Iterator[Cell]:
    """Yield Figure 5: minutes to converge by the number of operators, and how much faster than Dhalion that is."""
    groups: Mapping[str, Sequence[str]] = {
        "1 operator": tuple(paper.ONE),
        "2 operators": ("Window", "WordCount"),
        "6 operators": ("YSB",),
    }
    for rule in ("", RULE):
        means: dict[tuple[str, str], float] = {}
        name = f"Figure 5{rule}"
        for row in paper.ROWS:
            for k, (column, members) in enumerate(groups.items()):
                values = [_first_phase(found, member, row, bool(rule)) for member in members]
                ours, low, high = mean_with_interval(list(np.mean(values, axis=0)))
                means[row, column] = ours
                known = None if rule or row not in paper.BY_OPERATORS else paper.BY_OPERATORS[row][k]
                fitted = k in paper.FITTED.get(name, {}).get(row, ())
                yield Cell(SUITE, name, row, column, known, ours, "min", fitted, low, high)
        for row in (paper.SADDLE, paper.GRADIENT, paper.OURS):
            for k, column in enumerate(groups):
                printed = paper.BY_OPERATORS.get(row)
                known = None
                if printed and not rule:
                    known = (paper.BY_OPERATORS[paper.DHALION][k] or 0.0) / (printed[k] or 1.0)
                faster = means[paper.DHALION, column] / means[row, column]
                yield Cell(SUITE, f"{name}, speed-up over Dhalion", row, column, known, faster, "times", False)


def _first_phase(found: Found, name: str, row: str, near: bool) -> list[float]:
    workload = WORKLOADS[name]
    phase = (0, workload.slots[0])
    runs = found.workloads[name][row]
    return [near_best_min(run, phase, workload.job) if near else last_change_min(run, phase) for run in runs]


def regrets(found: Found) -> Iterator[Cell]:
    """Yield exponents and tail slopes of regret (Eq 10) and fit (Eq 12) over 400 slots."""
    rows = (*paper.ROWS, paper.LETTER)
    for kind, runs in found.long.items():
        job = LONG[kind].job
        yield from _growth(f"Regret (Eq 10), {kind}", runs, rows, partial(regret, job))
        yield from _growth(f"Fit (Eq 12), violations only, {kind}", runs, rows, partial(fit, job, violations=True))
        totals = {row: [fit(job, run, False)[-1] for run in runs[row]] for row in rows}
        for row, values in totals.items():
            ours, low, high = mean_with_interval(values)
            name = f"Fit (Eq 12), {kind}, after 400 slots"
            yield Cell(SUITE, name, row, "slots of load", None, ours, "", False, low, high)


def _growth(name: str, runs: Runs, rows: Sequence[str], total: Callable[[Run], Floats]) -> Iterator[Cell]:
    columns = [f"slots {start}-{end}" for start, end in TAILS]
    yield from table(f"{name}, exponent", runs, ["exponent"], lambda run: [exponent(total(run))], "", rows=rows)

    def tails(run: Run) -> list[float]:
        sums = total(run)
        return [tail(sums, *span) for span in TAILS]

    yield from table(f"{name}, growth per slot", runs, columns, tails, "% of a slot", rows=rows)
