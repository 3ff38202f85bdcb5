"""Dragster: online optimisation sets the target capacity of every operator, GP-UCB finds the tasks that reach it.

Liu, Xu, Lau: "Online Resource Optimization for Elastic Stream Processing with Regret Guarantee", ICPP 2022.

| paper | here |
|---|---|
| h_ij, α_ij (Eq 1 to 4) | `throughput.py`; given in `functions`, or learned by `regression.py` |
| c_i(t), capacity sample (Eq 8) | `by_cpu`, or records per useful second if the engine measures it |
| L_t, l_i (Eq 11, 13) | `Dataflow.lacking`, `Dataflow.slopes` |
| y_t of the online saddle point (Eq 14) | `saddle_point` |
| λ_i(t) (Eq 15), γ = 1 / sqrt(t) | `dual_step` |
| y_t of online gradient descent (Eq 16) | `gradient_step` |
| μ, σ², β, argmax (Eq 17, 18) | `ucb.py`, per operator |
| Π, projection onto the budget | `budget.py` |
| t, and the history in the Database | `Knowledge`, a fold over the journal |

Capacities count output records in the paper and input records here (`View.capacity_per_s`), except in `throughput.py`,
where `output_capacity_per_s` is the paper's; `Dataflow.per_record_in` converts between them. All terms of Eq 15, 16 and
18 are in units of the operator's peak load.

Read differently, because the printed equations do not work:
- Eq 14: without multipliers f is flat above the demand, and with any positive one L is unbounded. So y is the demand
  plus `margin`, and the multipliers only act in the gradient variant.
- Eq 16 never decreases y: f and the multipliers only increase it. Above the demand plus `margin` y falls by η (ours).
- Eq 18: |μ - y| is symmetric, so a size that is slightly too small is as good as one that is slightly too large, for
  ever. `margin`, and a shortfall that counts `shortfall` times, correct that.
- Π: the Euclidean projection misses the best split; by default slots are split by learned capacities (`projection`).
- A change made only to learn (nothing is overloaded, and the running size is the nearest to the target by the means)
  has the reason `explore`: guards allow it only with `explore: live`.
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
from rheostat.policy.explanation import rate, sustains
from rheostat.ports import Policy, Situation

MARGIN = 0.06
"""Spare capacity if neither `margin` nor the SLO's headroom is set."""
MOST_SIZES = 512
"""Most candidate sizes of one operator."""
LEAP = 4
"""Largest candidate size of an operator without a bound, as a multiple of its largest observed size."""


@dataclass(frozen=True)
class Knowledge:
    """Capacity samples of every operator, and rows of every edge."""

    tally: Tally = field(default_factory=Tally)
    flows: FlowRows = field(default_factory=FlowRows)


@dataclass(frozen=True)
class Dragster(Policy[Knowledge]):
    """Tracks the capacities that the load needs, step by step, and learns the capacity of p tasks meanwhile."""

    name: ClassVar[str] = "dragster"
    factor_option: ClassVar[str] = "margin"

    variant: Literal["saddle", "gradient"] = "saddle"
    """How the target is set: at once (online saddle point, Eq 14) or in steps (online gradient descent, Eq 16)."""
    margin: float | None = None
    """Spare capacity in the target, as a share of the demand; default: the SLO's headroom, else 0.06."""
    eta: float = 0.1
    """Step size of Eq 16, in peak loads per step."""
    delta: float = 2.0
    """δ of Theorem 1: the guarantee holds with probability 1 - 1/δ; larger values explore more."""
    length_scale: float = 0.2
    """Length scale of the kernel, as a share of the range of an operator's sizes."""
    noise: float = 0.01
    """Standard deviation of a capacity sample, as a share of the peak load."""
    shortfall: float = 5.0
    """Weight of a capacity below the target relative to one above it (Eq 18); the paper has 1."""
    projection: Literal["balanced", "euclidean"] = "balanced"
    """Split of too few slots: by learned capacities (ours), or the nearest point."""
    capacity: Literal["useful", "cpu"] = "useful"
    """Divisor of a capacity sample: useful time (CPU if it is not measured), or CPU as in the paper (Eq 8)."""
    throughput: Literal["learned", "graph"] = "learned"
    """Source of the throughput functions: learned from the windows, or the graph's selectivities."""
    functions: Mapping[str, EdgeFunction] = field(default_factory=FrozenMap)
    """Known throughput functions, by `upstream->downstream`; they replace learned ones."""

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
        """Store the capacities and throughputs of a window (Algorithm 2, line 3)."""
        sampled = by_cpu(record, self.capacity == "cpu") if isinstance(record, Observation) else record
        tally, flows = fold_tally(knowledge.tally, sampled), fold_flows(knowledge.flows, record)
        if tally is knowledge.tally and flows is knowledge.flows:
            return knowledge
        return Knowledge(tally, flows)

    def decide(self, situation: Situation[Knowledge]) -> Decision:
        """Follow Algorithm 2."""
        limits = situation.limits
        least = sum(fit_tasks(limits, name, 1) for name in limits.operators)
        if limits.slots.max is not None and limits.slots.max < least:
            sentence = f"dragster: the budget of {limits.slots.max} slots is below the job's minimum of {least}"
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
        return self.deploy(situation, views, targets, suggestions, multipliers, residual)

    def dataflow(self, situation: Situation[Knowledge]) -> tuple[Dataflow, float]:
        """Return the graph with its functions at this window's rates, and the largest residual of a learned one."""
        graph, window = situation.spec.graph, situation.window
        learned: dict[Pair, Fitted] = {}
        if self.throughput == "learned":
            learned = fit_graph(graph, situation.knowledge.flows)
        configured = {_pair(name): function for name, function in self.functions.items()}
        functions = {pair: fitted.function for pair, fitted in learned.items() if pair not in configured} | configured
        rates = {source.name: source.rate_per_s or 0.0 for source in window.sources}
        residual = max((fitted.residual for pair, fitted in learned.items() if pair not in configured), default=0.0)
        return Dataflow(graph, rates, functions), residual

    def view(self, situation: Situation[Knowledge], flow: Dataflow, name: str) -> View:
        """Return the demand, the capacity and the candidate sizes of one operator."""
        tasks, sampled = situation.running.tasks[name], situation.knowledge.tally.sizes(name)
        measured = situation.window.operator(name).capacity_per_s
        if not sampled and measured:
            sampled = (Size(tasks, 1, measured, 1),)
        received, output = sum(flow.full.received[name]), flow.full_output(name)
        # Above its input if the configured weights split its capacity badly.
        demand = received * (flow.sufficient[name] / output if output > 0 else 1.0)
        room = 1.0 + situation.headroom(self.margin, MARGIN)
        unit = max((demand, *(size.capacity_per_s for size in sampled)))
        now = measured or (sampled[-1].capacity_per_s if sampled else 0.0)
        largest = max((tasks, *(size.tasks for size in sampled)))
        sizes = candidates(situation, name, largest, self.projection == "balanced")
        return View(tasks, sampled, sizes, demand, demand * room, unit, now, flow.per_record_in[name])

    def suggestion(self, view: View, target_per_s: float, knowledge: Knowledge) -> Suggestion:
        """Return the size that Eq 18 selects, and the one that it would select without uncertainty."""
        if view.demand_per_s <= 0:
            return Suggestion(view.sizes[0], view.sizes[0])
        if not view.sampled:
            return Suggestion(view.tasks, view.tasks)
        sizes = np.array(view.sizes, dtype=float)
        length = max(self.length_scale * (view.sizes[-1] - view.sizes[0] + 1), 0.5)
        posterior = Posterior.of(view.sampled, sizes, view.unit_per_s, length, self.noise)
        weight = beta(len(sizes), knowledge.tally.windows, self.delta)
        target = target_per_s / view.unit_per_s
        selected, by_mean = (posterior.best(target, each, self.shortfall) for each in (weight, 0.0))
        return Suggestion(view.sizes[selected], view.sizes[by_mean])

    def deploy(
        self,
        situation: Situation[Knowledge],
        views: Mapping[str, View],
        targets: Mapping[str, float],
        suggestions: Mapping[str, Suggestion],
        multipliers: Mapping[str, float],
        residual: float,
    ) -> Decision:
        """Fit the suggestions into the slots and explain the decision (Algorithm 2, line 6)."""
        running, window = situation.running, situation.window
        tasks, share = self.project(
            situation, views, {name: suggestion.tasks for name, suggestion in suggestions.items()}
        )
        target = situation.fit(tasks)
        changed = [name for name, count in target.tasks.items() if count != running.tasks[name]]
        learns = [name for name in changed if suggestions[name].tasks != suggestions[name].by_mean]
        evidence = {f"{name}.demand_per_s": view.demand_per_s for name, view in views.items()}
        evidence |= {f"{name}.target_per_s": targets[name] for name in views}
        evidence |= {f"{name}.multiplier": multipliers[name] for name in views}
        evidence["residual"] = residual
        memo = {"targets": dict(targets), "multipliers": dict(multipliers)}
        because = f"{rate(window.load_per_s)} arrive"
        if short := [n for n, v in views.items() if v.sampled and v.capacity_per_s < v.demand_per_s]:
            because += f", {', '.join(short)} {'lacks' if len(short) == 1 else 'lack'} capacity"
        if learns:
            because += f", and it explores {', '.join(learns)}"
        if share < 1.0:
            because += f"; {situation.limits.slots.max} slots serve {share:.0%} of it"
        if pinned := [name for name in window.overloaded if name not in views]:
            because += f"; back pressure starts at {', '.join(pinned)}, which cannot be scaled"
        if not changed:
            reason = Reason.UNDER_PROVISIONED if window.overloaded or share < 1.0 else Reason.STEADY
            sentence = f"dragster: {because}; {running} is nearest to the targets"
            expects = sustains(window.load_per_s, share) if not window.overloaded else Expectation(window.load_per_s)
            return Decision.hold(reason, sentence, evidence=evidence, expects=expects, memo=memo)
        only_learns = set(learns) == set(changed) and not window.overloaded
        only_learns &= all(suggestions[name].by_mean == running.tasks[name] for name in changed)
        reason = Reason.EXPLORE if only_learns else direction(running, target)
        expects = Expectation(window.load_per_s) if learns else sustains(window.load_per_s, share)
        sentence = f"dragster: {changes(running, target)}, because {because}"
        return Decision(target, reason, sentence, evidence, expects, memo)

    def project(
        self, situation: Situation[Knowledge], views: Mapping[str, View], suggestions: Mapping[str, int]
    ) -> tuple[Mapping[str, int], float]:
        """Return the suggestions projected onto the slots, and the share of the demand that they serve."""
        slots = situation.limits.slots.max
        if slots is None or sum(suggestions.values()) <= slots:
            return suggestions, 1.0
        complete = all(view.sampled or view.demand_per_s <= 0 for view in views.values())
        if self.projection == "euclidean" or not complete:
            return euclidean(suggestions, {name: view.sizes for name, view in views.items()}, slots), 1.0
        choices = {name: Choice(view.sizes, view.capacity_curve(), view.wanted_per_s) for name, view in views.items()}
        tasks, share = balanced(choices, slots)
        return tasks, min(1.0, share * (1.0 + situation.headroom(self.margin, MARGIN)))


@dataclass(frozen=True)
class View:
    """Demand, capacity and candidate sizes of one operator. Rates count input records."""

    tasks: int
    sampled: tuple[Size, ...]
    sizes: tuple[int, ...]
    """The candidates: X of Eq 18."""
    demand_per_s: float
    """Least capacity that limits nothing."""
    wanted_per_s: float
    """The demand plus the margin."""
    unit_per_s: float
    """Its peak load, or its largest capacity if that is more."""
    capacity_per_s: float
    """c_i(t): its present capacity."""
    per_record: float
    """Output records per input record."""

    def capacity_curve(self) -> Floats:
        """Return the capacity that our model expects at every candidate size; the paper's does not extrapolate."""
        if not self.sampled:
            return np.ones(len(self.sizes))
        curve = LogLog.fit(samples(self.sampled)).curve(self.sizes[-1]).capacity_per_s
        at_sizes: Floats = curve[np.array(self.sizes) - 1]
        return at_sizes


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The suggested tasks of one operator."""

    tasks: int
    by_mean: int
    """The tasks that Eq 18 selects without σ²."""


def saddle_point(views: Mapping[str, View]) -> dict[str, float]:
    """Return y_t of Eq 14: the smallest capacities that limit nothing, and the margin."""
    return {name: view.wanted_per_s for name, view in views.items()}


def dual_step(flow: Dataflow, views: Mapping[str, View], situation: Situation[Knowledge]) -> dict[str, float]:
    """Return λ(t) of Eq 15 from the running capacities: l_i in peak loads, γ = 1 / sqrt(t)."""
    before, gamma = situation.memo.get("multipliers", {}), 1.0 / math.sqrt(max(situation.knowledge.tally.windows, 1))
    output_capacity = {n: v.capacity_per_s * v.per_record for n, v in views.items() if v.capacity_per_s > 0}
    lacking = flow.lacking(output_capacity)
    multipliers = {}
    for name, view in views.items():
        short = lacking.get(name, 0.0) / (view.unit_per_s * view.per_record) if view.unit_per_s > 0 else 0.0
        multipliers[name] = max(0.0, float(before.get(name, 0.0)) + gamma * short)  # Eq 15
    return multipliers


def gradient_step(
    flow: Dataflow,
    views: Mapping[str, View],
    multipliers: Mapping[str, float],
    situation: Situation[Knowledge],
    eta: float,
) -> dict[str, float]:
    """Return y_t of Eq 16, in steps of peak loads; above the wanted capacity it falls by the same step (ours)."""
    before = situation.memo.get("targets", {})
    now = {n: float(before.get(n, 0.0)) or v.capacity_per_s for n, v in views.items() if v.unit_per_s > 0}
    scale = {name: views[name].unit_per_s * views[name].per_record for name in now}
    most = flow.full.throughput_per_s
    slopes = flow.slopes(
        {name: per_s * views[name].per_record for name, per_s in now.items()},
        {name: multipliers[name] / scale[name] for name in now},
        1.0 / most if most > 0 else 0.0,
    )
    targets = dict.fromkeys(views, 0.0)
    for name, per_s in now.items():
        view = views[name]
        if per_s > view.wanted_per_s:
            targets[name] = max(view.wanted_per_s, per_s - eta * view.unit_per_s)
        else:  # Eq 16
            step = eta * slopes[name] * scale[name] * view.unit_per_s
            targets[name] = min(view.wanted_per_s, max(0.0, per_s + step))
    return targets


def candidates(situation: Situation[Any], name: str, largest: int, within: bool) -> tuple[int, ...]:
    """Return the candidate sizes: multiples of the quantum within the bounds (if `within`, also the slots)."""
    limits = situation.limits
    bounds, quantum = limits.operators[name], limits.quantum.get(name, 1)
    tops = [largest * LEAP if bounds.max is None else bounds.max]
    if within and limits.slots.max is not None:
        tops.append(limits.slots.max - sum(b.min for other, b in limits.operators.items() if other != name))
    most = max(bounds.min, min(tops))
    sizes = list(range(-(-bounds.min // quantum) * quantum, most + 1, quantum)) or [bounds.min]
    if len(sizes) <= MOST_SIZES:
        return tuple(sizes)
    # Too many candidates: all small ones, and larger ones with growing gaps.
    places = np.unique(np.geomspace(1, len(sizes), MOST_SIZES).astype(int) - 1)
    return tuple(sizes[k] for k in places)


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
