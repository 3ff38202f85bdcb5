"""AuTraScale+'s comparison (TPDS 2024, sections III and V): Figures 4 to 11, Tables IV to VI, and our own models.

| file | what |
|---|---|
| `paper.py`, `runs.py`, `tables.py`, `claims.py`, `figures.py` | as in every suite |
| `scaling_runs.py` | throughput and latency runs |
| `backlog_runs.py` | runs with a backlog |
| `case_runs.py` | runs without a policy: Figures 4, 5 and 7(b) |
| `other_laws.py` | jobs whose latency follows another law than our model |
| `overhead.py` | CPU time of a decision |
| `truth.py` | a job's true latency and fewest tasks |
"""

from __future__ import annotations

from rheostat.lab.papers.autrascale.claims import CLAIMS, FITS, comparable
from rheostat.lab.papers.autrascale.figures import figures
from rheostat.lab.papers.autrascale.runs import Found, Size, alone, gather, parts
from rheostat.lab.papers.autrascale.tables import (
    figure_7,
    figure_7b,
    figure_10,
    figure_10b,
    figure_11,
    figures_4_and_5,
    headline,
    other_laws,
    recall,
    table_4,
    table_6,
)
from rheostat.lab.papers.suite import Suite


def notes(found: Found) -> tuple[str, ...]:
    """Return the notes above the tables."""
    size = found.size
    return (
        f"{size.seeds} seeds per test and {size.grid_seeds} per cell of Figure 11; P_max is 40 tasks per operator.",
        "The paper's rows take Eq 3 and Algorithm 3 to the letter. Eq 8 ends a transfer, too: section V-D ends it by "
        "the latency alone, Algorithm 2 by the terminational condition.",
        "Figures 4 and 5 are of a job of their own, fitted to Figure 5: its WordCount is not that of Figure 7.",
        "An iteration of Figure 7 is a window in which Eq 3 is evaluated; one of Table IV and Figure 10 is a change of "
        "the job after the throughput was right. Bootstrapping runs are trials on a testbed, in their own table.",
        "A window covers 100 s of a job without a backlog; restarts take no time.",
        "If π^t meets Table V's target there is nothing to transfer: WordCount also runs with a target of 100 ms.",
        "Figure 11 uses a Yahoo job with a faster store: with Figure 7's, most cells cannot be met by any method. As "
        "published, TO and PLO find the steady allocation from one task each; the control starts with the fewest "
        "tasks that meet the target. Means are over the cells that can be met.",
        "Table VI is CPU time, as in the paper: medians on this machine.",
    )


SUITE = Suite(
    name="autrascale",
    title="AuTraScale+: throughput, processing-time latency, event-time latency",
    quick=Size(6, 3, 12, (500,)),
    full=Size(24, 20, 60),
    parts=parts,
    alone=alone,
    gather=gather,
    tables=(
        figures_4_and_5,
        figure_7,
        figure_7b,
        table_4,
        other_laws,
        figure_10,
        figure_10b,
        recall,
        figure_11,
        headline,
        table_6,
    ),
    claims=CLAIMS,
    fits=FITS,
    comparable=comparable,
    figures=figures,
    notes=notes,
)
