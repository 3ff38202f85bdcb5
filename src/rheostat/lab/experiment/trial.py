"""A trial: a job under a load, sized in one way for some seconds; the same on every ground."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from rheostat.config.named import parse_named
from rheostat.engine.testbed.loads import Load, Permutation
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import InvalidValue, nearest
from rheostat.job.allocation import Allocation
from rheostat.job.forecast import Foresight
from rheostat.job.frozen import check_number
from rheostat.job.guards import UNGUARDED, Guards
from rheostat.job.slo import SLO
from rheostat.policy.registry import POLICIES, make_policy
from rheostat.ports import Policy

Progress = Callable[[str], None]
"""Takes a progress message."""


class Job(Protocol):
    """The part of a trial that depends on its ground: a plant, or a pipeline with its cluster."""

    @property
    def name(self) -> str:
        """The job's name."""

    @property
    def unit_per_s(self) -> Mapping[str, float]:
        """Source -> records/s at level 1 of the load."""


J = TypeVar("J", bound=Job)


LIVE_GUARDS = replace(UNGUARDED, shrink_over_slo=False)
"""Guards of a policy on Spark: as published, but it does not shrink a job that is behind."""


@dataclass(frozen=True)
class Trial(Generic[J]):
    """Everything that determines a run."""

    job: J
    load: Load
    duration_s: float
    interval_s: float = 60.0
    slo: SLO = SLO()
    guards: Guards = UNGUARDED
    start: Allocation | None = None
    failures_s: tuple[float, ...] = ()
    """Moments at which a worker or an executor is lost."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Values of its file and command line, for the journal."""
    foresight: Foresight = Foresight()
    """How the load is forecast, if an objective or the policy needs a forecast."""
    window_s: float | None = None
    """Seconds of a window on Spark; None: three intervals, or those of the simulated twin."""
    way: str = ""
    """What sizes the job: a policy with its options, or a fixed way of the ground."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("duration_s", self.duration_s, least=1)

    @property
    def seeded_load(self) -> Load:
        """The load of this seed: every seed has its own permutation."""
        return replace(self.load, seed=self.load.seed + self.seed) if isinstance(self.load, Permutation) else self.load

    @property
    def level_per_s(self) -> float:
        """Records/s of all sources at level 1."""
        return sum(self.job.unit_per_s.values())

    @cached_property
    def schedule(self) -> Schedule:
        """The load as whole records for a real source; its length is the trial's, rounded up to five seconds."""
        return Schedule(self.seeded_load, self.level_per_s, -(-int(self.duration_s) // 5) * 5)


PolicyMaker = Callable[[Trial[Any]], Policy[Any]]
"""Makes the policy for a trial."""


def check_way(text: str, fixed: Sequence[str] = ()) -> None:
    """Refuse a way that is neither one of the ground's `fixed` ways nor a policy."""
    if text in fixed:
        return
    name, options = parse_named(text)
    if name not in POLICIES and not name.endswith(".py"):
        raise InvalidValue(f"unknown policy {name!r}, {nearest(name, [*fixed, *POLICIES])}")
    make_policy(name, options)
