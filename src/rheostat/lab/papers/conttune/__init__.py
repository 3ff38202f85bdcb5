"""ContTune's comparison (VLDB 2023, section 7): Tables 4 to 8 and Figures 5 to 7, under its conventions and others.

| file | what |
|---|---|
| `paper.py`, `runs.py`, `tables.py`, `claims.py`, `figures.py` | as in every suite |
| `methods.py` | methods with their papers' parameters |
| `rate_models.py` | Dragster with a model per rate |
"""

from __future__ import annotations

from collections.abc import Iterator

from rheostat.lab.papers.conttune.claims import CLAIMS, FITS, comparable
from rheostat.lab.papers.conttune.figures import figures
from rheostat.lab.papers.conttune.runs import Found, Size, gather, parts
from rheostat.lab.papers.conttune.tables import figure_5, figure_7, table_7, table_8, tables_4_to_6
from rheostat.lab.papers.suite import Suite


def notes(found: Found) -> Iterator[str]:
    """Yield the notes above the tables."""
    count = found.size.permutations
    yield f"{count} permutations of 20 tunings per query (the paper has 6); totals are per 120 tunings."
    yield (
        "4a to 8 as in the paper: ContTune knows the demand, Big + DS2's Big is not counted, linear methods continue "
        "to a fixed point, fast exploitation stops at the first window without back pressure."
    )
    yield (
        "Strict stop: all methods continue to a fixed point. Lenient stop: all stop at the first window without back "
        "pressure; the table of cores over the fewest has their sizes then."
    )
    yield "Big counted: ContTune answers back pressure with Big, and every change counts (Algorithm 1, literally)."
    yield "Policies run with bounds only, without guards and headroom. Dragster's own comparison is another suite."
    if found.missing:
        yield f"No Figure 7: {found.missing}"


SUITE = Suite(
    name="conttune",
    title="ContTune: continuous tuning by conservative Bayesian optimisation",
    quick=Size(3, 1, 3, 24, 3),
    full=Size(20, 6, 20, 96, 20),
    parts=parts,
    gather=gather,
    tables=(tables_4_to_6, table_7, table_8, figure_5, figure_7),
    claims=CLAIMS,
    fits=FITS,
    comparable=comparable,
    figures=figures,
    notes=notes,
)
