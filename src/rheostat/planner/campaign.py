"""A campaign: a strategy selects budgets, BIDS2 splits them, and the estimator measures them, one after another.

Every estimate is passed to `save` before the next one begins, so no measurement is lost. A campaign that starts with
saved estimates continues where the earlier one ended.
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
from rheostat.planner.configuration_optimizer import OperatorCapacity, bids2, operator_capacities, readings
from rheostat.planner.failures import drop_doubtful
from rheostat.planner.memory import regime_of, regimes
from rheostat.planner.resource_explorer import HELPER, Ask, Stop, Strategy
from rheostat.planner.rig import Feed
from rheostat.ports import Testbed

MOST_RUNS = 60
"""Most runs of a campaign, far above what any plan needs: it stops a strategy that never ends."""
IN_A_ROW = 4
"""Failed runs in a row after which a campaign is given up."""

Notify = Callable[[str], None]
Save = Callable[[Estimate], None]


class TestbedFailed(RheostatError):  # noqa: N818
    """The testbed failed several times in a row; earlier measurements are retained."""

    __test__ = False


class Optimizer(Protocol):
    """The paper's configuration optimizer: from a budget to its sustainable rate."""

    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        """Return the next estimate for the budget; a single-task run comes first if none was made."""


@dataclass
class OnTestbed:
    """Splits budgets by BIDS2 and measures them on a testbed."""

    testbed: Testbed
    spec: JobSpec
    feed: Feed
    phases: Phases = Phases()
    search: Search = dichotomic
    split_by_curves: bool = False
    """Split by curves fitted to all runs (ours) instead of single-task runs with the same memory (the paper's)."""
    now: Callable[[], float] = field(default=lambda: 0.0)

    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        """Measure a single-task run if there is none yet, else the budget."""
        single = self.single(ask.memory_mb)
        usable = [e for e in done if e.usable and (self.split_by_curves or e.memory_mb == ask.memory_mb)]
        failed = [e for e in done if e.problem is not None and e.allocation == single]
        if not any(readings(e)[0] for e in usable) and not failed:
            why = ask.why if single.slots == ask.slots else f"{HELPER}, to split {ask.slots} slots"
            return self._estimate(single, None, why)
        if ask.slots == single.slots:
            return self._estimate(single, None, ask.why)
        split = bids2(self.capacities(usable, ask.memory_mb), ask.slots)
        return self._estimate(Allocation(dict(split.tasks), ask.memory_mb), split.rate_per_s, ask.why)

    def single(self, memory_mb: int | None) -> Allocation:
        """Return the smallest allocation."""
        return Allocation({a.name: a.least for a in operator_capacities(self.spec, {}, {})}, memory_mb)

    def capacities(self, estimates: Sequence[Estimate], memory_mb: int | None) -> Sequence[OperatorCapacity]:
        """Return the operators' capacities by which the optimizer splits."""
        measured = [e for e in estimates if readings(e)[0]]
        if self.split_by_curves and len({e.slots for e in measured}) > 1:
            from rheostat.planner.plan import fitted_capacities
            from rheostat.planner.scaling import Scaling

            good = drop_doubtful(measured)
            return fitted_capacities(Scaling.fit(regime_of(good, memory_mb) or regimes(good)[0]), self.spec)
        if not measured:
            equal = dict.fromkeys(self.spec.tunable_names, 1.0)
            return operator_capacities(self.spec, equal, equal)
        return operator_capacities(self.spec, *readings(min(measured, key=lambda e: e.slots)))

    def _estimate(self, allocation: Allocation, expected: float | None, why: str) -> Estimate:
        expected = expected if expected is None or math.isfinite(expected) else None
        return estimate(
            self.testbed, allocation, self.feed, self.phases, self.search,
            expected_per_s=expected, at_s=self.now(), why=why,
        )  # fmt: skip


def explore(
    strategy: Strategy,
    optimizer: Optimizer,
    saved: Sequence[Estimate] = (),
    *,
    save: Save = lambda _: None,
    notify: Notify = lambda _: None,
    budget_s: float | None = None,
) -> tuple[list[Estimate], str]:
    """Measure until the strategy stops or the budget is used up; return all estimates and why it ended."""
    done = list(saved)
    if budget_s is not None and budget_s <= 0 and not done:
        raise InvalidValue("a budget of 0 minutes measures nothing: set a larger one, or a journal with measurements")
    while True:
        step = strategy.next(done)
        if isinstance(step, Stop):
            notify(step.why)
            return done, step.why
        if len(done) >= MOST_RUNS:
            return done, f"{MOST_RUNS} measurements are more than any plan needs"
        used = sum(e.seconds for e in done)
        longest = max((e.seconds for e in done), default=0.0)
        if budget_s is not None and used + longest > budget_s:
            why = f"the budget of {budget_s / 60:.0f} minutes is used up: {used / 60:.0f} of them measured"
            notify(why)
            return done, why
        memory = "" if step.memory_mb is None else f" of {step.memory_mb} MB"
        notify(f"next: {step.slots} slots{memory}, {step.why}")
        measured = optimizer.measure(step, done)
        save(measured)
        done.append(measured)
        notify(describe_estimate(measured))
        last = done[-IN_A_ROW:]
        if len(last) == IN_A_ROW and all(e.problem is not None for e in last):
            raise TestbedFailed(f"{IN_A_ROW} runs in a row failed, the last one: {last[-1].problem}")


def describe_estimate(estimate: Estimate) -> str:
    """Return the result of one measurement in one line."""
    cost = f"{estimate.seconds / 60:.1f} min"
    if estimate.problem is not None:
        return f"{estimate.allocation}: failed, {estimate.problem} ({cost})"
    assert estimate.rate_per_s is not None
    if estimate.limited_by == "injector":
        return f"{estimate.allocation}: at least {estimate.rate_per_s.low:,.0f}/s, limited by the injector ({cost})"
    low, high = estimate.rate_per_s.low, estimate.rate_per_s.high
    return f"{estimate.allocation}: {estimate.rate_per_s.middle:,.0f}/s ({low:,.0f} to {high:,.0f}; {cost})"
