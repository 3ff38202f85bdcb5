"""Dragster: online optimisation sets the target capacity of every operator, GP-UCB finds the tasks that reach it.

Liu, Xu, Lau: "Online Resource Optimization for Elastic Stream Processing with Regret Guarantee", ICPP 2022.

| paper | here |
|---|---|
| h_ij, α_ij (Eq 1 to 4) | `throughput.py`; given in `functions`, or learned by `regression.py` |
| c_i(t), capacity sample (Eq 8) | `by_cpu`, or records per useful second if the engine measures it |
| L_t, l_i (Eq 11, 13) | `Dataflow.lacking`, `Dataflow.slopes` |
| y_t of the online saddle point (Eq 14) | `targets.py`, `saddle_point` |
| λ_i(t) (Eq 15), γ = 1 / sqrt(t) | `targets.py`, `dual_step` |
| y_t of online gradient descent (Eq 16) | `targets.py`, `gradient_step` |
| μ, σ², β, argmax (Eq 17, 18) | `ucb.py`, per operator |
| Π, projection onto the budget | `budget.py` |
| t, and the history in the Database | `Knowledge`, a fold over the journal |

Capacities count output records in the paper and input records here (`View.capacity_per_s`), except in `throughput.py`,
where `output_capacity_per_s` is the paper's; `Dataflow.per_record_in` converts between them. With `capacity: cpu` the
samples are the paper's, too: output records by CPU. All terms of Eq 15, 16 and 18 are in units of the operator's peak
load: Eq 18 adds a capacity to a variance, so it depends on the unit, and the paper names none.

`TO_THE_LETTER` has the options that follow Eq 8 and 14 to 18 as printed. The defaults depart from them:
- `multipliers`: a positive multiplier leaves Eq 14 without a maximum; ours adds a proximal term (`targets.py`).
- `margin`, `shortfall`: |μ - y| is symmetric, so a size that is slightly too small is as good as one that is slightly
  too large, for ever.
- `descends`: above the demand nothing lowers y in Eq 16; ours falls by η.
- `projection`: the Euclidean projection misses the best split; ours splits slots by learned capacities.
- `forgets`: Eq 17 weighs all samples the same for ever; ours notices when capacities change (`tally.py`).
- `capacity`: ours divides the input by useful time, where the engine measures it.

A change made only to learn (nothing is overloaded, and the running size is the nearest to the target by the means)
has the reason `explore`: guards allow it only with `explore: live`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from rheostat.job.decision import Decision, Expectation, Reason, changes, direction
from rheostat.job.fit import fit_tasks
from rheostat.job.frozen import FrozenMap, check_number, put
from rheostat.job.observation import Observation
from rheostat.job.record import Record
from rheostat.policy.dragster.budget import Choice, balanced, euclidean
from rheostat.policy.dragster.regression import Fitted, FlowRows, fit_graph, fold_flows
from rheostat.policy.dragster.tally import Size, Tally, fold_tally
from rheostat.policy.dragster.targets import (
    View,
    catch_up,
    demand,
    dual_step,
    gradient_step,
    saddle_point,
    step_size,
)
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
TO_THE_LETTER: Mapping[str, Any] = {
    "multipliers": "printed",
    "margin": 0.0,
    "shortfall": 1.0,
    "descends": False,
    "projection": "euclidean",
    "forgets": False,
    "capacity": "cpu",
}
"""Options with which Eq 8 and 14 to 18 are followed as printed."""


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
    multipliers: Literal["catch-up", "printed", "ignored"] = "catch-up"
    """Effect of positive multipliers (Eq 15) on Eq 14: catch-up capacity (ours), as printed, or none at all."""
    margin: float | None = None
    """Spare capacity in the target, as a share of the demand; default: the SLO's headroom, else 0.06."""
    eta: float = 0.1
    """Step size of Eq 16, in peak loads per step."""
    descends: bool = True
    """Whether the target of `gradient` stops at the demand, and falls above it (ours); nothing lowers it in Eq 16."""
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
    forgets: bool = True
    """Whether old samples lose their weight once newer ones contradict them (ours); Eq 17 retains all of them."""
    capacity: Literal["useful", "cpu"] = "useful"
    """Capacity sample: input by useful time (CPU if it is not measured), or output by CPU as in the paper (Eq 8)."""
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
        tally, flows = fold_tally(knowledge.tally, sampled, self.forgets), knowledge.flows
        if self.throughput == "learned":
            flows = fold_flows(flows, record)
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
        gamma = step_size(situation.knowledge.tally.windows)
        multipliers = dual_step(flow, views, situation.memo.get("multipliers", {}), gamma)
        share = 0.0
        if self.multipliers == "ignored":
            multipliers = dict.fromkeys(views, 0.0)
        elif self.multipliers == "catch-up" and self.variant == "saddle":
            share = catch_up(views, multipliers, gamma, situation.window, self.room(situation) - 1.0)
        if share > 0:
            more = replace(flow, rates_per_s={name: (1 + share) * rate for name, rate in flow.rates_per_s.items()})
            views = {n: replace(v, wanted_per_s=self.room(situation) * demand(more, n)) for n, v in views.items()}
        if self.variant == "saddle":
            targets = saddle_point(views, multipliers if self.multipliers == "printed" else {})
        else:
            before = situation.memo.get("targets", {})
            targets = gradient_step(flow, views, multipliers, before, self.eta, self.descends)
        suggestions = {name: self.suggestion(view, targets[name], situation.knowledge) for name, view in views.items()}
        if share > 0:  # each change stops the job: nothing shrinks while a queue is worked off
            suggestions = {name: suggestion.at_least(views[name].tasks) for name, suggestion in suggestions.items()}
        evidence = {"residual": residual, "catch_up": share}
        return self.deploy(situation, views, targets, suggestions, multipliers, evidence)

    def room(self, situation: Situation[Knowledge]) -> float:
        """Return the wanted capacity per demand."""
        return 1.0 + situation.headroom(self.margin, MARGIN)

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
        now = measured or (sampled[-1].capacity_per_s if sampled else 0.0)
        per_record = flow.per_record_in[name]
        if self.capacity == "cpu" and per_record != 1.0:  # samples count output records (Eq 8)
            sampled = tuple(replace(size, capacity_per_s=size.capacity_per_s / per_record) for size in sampled)
            now /= per_record
        needed = demand(flow, name)
        unit = max((needed, *(size.capacity_per_s for size in sampled)))
        largest = max((tasks, *(size.tasks for size in sampled)))
        sizes = candidates(situation, name, largest, self.projection == "balanced")
        posterior = None
        if sampled:
            length = max(self.length_scale * (sizes[-1] - sizes[0] + 1), 0.5)
            posterior = Posterior.of(sampled, np.array(sizes, dtype=float), unit, length, self.noise)
        wanted = self.room(situation) * needed
        return View(tasks, sampled, sizes, needed, wanted, unit, now, per_record, posterior)

    def suggestion(self, view: View, target_per_s: float, knowledge: Knowledge) -> Suggestion:
        """Return the size that Eq 18 selects, and the one that it would select without uncertainty."""
        if view.demand_per_s <= 0:
            return Suggestion(view.sizes[0], view.sizes[0])
        if view.posterior is None:
            return Suggestion(view.tasks, view.tasks)
        weight = beta(len(view.sizes), knowledge.tally.windows, self.delta)
        target = target_per_s / view.unit_per_s
        selected, by_mean = (view.posterior.best(target, each, self.shortfall) for each in (weight, 0.0))
        return Suggestion(view.sizes[selected], view.sizes[by_mean])

    def deploy(
        self,
        situation: Situation[Knowledge],
        views: Mapping[str, View],
        targets: Mapping[str, float],
        suggestions: Mapping[str, Suggestion],
        multipliers: Mapping[str, float],
        evidence: Mapping[str, float],
    ) -> Decision:
        """Fit the suggestions into the slots and explain the decision (Algorithm 2, line 6)."""
        running, window = situation.running, situation.window
        tasks, share = self.project(
            situation, views, {name: suggestion.tasks for name, suggestion in suggestions.items()}
        )
        target = situation.fit(tasks)
        changed = [name for name, count in target.tasks.items() if count != running.tasks[name]]
        learns = [name for name in changed if suggestions[name].tasks != suggestions[name].by_mean]
        evidence = {
            **evidence,
            **{f"{name}.demand_per_s": view.demand_per_s for name, view in views.items()},
            **{f"{name}.target_per_s": targets[name] for name in views},
            **{f"{name}.multiplier": multipliers[name] for name in views},
        }
        memo = {"targets": dict(targets), "multipliers": dict(multipliers)}
        because = f"{rate(window.load_per_s)} arrive"
        if short := [n for n, v in views.items() if v.sampled and v.capacity_per_s < v.demand_per_s]:
            because += f", {', '.join(short)} {'lacks' if len(short) == 1 else 'lack'} capacity"
        if evidence["catch_up"] > 0:
            because += f", a backlog asks for {evidence['catch_up']:.0%} more"
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
        spare = [view.wanted_per_s / view.demand_per_s for view in views.values() if view.demand_per_s > 0]
        return tasks, min(1.0, share * min(spare, default=1.0))


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The suggested tasks of one operator."""

    tasks: int
    by_mean: int
    """The tasks that Eq 18 selects without σ²."""

    def at_least(self, tasks: int) -> Suggestion:
        """Return the suggestion, or these tasks if they are more."""
        return Suggestion(max(self.tasks, tasks), max(self.by_mean, tasks))


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
    """Return the window with true rates from CPU where useful time was not measured; or all of them as in Eq 8.

    Eq 8 divides the output, which a sink has none of: there it is the input.
    """
    emitted: dict[str, list[float | None]] = {}
    for edge in window.edges if always else ():
        emitted.setdefault(edge.upstream, []).append(edge.records_per_s)
    operators = []
    for reading in window.operators:
        cpu, records, tasks, true = reading.cpu_share, reading.records_in_per_s, reading.tasks, reading.true_rate_per_s
        if always:
            out = emitted.get(reading.name, [records])
            records, true = None if None in out else sum(each or 0.0 for each in out), None
        if true is None and cpu and records and tasks:
            true = records / (min(cpu, 1.0) * tasks)
        operators.append(reading if true == reading.true_rate_per_s else replace(reading, true_rate_per_s=true))
    return replace(window, operators=tuple(operators))


def _pair(name: str) -> Pair:
    upstream, _, downstream = name.partition("->")
    return upstream.strip(), downstream.strip()
