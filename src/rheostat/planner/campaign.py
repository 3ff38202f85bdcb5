"""A campaign: budgets are asked for by a strategy, split by BIDS2, and measured by the estimator, one after another.

Every estimate is handed to `save` before the next one begins: what was measured is never lost, and a campaign that is
given those estimates again goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rheostat.errors import InvalidValue, RheostatError
from rheostat.job.allocation import Allocation
from rheostat.job.graph import JobSpec
from rheostat.job.plan import Estimate
from rheostat.planner.capacity_estimator import Phases, Search, dichotomic, estimate
from rheostat.planner.configuration_optimizer import Capacity, bids2, capacities, readings
from rheostat.planner.failures import kept
from rheostat.planner.resource_explorer import HELPER, Ask, Stop, Strategy
from rheostat.planner.rig import Feed
from rheostat.ports import Testbed

MOST_RUNS = 60
"""No campaign needs more: a strategy that asks on and on is stopped."""
IN_A_ROW = 4
"""Runs that give nothing, one after another, before a campaign is given up."""

Tell = Callable[[str], None]
Save = Callable[[Estimate], None]


class TestbedFailed(RheostatError):  # noqa: N818
    """The testbed gave nothing several times in a row; what was measured before is kept."""

    __test__ = False


class Optimizer(Protocol):
    """The paper's configuration optimizer: a budget in, what it sustains out."""

    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        """Return the next estimate on the way to the budget: a single-task run first, where one is needed."""


@dataclass
class OnTestbed:
    """Splits by BIDS2 and measures on a testbed."""

    testbed: Testbed
    spec: JobSpec
    feed: Feed
    phases: Phases = Phases()
    search: Search = dichotomic
    learned: bool = False
    """Split by curves over all runs (ours) instead of single-task runs of the same memory (the paper's)."""
    now: Callable[[], float] = field(default=lambda: 0.0)

    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        """Measure a single-task run where none is known, else the budget."""
        single = self.single(ask.memory_mb)
        known = [e for e in done if e.usable and (self.learned or e.memory_mb == ask.memory_mb)]
        failed = [e for e in done if e.problem is not None and e.allocation == single]
        if not any(readings(e)[0] for e in known) and not failed:
            why = ask.why if single.slots == ask.slots else f"{HELPER}, to split {ask.slots} slots"
            return self._estimate(single, None, why)
        if ask.slots == single.slots:
            return self._estimate(single, None, ask.why)
        split = bids2(self.capacities(known), ask.slots)
        return self._estimate(Allocation(dict(split.tasks), ask.memory_mb), split.rate_per_s, ask.why)

    def single(self, memory_mb: int | None) -> Allocation:
        """Return the smallest allocation."""
        found = capacities(self.spec, {}, {})
        return Allocation({a.name: a.least for a in found}, memory_mb)

    def capacities(self, known: Sequence[Estimate]) -> Sequence[Capacity]:
        """Return what the optimizer splits by."""
        usable = [e for e in known if readings(e)[0]]
        if self.learned and len({e.slots for e in usable}) > 1:
            from rheostat.planner.plan import curves
            from rheostat.planner.scaling import Scaling

            return curves(Scaling.fit(kept(usable)), self.spec)
        if not usable:
            return capacities(
                self.spec, dict.fromkeys(self.spec.tunable_names, 1.0), dict.fromkeys(self.spec.tunable_names, 1.0)
            )
        return capacities(self.spec, *readings(min(usable, key=lambda e: e.slots)))

    def _estimate(self, allocation: Allocation, expected: float | None, why: str) -> Estimate:
        expected = expected if expected is None or math.isfinite(expected) else None
        return estimate(
            self.testbed, allocation, self.feed, self.phases, self.search,
            expected_per_s=expected, at_s=self.now(), why=why,
        )  # fmt: skip


def explore(
    strategy: Strategy,
    optimizer: Optimizer,
    known: Sequence[Estimate] = (),
    *,
    save: Save = lambda _: None,
    tell: Tell = lambda _: None,
    budget_s: float | None = None,
) -> tuple[list[Estimate], str]:
    """Measure until the strategy has enough or the budget is used up; return all estimates and why it ended."""
    done = list(known)
    if budget_s is not None and budget_s <= 0 and not done:
        raise InvalidValue("a budget of 0 minutes measures nothing: give more, or a journal with measurements")
    while True:
        step = strategy.next(done)
        if isinstance(step, Stop):
            tell(step.why)
            return done, step.why
        if len(done) >= MOST_RUNS:
            return done, f"{MOST_RUNS} measurements are more than any plan needs"
        used = sum(e.seconds for e in done)
        longest = max((e.seconds for e in done), default=0.0)
        if budget_s is not None and used + longest > budget_s:
            why = f"the budget of {budget_s / 60:.0f} minutes is used up: {used / 60:.0f} of them measured"
            tell(why)
            return done, why
        memory = "" if step.memory_mb is None else f" of {step.memory_mb} MB"
        tell(f"next: {step.slots} slots{memory}, {step.why}")
        found = optimizer.measure(step, done)
        save(found)
        done.append(found)
        tell(told(found))
        last = done[-IN_A_ROW:]
        if len(last) == IN_A_ROW and all(e.problem is not None for e in last):
            raise TestbedFailed(f"{IN_A_ROW} runs in a row gave nothing, the last one: {last[-1].problem}")


def told(found: Estimate) -> str:
    """Say what came out of one measurement."""
    cost = f"{found.seconds / 60:.1f} min"
    if found.problem is not None:
        return f"{found.allocation}: failed, {found.problem} ({cost})"
    assert found.rate_per_s is not None
    if found.limited_by == "injector":
        return f"{found.allocation}: at least {found.rate_per_s.low:,.0f}/s, the injector is the limit ({cost})"
    low, high = found.rate_per_s.low, found.rate_per_s.high
    return f"{found.allocation}: {found.rate_per_s.middle:,.0f}/s ({low:,.0f} to {high:,.0f}; {cost})"
