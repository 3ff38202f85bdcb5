"""The paper's tables from our runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from rheostat.lab.jobs import job
from rheostat.lab.papers import interval
from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.backlog_runs import Caught
from rheostat.lab.papers.autrascale.runs import ELO_LEVEL, STARTS, Found, case_name, elo_starts, grid, transfers
from rheostat.lab.papers.autrascale.scaling_runs import Solved
from rheostat.lab.papers.autrascale.truth import exhaustive, fewest, latency_s
from rheostat.lab.papers.table import Cell, Table
from rheostat.policy.autrascale.benefit import benefit

FEWEST, MINIMUM = "fewest that keep up", "fewest that are in time"
ROWS_7 = (paper.TO, paper.LITERAL, paper.DS2)
ROWS_4 = (paper.DRS_OBSERVED, paper.DRS_TRUE, paper.PLO, paper.OURS)
ROWS_10 = (paper.TRADITIONAL, paper.LIGHT, paper.SCRATCH, paper.OURS)
ROWS_11 = (paper.MAX, paper.PROPORTION, paper.EXPONENT, paper.ELO, paper.OURS)

Value = Callable[[str, Solved], float]


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
                if row == paper.TO and table.name == "Figure 7":
                    printed = paper.ITERATIONS.get(name)
                elif row == paper.TO and table.unit == "tasks":
                    printed = float(sum(workload.final))
                fitted = row == paper.TO and printed is not None and name != "Yahoo"
                yield table.mean(row, name, [value(name, s) for s in found.throughput[name][row]], printed, fitted)
        if table.unit == "tasks":
            for name, workload in paper.WORKLOADS.items():
                least = fewest(job(workload.job), workload.level * 1e3, paper.MOST)
                yield table.exact(FEWEST, name, float(least.slots))


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
    for row in (paper.PLO, paper.OURS):
        for test in paper.TESTS:
            printed = paper.BOOTSTRAP[test] if row == paper.PLO else None
            yield table.mean(row, test, [float(s.trials) for s in found.latency[test][row]], printed)
    table = Table("IV, tasks over exhaustive", "times")
    for row in ROWS_4:
        for name, (_, best) in tests.items():
            if best is not None:
                yield table.mean(row, name, [s.end.slots / sum(best) for s in found.latency[name][row]])


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
        for name in transfers():
            old, new = ([parts[what](s) for s in found.transfer[name][row]] for row in ROWS_10[:2])
            if sum(old) > 0:
                yield _saving(table.cell(what, name, 100.0 * (1.0 - sum(new) / sum(old)), printed.get(name)), new, old)


def _saving(cell: Cell, new: Sequence[float], old: Sequence[float]) -> Cell:
    """Return a saving with the interval of the ratio of two means."""
    of = interval.paired_ratio(new, old)
    if not math.isfinite(of.low):
        return cell
    return replace(cell, low=100.0 * (1.0 - of.high), high=100.0 * (1.0 - of.low))


# -- figure 11 --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def minimal() -> tuple[float, ...]:
    """Return the fewest tasks that reach V_t in every cell; infinite if none do."""
    plant, starts = elo_starts()
    tight = starts["tight"]
    load = ELO_LEVEL * 1e3
    steady_s = float(latency_s(plant, np.array([list(tight.tasks.values())]), load)[0])
    fewest_by_case = []
    for case in grid():
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
    within = {case_name(case): tasks for case, tasks in zip(grid(), minimal(), strict=True) if math.isfinite(tasks)}
    for start in STARTS:
        table = Table(f"Figure 11(b){suffix(start)}", "tasks")
        yield from _grid(Table(f"Figure 11(a){suffix(start)}", "min"), found.backlog[start], lambda c: c.seconds / 60.0)
        yield from _grid(table, found.backlog[start], lambda c: float(c.tasks))
        for column, tasks in within.items():
            yield table.exact(MINIMUM, column, tasks)
        yield table.exact(MINIMUM, "mean", float(np.mean(list(within.values()))))
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
    table = Table("Figure 11, AuTraScale+ saves", "%")
    for row, printed in paper.SAVED.items():
        for start in STARTS:
            ours, theirs = (_per_seed(found, start, name, True, lambda c: c.tasks) for name in (paper.ELO, row))
            saved = [100.0 * (1.0 - few / many) for few, many in zip(ours, theirs, strict=True)]
            yield table.mean(row, f"{start} start", saved, printed)


def _per_seed(found: Found, start: str, row: str, reachable: bool, value: Callable[[Caught], float]) -> list[float]:
    """Return the mean over the cells that can be met, or over the others, for every seed; 0 without such cells."""
    cells = zip(found.backlog[start][row], minimal(), strict=True)
    selected = [[value(each) for each in runs] for runs, tasks in cells if math.isfinite(tasks) == reachable]
    return [float(np.mean(by_seed)) for by_seed in zip(*selected, strict=True)] or [0.0]


def _grid(table: Table, runs: Mapping[str, list[list[Caught]]], value: Callable[[Caught], float]) -> Iterator[Cell]:
    names = [case_name(case) for case in grid()]
    for row in ROWS_11:
        every: dict[int, list[float]] = {}
        for column, tasks, each in zip(names, minimal(), runs[row], strict=True):
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
    for row, ms in found.overhead_ms.items():
        printed: Sequence[float | None] = paper.OVERHEAD_MS.get(row) or [None] * len(ms)
        for operators, ours, theirs in zip(paper.OPERATORS, ms, printed, strict=True):
            yield table.cell(row, f"{operators} operators", ours, theirs)
