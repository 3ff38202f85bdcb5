"""DS2: the linear model, solved for the whole graph in one pass.

Kalavri, Liagouris, Hoffmann, Dimitrova, Forshaw, Roscoe: "Three steps is all you need: fast, accurate, automatic
scaling decisions for distributed streaming dataflows", OSDI 2018; its published controller defines what the paper
leaves open.

| paper | here |
|---|---|
| λ_src, external rate of a source | `SourceReading.rate_per_s` |
| λ_p / p, true processing rate of one instance | `OperatorReading.true_rate_per_s` |
| λ_o / λ_p, true output per true input | `measured_selectivity`, per edge |
| Σ A_ji λ_o*, target input of an operator | `demand` |
| π, optimal instances | `linear_tasks`, unrounded; rounded only for the operator itself, never downstream |
| activation time, warm-up time | `activation_windows`, `warm_up_windows` |

In the paper the activation time combines several decisions; the controller waits that long and then takes the last one.
Ours: the median per operator (the upper one of an even number), so that a single odd window has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median_high
from typing import Any, ClassVar

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.job.fit import round_up
from rheostat.job.frozen import check_number, check_whole
from rheostat.job.observation import Observation
from rheostat.policy.demand import demand, linear_tasks
from rheostat.policy.explanation import rate, sustains
from rheostat.ports import Policy, Situation


@dataclass(frozen=True)
class DS2(Policy[None]):
    """Gives every operator the tasks that its demand needs at its measured true rate."""

    name: ClassVar[str] = "ds2"
    factor_option: ClassVar[str] = "scaling_factor"
    reads_former_rates: ClassVar[bool] = True

    activation_windows: int = 1
    """Consecutive decisions that are combined, by their median, before a change."""
    warm_up_windows: int = 0
    """Windows that are ignored after a change, besides those that overlap it."""
    target_rate_ratio: float = math.inf
    """Ratio of arriving to processed rate of a source above which all operators grow by it, once none needs to grow."""
    scaling_factor: float | None = None
    """Extra tasks as a share of the optimum; default: the SLO's headroom."""
    ignore_single_decrease: bool = True
    """Whether to skip a change that only removes single tasks (single steps, where the quantum is larger)."""

    def __post_init__(self) -> None:
        check_whole("activation_windows of policy 'ds2'", self.activation_windows, least=1)
        check_whole("warm_up_windows of policy 'ds2'", self.warm_up_windows, least=0)
        check_number("target_rate_ratio of policy 'ds2'", self.target_rate_ratio, least=1.0, infinite=True)
        check_number("scaling_factor of policy 'ds2'", self.scaling_factor, most=10.0)

    def decide(self, situation: Situation[None]) -> Decision:
        """Solve the linear model for this window, combine it with earlier windows, and skip insignificant changes."""
        running, load_per_s = situation.running, situation.window.load_per_s
        if situation.window.former is not None and (self.warm_up_windows or self.activation_windows > 1):
            sentence = "ds2: nothing has been measured since the last change"
            return Decision.hold(Reason.WAITING, sentence, memo=situation.memo)
        # Earlier windows belong to another allocation.
        fresh = situation.memo.get("changed_at_s") != situation.changed_at_s
        before = {} if fresh else situation.memo
        windows = before.get("windows", 0) + 1
        memo: dict[str, Any] = {"changed_at_s": situation.changed_at_s, "windows": windows}
        if windows <= self.warm_up_windows:
            sentence = f"ds2: window {windows} of {self.warm_up_windows} is ignored while the job warms up"
            return Decision.hold(Reason.WAITING, sentence, memo=memo)

        optimal = optimal_tasks(situation)
        served = _served(running, optimal)
        if situation.window.former is not None and served > 1 - 1e-9:
            # The extra tasks are there for such a difference; what the present size does will be known in a moment.
            sentence = f"ds2: {rate(load_per_s)} arrive, and at the rates before the last change {running} is enough"
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(load_per_s, served), memo=situation.memo)
        wanted, ratio = self.recommend(situation, optimal)
        same = [tasks for tasks in before.get("seen", ()) if tasks.keys() == wanted.keys()]
        memo["seen"] = recent = [*same, wanted][-self.activation_windows :]
        evidence = {f"{name}.optimal_tasks": tasks for name, tasks in optimal.items()}
        evidence["source_rate_ratio"] = ratio
        if len(recent) < self.activation_windows:
            sentence = f"ds2: {len(recent)} of {self.activation_windows} windows before a change"
            return Decision.hold(Reason.WAITING, sentence, evidence=evidence, memo=memo)

        median = {name: median_high(tasks[name] for tasks in recent) for name in wanted}
        target = situation.fit(median)
        because = _because(load_per_s, optimal, target, median)
        if target == running or (self.ignore_single_decrease and not self._matters(situation, target)):
            because += "" if target == running else f"; {changes(running, target)} is too small a change"
            reason = Reason.STEADY if served > 1 - 1e-9 else Reason.UNDER_PROVISIONED
            expects = sustains(load_per_s, served)
            return Decision.hold(reason, f"ds2: {because}", evidence=evidence, expects=expects, memo=memo)
        sentence = f"ds2: {changes(running, target)}, because {because}"
        expects = sustains(load_per_s, _served(target, optimal))
        return Decision(target, direction(running, target), sentence, evidence, expects, memo)

    def recommend(self, situation: Situation[None], optimal: Mapping[str, float]) -> tuple[dict[str, int], float]:
        """Return this window's whole tasks, and the largest ratio of arriving to processed rate of a source."""
        running = situation.running
        room = 1 + situation.headroom(self.scaling_factor)
        # An operator that processed nothing keeps its tasks: its true rate is unknown.
        wanted = {
            name: round_up(optimal[name] * room) if name in optimal else running.tasks[name] for name in running.tasks
        }
        ratio = max((_rate_ratio(situation.window, source) for source in situation.spec.graph.sources), default=0.0)
        converged = all(wanted[name] <= count for name, count in running.tasks.items())
        if converged and ratio > self.target_rate_ratio:
            # The model needs no growth, but a source falls behind: the same ratio everywhere covers unmodelled costs.
            wanted = {name: round_up(count * ratio) for name, count in wanted.items()}
        return wanted, ratio

    @staticmethod
    def _matters(situation: Situation[None], target: Allocation) -> bool:
        quantum = situation.limits.quantum
        return any(
            target.tasks[name] > count or count - target.tasks[name] > quantum.get(name, 1)
            for name, count in situation.running.tasks.items()
        )


def optimal_tasks(situation: Situation[Any]) -> dict[str, float]:
    """Return the unrounded optimum of every tunable operator with a known true rate or without demand."""
    optimal: dict[str, float] = {}
    demand_per_s = demand(situation)
    for name in situation.spec.tunable_names:
        true_rate_per_s = situation.window.operator(name).true_rate_per_s
        if true_rate_per_s or not demand_per_s[name]:
            optimal[name] = linear_tasks(demand_per_s[name], true_rate_per_s or 0.0)
    return optimal


def _rate_ratio(window: Observation, source: str) -> float:
    """Return the ratio of arriving to processed rate of a source; 0 if it processed nothing."""
    arriving = next((reading.rate_per_s for reading in window.sources if reading.name == source), None)
    processed = window.operator(source).records_in_per_s
    return arriving / processed if arriving and processed else 0.0


def _because(
    load_per_s: float | None, optimal: Mapping[str, float], target: Allocation, wanted: Mapping[str, int]
) -> str:
    needs = ", ".join(f"{name} {tasks:.3g}" for name, tasks in optimal.items())
    text = f"{rate(load_per_s)} arrive and need {needs or 'an unknown number of'} tasks"
    if idle := [name for name in wanted if name not in optimal]:
        text += f"; {', '.join(idle)} processed nothing and keeps its tasks"
    if any(target.tasks[name] < count for name, count in wanted.items()):
        text += "; the limits allow no more"
    return text


def _served(allocation: Allocation, optimal: Mapping[str, float]) -> float:
    """Return the share of the demand that the scarcest operator can serve; above 1 there is spare capacity."""
    return min((allocation.tasks[name] / tasks for name, tasks in optimal.items() if tasks), default=1.0)
