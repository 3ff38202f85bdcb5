"""The paper's tables from our runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from rheostat.lab.jobs import job
from rheostat.lab.papers import interval
from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.backlog_runs import Caught
from rheostat.lab.papers.autrascale.case_runs import Held
from rheostat.lab.papers.autrascale.other_laws import LAWS, optimum_of, target_of
from rheostat.lab.papers.autrascale.runs import (
    ELO_LEVEL,
    RECALLED,
    STARTS,
    Found,
    case_name,
    elo_start,
    grid,
    transfers,
)
from rheostat.lab.papers.autrascale.scaling_runs import Solved
from rheostat.lab.papers.autrascale.truth import exhaustive, fewest, latency_s
from rheostat.lab.papers.table import Cell, Table
from rheostat.policy.autrascale.benefit import benefit

FEWEST, MINIMUM = "fewest that keep up", "fewest that are in time"
ROWS_7 = (paper.TO, paper.UNROUNDED, paper.DS2)
ROWS_4 = (paper.DRS_OBSERVED, paper.DRS_TRUE, paper.CALIBRATED, paper.PLO, paper.PLO_UNROUNDED, paper.OURS)
ROWS_LAWS, ROWS_RECALL = (paper.PLO_UNROUNDED, paper.OURS), (paper.LIGHT_UNROUNDED, paper.OURS)
UNROUNDED_10 = (paper.TRADITIONAL_UNROUNDED, paper.LIGHT_UNROUNDED)
ROWS_10 = (paper.TRADITIONAL, paper.LIGHT, *UNROUNDED_10, paper.OURS)
ELO_VARIANTS = (paper.THRIFT, paper.BOUND, paper.OURS)
ROWS_11 = (paper.MAX, paper.PROPORTION, paper.EXPONENT, paper.ELO, *ELO_VARIANTS)
SIMULATED = "simulated"
PUBLISHED = "Table IV as printed"

Value = Callable[[str, Solved], float]


def figures_4_and_5(found: Found) -> Iterator[Cell]:
    """Yield the case studies: two tasks each under a rising rate, and one to six tasks each under one rate."""
    rising, sizes = found.cases

    def served(held: Held) -> float:
        return held.throughput_per_s / 1e3

    for table, value, printed in (
        (Table("Figure 4(a)", "k/s"), served, paper.CASE_1_SERVED_K),
        (Table("Figure 4(b), processing latency", "ms"), lambda h: 1e3 * h.latency_s, ()),
        (Table("Figure 4(b), event-time latency", "s"), lambda h: h.event_s, ()),
        (Table("Figure 4(b), data lag", "million records"), lambda h: h.backlog / 1e6, ()),
    ):
        for k, (level, runs) in enumerate(zip(paper.CASE_1, rising, strict=True)):
            theirs: float | None = printed[k] if printed else None
            # The capacity of two tasks is fitted, in Figure 5.
            fitted = theirs is not None and theirs < level
            yield table.mean(SIMULATED, f"{level:g}k/s", [value(run) for run in runs], theirs, fitted)
    for k, (tasks, runs) in enumerate(zip(paper.CASE_2, sizes, strict=True)):
        column, theirs = f"p = {tasks}", paper.CASE_2_SERVED_K[k]
        table = Table("Figure 5(a)", "k/s")
        yield table.mean(SIMULATED, column, [served(run) for run in runs], theirs, fitted=tasks <= 2)
        table, latency = Table("Figure 5(b), processing latency", "ms"), paper.CASE_2_LATENCY_MS.get(tasks)
        yield table.mean(SIMULATED, column, [1e3 * run.latency_s for run in runs], latency, fitted=tasks == 5)
        table = Table("Figure 5(b), event-time latency", "s")
        yield table.mean(SIMULATED, column, [run.event_s for run in runs])


def figure_7(found: Found) -> Iterator[Cell]:
    """Yield Figure 7: iterations, tasks at the end, and the share of the load that they serve."""
    values: dict[Table, Value] = {
        Table("Figure 7", "iterations"): lambda _, s: float(s.looks),
        Table("Figure 7, tasks", "tasks"): lambda _, s: float(s.end.slots),
        Table("Figure 7, load served", "%"): lambda w, s: s.throughput_per_s / paper.WORKLOADS[w].level / 10.0,
    }
    for table, value in values.items():
        for row in ROWS_7:
            for name, workload in paper.WORKLOADS.items():
                printed: float | None = None
                if row != paper.DS2 and table.name == "Figure 7":
                    printed = paper.ITERATIONS.get(name)
                elif row != paper.DS2 and table.unit == "tasks":
                    printed = float(sum(workload.final))
                fitted = printed is not None and name != "Yahoo"
                yield table.mean(row, name, [value(name, s) for s in found.throughput[name][row]], printed, fitted)
        if table.unit == "tasks":
            for name, workload in paper.WORKLOADS.items():
                least = fewest(job(workload.job), workload.level * 1e3, paper.MOST)
                yield table.exact(FEWEST, name, float(least.slots))


def figure_7b(found: Found) -> Iterator[Cell]:
    """Yield Figure 7(b): the sizes that TO tries on Yahoo, and the throughput of the paper's."""
    table = Table("Figure 7(b), tasks", "tasks")
    selected, last = (float(sum(paper.SIZES_7B[name])) for name in ("p2", "p4"))
    for row in (paper.TO, paper.UNROUNDED):
        runs = found.throughput["Yahoo"][row]
        yield table.mean(row, "most tried", [float(max(run.path)) for run in runs], last)
        yield table.mean(row, "selected", [float(run.end.slots) for run in runs], selected)
    table = Table("Figure 7(b), throughput", "k/s")
    for (name, size), held in zip(paper.SIZES_7B.items(), found.sizes, strict=True):
        column = f"{name} ({', '.join(map(str, size))})"
        yield table.mean(SIMULATED, column, [run.throughput_per_s / 1e3 for run in held], fitted=True)


# -- table IV and figure 10 -------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def optimum(job_name: str, load_per_s: float, target_s: float) -> tuple[int, ...] | None:
    """Return the fewest tasks that meet a latency target, from all allocations."""
    best = exhaustive(job(job_name), load_per_s, target_s, paper.MOST)
    return None if best is None else tuple(best.tasks.values())


def table_4(found: Found) -> Iterator[Cell]:
    """Yield Table IV, one table per column; bootstrapping runs have their own table."""
    parts: dict[Table, tuple[Value, Callable[[paper.Row], float | None]]] = {
        Table("IV, iterations", "iterations"): (lambda _, s: float(s.iterations), lambda r: float(r.iterations)),
        Table("IV, tasks", "tasks"): (lambda _, s: float(s.end.slots), lambda r: float(r.tasks)),
        Table("IV, latency", "ms"): (lambda _, s: 1e3 * s.latency_s, lambda r: r.latency_ms),
        Table("IV, throughput", "k/s"): (lambda _, s: s.throughput_per_s / 1e3, lambda r: r.throughput_k),
        Table("IV, score", "score"): (_score, lambda r: r.score),
    }
    tests = {name: (test, optimum(test.job, test.level * 1e3, test.target_s)) for name, test in paper.TESTS.items()}
    for table, (value, theirs) in parts.items():
        for row in ROWS_4:
            for test in paper.TESTS:
                published = paper.TABLE_IV.get((row, test))
                printed = None if published is None else theirs(published)
                yield table.mean(row, test, [value(test, s) for s in found.latency[test][row]], printed)
        if table.unit in ("tasks", "ms"):
            for name, (settings, best) in tests.items():
                if best is not None:
                    law = latency_s(job(settings.job), np.array([best]), settings.level * 1e3)
                    yield table.exact(
                        paper.EXHAUSTIVE, name, 1e3 * float(law[0]) if table.unit == "ms" else float(sum(best))
                    )
    table = Table("IV, meets QoS", "% of runs")
    for row in ROWS_4:
        for test in paper.TESTS:
            published = paper.TABLE_IV.get((row, test))
            met = None if published is None else published.met
            yield table.share(row, test, [_meets(test, s) for s in found.latency[test][row]], met)
    table = Table("IV, bootstrap runs", "trials")
    for row in (paper.PLO, paper.PLO_UNROUNDED, paper.OURS):
        for test in paper.TESTS:
            printed = paper.BOOTSTRAP[test] if row == paper.PLO else None
            yield table.mean(row, test, [float(s.trials) for s in found.latency[test][row]], printed)
    table = Table("IV, tasks over exhaustive", "times")
    for row in ROWS_4:
        for name, (_, best) in tests.items():
            if best is not None:
                yield table.mean(row, name, [s.end.slots / sum(best) for s in found.latency[name][row]])


def headline(found: Found) -> Iterator[Cell]:
    """Yield the savings of the abstract: PLO against DRS by test, and ELO against its three baselines."""
    table = Table("Headline, tasks saved", "%")
    for what, printed in paper.SAVED_AGAINST_DRS.items():
        tests = [name for name in paper.TESTS if name.endswith(what.removeprefix("scale-").title())]
        for row in (paper.PLO, paper.OURS):
            saved = [_saved_against_drs(found, row, tests, seed) for seed in range(found.size.seeds)]
            yield table.mean(row, what, saved, printed if row == paper.PLO else None)
    down = [
        1.0 - paper.TABLE_IV[paper.PLO, test].tasks / paper.TABLE_IV[row, test].tasks
        for test in paper.TESTS for row in (paper.DRS_OBSERVED, paper.DRS_TRUE)
        if "Down" in test and (row, test) in paper.TABLE_IV
    ]  # fmt: skip
    yield table.exact(PUBLISHED, "scale-down", 100.0 * float(np.mean(down)), paper.SAVED_AGAINST_DRS["scale-down"])
    for row in (paper.ELO, *ELO_VARIANTS):
        for start in STARTS:
            saved = np.mean([_saved(found, start, row, other) for other in paper.SAVED], axis=0)
            average = paper.SAVED_ON_AVERAGE if row == paper.ELO else None
            yield table.mean(row, f"event-time, {start} start", saved.tolist(), average)


def _saved_against_drs(found: Found, row: str, tests: Sequence[str], seed: int) -> float:
    """Return the mean saving over the tests and both kinds of DRS, in per cent."""
    runs = [found.latency[test] for test in tests]
    few = [each[row][seed].end.slots for each in runs for _ in range(2)]
    many = [each[drs][seed].end.slots for each in runs for drs in (paper.DRS_OBSERVED, paper.DRS_TRUE)]
    return float(np.mean([100.0 * (1.0 - a / b) for a, b in zip(few, many, strict=True)]))


def other_laws(found: Found) -> Iterator[Cell]:
    """Yield WordCount with other latency laws."""
    columns: dict[Table, Callable[[str, Solved], float]] = {
        Table("Other laws, tasks over exhaustive", "times"): lambda law, s: s.end.slots / optimum_of(law),
        Table("Other laws, iterations", "iterations"): lambda _, s: float(s.iterations),
        Table("Other laws, latency over the target", "times"): lambda law, s: s.latency_s / target_of(law),
    }
    for table, value in columns.items():
        for row in ROWS_LAWS:
            for law in LAWS:
                yield table.mean(row, law, [value(law, run) for run in found.laws[law][row]])
    table = Table("Other laws, meets QoS", "% of runs")
    for row in ROWS_LAWS:
        for law in LAWS:
            target_s = target_of(law)
            yield table.share(row, law, [s.latency_s <= target_s for s in found.laws[law][row]])


def recall(found: Found) -> Iterator[Cell]:
    """Yield the return to a rate that was solved before."""
    values: dict[Table, Callable[[Solved], float]] = {
        Table("Recall, tasks", "tasks"): lambda s: float(s.end.slots),
        Table("Recall, iterations", "iterations"): lambda s: float(s.iterations),
        Table("Recall, trials", "trials"): lambda s: float(s.trials),
    }
    for table, value in values.items():
        for row in ROWS_RECALL:
            for name in RECALLED:
                runs = found.recall[name][row]
                yield table.mean(row, f"{name}, first", [value(levels[0]) for levels in runs])
                yield table.mean(row, f"{name}, again", [value(levels[-1]) for levels in runs])
    table = Table("Recall, no more tasks", "% of runs")
    for row in ROWS_RECALL:
        for name in RECALLED:
            yield table.share(
                row, name, [again.end.slots <= first.end.slots for first, _, again in found.recall[name][row]]
            )


def _score(test: str, solved: Solved) -> float:
    """Return Eq 4 at the end, with the fewest tasks that keep up as π^t."""
    settings = paper.TESTS[test]
    base = fewest(job(settings.job), settings.level * 1e3, paper.MOST)
    tasks = np.array([list(solved.end.tasks.values())], dtype=float)
    least = np.array(list(base.tasks.values()), dtype=float)
    return float(benefit(np.array([solved.latency_s]), settings.target_s, least, tasks, paper.ALPHA)[0])


def _meets(test: str, solved: Solved) -> bool:
    settings = paper.TESTS[test]
    return solved.latency_s <= settings.target_s and solved.throughput_per_s >= 0.99e3 * settings.level


def figure_10(found: Found) -> Iterator[Cell]:
    """Yield Figure 10: iterations, tasks and the time of a decision, traditional against lightweight transfer."""
    parts: dict[str, Callable[[Solved], float]] = {
        "iterations": lambda s: float(s.iterations),
        "tasks": lambda s: float(s.end.slots),
        "trials": lambda s: float(s.trials),
    }
    for unit, value in parts.items():
        table = Table(f"Figure 10, {unit}", unit)
        for row in ROWS_10:
            for name in transfers():
                yield table.mean(row, name, [value(s) for s in found.transfer[name][row]])
        if unit == "tasks":
            for name, (workload, target_s) in transfers().items():
                best = optimum(workload.job, workload.new * 1e3, target_s)
                if best is not None:
                    yield table.exact(paper.EXHAUSTIVE, name, float(sum(best)))
    table = Table("Figure 10, target met", "% of runs")
    for row in ROWS_10:
        for name, (_, target_s) in transfers().items():
            yield table.share(row, name, [s.latency_s <= target_s for s in found.transfer[name][row]])
    table = Table("Figure 10, lightweight saves", "%")
    for what, printed in paper.TRANSFER_SAVED.items():
        for rows, tail in ((ROWS_10[:2], ""), (UNROUNDED_10, ", Eq 3 unrounded (ours)")):
            for name in transfers():
                old, new = ([parts[what](s) for s in found.transfer[name][row]] for row in rows)
                if sum(old) > 0:
                    saved = 100.0 * (1.0 - sum(new) / sum(old))
                    yield _saving(table.cell(what + tail, name, saved, printed.get(name)), new, old)


def figure_10b(found: Found) -> Iterator[Cell]:
    """Yield Figure 10(b): CPU time of transfer per iteration, measured alone, and over all iterations, in the runs."""
    table = Table("Figure 10(b), speedup per iteration", "times")
    slow, fast = (found.overhead_ms[row] for row in ("Traditional", "Algorithm 2"))
    for name, operators in paper.TRANSFER_OPERATORS.items():
        ratios = [a / max(b, 1e-9) for a, b in zip(slow[operators], fast[operators], strict=True)]
        yield table.median(paper.LIGHT, f"{name} ({operators} operators)", ratios)
    table = Table("Figure 10(b), CPU time saved in all iterations", "%")
    for rows in (ROWS_10[:2], UNROUNDED_10):
        for name in transfers():
            old, new = ([s.proposal_ms for s in found.transfer[name][row]] for row in rows)
            if sum(old) > 0:
                yield _saving(table.cell(rows[1], name, 100.0 * (1.0 - sum(new) / sum(old))), new, old)


def _saving(cell: Cell, new: Sequence[float], old: Sequence[float]) -> Cell:
    """Return a saving with the interval of the ratio of two means."""
    of = interval.paired_ratio(new, old)
    if not math.isfinite(of.low):
        return cell
    return replace(cell, low=100.0 * (1.0 - of.high), high=100.0 * (1.0 - of.low))


# -- figure 11 --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def minimal(start: str = STARTS[0], targets_ms: tuple[int, ...] = paper.TARGETS_MS) -> tuple[float, ...]:
    """Return the fewest tasks that reach V_t in every cell; infinite if none do."""
    plant, tight = elo_start()
    load = ELO_LEVEL * 1e3
    row = np.array([list(tight.tasks.tasks.values())])
    steady_s = float(latency_s(plant, row, load)[0])
    fewest_by_case = []
    for case in grid(start, targets_ms):
        needed = case.needed_per_s(load, steady_s)
        best = fewest(plant, needed, paper.MOST)
        capacity_per_s = min(plant.capacity_per_s(name, count, best) for name, count in best.tasks.items())
        fewest_by_case.append(float(best.slots) if capacity_per_s >= needed else math.inf)
    return tuple(fewest_by_case)


def suffix(start: str) -> str:
    """Return the suffix of a table's name."""
    return "" if start == STARTS[0] else f", {start} start"


def figure_11(found: Found) -> Iterator[Cell]:
    """Yield Figure 11 from both starts, the saving of AuTraScale+, and the reports about cells out of reach."""
    for start in STARTS:
        targets_ms = found.size.targets_ms
        cells = zip(grid(start, targets_ms), minimal(start, targets_ms), strict=True)
        within = {case_name(case): tasks for case, tasks in cells if math.isfinite(tasks)}
        table = Table(f"Figure 11(b){suffix(start)}", "tasks")
        yield from _grid(Table(f"Figure 11(a){suffix(start)}", "min"), found, start, lambda c: c.seconds / 60.0)
        yield from _grid(table, found, start, lambda c: float(c.tasks))
        for column, tasks in within.items():
            yield table.exact(MINIMUM, column, tasks)
        yield table.exact(MINIMUM, "mean", float(np.mean(list(within.values()))))
    table = Table("Figure 11, steady tasks", "tasks")
    for start in STARTS:
        runs = found.backlog[start][paper.ELO][0]
        yield table.mean("π^p", f"{start} start", [float(run.steady) for run in runs])
    table = Table("Figure 11, in time", "% of cells that can be met")
    for row in ROWS_11:
        for start in STARTS:
            yield table.mean(row, f"{start} start", _per_seed(found, start, row, True, lambda c: 100.0 * c.met))
    table = Table("Figure 11, out of reach", "% of cells that cannot be met")
    for row in ROWS_11:
        for start in STARTS:
            missed = _per_seed(found, start, row, False, lambda c: 100.0 * (c.says_unreachable or not c.met))
            said = _per_seed(found, start, row, False, lambda c: 100.0 * c.says_unreachable)
            yield table.mean(row, f"missed, {start} start", missed)
            yield table.mean(row, f"said so, {start} start", said)
    for ours in (paper.ELO, *ELO_VARIANTS):
        table = Table(f"Figure 11, {ours} saves", "%")
        for row, number in paper.SAVED.items():
            for start in STARTS:
                printed = number if ours == paper.ELO else None
                yield table.mean(row, f"{start} start", _saved(found, start, ours, row), printed)


def _saved(found: Found, start: str, row: str, other: str) -> list[float]:
    """Return the per cent of tasks that a method saves against another one, for every seed."""
    few, many = (_per_seed(found, start, name, True, lambda c: float(c.tasks)) for name in (row, other))
    return [100.0 * (1.0 - a / b) for a, b in zip(few, many, strict=True)]


def _per_seed(found: Found, start: str, row: str, reachable: bool, value: Callable[[Caught], float]) -> list[float]:
    """Return the mean over the cells that can be met, or over the others, for every seed; 0 without such cells."""
    cells = zip(found.backlog[start][row], minimal(start, found.size.targets_ms), strict=True)
    selected = [[value(each) for each in runs] for runs, tasks in cells if math.isfinite(tasks) == reachable]
    return [float(np.mean(by_seed)) for by_seed in zip(*selected, strict=True)] or [0.0]


def _grid(table: Table, found: Found, start: str, value: Callable[[Caught], float]) -> Iterator[Cell]:
    runs, targets_ms = found.backlog[start], found.size.targets_ms
    names = [case_name(case) for case in grid(start, targets_ms)]
    for row in ROWS_11:
        every: dict[int, list[float]] = {}
        for column, tasks, each in zip(names, minimal(start, targets_ms), runs[row], strict=True):
            finite = {seed: v for seed, v in enumerate(map(value, each)) if math.isfinite(v)}
            if finite:
                yield table.mean(row, column, list(finite.values()))
            for seed, number in finite.items() if math.isfinite(tasks) else ():
                every.setdefault(seed, []).append(number)
        if every:
            yield table.mean(row, "mean", [float(np.mean(numbers)) for _, numbers in sorted(every.items())])


def table_6(found: Found) -> Iterator[Cell]:
    """Yield Table VI."""
    table = Table("VI", "ms")
    for row, by_operators in found.overhead_ms.items():
        printed: Sequence[float | None] = paper.OVERHEAD_MS.get(row) or [None] * len(paper.OPERATORS)
        for operators, theirs in zip(paper.OPERATORS, printed, strict=True):
            yield table.median(row, f"{operators} operators", by_operators[operators], theirs)
