"""AuTraScale+'s comparison (TPDS 2024, section V): Figures 7 to 11, Tables IV to VI, and our own models beside it.

| file | what |
|---|---|
| `paper.py`, `runs.py`, `tables.py`, `claims.py`, `figures.py` | as in every suite |
| `scaling_runs.py` | throughput and latency runs |
| `backlog_runs.py` | runs with a backlog |
| `overhead.py` | CPU time of a decision |
| `truth.py` | a job's true latency and fewest tasks |
"""

from __future__ import annotations

from rheostat.lab.papers.autrascale.claims import CLAIMS, FITS, comparable
from rheostat.lab.papers.autrascale.figures import figures
from rheostat.lab.papers.autrascale.runs import Found, Size, alone, gather, parts
from rheostat.lab.papers.autrascale.tables import figure_7, figure_10, figure_11, table_4, table_6
from rheostat.lab.papers.suite import Suite


def notes(found: Found) -> tuple[str, ...]:
    """Return the notes above the tables."""
    size = found.size
    return (
        f"{size.seeds} seeds per test and {size.grid_seeds} per cell of Figure 11; P_max is 40 tasks per operator.",
        "An iteration of Figure 7 is a window in which Eq 3 is evaluated; one of Table IV and Figure 10 is a change of "
        "the job after the throughput was right. Bootstrapping runs are trials on a testbed, in their own table.",
        "A window covers 100 s of a job without a backlog; restarts take no time.",
        "If π^t meets Table V's target there is nothing to transfer: WordCount also runs with a target of 100 ms.",
        "Figure 11 uses a Yahoo job with a faster store: with Figure 7's, most cells cannot be met by any method. "
        "Means are over the cells that can be met. The fewest sufficient tasks are printed beside both starts.",
        "Table VI is CPU time, as in the paper: medians on this machine.",
    )


SUITE = Suite(
    name="autrascale",
    title="AuTraScale+: throughput, processing-time latency, event-time latency",
    quick=Size(6, 3, 12),
    full=Size(24, 20, 60),
    parts=parts,
    alone=alone,
    gather=gather,
    tables=(figure_7, table_4, figure_10, figure_11, table_6),
    claims=CLAIMS,
    fits=FITS,
    comparable=comparable,
    figures=figures,
    notes=notes,
)
