"""Dragster's comparison (ICPP 2022, section 6): Figures 4 and 5, Tables 2 and 3; regret and fit, and their bounds.

| file | what |
|---|---|
| `paper.py`, `runs.py`, `tables.py`, `claims.py`, `figures.py` | as in every suite |
| `methods.py` | methods with their papers' parameters |
| `play.py` | slots on the simulator |
| `measures.py`, `bounds.py` | regret, fit, costs; the bounds of both theorems |
"""

from __future__ import annotations

from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.claims import CLAIMS, FITS
from rheostat.lab.papers.dragster.figures import figures
from rheostat.lab.papers.dragster.runs import Found, Size, gather, parts
from rheostat.lab.papers.dragster.tables import (
    drops,
    figure_4,
    figure_5,
    goodput,
    regrets,
    rises,
    table_2,
    table_3,
    theorem_1,
    theorem_2,
)
from rheostat.lab.papers.suite import Suite


def notes(found: Found) -> tuple[str, ...]:
    """Return the notes above the tables."""
    size = found.size
    return (
        f"{size.seeds} seeds ({size.long_seeds} over {size.long_slots} slots and after a drop of capacity, "
        f"{size.split_seeds} per budget and with a backlog); the paper shows one run. A slot is ten minutes, 30 s "
        "of it a restart.",
        "Convergence is the minutes to the last change of a phase. The paper's own definition (within 10 % of the best "
        "throughput) is printed beside it: Dhalion's printed 40 minutes after a load falls are its last change.",
        "Policies run with bounds only, and may explore on the live job. To the letter Dragster knows the throughput "
        "functions (section 6.1); ours learns them.",
        f"{paper.SADDLE} and {paper.GRADIENT} follow Eq 8 and 14 to 18 as printed; {paper.PLAIN} leaves Eq 15 out.",
        f"1.6 $/h at 0.1 $ per pod and hour are 16 pods, {paper.PODS} of them fixed: {paper.BUDGET} slots. Table 2's "
        "own prices come to about 27 $/h.",
        "Regret and fit are relative to the oracle, which knows every curve and the future load without noise; in "
        "slots of the load. With resources, a slot at twice the fewest slots counts like a whole slot lost.",
        f"{paper.OURS}: per operator our model of capacity (docs/conttune.md), with known demand. {paper.LATE}: knows "
        "every curve, and the load of the previous slot.",
    )


SUITE = Suite(
    name="dragster",
    title="Dragster: online resource optimisation with a regret guarantee",
    quick=Size(6, 3, 3, 80, 30),
    full=Size(24, 10, 20, 400, 140),
    parts=parts,
    gather=gather,
    tables=(figure_4, figure_5, table_2, table_3, goodput, regrets, theorem_1, theorem_2, drops, rises),
    claims=CLAIMS,
    fits=FITS,
    figures=figures,
    notes=notes,
)
