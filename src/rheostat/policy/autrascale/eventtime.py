"""AuTraScale+'s ELO solver: Algorithm 3, the search for an allocation that works off a backlog in time.

Throughputs are profiled on a testbed, at rates that no allocation reaches, so that a trial shows all that it can do;
what was profiled once serves every later backlog.
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
from rheostat.policy.catch_up import Need, boost, ride
from rheostat.policy.demand import demand
from rheostat.policy.explain import rate

SATURATED, BEYOND = 10.0, 2.0
"""The profile's rate: ten times the load, so that one profile serves all backlogs, or at least twice the target."""
SPARE = 1.03
"""Ours aims this much above the target: capacities are not known better, and being late costs a restart more."""
SHORT = 0.99
"""Ours grows once more when it sees less than this share of the target."""
MOST_REPAIRS = 2


@dataclass(frozen=True, slots=True)
class EventSettings:
    """The options of the solver, under the policy's names."""

    width: float
    """β of Eq 13, as a share of V_t."""
    near: float
    """s_l: from this score on a throughput is near enough."""
    xi: float
    uniform: int
    most: int
    trial_s: float
    decomposed: bool


def event_step(situation: At, stage: Stage, need: Need, at: EventSettings) -> Decision:
    """Return the next step of Algorithm 3: trials, or the change to π^e."""
    if at.decomposed or situation.knowledge.trial_problem:
        why = "sized by what every operator can do"
        return _boosted(situation, stage, need, _by_capacity(situation, SPARE * need.target_per_s), why)
    base = stage.base if stage.solved is not None else situation.running.tasks
    box, names = box_of(situation, base), situation.spec.tunable_names
    profile = _profile(situation, need)
    seen = {tuple(as_row(situation, s.tasks).tolist()) for s in profile}
    if not stage.bootstrapped or not profile:
        missing = [row for row in bootstrapping(box, max(at.uniform, 1)) if tuple(row.tolist()) not in seen]
        if missing:
            return _trial(situation, stage, need, missing, at, bootstrapped=True)
    done = np.array([s.throughput_per_s for s in profile])
    scores = nearness(done, need.target_per_s, at.width * need.target_per_s)  # Eq 13
    good = np.flatnonzero((scores >= at.near) & (done >= need.target_per_s))
    if len(good):
        best = profile[int(good[np.argmax(scores[good])])]
        why = f"one of {len(profile)} profiled allocations does {rate(best.throughput_per_s)}"
        return _boosted(situation, stage, need, situation.fit(best.tasks), why)
    proposal = None
    if stage.iterations < at.most:
        surrogate = JointGP.fit(task_rows(profile, names), scores)
        low = as_row(situation, base).astype(float)
        proposal = propose(situation, surrogate, box, profile, scores, low, at.xi)
    if proposal is not None:
        row = as_row(situation, proposal[0].tasks)
        return _trial(situation, stage, need, [row], at, iterations=stage.iterations + 1)
    able = np.flatnonzero(done >= need.target_per_s)
    pick = int(able[np.argmin(done[able])]) if len(able) else int(np.argmax(done))
    why = f"of {len(profile)} profiled allocations it comes nearest"
    unreachable = {} if len(able) else {"unreachable": 1.0}
    if unreachable:
        why = f"that cannot be reached, {why} with {rate(float(done[pick]))}"
    return _boosted(situation, stage, need, situation.fit(profile[pick].tasks), why, **unreachable)


def ride_step(situation: At, stage: Stage, at: EventSettings) -> Decision:
    """Return the next step while π^e runs, and in the end the return to the steady allocation."""
    kept: Mapping[str, Any] = stage.boost or {}
    done, target = situation.window.throughput_per_s, kept["target_per_s"]
    boosted = situation.running.tasks != kept["steady"]
    waits = (situation.window.backlog or 0.0) > (done or 0.0)
    if at.decomposed and boosted and waits and done and done < SHORT * target and kept["steps"] < MOST_REPAIRS:
        # What operators cost each other is in no metric of theirs: what is missing is asked for on top.
        asked = kept.get("asked_per_s", SPARE * target) * target / done
        larger = _by_capacity(situation, asked)
        if larger.slots > situation.running.slots:
            memo = stage.memo(boost={**kept, "steps": kept["steps"] + 1, "asked_per_s": asked})
            sentence = (
                f"autrascale: {changes(situation.running, larger)}, because {rate(done)} of {rate(target)} were seen"
            )
            return Decision(larger, direction(situation.running, larger), sentence, memo=memo)
    decision, after = ride(situation, kept)
    return replace(decision, sentence=f"autrascale: {decision.sentence}", memo=stage.memo(boost=after, iterations=0))


def _profile(situation: At, need: Need) -> list[AllocationSample]:
    """Return what showed all that it can do: it was offered more than it took, or more than is wanted."""
    newest: dict[Any, AllocationSample] = {}
    for sample in situation.knowledge.samples:
        if sample.throughput_per_s < KEEPS_UP * sample.load_per_s or sample.load_per_s >= need.target_per_s:
            newest[tuple(sample.tasks.items())] = sample
    return list(newest.values())


def _by_capacity(situation: At, target_per_s: float) -> Allocation:
    """Return the fewest tasks whose measured capacities serve a throughput, as far as they may grow.

    An operator of a wasteful steady allocation may get fewer than it has: the restart is paid for anyway.
    """
    load = situation.window.load_per_s or target_per_s
    needed = {name: per_s * target_per_s / load for name, per_s in demand(situation).items()}
    box = box_of(situation, dict.fromkeys(situation.spec.tunable_names, 1))
    tops = [int(each[-1]) for each in box.choices]
    wanted: dict[str, float] = {}
    curves = capacity_curves(situation, tops)
    for name, curve, top in zip(situation.spec.tunable_names, curves, tops, strict=True):
        able = np.flatnonzero(curve.capacity_per_s >= needed[name])
        wanted[name] = int(able[0]) + 1 if len(able) else top
    return situation.fit(wanted)


def _trial(situation: At, stage: Stage, need: Need, rows_: list[Any], at: EventSettings, **now: Any) -> Decision:
    share = max(SATURATED, BEYOND * need.target_per_s / need.load_per_s)
    asked = trials(situation, "profile", rows_, share, at.trial_s)
    sentence = (
        f"autrascale: {rate(need.target_per_s)} are needed against the backlog; {len(asked)} allocations are tried"
    )
    evidence = {"target_per_s": need.target_per_s, "excess": need.excess}
    return Decision.hold(Reason.TRIAL, sentence, evidence=evidence, memo=stage.memo(**now), trials=asked)


def _boosted(situation: At, stage: Stage, need: Need, larger: Allocation, why: str, **evidence: float) -> Decision:
    if larger == situation.running:
        sentence = f"autrascale: {rate(need.target_per_s)} would be needed; {larger} is what comes nearest"
        told = {"target_per_s": need.target_per_s, "excess": need.excess, "unreachable": 1.0}
        return Decision.hold(Reason.UNDER_PROVISIONED, sentence, evidence=told, memo=stage.memo())
    decision, kept = boost(situation, need, larger, why, **evidence)
    return replace(decision, sentence=f"autrascale: {decision.sentence}", memo=stage.memo(boost=kept, iterations=0))
