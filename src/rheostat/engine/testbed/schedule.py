"""A load shape as whole records per second, so that the output of a source can be checked to the row.

A source repeats a schedule of `seconds` seconds. Records are spread evenly within a step of `step_s` seconds. Rounding
errors do not add up over the steps, because the running total is rounded, not each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rheostat.engine.testbed.loads import Load
from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number

MOST_STEPS = 10_000
"""Largest number of steps: more make the query plan slow to print and to ship."""


@dataclass(frozen=True)
class Schedule:
    """A load in records per step."""

    load: Load
    unit_per_s: float
    """Records/s at level 1."""
    seconds: int
    """Length in seconds; then the schedule repeats."""
    step_s: int = 5
    """Seconds per step; its rate is the mean of the load over them."""
    seed: int = 0
    """Seed of the load's noise."""

    def __post_init__(self) -> None:
        check_number("unit_per_s", self.unit_per_s, least=1e-12)
        check_number("seconds", self.seconds, least=1)
        check_number("step_s", self.step_s, least=1)
        if self.seconds % self.step_s:
            raise InvalidValue(f"seconds must be a multiple of step_s={self.step_s}, not {self.seconds}")
        if self.seconds // self.step_s > MOST_STEPS:
            raise InvalidValue(
                f"{self.seconds} s in steps of {self.step_s} s are more than {MOST_STEPS} steps: choose a larger step_s"
            )
        if self.total == 0:
            raise InvalidValue(f"load {self.load.name!r} has no record within {self.seconds} s: raise unit_per_s")

    @cached_property
    def before(self) -> tuple[int, ...]:
        """Records due before each step; the last entry is the total."""
        level = self.load.level(np.arange(self.seconds, dtype=float))
        scatter = np.random.default_rng(self.seed).uniform(-1.0, 1.0, self.seconds)
        rate_per_s = level * (1.0 + self.load.noise * scatter) * self.unit_per_s
        running = np.concatenate(([0.0], np.cumsum(rate_per_s.reshape(-1, self.step_s).sum(axis=1))))
        return tuple(int(value) for value in np.floor(running + 0.5))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Records of each step."""
        return tuple(later - sooner for sooner, later in zip(self.before, self.before[1:], strict=False))

    @property
    def total(self) -> int:
        """Records of one run of the schedule."""
        return self.before[-1]

    @property
    def peak_per_s(self) -> int:
        """Largest number of records in a second."""
        return max(-(-count // self.step_s) for count in self.counts)

    def due(self, second: int) -> int:
        """Return the number of records due before this second, counted from the source's start."""
        rounds, within = divmod(second, self.seconds)
        step, part = divmod(within, self.step_s)
        in_step = self.counts[step] * part // self.step_s if step < len(self.counts) else 0
        return rounds * self.total + self.before[step] + in_step
