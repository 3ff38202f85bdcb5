"""Capacity planning in words: what an allocation was found to sustain, and the plan that follows from it."""

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
    """Records/s at all sources, with a 90 % interval; None where nothing was sustained or nothing was seen."""
    seconds: float = 0.0
    slot_seconds: float = 0.0
    observation: Observation | None = None
    """Useful time and true rates of every operator near that rate."""
    expected_per_s: float | None = None
    """What the configuration optimizer promised of this allocation."""
    limited_by: Literal["job", "injector"] = "job"
    """Whether the rate is the job's, or only the most that could be injected."""
    rates_tried: int = 0
    why: str = ""
    """Why it was measured."""
    problem: str | None = None
    """What went wrong: it is recorded, and nothing is learned from it."""

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
        """Whether the job's own rate is known."""
        return self.problem is None and self.rate_per_s is not None and self.limited_by == "job"

    @property
    def middle_per_s(self) -> float:
        """The rate itself; only of a usable estimate."""
        assert self.rate_per_s is not None
        return self.rate_per_s.middle


@dataclass(frozen=True, slots=True)
class NextMeasurement:
    """The measurement that would narrow the plan most, and by how much."""

    slots: int
    memory_mb: int | None
    width_now: float
    """Upper over lower end of the 90 % interval of the rate at the planned size, as it is."""
    width_then: float
    """The same with this measurement, as far as can be foreseen."""
    inside: bool
    """Whether it fits into the testbed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the request takes with one memory profile."""

    memory_mb: int | None
    slots: Interval
    """Upper end infinite: perhaps no number of slots is enough."""
    cost_per_hour: float | None = None


@dataclass(frozen=True)
class Plan:
    """The answer: slots, memory and tasks per operator for a rate, how sure that is, and what it would cost."""

    at_s: float
    job: str
    rate_per_s: float
    headroom: float
    allocation: Allocation
    slots: Interval
    """Slots for rate x (1 + headroom), with a 90 % interval."""
    capacity_per_s: Interval
    """What the planned size is expected to sustain."""
    choices: tuple[Choice, ...]
    """The same for every memory profile that was asked for."""
    cost_per_hour: float | None
    measured_slots: int
    """The largest size that was measured."""
    reach: float
    """Planned slots over measured ones: how far the plan extrapolates."""
    warnings: tuple[str, ...]
    weights: Mapping[str, float]
    """Model -> its share in the answer."""
    next_measurement: NextMeasurement | None
    measurements: int
    minutes: float
    """What the measurements took on the testbed."""
    slot_hours: float
    verified: Mapping[str, str] = field(default_factory=FrozenMap)
    """Share of the rate -> sustained or not, where it was tried."""

    def __post_init__(self) -> None:
        check_number("rate_per_s of a plan", self.rate_per_s, least=1e-12)
        put(self, weights=FrozenMap(self.weights), verified=FrozenMap(self.verified))
