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

Ours, where the paper is silent: a tuning begins when a demand has moved by `trigger`, or under back pressure; what else
is ours stands in `ours.py`: `bracket`, scarcity, and what goes with `model=loglog`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from rheostat.job.decision import Decision, Expectation, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.job.record import Record
from rheostat.model.capacity import CapacityCurve, Floats
from rheostat.model.history import History, fold
from rheostat.model.registry import MODELS
from rheostat.policy.conttune import ours
from rheostat.policy.conttune.view import Suggestion, View, means
from rheostat.policy.demand import demand, linear_tasks
from rheostat.policy.explanation import rate, sustains
from rheostat.policy.tuning import Tuning
from rheostat.ports import Policy, Situation

WORTH = 0.01
"""Least expected saving of Eq 4, in tasks; the paper has no such limit (ours)."""


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
        """Follow Algorithm 1; with our model, failed sizes and spare capacity are passed on to the next step."""
        tuning = Tuning.at(situation, self.trigger)
        if self.model != "loglog":
            return self.tune(situation, tuning)
        passed: dict[str, Any] = {ours.FAILED: ours.failed(situation)}
        situation = replace(situation, memo={**situation.memo, **passed})
        if not tuning.open:
            suggestions, _ = self.suggestions(situation, tuning.served(demand(situation)))
            passed[ours.SPARE] = looks = ours.looks_with_spare(situation, suggestions)
            tuning = replace(tuning, open=looks >= ours.PATIENCE, small=True)
        decision = self.tune(situation, tuning)
        return replace(decision, memo={**decision.memo, **passed})

    def tune(self, situation: Situation[History], tuning: Tuning) -> Decision:
        """Follow Algorithm 1: hold while tuned, Big under back pressure, then Small."""
        load_per_s = situation.window.load_per_s
        if not tuning.open:
            sentence = f"conttune: {situation.running} is tuned for {rate(load_per_s)}"
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(load_per_s), memo=tuning.memo(situation))
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
        suggestions, bottleneck = self.suggestions(situation, tuning.served(demand(situation)))
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

    def suggestions(
        self, situation: Situation[History], load_per_s: Mapping[str, float]
    ) -> tuple[dict[str, Suggestion], str]:
        """Return a suggestion per operator, and a note about one that is scarce."""
        room = 1.0 + situation.headroom()
        views = {name: self.view(situation, name) for name in situation.spec.tunable_names}
        p_most = p_max(situation) if self.big else math.inf  # Eq 2: Big has made sure that p_max is enough

        def suggest(name: str, share: float = 1.0) -> Suggestion:
            return self.suggestion(views[name], load_per_s[name] * share, p_most, room)

        bounds = {name: limits.max for name, limits in situation.limits.operators.items() if limits.max is not None}
        wanted = {name: per_s * room for name, per_s in load_per_s.items()}
        scarce = ours.find_scarce(views, wanted, bounds, self.alpha)
        if scarce is None:
            return {name: suggest(name) for name in views}, ""
        return ours.serve_scarce(scarce, views, suggest), f"; {scarce}"

    def view(self, situation: Situation[History], name: str) -> View:
        """Fit the model of one operator (Algorithm 2, line 3)."""
        samples, tasks = situation.knowledge.samples(name), situation.running.tasks[name]
        true_rate_per_s = situation.window.operator(name).true_rate_per_s
        if not samples:
            return View(tasks, true_rate_per_s)
        newest = samples[-1]
        largest = max(sample.tasks for sample in samples)
        curve = MODELS[self.model](samples).curve(largest + int(min(self.alpha, largest)))
        view = View(tasks, true_rate_per_s or newest.capacity_per_s / newest.tasks, curve, means(samples))
        if self.bracket:
            view = ours.cut_where_it_falls(view, samples)
        if failure := situation.memo.get(ours.FAILED, {}).get(name):
            view = replace(view, least=failure[0] + 1)
        return view

    def suggestion(self, view: View, load_per_s: float, most: float = math.inf, room: float = 1.0) -> Suggestion:
        """Return the suggestion of Algorithm 2, with what is ours around it."""
        if self.model == "loglog":
            room = max(room, ours.room_for_noise(view))
        demand_per_s = load_per_s * room
        if demand_per_s <= 0:
            return Suggestion(0.0, 0.0, 0.0, True)
        if self.acquisition == "cei" and self.bracket and view.curve is not None:
            suggestions = [self.select(view, at_per_s, most) for at_per_s in ours.up_to(view.curve, demand_per_s)]
            return replace(max(suggestions, key=lambda one: one.tasks), demand_per_s=demand_per_s)
        return self.select(view, demand_per_s, most)

    def select(self, view: View, demand_per_s: float, most: float) -> Suggestion:
        """Return p_acq if it is near enough to a sampled size, else p_lin (Algorithm 2, lines 4 to 13)."""
        linear = view.tasks if not view.rate_per_s else linear_tasks(demand_per_s, view.rate_per_s)
        if view.curve is None:
            return Suggestion(min(linear, most), demand_per_s, math.inf, False)
        acquired = self.acquire(view, demand_per_s)
        distance = view.distance(acquired)
        if acquired is not None and distance <= self.alpha:
            tasks, trusted = float(acquired), True
        else:
            tasks, trusted = linear, False
        if self.bracket:
            tasks = ours.bracketed(view, tasks, trusted, demand_per_s, self.alpha)
        return Suggestion(min(tasks if trusted else max(tasks, view.least), most), demand_per_s, distance, trusted)

    def acquire(self, view: View, demand_per_s: float) -> int | None:
        """Return p_acq, the best size by the acquisition function; None if no size qualifies."""
        curve = view.curve
        assert curve is not None
        sizes = np.arange(1, len(curve.capacity_per_s) + 1)
        if self.acquisition == "mean":  # Eq 5: the fewest tasks whose mean suffices have the largest p* - p
            enough = np.flatnonzero((curve.capacity_per_s >= demand_per_s) & (sizes >= view.least))
            return int(enough[0]) + 1 if len(enough) else None
        feasible = [tasks for tasks, per_s in view.means.items() if per_s >= demand_per_s]
        best = min(feasible, default=len(sizes) + 1)
        saving = (best - sizes) * _above(curve, demand_per_s)  # Eq 4
        if saving.max() >= WORTH:
            return int(sizes[np.argmax(saving)])
        return best if feasible else None


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


def p_max(situation: Situation[History]) -> int:
    """Return the largest observed size of any operator."""
    return max((*situation.running.tasks.values(), *situation.knowledge.most_tasks.values()))


def _above(curve: CapacityCurve, demand_per_s: float) -> Floats:
    """Return Pr[f(p) >= λ] of every size."""
    z = (curve.capacity_per_s - demand_per_s) / np.maximum(curve.sd_per_s, 1e-9 * demand_per_s)
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in z])
