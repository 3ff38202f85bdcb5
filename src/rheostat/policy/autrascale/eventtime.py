"""AuTraScale+'s ELO solver: Algorithm 3, the search for an allocation that clears a backlog in time.

| lines of Algorithm 3 | here |
|---|---|
| 1 to 6, V_t | `catch_up.need_of` |
| 7, S_p | `event_step`: its own bootstrapping set, trials beside the loop |
| 8, 10 | `event_step`, `latency.propose` |
| 11 to 14 | `event_step`, `_profile` |
| 15 to 18, s_l | `_nearest` |
| 21, 22 | `boosted_step`, `catch_up.continue_boost` |

Throughputs are profiled on a testbed at rates that no allocation reaches, so that a trial shows the whole capacity; one
profile serves every later backlog.

Ours: a throughput below V_t is not sufficient, however near (`literal` accepts it, as line 15 does). With `thrift`
fewer tasks break the ties that Eq 13 leaves: every allocation with the right throughput has the same score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.model.capacity import Floats
from rheostat.model.experience import KEEPS_UP, AllocationSample, task_rows
from rheostat.model.joint import JointGP
from rheostat.policy.autrascale.benefit import nearness
from rheostat.policy.autrascale.capacities import by_capacity
from rheostat.policy.autrascale.latency import propose
from rheostat.policy.autrascale.space import as_row, as_tuple, bootstrapping, box_of, trials
from rheostat.policy.autrascale.stage import At, Stage
from rheostat.policy.catch_up import Need, continue_boost, start_boost
from rheostat.policy.explanation import rate

SATURATED, BEYOND = 10.0, 2.0
"""Rate of the profile: ten times the load, so that one profile serves all backlogs, and doubled until it is at least
twice the target."""
MOST_SHARE = 1e4
"""Highest such multiple of the load."""
SPARE = 1.03
"""Ours: factor above the target that ELO aims at. Capacities are not known more precisely, and a second restart costs
more."""
SHORT = 0.99
"""Ours: share of the target below which the boosted job grows once more."""
MOST_REPAIRS = 2
"""Most such growths."""
THRIFT = 0.05
"""Ours: score of the fewest tasks over the most, with `thrift`: less than a difference of throughput that counts."""

UNREACHED = "no allocation reaches that"


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
    literal: bool
    thrift: bool


def event_step(situation: At, stage: Stage, need: Need, at: EventSettings) -> Decision:
    """Return the next step of Algorithm 3: trials, or the change to π^e."""
    if at.decomposed or situation.knowledge.trial_problem:
        why = "sized by the capacity of every operator"
        return _boost(situation, stage, need, by_capacity(situation, SPARE * need.target_per_s), why)
    base = stage.base if stage.solved is not None else situation.running.tasks
    box, names = box_of(situation, base), situation.spec.tunable_names
    profile = _profile(situation, need)
    measured = {as_tuple(as_row(situation, s.tasks)) for s in profile}
    if not stage.profile.asked:
        stage = stage.profiled(asked=tuple(map(as_tuple, bootstrapping(box, max(at.uniform, 1)))))
    if missing := tuple(row for row in stage.profile.asked if row not in measured):
        return _trial(situation, stage, need, missing, at)
    done = np.array([s.throughput_per_s for s in profile])
    tasks = task_rows(profile, names)
    scores = nearness(done, need.target_per_s, at.width * need.target_per_s)  # Eq 13
    enough = done >= (0.0 if at.literal else need.target_per_s)
    good = np.flatnonzero((scores >= at.near) & enough)  # line 15
    value = scores
    if at.thrift:
        slots = tasks.sum(axis=1)
        most = max(float(sum(int(each[-1]) for each in box.choices)), 1.0)
        value = scores - THRIFT * slots / most
    if len(good):
        best = profile[int(good[np.argmin(slots[good])] if at.thrift else good[np.argmax(scores[good])])]
        why = f"one of {len(profile)} profiled allocations processes {rate(best.throughput_per_s)}"
        return _boost(situation, stage, need, situation.fit(best.tasks), why)
    proposal = None
    if stage.profile.iterations < at.most:
        low = as_row(situation, base).astype(float)
        proposal = propose(situation, JointGP.fit(tasks, value), box, profile, value, low, at.xi)
    if proposal is not None:
        row = as_tuple(as_row(situation, proposal[0].tasks))
        asked = stage.profiled(asked=(row,), iterations=stage.profile.iterations + 1)
        return _trial(situation, asked, need, (row,), at)
    return _boost(situation, stage, need, *_fallback(situation, need, profile, done))


def _fallback(situation: At, need: Need, profile: Sequence[AllocationSample], done: Floats) -> tuple[Allocation, str]:
    """Return the profiled allocation that is nearest above the target, else the fastest."""
    sufficient = np.flatnonzero(done >= need.target_per_s)
    pick = int(sufficient[np.argmin(done[sufficient])]) if len(sufficient) else int(np.argmax(done))
    why = f"the nearest of {len(profile)} profiled allocations"
    if not len(sufficient):
        why = f"{UNREACHED}, this is {why} with {rate(float(done[pick]))}"
    return situation.fit(profile[pick].tasks), why


def boosted_step(situation: At, stage: Stage, at: EventSettings) -> Decision:
    """Return the next step while π^e runs, and finally the return to the steady allocation."""
    state: Mapping[str, Any] = stage.profile.boost or {}
    done, target = situation.window.throughput_per_s, state["target_per_s"]
    boosted = situation.running.tasks != state["steady"]
    waits = (situation.window.backlog or 0.0) > (done or 0.0)
    if at.decomposed and boosted and waits and done and done < SHORT * target and state["steps"] < MOST_REPAIRS:
        # No operator's metric shows the interference of the others: the missing share is added to the request.
        asked = state.get("asked_per_s", SPARE * target) * target / done
        larger = by_capacity(situation, asked)
        if larger.slots > situation.running.slots:
            memo = stage.profiled(boost={**state, "steps": state["steps"] + 1, "asked_per_s": asked}).memo()
            sentence = f"autrascale: {changes(situation.running, larger)}, because {rate(done)} is below {rate(target)}"
            return Decision(larger, direction(situation.running, larger), sentence, memo=memo)
    decision, after = continue_boost(situation, state)
    memo = stage.profiled(boost=after, iterations=0).memo()
    return replace(decision, sentence=f"autrascale: {decision.sentence}", memo=memo)


def _profile(situation: At, need: Need) -> list[AllocationSample]:
    """Return the samples that show a whole capacity: their load was above their throughput or above the target."""
    newest: dict[Any, AllocationSample] = {}
    for sample in situation.knowledge.samples:
        if sample.throughput_per_s < KEEPS_UP * sample.load_per_s or sample.load_per_s >= need.target_per_s:
            newest[tuple(sample.tasks.items())] = sample
    return list(newest.values())


def _trial(situation: At, stage: Stage, need: Need, rows: tuple[tuple[int, ...], ...], at: EventSettings) -> Decision:
    share = SATURATED
    while share < min(BEYOND * need.target_per_s / need.load_per_s, MOST_SHARE):
        share *= 2.0
    asked = trials(situation, stage, "profile", rows, at.trial_s, share)
    sentence = f"autrascale: the backlog needs {rate(need.target_per_s)}; {len(asked)} allocations are measured first"
    evidence = {"target_per_s": need.target_per_s, "excess": need.excess}
    return Decision.hold(Reason.TRIAL, sentence, evidence=evidence, memo=stage.memo(), trials=asked)


def _boost(situation: At, stage: Stage, need: Need, larger: Allocation, why: str) -> Decision:
    unreachable = {"unreachable": 1.0} if why.startswith(UNREACHED) else {}
    if larger == situation.running:
        sentence = f"autrascale: the backlog needs {rate(need.target_per_s)}, and {larger} is nearest to that"
        evidence = {"target_per_s": need.target_per_s, "excess": need.excess, "unreachable": 1.0}
        return Decision.hold(Reason.UNDER_PROVISIONED, sentence, evidence=evidence, memo=stage.memo())
    decision, state = start_boost(situation, need, larger, why, **unreachable)
    memo = stage.profiled(boost=state, iterations=0).memo()
    return replace(decision, sentence=f"autrascale: {decision.sentence}", memo=memo)
