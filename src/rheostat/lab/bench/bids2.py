"""BIDS2 against HiGHS: whether the optimum is the same, and how much faster it is found."""

from __future__ import annotations

import time

import numpy as np

from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.papers.streambed.side_constraints import solve
from rheostat.planner.configuration_optimizer import OperatorCapacity
from rheostat.planner.configuration_optimizer import bids2 as by_bisection

SAME = 1e-6
"""Largest relative difference of rates that count as equal."""


def problem(seed: int) -> tuple[list[OperatorCapacity], int]:
    """Return a random problem of the paper's size: 2 to 9 operators, up to 64 slots."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 10))
    operators = [OperatorCapacity(f"op{k}", float(np.exp(rng.normal(10.0, 1.5)))) for k in range(count)]
    return operators, int(rng.integers(count, 65))


def bids2(quick: bool, progress: Progress) -> list[Measure]:
    """Solve random problems with both solvers."""
    count = 100 if quick else 1000
    progress(f"{count} random problems")
    ours_s = theirs_s = 0.0
    differ = 0
    solve(*problem(0))  # so that the solver's import is not timed
    for seed in range(count):
        operators, slots = problem(seed)
        started = time.process_time()
        ours = by_bisection(operators, slots)
        between = time.process_time()
        theirs = solve(operators, slots)
        ended = time.process_time()
        ours_s, theirs_s = ours_s + between - started, theirs_s + ended - between
        differ += abs(ours.rate_per_s / theirs.rate_per_s - 1) > SAME or sum(ours.tasks.values()) != slots
    ms, milp_ms = 1e3 * ours_s / count, 1e3 * theirs_s / count
    note = f"{count} problems of 2 to 9 operators, up to 64 slots; HiGHS {milp_ms:.2f} ms"
    return [
        Measure("bids2", "speedup_over_milp", theirs_s / max(ours_s, 1e-9), "times", ">= 20", "higher", note),
        Measure("bids2", "disagreements", float(differ), "", "<= 0", "lower", f"of {count}"),
        Measure("bids2", "ms", ms, "ms", "", "lower", "processor time per problem"),
    ]
