"""The position of a step in the sequence TO, PLO, ELO: what one step passes to the next, one part per solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rheostat.model.experience import Experience
from rheostat.policy.demand import demand
from rheostat.policy.tuning import has_moved
from rheostat.ports import Situation

At = Situation[Experience]
Rows = tuple[tuple[int, ...], ...]
"""Allocations as tasks per tunable operator."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """TO's position."""

    tried: Rows = ()
    """Configurations so far."""
    waited: int = 0
    """Windows that it waits, for a backlog or before it assumes an external limit."""


@dataclass(frozen=True, slots=True)
class Search:
    """PLO's position."""

    looks: tuple[float, ...] = ()
    """Latencies of the running allocation since the last change, and before it where it was recalled, in seconds."""
    asked: Rows = ()
    """Bootstrapping samples that it has requested."""
    iterations: int = 0
    """Changes."""
    waited: int = 0
    """Windows that it waits for a backlog."""
    recalled: bool = False
    """Whether earlier samples of this rate have been asked for a feasible one."""
    missed: int = 0
    """Consecutive windows in which the steady allocation missed its target."""
    unreachable: bool = False
    """Whether it has given up: no measured size meets the target."""


@dataclass(frozen=True, slots=True)
class Profile:
    """ELO's position."""

    asked: Rows = ()
    """Allocations whose throughput it has requested last: first its bootstrapping set, then one at a time."""
    iterations: int = 0
    """Trials after the bootstrapping set."""
    boost: Mapping[str, Any] | None = None
    """State of a catch-up: the boosted allocation's target and the allocation to return to."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The active solver, and the position of each."""

    demand: Mapping[str, float]
    """Demand of every operator, in records/s, when the sequence began."""
    phase: str = "throughput"
    """The active solver: throughput, latency or steady."""
    solved: Mapping[str, Any] | None = None
    """π^t and its load; `learn` stores it, too."""
    limited: bool = False
    """Whether an external limit keeps the throughput below the load."""
    sizing: Sizing = field(default_factory=Sizing)
    search: Search = field(default_factory=Search)
    profile: Profile = field(default_factory=Profile)

    @staticmethod
    def at(situation: At, trigger: float) -> Stage:
        """Return the stage of this step: a new one if a demand has moved by the share `trigger`.

        A catch-up goes on meanwhile: it has an allocation to return to (Algorithm 3, line 22).
        """
        needed, memo = demand(situation), situation.memo.get("stage")
        if memo is None:
            return Stage(needed)
        values = {name: memo[name] for name in _names(Stage) if name in memo}
        values |= {name: _read(part, values.get(name)) for name, part in PARTS.items()}
        last = Stage(**values)
        if not has_moved(last.demand, needed, trigger):
            return last
        return Stage(needed, profile=Profile(boost=last.profile.boost))

    def memo(self, **now: Any) -> dict[str, Any]:
        """Return the memo that passes this stage to the next step."""
        last = replace(self, **now)
        stage = _write(last) | {name: _write(getattr(last, name)) for name in PARTS}
        return {"stage": stage} if last.solved is None else {"stage": stage, "solved": dict(last.solved)}

    def sized(self, **now: Any) -> Stage:
        """Return the stage with another position of TO."""
        return replace(self, sizing=replace(self.sizing, **now))

    def searched(self, **now: Any) -> Stage:
        """Return the stage with another position of PLO."""
        return replace(self, search=replace(self.search, **now))

    def profiled(self, **now: Any) -> Stage:
        """Return the stage with another position of ELO."""
        return replace(self, profile=replace(self.profile, **now))

    @property
    def base(self) -> Mapping[str, int]:
        """π^t."""
        assert self.solved is not None
        tasks: Mapping[str, int] = self.solved["tasks"]
        return tasks

    def load_per_s(self, situation: At) -> float:
        """Return the load when the sequence began, at which trials run and samples are compared."""
        return sum(self.demand[name] for name in situation.spec.graph.sources)


PARTS: Mapping[str, type[Any]] = {"sizing": Sizing, "search": Search, "profile": Profile}


def _names(part: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(part))


def _write(part: Any) -> dict[str, Any]:
    return {name: getattr(part, name) for name in _names(type(part))}


def _read(part: type[Any], memo: Mapping[str, Any] | None) -> Any:
    return part(**{name: memo[name] for name in _names(part) if name in memo}) if memo else part()
