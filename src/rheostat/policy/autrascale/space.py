"""What AuTraScale+'s solvers share: the stage of a step, the box that they search, and the trials that they request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Phase, Trial
from rheostat.job.fit import fit_tasks
from rheostat.model.experience import Experience
from rheostat.policy.autrascale.box import Box, Ints
from rheostat.policy.demand import demand
from rheostat.policy.tuning import has_moved
from rheostat.ports import Situation

WIDEST = 128
"""Most task counts of one operator in the box; a wider range is thinned out, with larger gaps at larger counts."""
SETTLES = 0.25
"""Settling time of a trial, as a share of its observed time."""
GROWTH = 4
"""Upper end of the box for an operator without a bound, as a multiple of its tasks."""

At = Situation[Experience]


@dataclass(frozen=True, slots=True)
class Stage:
    """The position of a step in the sequence TO, PLO, ELO."""

    demand: Mapping[str, float]
    """Demand of every operator, in records/s, when the sequence began."""
    phase: str = "throughput"
    """The active solver: throughput, latency or steady."""
    tried: tuple[tuple[int, ...], ...] = ()
    """TO's configurations so far."""
    solved: Mapping[str, Any] | None = None
    """π^t and its load; `learn` stores it, too."""
    limited: bool = False
    """Whether an external limit keeps the throughput below the load."""
    bootstrapped: bool = False
    iterations: int = 0
    """PLO's changes, or ELO's trials."""
    waited: int = 0
    missed: int = 0
    """Consecutive windows in which the steady allocation missed its latency target."""
    unreachable: bool = False
    """Whether PLO has given up: no measured size meets the target."""
    boost: Mapping[str, Any] | None = None
    """State of a catch-up: the boosted allocation's target and the allocation to return to."""

    @staticmethod
    def at(situation: At, trigger: float) -> Stage:
        """Return the stage of this step: a new one if a demand has moved by the share `trigger`."""
        needed, memo = demand(situation), situation.memo.get("stage")
        if memo is None:
            return Stage(needed)
        last = Stage(**{name: memo[name] for name in FIELDS if name in memo})
        return Stage(needed) if has_moved(last.demand, needed, trigger) else last

    def memo(self, **now: Any) -> dict[str, Any]:
        """Return the memo that passes this stage to the next step."""
        last = replace(self, **now)
        memo: dict[str, Any] = {"stage": {name: getattr(last, name) for name in FIELDS}}
        return memo if last.solved is None else {**memo, "solved": dict(last.solved)}

    @property
    def base(self) -> Mapping[str, int]:
        """π^t."""
        assert self.solved is not None
        tasks: Mapping[str, int] = self.solved["tasks"]
        return tasks


FIELDS = tuple(field.name for field in fields(Stage))


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


def trials(situation: At, what: str, rows: Sequence[Ints], rate_share: float, seconds: float) -> tuple[Trial, ...]:
    """Return a trial per row at a share of the sources' present rates: a settling phase, then an observed one."""
    rates = {source.name: (source.rate_per_s or 0.0) * rate_share for source in situation.window.sources}
    phases = (Phase(SETTLES * seconds, rates), Phase(seconds, rates, observed=True))
    return tuple(
        Trial(f"{what} {'-'.join(str(int(count)) for count in row)}", as_allocation(situation, row), phases)
        for row in rows
    )
