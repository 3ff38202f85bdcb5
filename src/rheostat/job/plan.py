"""Capacity planning as records: the measured sustainable rate of an allocation, and the plan that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval
from rheostat.job.frozen import FrozenMap, check_number, put
from rheostat.job.observation import Observation


@dataclass(frozen=True, slots=True)
class Estimate:
    """One call of the capacity estimator: the largest rate that an allocation sustains (the paper's MST)."""

    at_s: float
    allocation: Allocation
    rate_per_s: Interval | None
    """Records/s at all sources, with a 90 % interval; None if no rate was sustained or measured."""
    seconds: float = 0.0
    slot_seconds: float = 0.0
    observation: Observation | None = None
    """Useful time and true rates of every operator near that rate."""
    expected_per_s: float | None = None
    """The rate that the configuration optimizer predicted for this allocation."""
    limited_by: Literal["job", "injector"] = "job"
    """Whether the rate is the job's limit or only the injector's."""
    rates_tried: int = 0
    why: str = ""
    """Why this allocation was measured."""
    problem: str | None = None
    """Why the measurement failed. It is recorded, and not used for learning."""

    @property
    def slots(self) -> int:
        """Slots of the allocation."""
        return self.allocation.slots

    @property
    def memory_mb(self) -> int | None:
        """The allocation's memory profile."""
        return self.allocation.memory_mb

    @property
    def usable(self) -> bool:
        """Whether the job's own limit was measured."""
        return self.problem is None and self.rate_per_s is not None and self.limited_by == "job"

    @property
    def middle_per_s(self) -> float:
        """The middle of the rate's interval; only for a usable estimate."""
        assert self.rate_per_s is not None
        return self.rate_per_s.middle


@dataclass(frozen=True, slots=True)
class NextMeasurement:
    """The measurement that would narrow the plan's interval most, and by how much."""

    slots: int
    memory_mb: int | None
    width_now: float
    """Upper over lower end of the present 90 % interval of the rate at the planned size."""
    width_then: float
    """The predicted ratio after this measurement."""
    inside: bool
    """Whether the testbed is large enough for it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The slots that the requested rate needs with one memory profile."""

    memory_mb: int | None
    slots: Interval
    """The upper end is infinite where perhaps no number of slots is enough."""
    cost_per_hour: float | None = None


@dataclass(frozen=True)
class Plan:
    """The answer: slots, memory and tasks per operator for a rate, with its uncertainty and its cost."""

    at_s: float
    job: str
    rate_per_s: float
    headroom: float
    allocation: Allocation
    slots: Interval
    """Slots for rate x (1 + headroom), with a 90 % interval."""
    capacity_per_s: Interval
    """Expected sustainable rate of the planned size."""
    choices: tuple[Choice, ...]
    """The slots for every memory profile of the request."""
    cost_per_hour: float | None
    measured_slots: int
    """Largest measured size, in slots."""
    reach: float
    """Planned slots over the largest measured ones: how far the plan extrapolates."""
    warnings: tuple[str, ...]
    weights: Mapping[str, float]
    """Model -> its weight in the answer."""
    next_measurement: NextMeasurement | None
    measurements: int
    minutes: float
    """Testbed time of all measurements."""
    slot_hours: float
    verified: Mapping[str, str] = field(default_factory=FrozenMap)
    """Share of the rate -> sustained or not, for the shares that were tested."""

    def __post_init__(self) -> None:
        check_number("rate_per_s of a plan", self.rate_per_s, least=1e-12)
        put(self, weights=FrozenMap(self.weights), verified=FrozenMap(self.verified))
