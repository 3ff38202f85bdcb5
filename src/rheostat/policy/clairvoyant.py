"""The clairvoyant: knows every curve and the load to come. It cannot exist; it is what others are measured by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Interval, Reason
from rheostat.job.slo import Bounds, Limits
from rheostat.policy.base import BasePolicy
from rheostat.policy.explain import changes, direction
from rheostat.ports import Situation

Ability = Callable[[str, int, Allocation], float]
"""(operator, tasks, allocation of the whole job) -> records/s that it can really do."""
MOST_TASKS = 4096
"""Where nothing bounds an operator, the search ends here."""
Peak = Callable[[float, float], Mapping[str, float]]
"""(start, end) -> the highest rate of every source in that span."""


@dataclass(frozen=True)
class Clairvoyant(BasePolicy[None]):
    """Takes the fewest tasks that sustain the highest load of the next `horizon_s`."""

    name: ClassVar[str] = "clairvoyant"
    ability: Ability
    peak: Peak
    horizon_s: float = 120.0
    """How far ahead it looks, in seconds: until it can act again, and a change more."""

    def options(self) -> Mapping[str, Any]:
        """Return the horizon; what it knows comes from the run's settings."""
        return {"horizon_s": self.horizon_s}

    def decide(self, situation: Situation[None]) -> Decision:
        """Go straight to the smallest allocation that is enough."""
        now_s, running = situation.window.at_s, situation.running
        rates = self.peak(now_s, now_s + self.horizon_s)
        demand = situation.spec.graph.demand_per_s(rates)
        spare = 1.0 + situation.headroom()
        wanted = {name: rate * spare for name, rate in demand.items()}
        target = smallest(self.ability, wanted, running, situation.limits)
        load = sum(rates.values())
        evidence = {f"demand_{name}": demand[name] for name in situation.spec.tunable_names}
        if target == running:
            return Decision.hold(Reason.STEADY, f"{running} is enough for {load:g}/s", evidence=evidence)
        return Decision(
            target,
            direction(running, target),
            f"{changes(running, target)}: enough for the {load:g}/s of the next {self.horizon_s:g} s",
            evidence,
            Expectation(load, Interval.at_least(0.0)),
        )


def smallest(ability: Ability, demand: Mapping[str, float], start: Allocation, limits: Limits) -> Allocation:
    """Return the fewest tasks that serve the demand; more of one operator may cost the others ability."""
    target = start
    for _ in range(20):  # interference moves with the slots: repeat until it stands still
        chosen = target.with_tasks(
            {name: _tasks(ability, name, demand[name], target, limits.operators[name]) for name in target.tasks}
        )
        if chosen == target:
            break
        target = chosen
    return target


def _tasks(ability: Ability, name: str, demand_per_s: float, allocation: Allocation, bounds: Bounds) -> int:
    """Return the fewest tasks that serve the demand, or the strongest choice when none does."""
    best, most = bounds.min, -1.0
    for tasks in range(bounds.min, (bounds.max or MOST_TASKS) + 1):
        able = ability(name, tasks, allocation)
        if able >= demand_per_s:
            return tasks
        if able > most:
            best, most = tasks, able
    return best
