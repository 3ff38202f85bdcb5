"""Decisions, their expectations and outcomes, and the trials that they request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.frozen import FrozenMap, check_json, check_number, freeze, put
from rheostat.job.observation import Observation


class Reason(StrEnum):
    """The kind of a decision; its sentence gives the explanation with numbers."""

    STEADY = "steady"
    UNDER_PROVISIONED = "under-provisioned"
    OVER_PROVISIONED = "over-provisioned"
    MIXED = "mixed"
    """Some operators are too small, others too large."""
    WAITING = "waiting"
    """The policy needs more windows first."""
    EXPLORE = "explore"
    """A change of the live job that is made only to learn."""
    TRIAL = "trial"
    """A measurement on a testbed is needed first."""
    UNDO = "undo"
    """A change made things worse and is undone."""
    UNUSABLE = "unusable window"
    CHANGING = "change under way"
    DOWN = "job is down"
    NO_POLICY = "policy failed"
    UNJOURNALED = "not journaled"


def direction(running: Allocation, target: Allocation) -> Reason:
    """Return the reason that describes the direction of a change."""
    grows = any(target.tasks[name] > count for name, count in running.tasks.items())
    shrinks = any(target.tasks[name] < count for name, count in running.tasks.items())
    if grows and shrinks:
        return Reason.MIXED
    if grows:
        return Reason.UNDER_PROVISIONED
    return Reason.OVER_PROVISIONED if shrinks else Reason.STEADY


def changes(running: Allocation, target: Allocation) -> str:
    """Return the operators that change, as `split 2 -> 3, count 4 -> 2`."""
    return ", ".join(
        f"{name} {count} -> {target.tasks[name]}"
        for name, count in running.tasks.items()
        if target.tasks[name] != count
    )


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and its expected range; `high` may be infinite."""

    low: float
    middle: float
    high: float

    def __post_init__(self) -> None:
        for what in ("low", "middle", "high"):
            check_number(f"{what} of an interval", getattr(self, what), least=-math.inf, infinite=True)
        if not self.low <= self.middle <= self.high:
            raise InvalidValue(f"an interval must be ordered, not {self.low}, {self.middle}, {self.high}")

    def holds(self, value: float) -> bool:
        """Whether the value lies inside."""
        return self.low <= value <= self.high

    @staticmethod
    def at_least(value: float) -> Interval:
        """Return the interval from the value upwards."""
        return Interval(value, value, math.inf)

    @staticmethod
    def at_most(value: float) -> Interval:
        """Return the interval from zero up to the value."""
        return Interval(0.0, value, value)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a decision expects once it is applied, as long as the load is at most `load_per_s`."""

    load_per_s: float | None = None
    throughput_per_s: Interval | None = None
    latency_s: Interval | None = None
    recovery_s: Interval | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a trial with one constant rate per source; only observed phases enter the measurement."""

    seconds: float
    rates_per_s: Mapping[str, float]
    observed: bool = False

    def __post_init__(self) -> None:
        check_number("seconds of a phase", self.seconds, least=1e-9)
        for source, rate in self.rates_per_s.items():
            check_number(f"rate of source {source}", rate)
        put(self, rates_per_s=FrozenMap(self.rates_per_s))


@dataclass(frozen=True, slots=True)
class Trial:
    """A request to a testbed: run this allocation through these phases."""

    name: str
    allocation: Allocation
    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        if not any(phase.observed for phase in self.phases):
            raise InvalidValue(f"trial {self.name!r} observes nothing: mark at least one phase as observed")

    @property
    def seconds(self) -> float:
        """Total run time of the trial."""
        return sum(phase.seconds for phase in self.phases)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A testbed's answer to a trial. `observation` covers the observed phases; `problem` says why there is none."""

    trial: Trial
    observation: Observation | None
    seconds: float
    slot_seconds: float
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class GuardNote:
    """A guard that stopped or reduced a decision, and its reason."""

    guard: str
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The allocation to run, the reason, and the expected result. `target` None means hold."""

    target: Allocation | None
    reason: Reason
    sentence: str
    evidence: Mapping[str, float] = field(default_factory=FrozenMap)
    expects: Expectation = Expectation()
    memo: Mapping[str, Any] = field(default_factory=FrozenMap)
    """JSON values that the policy receives again in the next step; they should stay small."""
    trials: tuple[Trial, ...] = ()
    asked: Allocation | None = None
    """The allocation that the policy requested, where a guard changed it."""
    guards: tuple[GuardNote, ...] = ()
    shadow: Allocation | None = None
    """In a dry run, the allocation that would run from now on; None where the decision says nothing about the size."""

    def __post_init__(self) -> None:
        for name, value in self.evidence.items():
            check_number(f"evidence {name!r}", value, least=-math.inf, infinite=True)
        check_json("memo", self.memo)
        put(
            self,
            evidence=FrozenMap({name: float(value) for name, value in self.evidence.items()}),
            memo=freeze(self.memo),
        )

    @staticmethod
    def hold(reason: Reason, sentence: str, **rest: Any) -> Decision:
        """Return the decision to change nothing."""
        return Decision(None, reason, sentence, **rest)


class Verdict(StrEnum):
    """Whether an applied decision had the expected result."""

    KEPT = "kept"
    MISSED = "missed"
    LOAD_CHANGED = "load changed"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an applied decision, compared with its expectation."""

    step: int
    """Step of the judged decision."""
    verdict: Verdict
    sentence: str
    observed: Mapping[str, float] = field(default_factory=FrozenMap)
    downtime_s: float | None = None

    def __post_init__(self) -> None:
        put(self, observed=FrozenMap(self.observed))
