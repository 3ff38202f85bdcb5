"""The resource explorer: which budget (slots, memory) to measure next, and when to stop (section VI).

A strategy is a pure function of the estimates so far, so an interrupted exploration continues where it ended.

`Paper`: four corners, then Bayesian optimisation with expected improvement over (memory, slots), whose cost is the
lowest LOOCV error of the three families (Eq 9); at least 3 further measurements, at most 20, and an end when the error
worsens by more than 10 %. Single-task runs count as corners, and a budget may be measured again. Ours: a budget or a
profile whose runs all failed is not asked for a third time.

`Geometric`, ours: a few sizes at equal ratios from the smallest to the largest, which distinguishes exponents best,
then repeats of the largest; other memory profiles twice, at the largest size. Failed runs are detected and repeated. It
ends early when the interval is narrow enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.job.plan import Estimate
from rheostat.model.joint import JointGP, expected_improvement
from rheostat.planner.extrapolation import Points, best_family
from rheostat.planner.failures import TRIES, drop_doubtful, run_to_repeat
from rheostat.planner.memory import regime_of

SMALLER = 1.4
"""Ratio by which the largest size shrinks when the injector cannot saturate it."""
HELPER = "one task each"
"""Start of the reason of a single-task run that only serves to split another budget."""
CORNERS_AFTER, MOST, WORSE = 3, 20, 1.1
"""The paper's fewest measurements after the corners, most measurements in total, and the rise of the error that ends
the exploration."""
SIZES, REPEATS, NARROW_FROM, PER_MEMORY = 6, 2, 4, 2
"""Ours: different sizes, repeats of the largest, sizes before an early end, and runs of every other memory profile."""


@dataclass(frozen=True, slots=True)
class Space:
    """The budgets that the testbed can run."""

    least: int
    most: int
    memories_mb: tuple[int | None, ...] = (None,)
    step: int = 1
    """Slots per executor: sizes differ by multiples of this."""

    def __post_init__(self) -> None:
        if self.least <= self.most:
            # Sizes are counted from the smallest one in whole steps.
            object.__setattr__(self, "most", self.least + (self.most - self.least) // self.step * self.step)
        if not 1 <= self.least <= self.most:
            raise InvalidValue(
                f"the largest budget is {self.most} slots, below the smallest of {self.least}: "
                f"the operators need at least {self.least} slots in total"
            )
        if not self.memories_mb:
            raise InvalidValue("an exploration needs at least one memory profile")

    def budgets(self) -> list[tuple[int, int | None]]:
        """Return all budgets."""
        return [(slots, memory) for memory in self.memories_mb for slots in range(self.least, self.most + 1, self.step)]


@dataclass(frozen=True, slots=True)
class Ask:
    """The next budget to measure, and why."""

    slots: int
    memory_mb: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of the exploration, and why."""

    why: str


class Strategy(Protocol):
    """Selects the next budget."""

    def next(self, done: Sequence[Estimate]) -> Ask | Stop:
        """Decide from all estimates, failed runs included."""


def _at_budget(done: Sequence[Estimate], slots: int, memory_mb: int | None) -> list[Estimate]:
    return [e for e in done if e.slots == slots and e.memory_mb == memory_mb]


@lru_cache(maxsize=256)
def _least_error(runs: tuple[tuple[float, float, float], ...]) -> float:
    """Return the lowest LOOCV error after runs (slots, memory, rate): every step asks for the earlier ones again."""
    return best_family(Points(*np.array(runs).T))[1]


def _hopeless(done: Sequence[Estimate], slots: int, memory_mb: int | None) -> bool:
    """Whether all runs of a budget, or of its whole memory profile, failed, and more than once."""
    groups = _at_budget(done, slots, memory_mb), [e for e in done if e.memory_mb == memory_mb]
    return any(len(group) >= TRIES and all(e.problem is not None for e in group) for group in groups)


@dataclass(frozen=True)
class Paper:
    """StreamBed's exploration."""

    space: Space
    seed: int = 0

    def next(self, done: Sequence[Estimate]) -> Ask | Stop:
        """Return the corners first, then the budget with the largest expected improvement."""
        space = self.space
        ends = (space.memories_mb[0], space.memories_mb[-1])
        corners = list(dict.fromkeys((slots, memory) for memory in ends for slots in (space.least, space.most)))
        for slots, memory in corners:
            if not _at_budget(done, slots, memory):
                return Ask(slots, memory, "a corner")
        # Single-task runs that only served to split another budget are not part of this search.
        asked = [e for e in done if not e.why.startswith(HELPER)]
        good = [e for e in asked if e.usable]
        if len(asked) >= MOST:
            return Stop(f"{MOST} measurements are the maximum")
        costs = self.costs(good)
        if len(asked) >= len(corners) + CORNERS_AFTER and len(costs) > 1 and costs[-1] > WORSE * costs[-2]:
            return Stop(f"the error rose by {costs[-1] / costs[-2] - 1:.0%} with the last measurement")
        if not good:
            return Stop("no corner could be measured")
        return self._best_improvement(done, good, costs)

    def costs(self, good: Sequence[Estimate]) -> list[float]:
        """Return the lowest LOOCV error (Eq 9) after every measurement; infinite ones count as the worst finite one."""
        runs = tuple((float(e.slots), float(e.memory_mb or 1), e.middle_per_s) for e in good)
        raw = [_least_error(runs[: k + 1]) for k in range(len(runs))]
        finite = [cost for cost in raw if math.isfinite(cost)]
        return [cost if math.isfinite(cost) else max(finite, default=1.0) for cost in raw]

    def _best_improvement(
        self, done: Sequence[Estimate], good: Sequence[Estimate], costs: Sequence[float]
    ) -> Ask | Stop:
        measured = np.array([[e.slots, e.memory_mb or 1] for e in good], dtype=float)
        values = -np.array(costs) / max(float(np.max(costs)), 1e-300)
        budgets = [(slots, memory) for slots, memory in self.space.budgets() if not _hopeless(done, slots, memory)]
        if not budgets:
            return Stop("every budget that is left failed")
        rows = np.array([[slots, memory or 1] for slots, memory in budgets], dtype=float)
        mean, sd = JointGP.fit(measured, values).predict(rows)
        gain = expected_improvement(mean, sd, float(values.max()), 0.0)
        # Equal improvements are drawn from; the generator belongs to this step alone.
        rng = np.random.default_rng([self.seed, len(good)])
        top = np.flatnonzero(gain >= gain.max() * (1 - 1e-9))
        slots, memory = budgets[int(rng.choice(top))]
        again = ", again" if _at_budget(good, slots, memory) else ""
        return Ask(slots, memory, f"the largest expected improvement of the error{again}")


@dataclass(frozen=True)
class Geometric:
    """Our exploration."""

    space: Space
    sizes: int = SIZES
    repeats: int = REPEATS
    enough: float | None = None
    """Ratio of the interval's ends at which the exploration ends early."""
    rate_per_s: float | None = None
    """The requested rate; if set, the interval is the one at its size."""

    def next(self, done: Sequence[Estimate]) -> Ask | Stop:
        """Return the ends first, then the sizes between them, then repeats; sizes beyond the injector are skipped."""
        limited = min((e.slots for e in done if e.limited_by == "injector"), default=None)
        if limited is not None and limited <= self.space.least:
            return Stop("the injector is already the limit at the smallest size")
        if limited is not None and limited <= self.space.most:
            # Shrink by a ratio, like the sizes: one slot at a time would take many runs without information.
            smaller = max(self.space.least, int(limited / SMALLER))
            return replace(self, space=replace(self.space, most=smaller)).next(done)
        if (failed := run_to_repeat(done)) is not None:
            estimate, why = failed
            return Ask(estimate.slots, estimate.memory_mb, why)
        main = self.main_memory(done)
        for k, (slots, why) in enumerate(self.design()):
            if not _at_budget(done, slots, main):
                if k >= NARROW_FROM and self._narrow(done):
                    break
                return Ask(slots, main, why)
        for memory in self.space.memories_mb:
            tried = [e for e in done if e.memory_mb == memory]
            if memory != main and len(tried) < PER_MEMORY and not (len(tried) == 1 and tried[0].problem):
                return Ask(self.space.most, memory, "the effect of this memory profile")
        largest = [e for e in _at_budget(done, self.space.most, main) if e.usable]
        # If the space has fewer sizes than `sizes`, the largest is measured more often.
        repeats = self.repeats + self.sizes - len(self.design())
        if (
            len(largest) <= repeats
            and len(_at_budget(done, self.space.most, main)) <= repeats + TRIES
            and self.space.most > self.space.least
            and not self._narrow(done)
        ):
            return Ask(self.space.most, main, "the largest size again: it determines how far the plan may extrapolate")
        return Stop("the design is complete")

    def main_memory(self, done: Sequence[Estimate]) -> int | None:
        """Return the memory profile that is measured at all sizes: the largest one that has not crashed."""
        for memory in reversed(self.space.memories_mb):
            tried = [e for e in done if e.memory_mb == memory]
            if not tried or any(e.usable for e in tried) or len(tried) < 2:
                return memory
        return self.space.memories_mb[-1]

    def design(self) -> list[tuple[int, str]]:
        """Return the sizes, the most informative ones first."""
        least, most = self.space.least, self.space.most
        count = min(self.sizes, most - least + 1)
        spread = np.geomspace(least, most, count) if count > 1 else np.array([float(least)])
        step = self.space.step
        sizes = sorted({least + round((float(size) - least) / step) * step for size in spread})
        inner = sizes[1:-1]
        ordered = [(sizes[0], "the smallest size")]
        ordered += [(sizes[-1], "the largest size")] if len(sizes) > 1 else []
        # From the middle outwards, so that an early end leaves evenly spread sizes.
        inner.sort(key=lambda size: abs(math.log(size * size / (least * most))))
        return ordered + [(size, "sizes at equal ratios distinguish exponents") for size in inner]

    def _narrow(self, done: Sequence[Estimate]) -> bool:
        memory = self.main_memory(done)
        good = regime_of(drop_doubtful(done), memory)
        if self.enough is None or not good:
            return False
        from rheostat.planner.plan import slots_for_rate
        from rheostat.planner.scaling import Scaling

        scaling = Scaling.fit(good)
        size = float(self.space.most)
        if self.rate_per_s is not None:
            slots = slots_for_rate(scaling, self.rate_per_s, memory, self.space.least)
            size = slots.middle if math.isfinite(slots.middle) else 100.0 * size
        interval = scaling.rate_per_s(size, memory)
        return interval.high / interval.low <= self.enough
