"""The paper's tables from our runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from rheostat.lab.jobs import job
from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.catching import Caught, needed_per_s
from rheostat.lab.papers.autrascale.runs import (
    ELO_LEVEL,
    STARTS,
    Found,
    cell_name,
    elo_starts,
    grid,
    transfers,
)
from rheostat.lab.papers.autrascale.solving import Solved
from rheostat.lab.papers.autrascale.truth import exhaustive, fewest, latency_s
from rheostat.lab.papers.result import Cell, mean_with_interval
from rheostat.policy.autrascale.benefit import benefit

SUITE = "autrascale"
FEWEST, MINIMUM = "fewest that keep up", "fewest that are in time"
ROWS_7 = (paper.TO, paper.LITERAL, paper.DS2)
ROWS_4 = (paper.DRS_OBSERVED, paper.DRS_TRUE, paper.PLO, paper.OURS)
ROWS_10 = (paper.TRADITIONAL, paper.LIGHT, paper.SCRATCH, paper.OURS)
ROWS_11 = (paper.MAX, paper.PROPORTION, paper.EXPONENT, paper.ELO, paper.OURS)

Value = Callable[[str, Solved], float]


def cells(found: Found) -> list[Cell]:
    """Return all tables."""
    return [*figure_7(found), *table_4(found), *figure_10(found), *figure_11(found), *table_6(found)]


def figure_7(found: Found) -> Iterator[Cell]:
    """Yield Figure 7: looks until the end, tasks in the end, and the share of the load that they serve."""
    values: dict[str, tuple[str, Value]] = {
        "Figure 7": ("iterations", lambda _, s: float(s.looks)),
        "Figure 7, tasks": ("tasks", lambda _, s: float(s.end.slots)),
        "Figure 7, load served": ("%", lambda w, s: s.throughput_per_s / paper.WORKLOADS[w].level / 10.0),
    }
    for table, (unit, value) in values.items():
        for row in ROWS_7:
            for name, workload in paper.WORKLOADS.items():
                printed: float | None = None
                if row == paper.TO and table == "Figure 7":
                    printed = paper.ITERATIONS.get(name)
                elif row == paper.TO and unit == "tasks":
                    printed = float(sum(workload.final))
                fitted = row == paper.TO and printed is not None and name != "Yahoo"
                yield _cell(
                    table, row, name, printed, [value(name, s) for s in found.throughput[name][row]], unit, fitted
                )
        if unit == "tasks":
            for name, workload in paper.WORKLOADS.items():
                least = fewest(job(workload.job), workload.level * 1e3, paper.MOST)
                yield Cell(SUITE, table, FEWEST, name, None, float(least.slots), unit, False)


# -- table IV and figure 10 -------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def optimum(job_name: str, load_per_s: float, target_s: float) -> tuple[int, ...] | None:
    """Return the fewest tasks that meet a latency target, from all allocations."""
    best = exhaustive(job(job_name), load_per_s, target_s, paper.MOST)
    return None if best is None else tuple(best.tasks.values())


def table_4(found: Found) -> Iterator[Cell]:
    """Yield Table IV, a table per column; bootstrapping runs are counted openly."""
    parts: dict[str, tuple[str, Value, Callable[[paper.Row], float | None]]] = {
        "IV, iterations": ("iterations", lambda _, s: float(s.iterations), lambda r: float(r.iterations)),
        "IV, tasks": ("tasks", lambda _, s: float(s.end.slots), lambda r: float(r.tasks)),
        "IV, latency": ("ms", lambda _, s: 1e3 * s.latency_s, lambda r: r.latency_ms),
        "IV, throughput": ("k/s", lambda _, s: s.throughput_per_s / 1e3, lambda r: r.throughput_k),
        "IV, score": ("score", _score, lambda r: r.score),
        "IV, meets QoS": ("%", lambda t, s: 100.0 * _meets(t, s), lambda r: 100.0 * r.met),
    }
    for table, (unit, value, theirs) in parts.items():
        for row in ROWS_4:
            for test in paper.TESTS:
                known = paper.TABLE_IV.get((row, test))
                printed = None if known is None else theirs(known)
                yield _cell(table, row, test, printed, [value(test, s) for s in found.latency[test][row]], unit)
        if table in ("IV, tasks", "IV, latency"):
            for name, test_ in paper.TESTS.items():
                best = optimum(test_.job, test_.level * 1e3, test_.target_s)
                if best is not None:
                    ours = float(sum(best))
                    if unit == "ms":
                        ours = 1e3 * float(latency_s(job(test_.job), np.array([best]), test_.level * 1e3)[0])
                    yield Cell(SUITE, table, paper.EXHAUSTIVE, name, None, ours, unit, False)
    for row in (paper.PLO, paper.OURS):
        for test in paper.TESTS:
            runs = found.latency[test][row]
            printed = paper.BOOTSTRAP[test] if row == paper.PLO else None
            yield _cell("IV, bootstrap runs", row, test, printed, [float(s.trials) for s in runs], "trials")
    for row in ROWS_4:
        for name, test_ in paper.TESTS.items():
            best = optimum(test_.job, test_.level * 1e3, test_.target_s)
            if best is not None:
                over = [s.end.slots / sum(best) for s in found.latency[name][row]]
                yield _cell("IV, tasks over exhaustive", row, name, None, over, "times")


def _score(test: str, solved: Solved) -> float:
    """Return Eq 4 of the end, with the fewest tasks that keep up as π^t."""
    known = paper.TESTS[test]
    base = fewest(job(known.job), known.level * 1e3, paper.MOST)
    tasks = np.array([list(solved.end.tasks.values())], dtype=float)
    least = np.array(list(base.tasks.values()), dtype=float)
    return float(benefit(np.array([solved.latency_s]), known.target_s, least, tasks, paper.ALPHA)[0])


def _meets(test: str, solved: Solved) -> bool:
    known = paper.TESTS[test]
    return solved.latency_s <= known.target_s and solved.throughput_per_s >= 0.99e3 * known.level


def figure_10(found: Found) -> Iterator[Cell]:
    """Yield Figure 10: iterations, tasks and the time of a decision, traditional against lightweight transfer."""
    parts: tuple[tuple[str, str, Callable[[Solved], float]], ...] = (
        ("Figure 10, iterations", "iterations", lambda s: float(s.iterations)),
        ("Figure 10, tasks", "tasks", lambda s: float(s.end.slots)),
        ("Figure 10, trials", "trials", lambda s: float(s.trials)),
    )
    for table, unit, value in parts:
        for row in ROWS_10:
            for name in transfers():
                yield _cell(table, row, name, None, [value(s) for s in found.transfer[name][row]], unit)
        if unit == "tasks":
            for name, (workload, target_s) in transfers().items():
                best = optimum(workload.job, workload.new * 1e3, target_s)
                if best is not None:
                    yield Cell(SUITE, table, paper.EXHAUSTIVE, name, None, float(sum(best)), unit, False)
    for row in ROWS_10:
        for name, (_, target_s) in transfers().items():
            met = [100.0 * (s.latency_s <= target_s) for s in found.transfer[name][row]]
            yield _cell("Figure 10, target met", row, name, None, met, "%")
    told = {"tasks": {"WordCount": 30.0, "Nex-Q11": 30.0}, "iterations": {"Yahoo": 67.0, "Nex-Q5": 80.0}}
    for table, _, value in parts[:2]:
        what = table.partition(", ")[2]
        for name in transfers():
            old, new = (float(np.mean([value(s) for s in found.transfer[name][row]])) for row in ROWS_10[:2])
            if old > 0:
                printed = told[what].get(name)
                saved = 100.0 * (1.0 - new / old)
                yield Cell(SUITE, "Figure 10, lightweight saves", what, name, printed, saved, "%", False)


# -- figure 11 --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def minimal() -> tuple[float, ...]:
    """Return the fewest tasks that reach V_t in every cell; infinite where none do."""
    plant, starts = elo_starts()
    tight = starts["tight"]
    load = ELO_LEVEL * 1e3
    steady_s = float(latency_s(plant, np.array([list(tight.tasks.values())]), load)[0])
    found = []
    for cell in grid():
        needed = needed_per_s(cell, load, steady_s)
        best = fewest(plant, needed, paper.MOST)
        able = min(plant.ability_per_s(name, count, best) for name, count in best.tasks.items())
        found.append(float(best.slots) if able >= needed else math.inf)
    return tuple(found)


def suffix(start: str) -> str:
    """Return what a table's name ends in."""
    return "" if start == STARTS[0] else f", {start} start"


def figure_11(found: Found) -> Iterator[Cell]:
    """Yield Figure 11 from both starts, what AuTraScale+ saves, and who says what about cells out of reach."""
    for start in STARTS:
        yield from _grid(f"Figure 11(a){suffix(start)}", found.backlog[start], lambda c: c.seconds / 60.0, "min")
        yield from _grid(f"Figure 11(b){suffix(start)}", found.backlog[start], lambda c: float(c.tasks), "tasks")
        for column, tasks in zip(map(cell_name, grid()), minimal(), strict=True):
            if math.isfinite(tasks):
                yield Cell(SUITE, f"Figure 11(b){suffix(start)}", MINIMUM, column, None, tasks, "tasks", False)
        reachable = [tasks for tasks in minimal() if math.isfinite(tasks)]
        table, mean = f"Figure 11(b){suffix(start)}", float(np.mean(reachable))
        yield Cell(SUITE, table, MINIMUM, "mean", None, mean, "tasks", False)
    within = [k for k, tasks in enumerate(minimal()) if math.isfinite(tasks)]
    beyond = [k for k in range(len(grid())) if k not in within]
    for row in ROWS_11:
        for start in STARTS:
            runs = found.backlog[start][row]
            met = [100.0 * c.met for k in within for c in runs[k]]
            yield _plain("Figure 11, in time", row, f"{start} start", met, "% of cells that can be met")
    for row in ROWS_11:
        for start in STARTS:
            runs = found.backlog[start][row]
            says = [100.0 * (c.says_unreachable or not c.met) for k in beyond for c in runs[k]]
            told = [100.0 * c.says_unreachable for k in beyond for c in runs[k]]
            yield _plain(
                "Figure 11, out of reach", row, f"missed, {start} start", says, "% of cells that nobody can meet"
            )
            yield _plain(
                "Figure 11, out of reach", row, f"said so, {start} start", told, "% of cells that nobody can meet"
            )
    for row in (paper.EXPONENT, paper.PROPORTION, paper.MAX):
        for start in STARTS:
            ours, theirs = (_mean_tasks(found.backlog[start][name], within) for name in (paper.ELO, row))
            saved = 100.0 * (1.0 - ours / theirs)
            printed = paper.SAVED[row]
            yield Cell(SUITE, "Figure 11, AuTraScale+ saves", row, f"{start} start", printed, saved, "%", False)


def _mean_tasks(runs: Sequence[Sequence[Caught]], within: Sequence[int]) -> float:
    return float(np.mean([c.tasks for k in within for c in runs[k]]))


def _grid(
    table: str, runs: Mapping[str, list[list[Caught]]], value: Callable[[Caught], float], unit: str
) -> Iterator[Cell]:
    within = [k for k, tasks in enumerate(minimal()) if math.isfinite(tasks)]
    for row in ROWS_11:
        for k, column in enumerate(map(cell_name, grid())):
            known = [v for v in map(value, runs[row][k]) if math.isfinite(v)]
            if known:
                yield _plain(table, row, column, known, unit)
        every = [v for k in within for v in map(value, runs[row][k]) if math.isfinite(v)]
        if every:
            yield _plain(table, row, "mean", every, unit)


def table_6(found: Found) -> Iterator[Cell]:
    """Yield Table VI."""
    for row, ms in found.overhead_ms.items():
        printed = paper.OVERHEAD_MS.get(row)
        for k, operators in enumerate(paper.OPERATORS):
            theirs = None if printed is None else printed[k]
            yield Cell(SUITE, "VI", row, f"{operators} operators", theirs, ms[k], "ms", False)


def _cell(
    table: str, row: str, column: str, printed: float | None, values: Sequence[float], unit: str, fitted: bool = False
) -> Cell:
    ours, low, high = mean_with_interval(values)
    return Cell(SUITE, table, row, column, printed, ours, unit, fitted, low, high)


def _plain(table: str, row: str, column: str, values: Sequence[float], unit: str) -> Cell:
    return _cell(table, row, column, None, values or [0.0], unit)
