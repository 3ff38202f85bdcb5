"""Phoebe's comparison (ICWS 2022, section IV): Table II, latencies, resource use and prediction errors.

| file | what |
|---|---|
| `paper.py`, `runs.py`, `tables.py`, `claims.py`, `figures.py` | as in every suite |
| `recordings.py` | recorded runs, and the same runs simulated |
| `play.py` | six hours with failures |
| `measures.py` | recoveries, errors, costs |
| `oracle.py` | the fewest workers |
"""

from __future__ import annotations

from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.claims import CLAIMS, FITS
from rheostat.lab.papers.phoebe.figures import figures
from rheostat.lab.papers.phoebe.runs import CONFIDENCE, Found, Size, gather, parts
from rheostat.lab.papers.phoebe.tables import experiments, simulator
from rheostat.lab.papers.suite import Suite


def notes(found: Found) -> tuple[str, ...]:
    """Return the notes above the tables."""
    ms = max(run.decision_ms for runs in found.experiments.values() for each in runs.values() for run in each)
    return (
        f"{found.size.seeds} seeds, their median in every cell; the paper takes the median of five runs. Six hours, "
        "eight failures at 1200 + 2743 k seconds, as in the recordings.",
        "Both plants are fitted to recorded runs at fixed sizes, Phoebe's D to its savings, the CPU gain to the "
        "reactive runs: these cells are marked. Claims use means over the seeds.",
        "Recovery as displayed is the paper's: from latencies that are displayed about a minute late. By source "
        "offsets it ends when the backlog is back to normal. 360 s means 6m+.",
        f"Infeasible: the same failure takes more than {paper.TARGET_S:g} s on 24 workers, too. Missed: of the others.",
        f"The paper does not state Phoebe's D: {paper.MAIN_D:g} s is fitted, {paper.DERIVED_D:g} s follows from "
        "section IV-B. Forecasts use past load only.",
        "Profiling is charged as the paper does, by its measuring windows of two minutes, and as a user pays it, with "
        "the five minutes before each. A method that is drilled has had three failures on the testbed before.",
        f"The oracle knows the load and the distribution of downtimes, and meets {paper.TARGET_S:g} s in "
        f"{CONFIDENCE:.0%} of all cases at every moment; a method below 1 does not. Changes at every moment are a "
        "bound, not a schedule.",
        f"The slowest policy takes {ms:.1f} ms per decision on average, with its forecast.",
    )


SUITE = Suite(
    name="phoebe",
    title="Phoebe: anticipating the load, and how long a failure takes",
    quick=Size(3, False),
    full=Size(20, True, 8),
    parts=parts,
    gather=gather,
    tables=(simulator, experiments),
    claims=CLAIMS,
    fits=FITS,
    figures=figures,
    notes=notes,
)
