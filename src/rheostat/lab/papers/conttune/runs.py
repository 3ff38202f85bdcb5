"""The suite's runs: every method on every query's permutations, and on the long traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rheostat.engine.testbed.loads import Permutation, Trace
from rheostat.lab.data import data_folder, missing_data
from rheostat.lab.jobs import job
from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.methods import OURS, methods
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.tuning import Tuned, tune

Runs = Mapping[str, list[list[Tuned]]]
"""Method -> permutation -> levels."""

TRACES: Mapping[str, tuple[str, str, float]] = {
    "taxi on WordCount": ("taxi_15min.csv", "wordcount", 10.0),
    "alibaba on Q3": ("alibaba_15min.csv", "q3", 10.0),
    "retailrocket on YSB": ("retailrocket_15min.csv", "ysb", 330.0),
}
"""Traces in place of the paper's, which are published without a licence: file, job, and level of the highest rate."""
ON_TRACES = (paper.DS2, paper.BIG_DS2, paper.ALPHA_0, paper.ALPHA_3, OURS)
TRACE_HOLD_S = 300
"""Seconds of a level: 15 minutes of the trace."""
TRIGGER = 0.1
"""Change of the load, as a share, that starts a tuning on a trace."""


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    permutations: int
    trace_rows: int
    trace_seeds: int


@dataclass(frozen=True)
class Found:
    """All runs of the suite."""

    size: Size
    queries: Mapping[str, Runs]
    traces: Mapping[str, Runs]
    missing: str = ""
    """Why there are no traces; "" if there are."""


def permutations(count: int) -> list[tuple[float, ...]]:
    """Return the levels of the first `count` permutations, each repeated twice (section 7.1)."""
    return [Permutation(seed=seed).steps.levels for seed in range(count)]


def run_query(query: str, count: int) -> Runs:
    """Run all methods on one query."""
    return tune(job(paper.QUERIES[query]), methods(), permutations(count), paper.HOLD_S)


def run_trace(name: str, rows: int, seeds: int, folder: Path) -> Runs:
    """Run the methods of Figure 7 on one trace."""
    file, job_name, top = TRACES[name]
    levels = trace_levels(folder / "traces" / file, rows, top)
    selected = [method for method in methods() if method.name in ON_TRACES]
    return tune(job(job_name), selected, [levels] * seeds, TRACE_HOLD_S, TRIGGER)


def trace_levels(file: Path, rows: int, top: float) -> tuple[float, ...]:
    """Return the first rows of a trace as levels, the highest of which is `top`."""
    rates = np.asarray(Trace(file=str(file)).rows[1][:rows])
    return tuple(float(level) for level in rates / rates.max() * top)


def parts(size: Size) -> list[Task]:
    """Return the parts: the queries, and the traces if their data are on this machine."""
    tasks: list[Task] = [(query, run_query, (query, size.permutations)) for query in paper.QUERIES]
    if not missing_data():
        tasks += [(name, run_trace, (name, size.trace_rows, size.trace_seeds, data_folder())) for name in TRACES]
    return tasks


def gather(size: Size, done: Mapping[str, Runs]) -> Found:
    """Return all runs, by their use."""
    queries, traces = ({name: done[name] for name in names if name in done} for names in (paper.QUERIES, TRACES))
    return Found(size, queries, traces, missing_data())
