"""The resource explorer: which budget (slots, memory) is measured next, and when enough is known (section VI).

A strategy is a pure function of what was measured so far, so an exploration that was interrupted goes on where it was.

`Paper`: four corners, then Bayesian optimisation with expected improvement over (memory, slots), whose cost is the
lowest LOOCV error of the three families (Eq 9); at least 3 further measurements, at most 20, and an end when the error
worsens by more than 10 %. Single-task runs count as corners, and a budget may be measured again.

`Geometric`, ours: a few sizes at equal ratios from the smallest to the largest, which is what tells exponents apart,
then the largest again; other memory profiles twice, at the largest size. Runs that failed are recognised and repeated.
It ends early when the answer is narrow enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.job.plan import Estimate
from rheostat.model.joint import JointGP, expected_improvement
from rheostat.planner.extrapolation import Points, best
from rheostat.planner.failures import TRIES, to_repeat

SMALLER = 1.4
HELPER = "one task each"
"""How the reason of a single-task run begins that is only made to split another budget."""
CORNERS_AFTER, MOST, WORSE = 3, 20, 1.1
"""The paper's least number of measurements after the corners, most of all, and the rise of the error that ends it."""
SIZES, REPEATS, NARROW_FROM, PER_MEMORY = 6, 2, 4, 2
"""Ours: different sizes, further runs at the largest, sizes before an early end is
thought of, and runs of every other memory profile."""


@dataclass(frozen=True, slots=True)
class Space:
    """Budgets that the testbed can run."""

    least: int
    most: int
    memories_mb: tuple[int | None, ...] = (None,)
    step: int = 1
    """Slots come in whole executors of this many."""

    def __post_init__(self) -> None:
        if self.least <= self.most:
            # Sizes are counted from the smallest one in whole steps.
            object.__setattr__(self, "most", self.least + (self.most - self.least) // self.step * self.step)
        if not 1 <= self.least <= self.most:
            raise InvalidValue(
                f"there is nothing to explore between {self.least} and {self.most} slots: "
                f"every operator needs one, which makes {self.least}"
            )
        if not self.memories_mb:
            raise InvalidValue("there is no memory profile to explore")

    def budgets(self) -> list[tuple[int, int | None]]:
        """Return all of them."""
        return [(slots, memory) for memory in self.memories_mb for slots in range(self.least, self.most + 1, self.step)]


@dataclass(frozen=True, slots=True)
class Ask:
    """The next budget, and why."""

    slots: int
    memory_mb: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more is worth measuring, and why."""

    why: str


class Strategy(Protocol):
    """Says what to measure next."""

    def next(self, done: Sequence[Estimate]) -> Ask | Stop:
        """Decide from everything that was measured, failed runs included."""


def _of(done: Sequence[Estimate], slots: int, memory_mb: int | None) -> list[Estimate]:
    return [e for e in done if e.slots == slots and e.memory_mb == memory_mb]


@dataclass(frozen=True)
class Paper:
    """StreamBed's exploration."""

    space: Space
    seed: int = 0

    def next(self, done: Sequence[Estimate]) -> Ask | Stop:
        """Corners first, then the budget with the largest expected improvement."""
        space = self.space
        ends = (space.memories_mb[0], space.memories_mb[-1])
        corners = list(dict.fromkeys((slots, memory) for memory in ends for slots in (space.least, space.most)))
        for slots, memory in corners:
            if not _of(done, slots, memory):
                return Ask(slots, memory, "a corner")
        # Single-task runs that were only made to split another budget are no measurements of this search.
        asked = [e for e in done if not e.why.startswith(HELPER)]
        good = [e for e in asked if e.usable]
        if len(asked) >= MOST:
            return Stop(f"{MOST} measurements are the most")
        costs = self.costs(good)
        if len(asked) >= len(corners) + CORNERS_AFTER and len(costs) > 1 and costs[-1] > WORSE * costs[-2]:
            return Stop(f"the error rose by {costs[-1] / costs[-2] - 1:.0%} with the last measurement")
        if not good:
            return Stop("no corner could be measured")
        return self._improving(good, costs)

    def costs(self, good: Sequence[Estimate]) -> list[float]:
        """Return the lowest LOOCV error (Eq 9) as it stood after every measurement; infinite ones become the worst."""
        points = Points.of(good)
        raw = [best(points.only(np.arange(len(points)) <= k))[1] for k in range(len(points))]
        known = [cost for cost in raw if math.isfinite(cost)]
        return [cost if math.isfinite(cost) else max(known, default=1.0) for cost in raw]

    def _improving(self, good: Sequence[Estimate], costs: Sequence[float]) -> Ask:
        seen = np.array([[e.slots, e.memory_mb or 1] for e in good], dtype=float)
        values = -np.array(costs) / max(float(np.max(costs)), 1e-300)
        budgets = self.space.budgets()
        rows = np.array([[slots, memory or 1] for slots, memory in budgets], dtype=float)
        mean, sd = JointGP.fit(seen, values).predict(rows)
        gain = expected_improvement(mean, sd, float(values.max()), 0.0)
        # Of equal objectives any one is as good; the generator is of this step only.
        rng = np.random.default_rng([self.seed, len(good)])
        top = np.flatnonzero(gain >= gain.max() * (1 - 1e-9))
        slots, memory = budgets[int(rng.choice(top))]
        again = ", again" if _of(good, slots, memory) else ""
        return Ask(slots, memory, f"the largest expected improvement of the error{again}")


@dataclass(frozen=True)
class Geometric:
    """Our exploration."""

    space: Space
    sizes: int = SIZES
    repeats: int = REPEATS
    enough: float | None = None
    """Upper over lower end of the answer's interval that is narrow enough to end early."""
    rate_per_s: float | None = None
    """What is asked for: where that is given, the width is the one at its size."""

    def next(self, done: Sequence[Estimate]) -> Ask | Stop:
        """Ends first, then what lies between, then repeats; sizes that the injector cannot fill are left out."""
        limited = min((e.slots for e in done if e.limited_by == "injector"), default=None)
        if limited is not None and limited <= self.space.least:
            return Stop("the injector is the limit at the smallest size already")
        if limited is not None and limited <= self.space.most:
            # By a ratio, as the sizes are: one slot less at a time would take many runs that tell nothing.
            smaller = max(self.space.least, int(limited / SMALLER))
            return replace(self, space=replace(self.space, most=smaller)).next(done)
        if (failed := to_repeat(done)) is not None:
            estimate, why = failed
            return Ask(estimate.slots, estimate.memory_mb, why)
        main = self.main_memory(done)
        for k, (slots, why) in enumerate(self.design()):
            if not _of(done, slots, main):
                if k >= NARROW_FROM and self._narrow(done):
                    break
                return Ask(slots, main, why)
        for memory in self.space.memories_mb:
            tried = [e for e in done if e.memory_mb == memory]
            if memory != main and len(tried) < PER_MEMORY and not (len(tried) == 1 and tried[0].problem):
                return Ask(self.space.most, memory, "what this memory profile changes")
        largest = [e for e in _of(done, self.space.most, main) if e.usable]
        # Where there are fewer sizes than suggested for, the largest is measured the more often.
        repeats = self.repeats + self.sizes - len(self.design())
        if (
            len(largest) <= repeats
            and len(_of(done, self.space.most, main)) <= repeats + TRIES
            and self.space.most > self.space.least
            and not self._narrow(done)
        ):
            return Ask(self.space.most, main, "the largest size again: it decides how far one may extrapolate")
        return Stop("the design is complete")

    def main_memory(self, done: Sequence[Estimate]) -> int | None:
        """Return the profile that gets all sizes: the largest one that has not crashed."""
        for memory in reversed(self.space.memories_mb):
            tried = [e for e in done if e.memory_mb == memory]
            if not tried or any(e.usable for e in tried) or len(tried) < 2:
                return memory
        return self.space.memories_mb[-1]

    def design(self) -> list[tuple[int, str]]:
        """Return the sizes in the order in which they tell most."""
        least, most = self.space.least, self.space.most
        count = min(self.sizes, most - least + 1)
        spread = np.geomspace(least, most, count) if count > 1 else np.array([float(least)])
        step = self.space.step
        sizes = sorted({least + round((float(size) - least) / step) * step for size in spread})
        inner = sizes[1:-1]
        ordered = [(sizes[0], "the smallest size")]
        ordered += [(sizes[-1], "the largest size")] if len(sizes) > 1 else []
        # From the middle outwards, so that an early end leaves an even spread.
        inner.sort(key=lambda size: abs(math.log(size * size / (least * most))))
        return ordered + [(size, "sizes at equal ratios tell exponents apart") for size in inner]

    def _narrow(self, done: Sequence[Estimate]) -> bool:
        good = [e for e in done if e.usable]
        if self.enough is None or not good:
            return False
        from rheostat.planner.plan import solve
        from rheostat.planner.scaling import Scaling

        scaling = Scaling.fit(good)
        memory = self.main_memory(done)
        size = float(self.space.most)
        if self.rate_per_s is not None:
            found = solve(scaling, self.rate_per_s, memory, self.space.least)
            size = found.middle if math.isfinite(found.middle) else 100.0 * size
        interval = scaling.rate_per_s(size, memory)
        return interval.high / interval.low <= self.enough
