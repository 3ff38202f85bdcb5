"""The user's objectives (SLO), and what follows from it for one job (Limits)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rheostat.errors import InvalidValue
from rheostat.job.frozen import FrozenMap, check_number, put


@dataclass(frozen=True, slots=True)
class Bounds:
    """A smallest and a largest number of tasks or slots; no maximum means only the engine's own."""

    min: int = 1
    """The fewest."""
    max: int | None = None
    """The most; None: as many as the engine allows."""

    def __post_init__(self) -> None:
        if self.min < 1:
            raise InvalidValue(f"min must be at least 1, not {self.min}")
        if self.max is not None and self.max < self.min:
            raise InvalidValue(f"min {self.min} is above max {self.max}")

    def clip(self, value: int) -> int:
        """Return the nearest value inside."""
        return max(self.min, value if self.max is None else min(value, self.max))

    def within(self, other: Bounds) -> Bounds:
        """Return what both allow; an error when that is nothing."""
        tops = [b.max for b in (self, other) if b.max is not None]
        return Bounds(max(self.min, other.min), min(tops) if tops else None)


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a job may use: slots, or money per hour at a price per slot and hour."""

    slots: int | None = None
    """The most slots."""
    cost_per_hour: float | None = None
    """The most money per hour."""
    price_per_slot_hour: float | None = None
    """What a slot costs per hour."""

    def __post_init__(self) -> None:
        check_number("budget.slots", self.slots, least=1)
        check_number("budget.cost_per_hour", self.cost_per_hour)
        check_number("budget.price_per_slot_hour", self.price_per_slot_hour, least=1e-12)
        if (self.cost_per_hour is None) != (self.price_per_slot_hour is None):
            raise InvalidValue("a budget in money needs both cost_per_hour and price_per_slot_hour")
        if self.max_slots == 0:
            raise InvalidValue(
                f"cost_per_hour {self.cost_per_hour} does not pay for one slot at {self.price_per_slot_hour}"
            )

    @property
    def max_slots(self) -> int | None:
        """Slots that the budget pays for; None when it sets no limit."""
        tops = [] if self.slots is None else [self.slots]
        if self.cost_per_hour is not None and self.price_per_slot_hour is not None:
            # The small term keeps 1.6 / 0.1 at 16 slots, whatever binary fractions make of it.
            tops.append(math.floor(self.cost_per_hour / self.price_per_slot_hour + 1e-9))
        return min(tops) if tops else None


DAY_S = 86_400.0
"""Longest objective, in seconds: a larger number was meant in milliseconds."""
MOST_HEADROOM = 10.0
"""Largest headroom, as a share of the demand: a larger number was meant in percent."""


@dataclass(frozen=True, slots=True)
class SLO:
    """The user's objectives. One that is left out is never acted upon."""

    max_latency_s: float | None = None
    """Largest end-to-end latency, in seconds."""
    max_lag_s: float | None = None
    """Largest age of the oldest waiting record, in seconds."""
    max_recovery_s: float | None = None
    """Longest time from a failure until the backlog is back to normal, in seconds."""
    recovery_quantile: float | None = None
    """Share of failures that must be over by then; left out, 0.9."""
    downtime_s: float | None = None
    """Seconds for which a failure stops the job, where you know it; left out, failures and drills teach it."""
    headroom: float | None = None
    """Spare capacity as a share of the demand; left out, 0.2 (20 %) unless the policy sets a factor of its own."""
    budget: Budget | None = None
    """The most that the job may use."""
    job: Bounds = Bounds()
    """Fewest and most slots of the whole job."""
    operators: Mapping[str, Bounds] = field(default_factory=FrozenMap)
    """Fewest and most tasks of single operators."""

    def __post_init__(self) -> None:
        for name in ("max_latency_s", "max_lag_s", "max_recovery_s", "downtime_s"):
            value = getattr(self, name)
            check_number(f"slo.{name}", value, least=1e-9)
            if value is not None and value > DAY_S:
                raise InvalidValue(
                    f"slo.{name} is {value:g} s, more than a day: it is given in seconds; for {value:g} ms write "
                    f"{value / 1000:g}"
                )
        check_number("slo.recovery_quantile", self.recovery_quantile, least=0.5, most=0.99)
        if self.recovery_quantile is not None and self.max_recovery_s is None:
            raise InvalidValue(
                "slo.recovery_quantile needs slo.max_recovery_s: it is the share of failures that are over by then"
            )
        if self.downtime_s is not None and self.max_recovery_s is None:
            raise InvalidValue("slo.downtime_s needs slo.max_recovery_s: a recovery begins after that downtime")
        check_number("slo.headroom", self.headroom)
        if self.headroom is not None and self.headroom > MOST_HEADROOM:
            raise InvalidValue(
                f"slo.headroom is {self.headroom:g}, which is above {MOST_HEADROOM:g}: it is a share of the demand; "
                f"for {self.headroom:g} % write {self.headroom / 100:g}"
            )
        put(self, operators=FrozenMap(self.operators))


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds, quota and budget leave to a decision: tasks per operator and slots of the job."""

    operators: Mapping[str, Bounds]
    slots: Bounds
    quantum: Mapping[str, int] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        put(self, operators=FrozenMap(self.operators), quantum=FrozenMap(self.quantum))


DEFAULT_HEADROOM = 0.2
"""Spare capacity, as a share of the demand, where neither the user nor the policy sets a factor."""


def with_default_headroom(slo: SLO, own_factor: float | None) -> SLO:
    """Return the SLO with the default headroom, unless it has one or the policy sets a factor of its own."""
    return replace(slo, headroom=DEFAULT_HEADROOM) if slo.headroom is None and own_factor is None else slo
