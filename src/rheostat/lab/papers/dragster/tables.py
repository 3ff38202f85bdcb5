"""The paper's tables and figures from our runs, with convergence by both rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from rheostat.lab.papers.dragster import measures, paper
from rheostat.lab.papers.dragster.bounds import Theorem, function_error
from rheostat.lab.papers.dragster.measures import (
    Floats,
    best_split,
    final_throughput_per_s,
    last_change_min,
    near_best_min,
    served,
)
from rheostat.lab.papers.dragster.paper import Workload
from rheostat.lab.papers.dragster.play import SLOT_S, Run, Slot
from rheostat.lab.papers.dragster.runs import (
    BEFORE,
    BUDGETS,
    CONSTANT,
    DROP,
    DROP_ROWS,
    HOLD_SLOTS,
    LONG,
    RISE_ROWS,
    RISES,
    SIX,
    SPLIT_ROWS,
    WORKLOADS,
    Found,
    Runs,
)
from rheostat.lab.papers.table import Cell, Table

RULE = " by the 10 % rule"
JOB = paper.WORDCOUNT.job
TAILS = {"second quarter": (0.25, 0.5), "second half": (0.5, 1.0)}
"""Column -> shares of the slots between which a sum's growth is measured."""
CLEARED = 0.05
"""Slots of load: a backlog below this is worked off."""
ERRORS_AT = (25, 100, 400)
ERROR_SEEDS = 20
GROUPS: Mapping[str, Sequence[str]] = {
    "1 operator": tuple(paper.ONE),
    "2 operators": ("Window", "WordCount"),
    "6 operators": ("YSB",),
}
"""Columns of Figure 5 -> workloads."""
BUDGET_ROWS = (*paper.ROWS[:1], paper.FIRST, *paper.ROWS[1:-1], paper.SPLIT)
KEPT = "Figure 4 budget, kept in every slot"
DEPARTURE_ROWS = (*paper.ROWS, paper.MARGIN, paper.SHORTFALL, paper.DESCENT, paper.NO_MARGIN)
"""Rows of Tables 2 and 3."""
THEOREM_ROWS = (paper.SADDLE, paper.PLAIN, paper.OWN_SADDLE)
OVER_SPLIT = "Figure 4 budget, throughput over the best split's"
GOODPUT = "Goodput gain over Dhalion in the first phase"
IMPROVEMENT = "Throughput at the end of the first phase over one task per operator's"
SHORT = "Drop of 10 % in capacity, slots that are short afterwards"
WAITING, CLEARED_AFTER = "Backlog that remains, mean", "Backlog that remains, slots until it is worked off"
HELD = "Backlog that remains, slots held"
FUNCTIONS = "Theorem 2 (Eq 31), error of a learned function x sqrt(T)"

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
    yield from method_rows(Table("2, tuples", "10^9"), runs, columns, paper.TUPLES, DEPARTURE_ROWS)
    columns = {phase: partial(_dollars, dollars, span) for phase, span in workload.phases.items()}
    yield from method_rows(Table("2, cost", "$ per 10^9"), runs, columns, paper.COST, DEPARTURE_ROWS)
    columns = {phase: partial(_served_at_end, span) for phase, span in workload.phases.items()}
    served_share = Table("2, load served at the end of a phase", "%")
    yield from method_rows(served_share, runs, columns, rows=DEPARTURE_ROWS)


def table_3(found: Found) -> Iterator[Cell]:
    """Yield Table 3 and the increase at 300 minutes: the Yahoo streaming benchmark."""
    runs, workload = found.workloads["YSB"], paper.YSB
    phase, span = next(iter(workload.phases.items()))
    dollars = price(runs, workload, paper.YSB_COST[paper.DHALION])
    yield from _convergence("3", runs, workload, paper.YSB_CONVERGENCE)
    rate = {phase: lambda run: measures.tuples(run[slice(*span)]) / ((span[1] - span[0]) * SLOT_S) / 1e5}
    yield from method_rows(Table("3, rate", "10^5/s"), runs, rate, paper.YSB_RATE, DEPARTURE_ROWS)
    cost = {phase: partial(_dollars, dollars, span)}
    yield from method_rows(Table("3, cost", "$ per 10^9"), runs, cost, paper.YSB_COST, DEPARTURE_ROWS)


def goodput(found: Found) -> Iterator[Cell]:
    """Yield the abstract's goodput: tuples in the first phase over Dhalion's; and the gain over the first slot."""
    table = Table(GOODPUT, "%")
    printed = {"WordCount": (paper.TUPLES, 1.40), "YSB": (paper.YSB_RATE, 1.93)}
    for name, row in product(printed, paper.ROWS[1:]):
        numbers, slow = printed[name]
        workload, runs = WORKLOADS[name], found.workloads[name]
        first = slice(0, workload.slots[0])
        gains = [
            100 * (measures.tuples(run[first]) / measures.tuples(other[first]) - 1)
            for run, other in zip(runs[row], runs[paper.DHALION], strict=True)
        ]
        theirs = 100 * ((numbers[row][0] or 0.0) / slow - 1) if row in numbers else None
        yield table.mean(row, name, gains, theirs)
        ratios = [final_throughput_per_s(workload.job, run[first]) / _f(workload.job, run[0]) for run in runs[row]]
        yield Table(IMPROVEMENT, "times").mean(row, name, ratios)


def _f(job: str, slot: Slot) -> float:
    return served(job, slot.tasks, slot.level)


def _served_at_end(span: tuple[int, int], run: Run) -> float:
    last = run[span[1] - 5 : span[1]]
    return 100 * final_throughput_per_s(JOB, last) / measures.load_per_s(JOB, last[0].level)


def _billions(span: tuple[int, int], run: Run) -> float:
    return measures.tuples(run[slice(*span)]) / 1e9


def _dollars(price: float, span: tuple[int, int], run: Run) -> float:
    return price * measures.per_billion(run, span)


def _convergence(number: str, runs: Runs, workload: Workload, printed: paper.Row) -> Iterator[Cell]:
    """Yield the minutes to converge in every phase, by both rules."""
    columns: dict[str, Metric] = {name: partial(last_change_min, phase=p) for name, p in workload.phases.items()}
    yield from method_rows(Table(f"{number}, convergence", "min"), runs, columns, printed, DEPARTURE_ROWS)
    columns = {name: partial(near_best_min, phase=p, name=workload.job) for name, p in workload.phases.items()}
    yield from method_rows(Table(f"{number}, convergence{RULE}", "min"), runs, columns, rows=DEPARTURE_ROWS)


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
    held = Table("Figure 4 budget, most slots held in any run")
    for row in BUDGET_ROWS:
        yield held.cell(row, "slots", max(most_slots(run) for run in found.budget[row]))
        yield Table(KEPT, "share of runs").share(
            row, "kept", [most_slots(run) <= paper.BUDGET for run in found.budget[row]]
        )
    over = Table(OVER_SPLIT, "%")
    for row, slots in product(SPLIT_ROWS, BUDGETS):
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
        for row, (k, column) in product(paper.ROWS[1:-1], enumerate(GROUPS)):
            slow, fast = minutes[paper.DHALION, column], minutes[row, column]
            if rule:
                # Some seeds are near the best from the start: only the ratio of the means is finite.
                yield faster.cell(row, column, float(slow.mean() / fast.mean()))
            else:
                yield faster.mean(row, column, list(slow / fast), paper.speed_up(row, k))
    each = Table("Figure 5 by workload", "min")
    for row, name in product(paper.ROWS, WORKLOADS):
        yield each.mean(row, name, _first_phase(found, name, row, False))


def _first_phase(found: Found, name: str, row: str, near: bool) -> list[float]:
    workload = WORKLOADS[name]
    phase = (0, workload.slots[0])
    runs = found.workloads[name][row]
    return [near_best_min(run, phase, workload.job) if near else last_change_min(run, phase) for run in runs]


def regrets(found: Found) -> Iterator[Cell]:
    """Yield exponents and tail slopes of regret (Eq 10), of regret with resources, and of fit (Eq 12)."""
    for kind, runs in found.long.items():
        job = LONG[kind].job
        yield from _growth(f"Regret (Eq 10), {kind}", runs, partial(measures.regret, job))
        yield from _growth(f"Regret with resources, {kind}", runs, partial(measures.regret_with_resources, job))
        yield from _growth(f"Fit (Eq 12), violations only, {kind}", runs, partial(measures.fit, job, violations=True))


def _growth(name: str, runs: Runs, total: Callable[[Run], Floats]) -> Iterator[Cell]:
    totals = {row: [total(run) for run in runs[row]] for row in paper.ROWS}
    exponents, slopes = Table(f"{name}, exponent"), Table(f"{name}, growth per slot", "% of a slot")
    for row in paper.ROWS:
        yield exponents.mean(row, "exponent", [measures.exponent(each) for each in totals[row]])
        for column, (start, end) in TAILS.items():
            tails = [measures.tail(each, int(start * len(each)), int(end * len(each))) for each in totals[row]]
            yield slopes.mean(row, column, tails)


def theorem_1(found: Found) -> Iterator[Cell]:
    """Yield both sides of Eq 19, 20 and 24 under the constant loads, and the T from which on Eq 20 says anything."""
    for kind in (CONSTANT, SIX):
        workload, runs = LONG[kind], found.long[kind]
        theorem, table = Theorem(workload.job, workload.levels[0]), Table(f"Theorem 1, {kind}")
        slots = found.size.long_slots
        for row in THEOREM_ROWS:
            own = runs[row]
            yield table.mean(row, "fit", [measures.fit(workload.job, run, False)[-1] for run in own])
            yield table.exact(row, "Eq 19", theorem.fit(slots))
            yield table.mean(row, "regret", [measures.regret(workload.job, run)[-1] for run in own])
            yield table.exact(row, "Eq 20", theorem.regret(slots))
            yield table.exact(row, "slots", slots)
            yield table.mean(row, "variances", [theorem.sampled(run) for run in own])
            yield table.exact(row, "Eq 24", theorem.variances(slots))
            yield table.exact(row, "slots until Eq 20 is below them", theorem.meaningful_slots())


def theorem_2(found: Found) -> Iterator[Cell]:
    """Yield the error of a learned throughput function times sqrt(T): Eq 31 wants it to vanish."""
    table = Table(FUNCTIONS)
    for (row, retained), slots in product((("all windows", max(ERRORS_AT)), ("32 windows, ours", 32)), ERRORS_AT):
        errors = [slots**0.5 * function_error(slots, retained, seed) for seed in range(ERROR_SEEDS)]
        yield table.mean(row, f"T = {slots}", errors)


def drops(found: Found) -> Iterator[Cell]:
    """Yield the slots after a drop of capacity that are short of the load."""
    table = Table(SHORT, f"of {found.size.drop_slots}")
    for row, (name, runs) in product(DROP_ROWS, found.drops.items()):
        job = WORKLOADS[name].job
        yield table.mean(row, name, [measures.short_slots(job, run, DROP, BEFORE) for run in runs[row]])


def rises(found: Found) -> Iterator[Cell]:
    """Yield the backlog after a rise of the load, and the slots held meanwhile."""
    waiting, cleared, held = Table(WAITING, "slots of load"), Table(CLEARED_AFTER), Table(HELD)
    for row, (k, name) in product(RISE_ROWS, enumerate(RISES)):
        after = [run[HOLD_SLOTS:] for run in found.rises[name][row]]
        means = [float(np.mean([slot.waiting for slot in run])) for run in after]
        yield waiting.mean(row, name, means, fitted=_fitted(waiting, row, k))
        yield cleared.mean(row, name, [cleared_after(run) for run in after])
        yield held.mean(row, name, [float(np.mean([slot.tasks.slots for slot in run])) for run in after])


def cleared_after(run: Run) -> float:
    """Return the slots after which no backlog is left for good."""
    return float(max((k + 1 for k, slot in enumerate(run) if slot.waiting >= CLEARED), default=0))
