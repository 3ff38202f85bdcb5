"""AuTraScale+'s ELO solver: Algorithm 3, the search for an allocation that clears a backlog in time.

Throughputs are profiled on a testbed at rates that no allocation reaches, so that a trial shows the whole capacity; one
profile serves every later backlog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.model.experience import KEEPS_UP, AllocationSample, task_rows
from rheostat.model.joint import JointGP
from rheostat.policy.autrascale.benefit import nearness
from rheostat.policy.autrascale.latency import capacity_curves, propose
from rheostat.policy.autrascale.space import At, Stage, as_row, bootstrapping, box_of, trials
from rheostat.policy.catch_up import Need, continue_boost, start_boost
from rheostat.policy.demand import demand
from rheostat.policy.explanation import rate

SATURATED, BEYOND = 10.0, 2.0
"""Rate of the profile: ten times the load, so that one profile serves all backlogs, but at least twice the target."""
SPARE = 1.03
"""Ours: factor above the target that ELO aims at. Capacities are not known more precisely, and a second restart costs
more."""
SHORT = 0.99
"""Ours: share of the target below which the boosted job grows once more."""
MOST_REPAIRS = 2
"""Most such growths."""


@dataclass(frozen=True, slots=True)
class EventSettings:
    """The solver's options, under the policy's names."""

    width: float
    """β of Eq 13, as a share of V_t."""
    near: float
    """s_l: score from which on a throughput is near enough."""
    xi: float
    uniform: int
    most: int
    trial_s: float
    decomposed: bool


def event_step(situation: At, stage: Stage, need: Need, at: EventSettings) -> Decision:
    """Return the next step of Algorithm 3: trials, or the change to π^e."""
    if at.decomposed or situation.knowledge.trial_problem:
        why = "sized by the capacity of every operator"
        return _boost(situation, stage, need, _by_capacity(situation, SPARE * need.target_per_s), why)
    base = stage.base if stage.solved is not None else situation.running.tasks
    box, names = box_of(situation, base), situation.spec.tunable_names
    profile = _profile(situation, need)
    measured = {tuple(as_row(situation, s.tasks).tolist()) for s in profile}
    if not stage.bootstrapped or not profile:
        missing = [row for row in bootstrapping(box, max(at.uniform, 1)) if tuple(row.tolist()) not in measured]
        if missing:
            return _trial(situation, stage, need, missing, at, bootstrapped=True)
    done = np.array([s.throughput_per_s for s in profile])
    scores = nearness(done, need.target_per_s, at.width * need.target_per_s)  # Eq 13
    good = np.flatnonzero((scores >= at.near) & (done >= need.target_per_s))
    if len(good):
        best = profile[int(good[np.argmax(scores[good])])]
        why = f"one of {len(profile)} profiled allocations processes {rate(best.throughput_per_s)}"
        return _boost(situation, stage, need, situation.fit(best.tasks), why)
    proposal = None
    if stage.iterations < at.most:
        surrogate = JointGP.fit(task_rows(profile, names), scores)
        low = as_row(situation, base).astype(float)
        proposal = propose(situation, surrogate, box, profile, scores, low, at.xi)
    if proposal is not None:
        row = as_row(situation, proposal[0].tasks)
        return _trial(situation, stage, need, [row], at, iterations=stage.iterations + 1)
    sufficient = np.flatnonzero(done >= need.target_per_s)
    pick = int(sufficient[np.argmin(done[sufficient])]) if len(sufficient) else int(np.argmax(done))
    why = f"the nearest of {len(profile)} profiled allocations"
    unreachable = {} if len(sufficient) else {"unreachable": 1.0}
    if unreachable:
        why = f"no allocation reaches that, this is {why} with {rate(float(done[pick]))}"
    return _boost(situation, stage, need, situation.fit(profile[pick].tasks), why, **unreachable)


def boosted_step(situation: At, stage: Stage, at: EventSettings) -> Decision:
    """Return the next step while π^e runs, and finally the return to the steady allocation."""
    state: Mapping[str, Any] = stage.boost or {}
    done, target = situation.window.throughput_per_s, state["target_per_s"]
    boosted = situation.running.tasks != state["steady"]
    waits = (situation.window.backlog or 0.0) > (done or 0.0)
    if at.decomposed and boosted and waits and done and done < SHORT * target and state["steps"] < MOST_REPAIRS:
        # No operator's metric shows the interference of the others: the missing share is added to the request.
        asked = state.get("asked_per_s", SPARE * target) * target / done
        larger = _by_capacity(situation, asked)
        if larger.slots > situation.running.slots:
            memo = stage.memo(boost={**state, "steps": state["steps"] + 1, "asked_per_s": asked})
            sentence = f"autrascale: {changes(situation.running, larger)}, because {rate(done)} is below {rate(target)}"
            return Decision(larger, direction(situation.running, larger), sentence, memo=memo)
    decision, after = continue_boost(situation, state)
    return replace(decision, sentence=f"autrascale: {decision.sentence}", memo=stage.memo(boost=after, iterations=0))


def _profile(situation: At, need: Need) -> list[AllocationSample]:
    """Return the samples that show a whole capacity: their load was above their throughput or above the target."""
    newest: dict[Any, AllocationSample] = {}
    for sample in situation.knowledge.samples:
        if sample.throughput_per_s < KEEPS_UP * sample.load_per_s or sample.load_per_s >= need.target_per_s:
            newest[tuple(sample.tasks.items())] = sample
    return list(newest.values())


def _by_capacity(situation: At, target_per_s: float) -> Allocation:
    """Return the fewest tasks whose measured capacities serve a throughput, within the bounds.

    An operator of a wasteful steady allocation may get fewer tasks than it has: the restart happens anyway.
    """
    load = situation.window.load_per_s or target_per_s
    needed = {name: per_s * target_per_s / load for name, per_s in demand(situation).items()}
    box = box_of(situation, dict.fromkeys(situation.spec.tunable_names, 1))
    tops = [int(each[-1]) for each in box.choices]
    wanted: dict[str, float] = {}
    curves = capacity_curves(situation, tops)
    for name, curve, top in zip(situation.spec.tunable_names, curves, tops, strict=True):
        enough = np.flatnonzero(curve.capacity_per_s >= needed[name])
        wanted[name] = int(enough[0]) + 1 if len(enough) else top
    return situation.fit(wanted)


def _trial(situation: At, stage: Stage, need: Need, rows: list[Any], at: EventSettings, **now: Any) -> Decision:
    share = max(SATURATED, BEYOND * need.target_per_s / need.load_per_s)
    asked = trials(situation, "profile", rows, share, at.trial_s)
    sentence = f"autrascale: the backlog needs {rate(need.target_per_s)}; {len(asked)} allocations are measured first"
    evidence = {"target_per_s": need.target_per_s, "excess": need.excess}
    return Decision.hold(Reason.TRIAL, sentence, evidence=evidence, memo=stage.memo(**now), trials=asked)


def _boost(situation: At, stage: Stage, need: Need, larger: Allocation, why: str, **evidence: float) -> Decision:
    if larger == situation.running:
        sentence = f"autrascale: the backlog needs {rate(need.target_per_s)}, and {larger} is nearest to that"
        evidence = {"target_per_s": need.target_per_s, "excess": need.excess, "unreachable": 1.0}
        return Decision.hold(Reason.UNDER_PROVISIONED, sentence, evidence=evidence, memo=stage.memo())
    decision, state = start_boost(situation, need, larger, why, **evidence)
    return replace(decision, sentence=f"autrascale: {decision.sentence}", memo=stage.memo(boost=state, iterations=0))
