"""The paper's tables from our runs. A cell is the median of the seeds, as in the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from rheostat.lab.papers.phoebe import measures, paper
from rheostat.lab.papers.phoebe.measures import missed, near_optimal, saving
from rheostat.lab.papers.phoebe.recordings import AFTER_S, BEFORE_S, recorded, recovery_errors, throughput_errors
from rheostat.lab.papers.phoebe.runs import (
    DRILLED,
    NARROW_PRIORS_S,
    NO_LATENCY,
    PRIOR_S,
    TWRES_NEVER,
    Found,
    Runs,
    phoebe_row,
    prior_row,
)
from rheostat.lab.papers.table import Cell, Table

COLUMNS = tuple(f"#{k}" for k in range(1, 9))
SHOWN, OFFSETS = "recovery as displayed", "recovery by source offsets"


def late_table(title: str) -> str:
    """Return the name of the table of failures that take six minutes or more."""
    return f"II {title}, failures that take six minutes or more"


def simulator(found: Found) -> Iterator[Cell]:
    """Yield the errors of the simulated fixed runs, to whose recordings the plant is fitted."""
    runs, table = found.experiments[paper.TSW], Table("The simulator against the recorded runs, TSW", "% off, median")
    for row, workers in ((paper.S12, 12), (paper.S24, 24)):
        real = recorded(found.folder, workers)
        ours = {
            "throughput": np.column_stack([run.throughput_per_s for run in runs[row]]),
            "latency": np.column_stack([run.latency_s for run in runs[row]]),
            "lag": np.column_stack([run.latency_s for run in runs[row]]),
        }
        throughput, recovery = throughput_errors(real, ours, BEFORE_S, AFTER_S), recovery_errors(real, ours)[0]
        yield table.cell(row, "throughput around failures", 100 * throughput, fitted=True)
        yield table.cell(row, SHOWN, 100 * recovery, fitted=True)


def experiments(found: Found) -> Iterator[Cell]:
    """Yield all tables, experiment by experiment."""
    for name in paper.EXPERIMENTS:
        for table in (table_2, targets, prediction, resources, latencies, downtimes, models, priors):
            yield from table(found, name)
    yield from other_downtimes(found)


def table_2(found: Found, name: str) -> Iterator[Cell]:
    """Yield Table II: recovery per failure, as displayed and by source offsets, and the changes."""
    title, runs = paper.TITLES[name], found.experiments[name]
    for what in (SHOWN, OFFSETS):
        table = Table(f"II {title}, {what}", "s")
        for row in paper.ROWS:
            printed = paper.RECOVERY[name].get(row) if what == SHOWN else None
            # Both plants are fitted to these runs.
            fitted = row in (paper.S24, paper.S12) and what == SHOWN
            for k, column in enumerate(COLUMNS):
                seconds = [run.failures[k].shown_s if what == SHOWN else run.failures[k].took_s for run in runs[row]]
                capped = [min(value, paper.LONG_S) for value in seconds]
                yield table.median(row, column, capped, None if printed is None else printed[k], fitted)
    table = Table(late_table(title), "failures")
    for row in paper.ROWS:
        late = [float(sum(failure.shown_s >= paper.LONG_S for failure in run.failures)) for run in runs[row]]
        printed = paper.RECOVERY[name].get(row)
        theirs = None if printed is None else float(sum(seconds >= paper.LONG_S for seconds in printed))
        yield table.mean(row, "of 8", late, theirs)
    table = Table(f"II {title}, load at the failure", "10^3/s")
    for k, column in enumerate(COLUMNS):
        loads = [run.failures[k].load_per_s / 1e3 for run in runs[paper.S24]]
        yield table.median("10^3/s", column, loads, paper.WORKLOAD[name][k])
    table = Table(f"II {title}, changes")
    for row in paper.SCALING:
        changes = [float(run.changes) for run in runs[row]]
        # The CPU gain is chosen by the reactive runs.
        yield table.median(row, "changes", changes, paper.CHANGES[name].get(row), row == paper.REACTIVE)


def targets(found: Found, name: str) -> Iterator[Cell]:
    """Yield the share of missed targets that 24 workers meet, and the share of infeasible ones."""
    runs, table = found.experiments[name], Table(f"{paper.TITLES[name]}, targets of {paper.TARGET_S:g} s", "%")
    for row in paper.ROWS:
        for what, measured in ((OFFSETS, measures.took), (SHOWN, measures.shown)):
            each = missed(runs, row, measured)
            tail = "" if what == OFFSETS else ", as displayed"
            yield table.mean(row, f"missed{tail}", [100 * share for share in each.by_seed])
            yield table.cell(row, f"infeasible{tail}", 100 * each.infeasible / each.failures)


def prediction(found: Found, name: str) -> Iterator[Cell]:
    """Yield the errors of predicted recovery times, and the errors that cannot be avoided."""
    runs, table = found.experiments[name], Table(f"{paper.TITLES[name]}, prediction error of recovery", "%")
    shown = measures.errors(runs[paper.PHOEBE], measures.shown, measures.predicted)
    yield from _errors(table, f"{paper.PHOEBE}, as displayed", shown)
    # Errors of both signs cancel in it: it is printed because the paper's number is one.
    yield table.cell(f"{paper.PHOEBE}, as displayed", "of means", 100 * shown.of_means, paper.ERROR[name])
    for row in (paper.OURS, DRILLED):
        yield from _errors(table, f"{row}, by offsets", measures.errors(runs[row], measures.took, measures.predicted))
    yield from _errors(table, "All known but the downtime drawn", measures.unpredictable(found, name, paper.OURS))
    yield from _errors(table, "All known", measures.equation(found, name, paper.OURS))


def _errors(table: Table, row: str, off: measures.Errors) -> Iterator[Cell]:
    yield table.cell(row, "median run", 100 * off.median_run)
    yield table.median(row, "single failures", [100 * error for error in off.by_seed])


def resources(found: Found, name: str) -> Iterator[Cell]:
    """Yield Figures 6e and 6f, and slot-seconds against the oracle that meets the same targets."""
    runs, title = found.experiments[name], paper.TITLES[name]
    table = Table(f"{title}, resources saved against static 24", "%")
    whole, windows = found.profile_slot_seconds[name], found.windows_slot_seconds[name]
    for row in (*paper.ROWS[1:], DRILLED):
        is_paper = row == paper.PHOEBE
        # D is chosen by Phoebe's savings.
        yield table.median(
            row, "saved", _percent(saving(runs, row)), paper.SAVING[name] if is_paper else None, is_paper
        )
        if row in (paper.PHOEBE, paper.TWRES, paper.OURS):
            for column, extra, printed in (
                ("with profiling, its measuring windows", windows, paper.SAVING_PROFILED),
                ("the same after a day", windows / paper.DAYS, paper.SAVING_DAY),
                ("with profiling as paid", whole, None),
            ):
                theirs = printed[name] if printed and is_paper else None
                yield table.median(row, column, _percent(saving(runs, row, extra)), theirs)
    # Below one a method does not meet the objective.
    table = Table(f"{title}, slot-seconds over the oracle's")
    for row in paper.ROWS:
        for column, limited in (("no more changes than the method", True), ("changes at every moment", False)):
            yield table.median(row, column, measures.over_oracle(found, name, row, limited))


def latencies(found: Found, name: str) -> Iterator[Cell]:
    """Yield Figures 6c and 6d as shares."""
    runs, table = found.experiments[name], Table(f"{paper.TITLES[name]}, latency")
    for row in paper.ROWS:
        shares = [100 * near_optimal(run) for run in runs[row]]
        yield table.median(row, "% near the best", shares, paper.NEAR_OPTIMAL[name].get(row))
        for q in (0.5, 0.9, 0.95):
            yield table.median(row, f"{q:.0%} below, s", [float(np.quantile(r.latency_s, q)) for r in runs[row]])


def downtimes(found: Found, name: str) -> Iterator[Cell]:
    """Yield the effect of D on Phoebe."""
    runs, table = found.experiments[name], Table(f"{paper.TITLES[name]}, Phoebe's D decides")
    for d in paper.DOWNTIMES:
        if (row := phoebe_row(d)) in runs:
            yield from _outcome(found, name, table, f"D = {d:g}", runs, row)


def models(found: Found, name: str) -> Iterator[Cell]:
    """Yield the effect of the latency model, and of a profile that is never corrected."""
    runs, table = found.experiments[name], Table(f"{paper.TITLES[name]}, what matters in the models")
    for row in (paper.PHOEBE, NO_LATENCY, phoebe_row(paper.MAIN_D, False), paper.TWRES, TWRES_NEVER):
        if row in runs:
            yield from _outcome(found, name, table, row, runs, row)


def priors(found: Found, name: str) -> Iterator[Cell]:
    """Yield the effect of what ours assumes before the first failure, and what not knowing the downtime costs."""
    runs, table = found.experiments[name], Table(f"{paper.TITLES[name]}, before the first failure")
    rows = [(paper.OURS, "unknown"), (DRILLED, "drilled")]
    rows += [(prior_row(d), f"{d:g} s, as if seen once") for d in NARROW_PRIORS_S if prior_row(d) in runs]
    for row, label in rows:
        yield from _outcome(found, name, table, label, runs, row)
        off = measures.errors(runs[row], measures.took, measures.predicted)
        yield table.median(label, "prediction error, %", _percent(off.by_seed))
    known, unknown = saving(runs, DRILLED), saving(runs, paper.OURS)
    yield table.mean("unknown", "costs, % of static 24", [100 * (a - b) for a, b in zip(known, unknown, strict=True)])


def other_downtimes(found: Found) -> Iterator[Cell]:
    """Yield ours on plants with other downtimes, with its wide prior and with a narrow one of 60 s."""
    table = Table("TSW, plants with other downtimes")
    for downtime_s, runs in found.others.items():
        for row, label in ((paper.OURS, "unknown"), (prior_row(PRIOR_S), f"{PRIOR_S:g} s, as if seen once")):
            each = missed(runs, row)
            name = f"{downtime_s:g} s: {label}"
            yield table.mean(name, "missed, %", _percent(each.by_seed))
            yield table.median(name, "saved, %", _percent(saving(runs, row)))
            yield table.cell(name, "infeasible, %", 100 * each.infeasible / each.failures)


def _outcome(found: Found, name: str, table: Table, label: str, runs: Runs, row: str) -> Iterator[Cell]:
    """Yield what a method saves and misses, and how often it changes."""
    largest = {row: runs[row], paper.S24: runs[paper.S24][: len(runs[row])]}
    yield table.median(label, "saved, %", _percent(saving(largest, row)))
    yield table.mean(label, "missed, %", _percent(missed(largest, row).by_seed))
    yield table.median(label, "changes", [float(run.changes) for run in runs[row]])
    yield table.median(label, "over the oracle", measures.over_oracle(found, name, row, True))


def _percent(shares: Iterable[float]) -> list[float]:
    return [100 * share for share in shares]
