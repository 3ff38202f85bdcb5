"""Dragster: online optimisation says what every operator should be able to do, GP-UCB finds the tasks that can.

Liu, Xu, Lau: "Online Resource Optimization for Elastic Stream Processing with Regret Guarantee", ICPP 2022.

| paper | here |
|---|---|
| h_ij, α_ij (Eq 1 to 4) | `throughput.py`; given in `functions`, or learned by `regression.py` |
| c_i(t), capacity sample (Eq 8) | `by_cpu`, or records per useful second where the engine measures that |
| L_t, l_i (Eq 11, 13) | `Dataflow.lacking`, `Dataflow.slopes` |
| y_t of the online saddle point (Eq 14) | `saddle_point` |
| λ_i(t) (Eq 15), γ = 1 / sqrt(t) | `dual_step` |
| y_t of online gradient descent (Eq 16) | `gradient_step` |
| μ, σ², β, argmax (Eq 17, 18) | `ucb.py`, per operator |
| Π, projection onto the budget | `budget.py` |
| t, and the history in the Database | `Knowledge`, a fold over the journal |

Capacities count output records in the paper and input records here (`capacity`); `Dataflow.per_record_in` is between
them. Everything that Eq 15, 16 and 18 add up is in units of the operator's peak load.

Read differently, because to the letter it does not work:
- Eq 14: without multipliers f is flat above the demand, and with any positive one L grows without end. So y is the
  demand plus `margin`, and the multipliers, which are kept, move the gradient variant only.
- Eq 16 never goes down: f and the multipliers push upwards only. Above the demand plus `margin` y falls by η (ours).
- Eq 18: |μ - y| is symmetric and takes a size that is a little too small as gladly as one that is a little too large,
  for ever: `margin`, and a lack that counts `shortfall` times, make up for that.
- Π: the Euclidean projection misses the best split; by default slots are split by learned capacities (`projection`).
- A move that is made only to learn (nothing is overloaded, and what runs is the nearest to the target as far as is
  known) has the reason `explore`: guards let it through with `explore: live` only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from rheostat.job.decision import Decision, Expectation, Reason, changes, direction
from rheostat.job.fit import fit_tasks
from rheostat.job.frozen import FrozenMap, check_number, put
from rheostat.job.observation import Observation
from rheostat.job.record import Record
from rheostat.model.capacity import Floats
from rheostat.model.loglog import LogLog
from rheostat.policy.dragster.budget import Choice, balanced, euclidean
from rheostat.policy.dragster.regression import Fitted, FlowRows, fit_graph, fold_flows
from rheostat.policy.dragster.tally import Size, Tally, fold_tally, samples
from rheostat.policy.dragster.throughput import Dataflow, EdgeFunction, Pair
from rheostat.policy.dragster.ucb import Posterior, beta
from rheostat.policy.explain import rate, sustains
from rheostat.ports import Policy, Situation

MARGIN = 0.06
"""Spare capacity where neither `margin` nor the SLO's headroom is set."""
MOST_SIZES = 512
"""Candidate sizes of one operator."""
LEAP = 4
"""Where nothing bounds an operator, sizes up to so many times the largest one seen are candidates."""


@dataclass(frozen=True)
class Knowledge:
    """Capacity samples of every operator, and what was seen on every edge."""

    tally: Tally = field(default_factory=Tally)
    flows: FlowRows = field(default_factory=FlowRows)


@dataclass(frozen=True)
class Dragster(Policy[Knowledge]):
    """Tracks the capacities that the load needs, slot by slot, and learns what p tasks can do on the way."""

    name: ClassVar[str] = "dragster"
    factor_option: ClassVar[str] = "margin"

    variant: Literal["saddle", "gradient"] = "saddle"
    """How the target is set: at once (online saddle point, Eq 14) or step by step (online gradient descent, Eq 16)."""
    margin: float | None = None
    """Spare capacity in the target, as a share of the demand; left out, the SLO's headroom, else 0.06."""
    eta: float = 0.1
    """Step size of Eq 16, in peak loads per slot."""
    delta: float = 2.0
    """δ of Theorem 1: the guarantee holds with probability 1 - 1/δ; more of it explores more."""
    length_scale: float = 0.2
    """Length scale of the kernel, as a share of the sizes that an operator may have."""
    noise: float = 0.01
    """Standard deviation of a capacity sample, as a share of the peak load."""
    shortfall: float = 5.0
    """How much more a capacity below the target counts than one above it (Eq 18); 1 is the paper's."""
    projection: Literal["balanced", "euclidean"] = "balanced"
    """What happens when the slots do not suffice: split by learned capacities (ours), or the nearest point."""
    capacity: Literal["useful", "cpu"] = "useful"
    """What a capacity sample is divided by: useful time (CPU where there is none), or CPU as in the paper (Eq 8)."""
    throughput: Literal["learned", "graph"] = "learned"
    """Where throughput functions come from: learned from the windows, or the graph's selectivities."""
    functions: Mapping[str, EdgeFunction] = field(default_factory=FrozenMap)
    """Throughput functions that are known, by `upstream->downstream`; they go before learned ones."""

    def __post_init__(self) -> None:
        check_number("margin of policy 'dragster'", self.margin, most=10.0)
        check_number("eta of policy 'dragster'", self.eta, least=1e-6, most=10.0)
        check_number("delta of policy 'dragster'", self.delta, least=1.0)
        check_number("length_scale of policy 'dragster'", self.length_scale, least=1e-3, most=10.0)
        check_number("noise of policy 'dragster'", self.noise, least=1e-4, most=10.0)
        check_number("shortfall of policy 'dragster'", self.shortfall, least=1.0)
        put(self, functions=FrozenMap(self.functions))

    def initial(self) -> Knowledge:
        """Return an empty database."""
        return Knowledge()

    def learn(self, knowledge: Knowledge, record: Record) -> Knowledge:
        """Store capacities and throughputs of a slot (Algorithm 2, line 3)."""
        seen = by_cpu(record, self.capacity == "cpu") if isinstance(record, Observation) else record
        tally, flows = fold_tally(knowledge.tally, seen), fold_flows(knowledge.flows, record)
        if tally is knowledge.tally and flows is knowledge.flows:
            return knowledge
        return Knowledge(tally, flows)

    def decide(self, situation: Situation[Knowledge]) -> Decision:
        """Follow Algorithm 2."""
        limits = situation.limits
        least = sum(fit_tasks(limits, name, 1) for name in limits.operators)
        if limits.slots.max is not None and limits.slots.max < least:
            sentence = (
                f"dragster: the budget of {limits.slots.max} slots is below the {least} that the job needs at least"
            )
            return Decision.hold(Reason.UNDER_PROVISIONED, sentence, memo=situation.memo)
        situation = replace(situation, window=by_cpu(situation.window, self.capacity == "cpu"))
        flow, residual = self.dataflow(situation)
        views = {name: self.view(situation, flow, name) for name in situation.spec.tunable_names}
        multipliers = dual_step(flow, views, situation)
        if self.variant == "saddle":
            targets = saddle_point(views)
        else:
            targets = gradient_step(flow, views, multipliers, situation, self.eta)
        suggestions = {name: self.suggestion(view, targets[name], situation.knowledge) for name, view in views.items()}
        return self.deployed(situation, views, targets, suggestions, multipliers, residual)

    def dataflow(self, situation: Situation[Knowledge]) -> tuple[Dataflow, float]:
        """Return the graph with its functions under this window's rates, and the largest residual of a learned one."""
        graph, window = situation.spec.graph, situation.window
        learned: dict[Pair, Fitted] = {}
        if self.throughput == "learned":
            learned = fit_graph(graph, situation.knowledge.flows)
        given = {_pair(name): function for name, function in self.functions.items()}
        functions = {pair: fitted.function for pair, fitted in learned.items() if pair not in given} | given
        rates = {source.name: source.rate_per_s or 0.0 for source in window.sources}
        residual = max((fitted.residual for pair, fitted in learned.items() if pair not in given), default=0.0)
        return Dataflow(graph, rates, functions), residual

    def view(self, situation: Situation[Knowledge], flow: Dataflow, name: str) -> View:
        """Return what is known of one operator."""
        tasks, seen = situation.running.tasks[name], situation.knowledge.tally.sizes(name)
        able = situation.window.operator(name).capacity_per_s
        if not seen and able:
            seen = (Size(tasks, 1, able, 1),)
        received, asked = sum(flow.full.received[name]), flow.asked(name)
        # More than it receives where the given weights split its capacity badly.
        demand = received * (flow.sufficient[name] / asked if asked > 0 else 1.0)
        room = 1.0 + situation.headroom(self.margin, MARGIN)
        unit = max((demand, *(size.capacity_per_s for size in seen)))
        now = able or (seen[-1].capacity_per_s if seen else 0.0)
        largest = max((tasks, *(size.tasks for size in seen)))
        sizes = candidates(situation, name, largest, self.projection == "balanced")
        return View(tasks, seen, sizes, demand, demand * room, unit, now, flow.per_record_in[name])

    def suggestion(self, view: View, target_per_s: float, knowledge: Knowledge) -> Suggestion:
        """Return the size that Eq 18 chooses, and the one that it would choose if it knew no uncertainty."""
        if view.demand_per_s <= 0:
            return Suggestion(view.sizes[0], view.sizes[0])
        if not view.seen:  # nothing was ever seen of it
            return Suggestion(view.tasks, view.tasks)
        sizes = np.array(view.sizes, dtype=float)
        length = max(self.length_scale * (view.sizes[-1] - view.sizes[0] + 1), 0.5)
        found = Posterior.of(view.seen, sizes, view.unit_per_s, length, self.noise)
        weight = beta(len(sizes), knowledge.tally.seen, self.delta)
        target = target_per_s / view.unit_per_s
        chosen, known = (found.best(target, each, self.shortfall) for each in (weight, 0.0))
        return Suggestion(view.sizes[chosen], view.sizes[known])

    def deployed(
        self,
        situation: Situation[Knowledge],
        views: Mapping[str, View],
        targets: Mapping[str, float],
        suggestions: Mapping[str, Suggestion],
        multipliers: Mapping[str, float],
        residual: float,
    ) -> Decision:
        """Fit the suggestions into the slots and say why (Algorithm 2, line 6)."""
        running, window = situation.running, situation.window
        tasks, share = self.projected(
            situation, views, {name: suggestion.tasks for name, suggestion in suggestions.items()}
        )
        target = situation.fit(tasks)
        changed = [name for name, count in target.tasks.items() if count != running.tasks[name]]
        learns = [name for name in changed if suggestions[name].tasks != suggestions[name].known]
        evidence = {f"{name}.demand_per_s": view.demand_per_s for name, view in views.items()}
        evidence |= {f"{name}.target_per_s": targets[name] for name in views}
        evidence |= {f"{name}.multiplier": multipliers[name] for name in views}
        evidence["residual"] = residual
        memo = {"targets": dict(targets), "multipliers": dict(multipliers)}
        because = f"{rate(window.load_per_s)} arrive"
        if short := [n for n, v in views.items() if v.seen and v.able_per_s < v.demand_per_s]:
            because += f", {', '.join(short)} {'lacks' if len(short) == 1 else 'lack'} capacity"
        if learns:
            because += f", and it explores {', '.join(learns)}"
        if share < 1.0:
            because += f"; {situation.limits.slots.max} slots serve {share:.0%} of it"
        if stuck := [name for name in window.overloaded if name not in views]:
            because += f"; back pressure starts at {', '.join(stuck)}, which cannot be scaled"
        if not changed:
            reason = Reason.UNDER_PROVISIONED if window.overloaded or share < 1.0 else Reason.STEADY
            sentence = f"dragster: {because}; {running} is nearest to what that needs"
            expects = sustains(window.load_per_s, share) if not window.overloaded else Expectation(window.load_per_s)
            return Decision.hold(reason, sentence, evidence=evidence, expects=expects, memo=memo)
        idle_curiosity = set(learns) == set(changed) and not window.overloaded
        idle_curiosity &= all(suggestions[name].known == running.tasks[name] for name in changed)
        reason = Reason.EXPLORE if idle_curiosity else direction(running, target)
        expects = Expectation(window.load_per_s) if learns else sustains(window.load_per_s, share)
        sentence = f"dragster: {changes(running, target)}, because {because}"
        return Decision(target, reason, sentence, evidence, expects, memo)

    def projected(
        self, situation: Situation[Knowledge], views: Mapping[str, View], suggestions: Mapping[str, int]
    ) -> tuple[Mapping[str, int], float]:
        """Return the suggestions as the slots allow them, and the share of the demand that they serve."""
        slots = situation.limits.slots.max
        if slots is None or sum(suggestions.values()) <= slots:
            return suggestions, 1.0
        known = all(view.seen or view.demand_per_s <= 0 for view in views.values())
        if self.projection == "euclidean" or not known:
            return euclidean(suggestions, {name: view.sizes for name, view in views.items()}, slots), 1.0
        choices = {name: Choice(view.sizes, view.capacities(), view.wanted_per_s) for name, view in views.items()}
        tasks, share = balanced(choices, slots)
        return tasks, min(1.0, share * (1.0 + situation.headroom(self.margin, MARGIN)))


@dataclass(frozen=True)
class View:
    """What is known of one operator. Rates count records in."""

    tasks: int
    seen: tuple[Size, ...]
    sizes: tuple[int, ...]
    """The candidates: X of Eq 18."""
    demand_per_s: float
    """What it must be able to do so that nothing is lacking."""
    wanted_per_s: float
    """The same with the margin."""
    unit_per_s: float
    """Its peak load, or its largest capacity where that is more."""
    able_per_s: float
    """c_i(t): what it can do now."""
    per_record: float
    """Records out per record in."""

    def capacities(self) -> Floats:
        """Return what our model expects at every candidate size; the paper's has no idea beyond what was seen."""
        if not self.seen:
            return np.ones(len(self.sizes))
        every = LogLog.fit(samples(self.seen)).curve(self.sizes[-1]).capacity_per_s
        chosen: Floats = every[np.array(self.sizes) - 1]
        return chosen


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What one operator should have."""

    tasks: int
    known: int
    """What it should have as far as is known: Eq 18 without σ²."""


def saddle_point(views: Mapping[str, View]) -> dict[str, float]:
    """Return y_t of Eq 14: the smallest capacities that limit nothing, and the margin."""
    return {name: view.wanted_per_s for name, view in views.items()}


def dual_step(flow: Dataflow, views: Mapping[str, View], situation: Situation[Knowledge]) -> dict[str, float]:
    """Return λ(t) of Eq 15 from what ran: l_i in peak loads, γ = 1 / sqrt(t)."""
    before, gamma = situation.memo.get("multipliers", {}), 1.0 / math.sqrt(max(situation.knowledge.tally.seen, 1))
    lacking = flow.lacking({n: v.able_per_s * v.per_record for n, v in views.items() if v.able_per_s > 0})
    found = {}
    for name, view in views.items():
        short = lacking.get(name, 0.0) / (view.unit_per_s * view.per_record) if view.unit_per_s > 0 else 0.0
        found[name] = max(0.0, float(before.get(name, 0.0)) + gamma * short)  # Eq 15
    return found


def gradient_step(
    flow: Dataflow,
    views: Mapping[str, View],
    multipliers: Mapping[str, float],
    situation: Situation[Knowledge],
    eta: float,
) -> dict[str, float]:
    """Return y_t of Eq 16, in steps of peak loads; above what is wanted it falls by the same step (ours)."""
    before = situation.memo.get("targets", {})
    now = {n: float(before.get(n, 0.0)) or v.able_per_s for n, v in views.items() if v.unit_per_s > 0}
    scale = {name: views[name].unit_per_s * views[name].per_record for name in now}
    most = flow.full.throughput_per_s
    slopes = flow.slopes(
        {name: per_s * views[name].per_record for name, per_s in now.items()},
        {name: multipliers[name] / scale[name] for name in now},
        1.0 / most if most > 0 else 0.0,
    )
    found = dict.fromkeys(views, 0.0)
    for name, per_s in now.items():
        view = views[name]
        if per_s > view.wanted_per_s:
            found[name] = max(view.wanted_per_s, per_s - eta * view.unit_per_s)
        else:  # Eq 16
            found[name] = min(view.wanted_per_s, max(0.0, per_s + eta * slopes[name] * scale[name] * view.unit_per_s))
    return found


def candidates(situation: Situation[Any], name: str, largest: int, within: bool) -> tuple[int, ...]:
    """Return the sizes that an operator may have: whole quanta, in its bounds, and `within` what the others leave."""
    limits = situation.limits
    bounds, quantum = limits.operators[name], limits.quantum.get(name, 1)
    tops = [largest * LEAP if bounds.max is None else bounds.max]
    if within and limits.slots.max is not None:
        tops.append(limits.slots.max - sum(b.min for other, b in limits.operators.items() if other != name))
    most = max(bounds.min, min(tops))
    found = list(range(-(-bounds.min // quantum) * quantum, most + 1, quantum)) or [bounds.min]
    if len(found) <= MOST_SIZES:
        return tuple(found)
    # Too many to look at: all of the small ones, and further up ever fewer.
    chosen = np.unique(np.geomspace(1, len(found), MOST_SIZES).astype(int) - 1)
    return tuple(found[k] for k in chosen)


def by_cpu(window: Observation, always: bool) -> Observation:
    """Return the window with true rates from CPU (Eq 8): always, or where useful time was not measured."""
    operators = []
    for reading in window.operators:
        cpu, records, tasks = reading.cpu_share, reading.records_in_per_s, reading.tasks
        if (always or reading.true_rate_per_s is None) and cpu and records and tasks:
            reading = replace(reading, true_rate_per_s=records / (min(cpu, 1.0) * tasks))
        operators.append(reading)
    return replace(window, operators=tuple(operators))


def _pair(name: str) -> Pair:
    upstream, _, downstream = name.partition("->")
    return upstream.strip(), downstream.strip()
