"""What AuTraScale+'s solvers share: where in the sequence a step is, the box they search, the trials they ask for."""

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
from rheostat.policy.tuning import moved
from rheostat.ports import Situation

WIDEST = 128
"""Task counts of one operator that are looked at; of more, so many are taken, closer together where they are small."""
SETTLES = 0.25
"""A trial settles for this share of the time for which it is then looked at."""
GROWTH = 4
"""Where nothing bounds an operator, the box ends at this many times what it has."""

At = Situation[Experience]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where in the sequence TO, PLO, ELO a step is."""

    demand: Mapping[str, float]
    """Records/s that every operator had to serve when it began."""
    phase: str = "throughput"
    """throughput, latency or steady: which solver has its turn."""
    tried: tuple[tuple[int, ...], ...] = ()
    """TO's configurations so far."""
    solved: Mapping[str, Any] | None = None
    """π^t and the load that it is for; also what `learn` remembers."""
    limited: bool = False
    """Whether something outside keeps the throughput below the load."""
    bootstrapped: bool = False
    iterations: int = 0
    """PLO's changes, or ELO's trials."""
    waited: int = 0
    missed: int = 0
    """Windows in a row in which the steady allocation missed its latency."""
    unreachable: bool = False
    """Whether PLO has given up: no size that was seen meets the target."""
    boost: Mapping[str, Any] | None = None
    """An allocation that works off a backlog, and what it returns to."""

    @staticmethod
    def at(situation: At, trigger: float) -> Stage:
        """Return the stage that this step belongs to: a new one when a demand has moved by the share `trigger`."""
        needed, memo = demand(situation), situation.memo.get("stage")
        if memo is None:
            return Stage(needed)
        last = Stage(**{name: memo[name] for name in FIELDS if name in memo})
        return Stage(needed) if moved(last.demand, needed, trigger) else last

    def memo(self, **now: Any) -> dict[str, Any]:
        """Return the memo that hands this stage to the next step."""
        last = replace(self, **now)
        told: dict[str, Any] = {"stage": {name: getattr(last, name) for name in FIELDS}}
        return told if last.solved is None else {**told, "solved": dict(last.solved)}

    @property
    def base(self) -> Mapping[str, int]:
        """π^t."""
        assert self.solved is not None
        tasks: Mapping[str, int] = self.solved["tasks"]
        return tasks


FIELDS = tuple(field.name for field in fields(Stage))


def box_of(situation: At, base: Mapping[str, int]) -> Box:
    """Return Ω: from π^t to the most that every operator may have, within the slots (Algorithm 1, lines 3 and 4)."""
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
    """Return the bootstrapping set (section IV-C1): `uniform` rows with as many tasks everywhere, and one operator each
    at its most while the others have the fewest. Where bounds differ, every operator goes the same share of its way."""
    most = np.array([each[-1] for each in box.choices], dtype=np.int64)
    widest = np.minimum(most, box.least.max())
    rows = [widest + (most - widest) * share for share in np.linspace(0.0, 1.0, uniform)]
    for k in range(len(most)):
        row = box.least.astype(float)
        row[k] = most[k]
        rows.append(row)
    fitting = box.squeezed(box.snap(np.array(rows, dtype=float)))
    return [np.array(row, dtype=np.int64) for row in dict.fromkeys(tuple(row) for row in fitting.tolist())]


def as_row(situation: At, tasks: Mapping[str, int]) -> Ints:
    """Return an allocation as a row."""
    return np.array([tasks[name] for name in situation.spec.tunable_names], dtype=np.int64)


def as_allocation(situation: At, row: Ints) -> Allocation:
    """Return a row as an allocation."""
    names = situation.spec.tunable_names
    return situation.running.with_tasks({name: int(count) for name, count in zip(names, row, strict=True)})


def trials(situation: At, what: str, rows: Sequence[Ints], rate_share: float, seconds: float) -> tuple[Trial, ...]:
    """Return a trial per row: the sources' present rates times a share, first to settle and then to look at."""
    rates = {source.name: (source.rate_per_s or 0.0) * rate_share for source in situation.window.sources}
    phases = (Phase(SETTLES * seconds, rates), Phase(seconds, rates, observed=True))
    return tuple(
        Trial(f"{what} {'-'.join(str(int(count)) for count in row)}", as_allocation(situation, row), phases)
        for row in rows
    )
