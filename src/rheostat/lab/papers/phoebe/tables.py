"""The paper's tables from our runs. A cell is the median of the seeds, its interval the smallest and the largest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from rheostat.lab.papers.phoebe import measures, paper
from rheostat.lab.papers.phoebe.measures import missed, near_optimal, saving
from rheostat.lab.papers.phoebe.play import Run
from rheostat.lab.papers.phoebe.recorded import AFTER_S, BEFORE_S, recorded, recovery_errors, throughput_errors
from rheostat.lab.papers.phoebe.runs import Found, phoebe_row
from rheostat.lab.papers.result import Cell

SUITE = "phoebe"
COLUMNS = tuple(f"#{k}" for k in range(1, 9))
SHOWN, OFFSETS = "recovery as displayed", "recovery by source offsets"


def cell(table: str, row: str, column: str, values: Sequence[float], unit: str, printed: float | None = None) -> Cell:
    """Return a cell of the seeds' values."""
    some = len(values) > 1
    low, high = (min(values), max(values)) if some else (None, None)
    return Cell(SUITE, table, row, column, printed, median(values), unit, False, low, high)


def simulator(found: Found) -> Iterator[Cell]:
    """Yield how far the simulated fixed runs are from the recorded ones; the plant was fitted to these."""
    runs = found.experiments[paper.TSW]
    for row, workers in ((paper.S12, 12), (paper.S24, 24)):
        real = recorded(found.folder, workers)
        ours = {
            "throughput": np.column_stack([run.throughput_per_s for run in runs[row]]),
            "latency": np.column_stack([run.latency_s for run in runs[row]]),
            "lag": np.column_stack([run.latency_s for run in runs[row]]),
        }
        for column, value in (
            ("throughput around failures", throughput_errors(real, ours, BEFORE_S, AFTER_S)),
            ("recovery as displayed", recovery_errors(real, ours)[0]),
        ):
            name = "The simulator against the recorded runs, TSW"
            yield Cell(SUITE, name, row, column, None, 100 * value, "% off, median", True)


def table_2(found: Found, name: str) -> Iterator[Cell]:
    """Yield Table II: recovery per failure, as displayed and by source offsets, and the changes."""
    title, runs = paper.TITLES[name], found.experiments[name]
    for what in (SHOWN, OFFSETS):
        table = f"II {title}, {what}"
        for row in paper.ROWS:
            printed = paper.RECOVERY[name].get(row) if what == SHOWN else None
            for k, column in enumerate(COLUMNS):
                seconds = [run.failures[k].shown_s if what == SHOWN else run.failures[k].took_s for run in runs[row]]
                capped = [min(value, paper.LONG_S) for value in seconds]
                theirs = None if printed is None else printed[k]
                fitted = name == paper.TSW and row in (paper.S24, paper.S12) and what == SHOWN
                low, high = (min(capped), max(capped)) if len(capped) > 1 else (None, None)
                yield Cell(SUITE, table, row, column, theirs, median(capped), "s", fitted, low, high)
    for k, column in enumerate(COLUMNS):
        loads = [run.failures[k].load_per_s / 1e3 for run in runs[paper.S24]]
        yield cell(f"II {title}, load at the failure", "10^3/s", column, loads, "10^3/s", paper.WORKLOAD[name][k])
    for row in paper.SCALING:
        changes = [float(run.changes) for run in runs[row]]
        yield cell(f"II {title}, changes", row, "changes", changes, "", paper.CHANGES[name].get(row))


def targets(found: Found, name: str) -> Iterator[Cell]:
    """Yield how often 180 s were missed where 24 workers would have met them, and how often nobody could."""
    runs, table = found.experiments[name], f"{paper.TITLES[name]}, targets of {paper.TARGET_S:g} s"
    for row in paper.ROWS:
        for what, measured in ((OFFSETS, measures.took), (SHOWN, measures.shown)):
            each = missed(runs, row, measured)
            tail = "" if what == OFFSETS else ", as displayed"
            yield Cell(SUITE, table, row, f"missed{tail}", None, 100 * each.share, "%", False)
            yield Cell(SUITE, table, row, f"infeasible{tail}", None, 100 * each.infeasible / each.failures, "%", False)


def prediction(found: Found, name: str) -> Iterator[Cell]:
    """Yield how far predictions made before a failure are from what it took, and what nobody can know."""
    runs, table = found.experiments[name], f"{paper.TITLES[name]}, prediction error of recovery"
    rows = ((paper.PHOEBE, "as displayed", measures.shown), (paper.PHOEBE, "by offsets", measures.took))
    for row, how, measured in (*rows, (paper.OURS, "by offsets", measures.took)):
        off = measures.errors(runs[row], measured, measures.said)
        printed = paper.ERROR[name] if (row, how) == (paper.PHOEBE, "as displayed") else None
        for column, value, theirs in (
            ("median run", off.median_run, None),
            ("single failures", off.single, None),
            ("means", off.of_means, printed),
        ):
            yield Cell(SUITE, table, f"{row}, {how}", column, theirs, 100 * value, "%", False)
    for row, given in (
        ("All known but the downtime drawn", measures.unpredictable(found, name, paper.OURS)),
        ("All known", measures.equation(found, name, paper.OURS)),
    ):
        yield Cell(SUITE, table, row, "median run", None, 100 * given.median_run, "%", False)
        yield Cell(SUITE, table, row, "single failures", None, 100 * given.single, "%", False)


def resources(found: Found, name: str) -> Iterator[Cell]:
    """Yield Figures 6e and 6f, and slot-seconds against the clairvoyant that meets the same targets."""
    runs, title = found.experiments[name], paper.TITLES[name]
    table, cost = f"{title}, resources saved against static 24", found.profile_slot_seconds[name]
    for row in paper.ROWS[1:]:
        printed = paper.SAVING[name] if row == paper.PHOEBE else None
        yield cell(table, row, "saved", [100 * v for v in saving(runs, row)], "%", printed)
        if row in (paper.PHOEBE, paper.TWRES, paper.OURS):
            printed = paper.SAVING_PROFILED[name] if row == paper.PHOEBE else None
            yield cell(table, row, "with profiling", [100 * v for v in saving(runs, row, cost)], "%", printed)
    yield from clairvoyant(found, name, paper.ROWS)


def clairvoyant(found: Found, name: str, rows: Sequence[str]) -> Iterator[Cell]:
    """Yield slot-seconds over the clairvoyant's; below one a method does not keep the promise."""
    table = f"{paper.TITLES[name]}, slot-seconds over the clairvoyant's"
    for row in rows:
        for column, limited in (("no more changes than the method", True), ("changes at every moment", False)):
            yield cell(table, row, column, measures.over_clairvoyant(found, name, row, limited), "")


def latencies(found: Found, name: str) -> Iterator[Cell]:
    """Yield Figures 6c and 6d as shares."""
    runs, table = found.experiments[name], f"{paper.TITLES[name]}, latency"
    for row in paper.ROWS:
        shares = [100 * near_optimal(run) for run in runs[row]]
        yield cell(table, row, "% near the best", shares, "", paper.NEAR_OPTIMAL[name].get(row))
        for q in (0.5, 0.9, 0.95):
            yield cell(table, row, f"{q:.0%} below, s", [float(np.quantile(r.latency_s, q)) for r in runs[row]], "")


def sensitivity(found: Found, name: str) -> Iterator[Cell]:
    """Yield what D, and a profile that is never corrected, make of Phoebe."""
    runs, table = found.experiments[name], f"{paper.TITLES[name]}, Phoebe's D decides"
    for refreshed in (True, False):
        for d in paper.DOWNTIMES:
            row = phoebe_row(d, refreshed)
            if row in runs:
                label = f"D = {d:g}" + ("" if refreshed else ", profile never corrected")
                yield from _one(table, label, runs, row, found, name)


def _one(table: str, label: str, runs: Mapping[str, list[Run]], row: str, found: Found, name: str) -> Iterator[Cell]:
    yield cell(table, label, "saved, %", [100 * v for v in saving(runs, row)], "")
    yield cell(table, label, "changes", [float(run.changes) for run in runs[row]], "")
    over = measures.over_clairvoyant(found, name, row, True)
    yield cell(table, label, "over the clairvoyant", over, "")
    yield Cell(SUITE, table, label, "missed, %", None, 100 * missed(runs, row).share, "", False)
    off = measures.errors(runs[row], measures.shown, measures.said)
    yield Cell(SUITE, table, label, "error of means as displayed, %", None, 100 * off.of_means, "", False)
