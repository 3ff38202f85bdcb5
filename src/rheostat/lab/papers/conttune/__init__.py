"""ContTune's comparison (VLDB 2023, sections 6 and 7): Tables 4 to 8, Figures 3 to 7, under its conventions and others.

| file | what |
|---|---|
| `paper.py`, `runs.py`, `tables.py`, `claims.py`, `figures.py` | as in every suite |
| `methods.py` | methods with their papers' parameters |
| `rate_models.py` | Dragster with a model per rate |
| `complexity.py` | Figure 3 and Eq 7 to 9: known regions, worst cases |
| `sensitivity.py` | Table 4a with other noise and curves |
| `drift.py` | capacities that fall or rise |
"""

from __future__ import annotations

from collections.abc import Iterator

from rheostat.lab.papers.conttune.claims import CLAIMS, FITS, comparable
from rheostat.lab.papers.conttune.complexity import equations, figure_3
from rheostat.lab.papers.conttune.drift import drift_tables
from rheostat.lab.papers.conttune.figures import figures
from rheostat.lab.papers.conttune.runs import Found, Size, gather, parts
from rheostat.lab.papers.conttune.sensitivity import sensitivity
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
    yield (
        "DS2 takes every suggestion; the controller that its authors published ignores a change that only removes "
        "single tasks: the row below it. Dragster and Random Search are bounded by the paper's p_max (16 or 32)."
    )
    yield (
        "Dragster has a model per rate, our margin and our shortfall: to the letter its sizes never settle. With one "
        "model it is as in its own paper. Its own comparison is another suite."
    )
    yield (
        "Dhalion shrinks an operator whose queue is empty and that has spare useful time; its paper asks for the empty "
        "queue only: the rows below it, with and without our bound on a step's growth."
    )
    if found.traces:
        yield (
            "Figure 7: the authors published their three traces without a licence, so other traces run here, on jobs "
            "of ours with as many operators, sources and sinks as theirs."
        )
    yield "Policies run with bounds only, without guards and headroom."
    if found.missing:
        yield f"No Figure 7: {found.missing}"


SUITE = Suite(
    name="conttune",
    title="ContTune: continuous tuning by conservative Bayesian optimisation",
    quick=Size(3, 1, 3, 24, 3),
    full=Size(20, 6, 20, 96, 20),
    parts=parts,
    gather=gather,
    tables=(
        tables_4_to_6,
        sensitivity,
        table_7,
        table_8,
        figure_3,
        equations,
        figure_5,
        figure_7,
        lambda found: drift_tables(found.drift),
    ),
    claims=CLAIMS,
    fits=FITS,
    comparable=comparable,
    figures=figures,
    notes=notes,
)
