"""The suite's runs: every method on every query's permutations, and on the long traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rheostat.engine.simulated import Plant
from rheostat.engine.testbed.loads import Permutation, Trace
from rheostat.lab.data import data_folder, missing_data
from rheostat.lab.jobs import job
from rheostat.lab.jobs.conttune import WITH_RULE
from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.drift import DRIFT, Drifted, run_drift
from rheostat.lab.papers.conttune.methods import OURS, linear_methods, methods
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.tuning import Tuned, tune

Runs = Mapping[str, list[list[Tuned]]]
"""Method -> permutation -> levels."""

TRACES: Mapping[str, tuple[str, str]] = {
    "taxi on Video streaming": ("taxi_15min.csv", "video"),
    "alibaba on ETL": ("alibaba_15min.csv", "etl"),
    "retailrocket on Monitoring": ("retailrocket_15min.csv", "monitoring"),
}
"""Traces in place of the paper's, which are published without a licence: file, and a job of the paper's size."""
ON_TRACES = (paper.DS2, paper.BIG_DS2, paper.ALPHA_0, paper.ALPHA_3, OURS)
TOP = 10.0
"""Level of a trace's highest rate."""
TRACE_HOLD_S = 300
"""Seconds of a level: 15 minutes of the trace."""
TRIGGER = 0.1
"""Change of the load, as a share, that starts a tuning on a trace."""


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    permutations: int
    variant_permutations: int
    """Permutations with other noise and curves."""
    drift_seeds: int
    trace_rows: int
    trace_seeds: int


@dataclass(frozen=True)
class Found:
    """All runs of the suite."""

    size: Size
    queries: Mapping[str, Runs]
    variants: Mapping[str, Mapping[str, Runs]]
    """Variant -> query -> runs."""
    drift: Mapping[str, Mapping[str, Sequence[Drifted]]]
    """Change of the capacities -> method -> a run per seed."""
    traces: Mapping[str, Runs]
    missing: str = ""
    """Why there are no traces; "" if there are."""


def permutations(count: int) -> list[tuple[float, ...]]:
    """Return the levels of the first `count` permutations, each repeated twice (section 7.1)."""
    return [Permutation(seed=seed).steps.levels for seed in range(count)]


def run_query(query: str, count: int) -> Runs:
    """Run all methods on one query."""
    return tune(job(paper.QUERIES[query]), methods(paper.P_MAX[query]), permutations(count), paper.HOLD_S)


def run_variant(name: str, count: int) -> Mapping[str, Runs]:
    """Run both DS2s and ContTune on every query with other noise or curves."""
    return {
        query: tune(VARIANTS[name](known), linear_methods(), permutations(count), paper.HOLD_S)
        for query, known in paper.QUERIES.items()
    }


def noisy(factor: float, known: str) -> Plant:
    """Return a job with its noise multiplied."""
    plant = job(known)
    return replace(plant, operators=tuple(replace(one, noise=factor * one.noise) for one in plant.operators))


FITTED_WITH_RULE = "fitted to DS2 with its rule"
VARIANTS: Mapping[str, Callable[[str], Plant]] = {
    "without noise": partial(noisy, 0.0),
    "twice the noise": partial(noisy, 2.0),
    FITTED_WITH_RULE: lambda known: WITH_RULE[known](),
}
"""Noise and curves that differ from those of the main tables."""


def run_trace(name: str, rows: int, seeds: int, folder: Path) -> Runs:
    """Run the methods of Figure 7 on one trace."""
    file, job_name = TRACES[name]
    levels = trace_levels(folder / "traces" / file, rows, TOP)
    selected = [method for method in methods() if method.name in ON_TRACES]
    return tune(job(job_name), selected, [levels] * seeds, TRACE_HOLD_S, TRIGGER)


def trace_levels(file: Path, rows: int, top: float) -> tuple[float, ...]:
    """Return the first rows of a trace as levels, the highest of which is `top`."""
    rates = np.asarray(Trace(file=str(file)).rows[1][:rows])
    return tuple(float(level) for level in rates / rates.max() * top)


def parts(size: Size) -> list[Task]:
    """Return the parts: the queries, and the traces if their data are on this machine."""
    tasks: list[Task] = [(query, run_query, (query, size.permutations)) for query in paper.QUERIES]
    tasks += [(name, run_variant, (name, size.variant_permutations)) for name in VARIANTS]
    tasks.append((DRIFT, run_drift, (size.drift_seeds,)))
    if not missing_data():
        tasks += [(name, run_trace, (name, size.trace_rows, size.trace_seeds, data_folder())) for name in TRACES]
    return tasks


def gather(size: Size, done: Mapping[str, Any]) -> Found:
    """Return all runs, by their use."""
    queries, variants, traces = (
        {name: done[name] for name in names if name in done} for names in (paper.QUERIES, VARIANTS, TRACES)
    )
    return Found(size, queries, variants, done[DRIFT], traces, missing_data())
