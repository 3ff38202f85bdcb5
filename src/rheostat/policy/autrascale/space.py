"""What AuTraScale+'s solvers share: the box that they search, rows of tasks, and the trials that they request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Phase, Trial
from rheostat.job.fit import fit_tasks
from rheostat.policy.autrascale.box import Box, Ints
from rheostat.policy.autrascale.stage import At, Rows, Stage

WIDEST = 128
"""Most task counts of one operator in the box; a wider range is thinned out, with larger gaps at larger counts."""
SETTLES = 0.25
"""Settling time of a trial, as a share of its observed time."""
GROWTH = 4
"""Upper end of the box for an operator without a bound, as a multiple of its tasks."""


def box_of(situation: At, base: Mapping[str, int]) -> Box:
    """Return Ω: from π^t to the most tasks of every operator, within the slots (Algorithm 1, lines 3 and 4)."""
    limits, running = situation.limits, situation.running.tasks
    choices = []
    for name in situation.spec.tunable_names:
        bounds = limits.operators[name]
        top = bounds.max or limits.slots.max or GROWTH * max(base[name], running[name])
        low = min(fit_tasks(limits, name, base[name]), top)
        wanted: Iterable[float] = range(low, top + 1)
        if top - low >= WIDEST:
            wanted = np.geomspace(low, top, WIDEST)
        allowed = {fit_tasks(limits, name, value) for value in wanted} | {low}
        choices.append(np.array(sorted(allowed), dtype=np.int64))
    return Box(tuple(choices), limits.slots.max)


def bootstrapping(box: Box, uniform: int) -> list[Ints]:
    """Return the bootstrapping set (section IV-C1): `uniform` rows with equal tasks everywhere, and for each operator a
    row in which it has its most tasks and the others their fewest. Where bounds differ, every operator covers the same
    share of its range."""
    most = np.array([each[-1] for each in box.choices], dtype=np.int64)
    widest = np.minimum(most, box.least.max())
    rows = [widest + (most - widest) * share for share in np.linspace(0.0, 1.0, uniform)]
    for k in range(len(most)):
        row = box.least.astype(float)
        row[k] = most[k]
        rows.append(row)
    fitting = box.squeeze(box.snap(np.array(rows, dtype=float)))
    return [np.array(row, dtype=np.int64) for row in dict.fromkeys(tuple(row) for row in fitting.tolist())]


def as_row(situation: At, tasks: Mapping[str, int]) -> Ints:
    """Return an allocation as a row of tasks."""
    return np.array([tasks[name] for name in situation.spec.tunable_names], dtype=np.int64)


def as_allocation(situation: At, row: Ints) -> Allocation:
    """Return a row of tasks as an allocation."""
    names = situation.spec.tunable_names
    return situation.running.with_tasks({name: int(count) for name, count in zip(names, row, strict=True)})


def as_tuple(row: Ints) -> tuple[int, ...]:
    """Return a row of tasks as plain numbers."""
    return tuple(int(count) for count in row)


def trials(
    situation: At, stage: Stage, what: str, rows: Rows, seconds: float, rate_share: float = 1.0
) -> tuple[Trial, ...]:
    """Return a trial per row at a share of the sources' rates: a settling phase, then an observed one.

    The rates are those at which the sequence began: every step requests the same trials until they are measured.
    """
    rates = {name: stage.demand[name] * rate_share for name in situation.spec.graph.sources}
    phases = (Phase(SETTLES * seconds, rates), Phase(seconds, rates, observed=True))
    return tuple(
        Trial(f"{what} {'-'.join(map(str, row))}", as_allocation(situation, np.array(row)), phases) for row in rows
    )
