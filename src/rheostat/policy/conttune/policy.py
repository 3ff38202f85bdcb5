"""ContTune: Big makes an under-provisioned job sufficient, Small finds the fewest tasks from the whole history.

Lian, Zhang, Shao, Pu, Xiang, Li, Cui: "ContTune: Continuous Tuning by Conservative Bayesian Optimization for
Distributed Stream Data Processing Systems", VLDB 2023.

| paper | here |
|---|---|
| PA = λ̂ / T_u (Eq 1) | `OperatorReading.true_rate_per_s` x tasks |
| H^t, p^max | `History`, a fold over the journal |
| under-provisioned | `window.overloaded` |
| λ_i, real upstream rate | `demand`: the rates at the sources, propagated through the selectivities |
| Algorithm 1, Big | `big` |
| Algorithm 2, CBO | `small`, with `acquire` (Eq 4 to 6), d_nearest and α |
| p_lin | DS2's suggestion, `linear_tasks` |
| a reconfiguration that changes nothing is skipped | the tuning ends |

How a tuning ends (section 6.2): fast exploitation ends after one change without back pressure, conservative exploration
continues like DS2 until it suggests the running size. Back pressure in the Small phase leads to CBO again, not to Big,
because λ is known by then (footnote 3).

Ours, where the paper is silent:
- a tuning begins when a demand has moved by `trigger`, or under back pressure;
- the linear suggestion stays between the trusted sizes for a smaller and a larger demand, so that more demand never
  gets fewer tasks; a size range in which more tasks clearly reduce capacity is avoided (`bracket`);
- if an operator cannot have the tasks that it needs, the others are sized for the share that it serves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from rheostat.job.decision import Decision, Expectation, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.job.record import Record
from rheostat.model.capacity import CapacityCurve, Floats, Sample
from rheostat.model.history import History, fold
from rheostat.model.registry import MODELS
from rheostat.policy.demand import demand, linear_tasks
from rheostat.policy.explanation import rate, sustains
from rheostat.policy.tuning import Tuning
from rheostat.ports import Policy, Situation

WORTH = 0.01
"""Least expected saving of Eq 4, in tasks; the paper has no such limit (ours)."""
FALLEN = 0.8
"""Share of a smaller size's capacity below which the largest size, sampled twice, counts as clearly slower (ours)."""


@dataclass(frozen=True)
class ContTune(Policy[History]):
    """Tunes every operator from its history: Big against back pressure, then conservative Bayesian optimisation."""

    name: ClassVar[str] = "conttune"

    alpha: float = 3.0
    """Largest distance, in tasks, between a suggestion and a sampled size; beyond it DS2's suggestion is used."""
    acquisition: Literal["mean", "cei"] = "mean"
    """The suggested size: the smallest whose mean suffices (Eq 5), or constrained expected improvement (Eq 4)."""
    model: Literal["gp", "loglog"] = "gp"
    """The capacity model: the paper's Gaussian process, or ours, which handles noise, drift and extrapolation."""
    big: bool = True
    """Whether Big resolves back pressure first; if false, the demand from the sources' rates is used at once."""
    refine: bool = False
    """Whether fast exploitation, too, continues until it suggests the running size."""
    bracket: bool = True
    """Whether DS2's suggestion stays between trusted sizes, so that more demand never gets fewer tasks (ours)."""
    trigger: float = 0.05
    """Share by which a demand must move for a new tuning."""

    def __post_init__(self) -> None:
        check_number("alpha of policy 'conttune'", self.alpha, infinite=True)
        check_number("trigger of policy 'conttune'", self.trigger, most=10.0)

    def initial(self) -> History:
        """Return an empty H^t."""
        return History()

    def learn(self, knowledge: History, record: Record) -> History:
        """Append <p, PA(p)> of every operator to H^t (Algorithm 2, line 17)."""
        return fold(knowledge, record)

    def decide(self, situation: Situation[History]) -> Decision:
        """Follow Algorithm 1."""
        load_per_s = situation.window.load_per_s
        tuning = Tuning.at(situation, self.trigger)
        if tuning is None:
            sentence = f"conttune: {situation.running} is tuned for {rate(load_per_s)}"
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(load_per_s), memo=situation.memo)
        overloaded = situation.window.overloaded
        if overloaded and not set(overloaded) & set(situation.spec.tunable_names):
            sentence = f"conttune: back pressure starts at {', '.join(overloaded)}, which cannot be scaled"
            return Decision.hold(Reason.UNDER_PROVISIONED, sentence, memo=tuning.memo(situation, open=False))
        if self.big and overloaded and not tuning.small:
            return big(situation, tuning)
        applied = tuning.small and tuning.was_applied(situation)
        if applied and not overloaded and not tuning.explored and not self.refine:
            sentence = f"conttune: no back pressure at {rate(load_per_s)} with {situation.running}: the tuning ends"
            memo = tuning.memo(situation, open=False)
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(load_per_s), memo=memo)
        return self.small(situation, tuning)

    def small(self, situation: Situation[History], tuning: Tuning) -> Decision:
        """Follow Algorithm 2: a suggestion for every operator, applied in one reconfiguration."""
        running, load_per_s = situation.running, situation.window.load_per_s
        suggestions, bottleneck = self.suggestions(situation)
        target = situation.fit({name: suggestion.tasks for name, suggestion in suggestions.items()})
        explored = [
            name for name in suggestions if not suggestions[name].trusted and target.tasks[name] != running.tasks[name]
        ]
        evidence = {f"{name}.demand_per_s": suggestion.demand_per_s for name, suggestion in suggestions.items()}
        evidence |= {f"{name}.distance": suggestion.distance for name, suggestion in suggestions.items()}
        how = f"explores {', '.join(explored)}" if explored else "uses measured sizes"
        because = f"{rate(load_per_s)} arrive and it {how}{bottleneck}"
        expects = sustains(load_per_s, min(suggestion.share for suggestion in suggestions.values()))
        if target == running:
            memo = tuning.memo(situation, open=False)
            reason = Reason.UNDER_PROVISIONED if situation.window.overloaded else Reason.STEADY
            sentence = f"conttune: {because}; nothing changes"
            return Decision.hold(reason, sentence, evidence=evidence, expects=expects, memo=memo)
        memo = tuning.memo(situation, small=True, explored=bool(explored), asked=True)
        sentence = f"conttune: {changes(running, target)}, because {because}"
        return Decision(target, direction(running, target), sentence, evidence, expects, memo)

    def suggestions(self, situation: Situation[History]) -> tuple[dict[str, Suggestion], str]:
        """Return a suggestion per operator, sized for what the scarcest operator serves, and a note about that one."""
        room = 1.0 + situation.headroom()
        demand_per_s = {name: per_s * room for name, per_s in demand(situation).items()}
        views = {name: self.view(situation, name) for name in situation.spec.tunable_names}
        p_most = p_max(situation) if self.big else math.inf  # Eq 2: Big has made sure that p_max is enough
        suggestions = {name: self.suggestion(view, demand_per_s[name], p_most) for name, view in views.items()}
        bounds = {name: limits.max for name, limits in situation.limits.operators.items() if limits.max is not None}
        shares = {
            name: share(views[name].capacity_per_s(most, self.alpha), demand_per_s[name])
            for name, most in bounds.items()
        }
        scarce = min(shares, key=lambda name: shares[name], default="")
        if not scarce or shares[scarce] >= 1.0:
            return suggestions, ""
        least = shares[scarce]
        served = {name: per_s * least for name, per_s in demand_per_s.items()}
        cut = {name: self.suggestion(view, served[name], p_most) for name, view in views.items() if name != scarce}
        note = f"; with its maximum of {bounds[scarce]} tasks {scarce} serves {least:.0%} of the demand"
        return {name: replace(cut.get(name, suggestions[name]), share=least) for name in suggestions}, note

    def view(self, situation: Situation[History], name: str) -> View:
        """Fit the model of one operator (Algorithm 2, line 3)."""
        samples, tasks = situation.knowledge.samples(name), situation.running.tasks[name]
        true_rate_per_s = situation.window.operator(name).true_rate_per_s
        if not samples:
            return View(tasks, true_rate_per_s)
        newest = samples[-1]
        largest = max(sample.tasks for sample in samples)
        curve = MODELS[self.model](samples).curve(largest + int(min(self.alpha, largest)))
        means = _means(samples)
        best = max(means, key=lambda size: means[size])
        twice = sum(sample.tasks == largest for sample in samples) > 1
        falls = self.bracket and twice and means[largest] < FALLEN * means[best]
        if falls:
            curve = CapacityCurve(curve.capacity_per_s[:best], curve.sd_per_s[:best], curve.distance[:best])
        return View(tasks, true_rate_per_s or newest.capacity_per_s / newest.tasks, curve, means, falls)

    def suggestion(self, view: View, demand_per_s: float, most: float = math.inf) -> Suggestion:
        """Return p_acq if it is near enough to a sampled size, else p_lin (Algorithm 2, lines 4 to 13)."""
        if demand_per_s <= 0:
            return Suggestion(0.0, 0.0, 0.0, True)
        linear = view.tasks if not view.rate_per_s else linear_tasks(demand_per_s, view.rate_per_s)
        if view.curve is None:
            return Suggestion(min(linear, most), demand_per_s, math.inf, False)
        acquired = self.acquire(view, demand_per_s)
        distance = math.inf if acquired is None else float(view.curve.distance[acquired - 1])
        if acquired is not None and distance <= self.alpha:
            return Suggestion(min(acquired, most), demand_per_s, distance, True)
        tasks = view.between(linear, demand_per_s, self.alpha) if self.bracket else linear
        return Suggestion(min(tasks, most), demand_per_s, distance, False)

    def acquire(self, view: View, demand_per_s: float) -> int | None:
        """Return p_acq, the best size by the acquisition function; None if no size qualifies."""
        curve = view.curve
        assert curve is not None
        if self.acquisition == "mean":  # Eq 5: the fewest tasks whose mean suffices have the largest p* - p
            enough = np.flatnonzero(curve.capacity_per_s >= demand_per_s)
            return int(enough[0]) + 1 if len(enough) else None
        sizes = np.arange(1, len(curve.capacity_per_s) + 1)
        feasible = [tasks for tasks, per_s in view.means.items() if per_s >= demand_per_s]
        best = min(feasible, default=len(sizes) + 1)
        saving = (best - sizes) * _above(curve, demand_per_s)  # Eq 4
        if saving.max() >= WORTH:
            return int(sizes[np.argmax(saving)])
        return best if feasible else None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The suggested tasks of one operator."""

    tasks: float
    demand_per_s: float
    distance: float
    """d_nearest of the model's suggestion; infinite if it has none."""
    trusted: bool
    """Whether it is fast exploitation; otherwise it is conservative exploration."""
    share: float = 1.0
    """Share of the demand that it will serve."""


@dataclass(frozen=True, slots=True)
class View:
    """Rate, capacity curve and samples of one operator."""

    tasks: int
    rate_per_s: float | None
    """Present records per useful second of one task."""
    curve: CapacityCurve | None = None
    means: Mapping[int, float] = field(default_factory=dict)
    """Mean capacity of every sampled size."""
    falls: bool = False
    """Whether the largest size is clearly slower than a smaller one; the curve then ends at the best size."""

    def capacity_per_s(self, tasks: int, alpha: float) -> float:
        """Return the capacity with at most these tasks, by trusted sizes if they reach that far, else linearly."""
        linear = tasks * self.rate_per_s if self.rate_per_s else math.inf
        if self.curve is None:
            return linear
        trusted = self.curve.distance[:tasks] <= alpha
        measured = float(self.curve.capacity_per_s[:tasks][trusted].max(initial=0.0))
        return measured if self.falls or (len(trusted) == tasks and trusted[-1]) else max(measured, linear)

    def between(self, linear: float, demand_per_s: float, alpha: float) -> float:
        """Keep a linear suggestion between the trusted sizes for a smaller and a larger demand."""
        assert self.curve is not None
        capacity, trusted = self.curve.capacity_per_s, self.curve.distance <= alpha
        before = np.concatenate(([-math.inf], np.maximum.accumulate(capacity)[:-1]))
        smaller = np.flatnonzero(trusted & (capacity > before) & (before < demand_per_s))
        larger = np.flatnonzero(trusted & (capacity >= demand_per_s))
        least = int(smaller[-1]) + 1 if len(smaller) else 0
        if len(larger):
            return min(max(linear, least), int(larger[0]) + 1)
        return len(capacity) if self.falls else max(linear, least)


def big(situation: Situation[History], tuning: Tuning) -> Decision:
    """Binary lifting (Algorithm 1, lines 2 to 15): all operators to p_max, or to twice that if they have it already."""
    running, limits, load_per_s = situation.running, situation.limits.operators, situation.window.load_per_s
    most = p_max(situation)
    if all(tasks >= limits[name].clip(most) for name, tasks in running.tasks.items()):
        most *= 2
    target = situation.fit(dict.fromkeys(running.tasks, most))
    roots = ", ".join(situation.window.overloaded)
    if direction(running, target) in (Reason.STEADY, Reason.OVER_PROVISIONED):
        sentence = f"conttune: back pressure at {roots}, but the limits keep the job at {running}"
        memo = tuning.memo(situation, open=False)
        return Decision.hold(Reason.UNDER_PROVISIONED, sentence, evidence={"p_max": most}, memo=memo)
    sentence = f"conttune: {changes(running, target)}, because of back pressure at {roots} at {rate(load_per_s)} (Big)"
    memo = tuning.memo(situation, asked=True)
    expects = Expectation(load_per_s=load_per_s)
    return Decision(target, direction(running, target), sentence, {"p_max": most}, expects, memo)


def share(capacity_per_s: float, demand_per_s: float) -> float:
    """Return the share of a demand that a capacity serves, at most 1."""
    return min(1.0, capacity_per_s / demand_per_s) if demand_per_s > 0 else 1.0


def p_max(situation: Situation[History]) -> int:
    """Return the largest observed size of any operator."""
    return max((*situation.running.tasks.values(), *situation.knowledge.most_tasks.values()))


def _means(samples: Sequence[Sample]) -> dict[int, float]:
    """Return the mean capacity of every size."""
    by_size: dict[int, list[float]] = {}
    for sample in samples:
        by_size.setdefault(sample.tasks, []).append(sample.capacity_per_s)
    return {tasks: sum(per_s) / len(per_s) for tasks, per_s in by_size.items()}


def _above(curve: CapacityCurve, demand_per_s: float) -> Floats:
    """Return Pr[f(p) >= λ] of every size."""
    z = (curve.capacity_per_s - demand_per_s) / np.maximum(curve.sd_per_s, 1e-9 * demand_per_s)
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in z])
