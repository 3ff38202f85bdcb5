"""AuTraScale+'s PLO solver: Algorithm 1, with Algorithm 2's model where another rate knows more.

| lines of Algorithm 1 | here |
|---|---|
| 2, S | `next_size`: bootstrapping samples, trials beside the loop |
| 3, 4, Ω | `space.box_of`; samples outside of Ω, such as TO's, are not of D |
| 5, s_l | `benefit.enough` |
| 7 to 10 | `evaluate` |
| 11 to 13 | `finish` |
| 14 to 17 | `next_size` |

Ours: a rate that was solved before is recalled (`recall`); a target counts as met or missed when that is probable, not
after a single window; and a search that finds nothing better ends with the best measured size (`give_up`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.model.capacity import Floats
from rheostat.model.experience import KEEPS_UP, AllocationSample, Base, is_settled, task_rows
from rheostat.model.joint import JointGP, Surrogate, expected_improvement
from rheostat.policy.autrascale.benefit import Transferred, benefit, enough, feasible, traditional
from rheostat.policy.autrascale.box import Box, Ints, maximise
from rheostat.policy.autrascale.capacities import serving
from rheostat.policy.autrascale.space import as_allocation, as_row, as_tuple, bootstrapping, box_of, trials
from rheostat.policy.autrascale.stage import At, Search, Stage
from rheostat.policy.explanation import rate, sustains

WORTHWHILE = 0.1
"""Least share of the tasks whose saving is worth a change to a recalled size (ours)."""
WORTH = 1e-6
"""Least expected improvement of a proposal."""
SURE, LOOKS = 0.9, 4
"""Ours: probability from which on a target counts as met (below 1 - SURE as missed), and most windows that are looked
at before the more probable answer counts."""


@dataclass(frozen=True, slots=True)
class LatencySettings:
    """The solver's options, under the policy's names."""

    target_s: float
    alpha: float
    waste: float
    xi: float
    uniform: int
    most: int
    transfer: Literal["light", "traditional", "none"]
    transfer_alpha: float
    transfer_most: int
    trial_s: float


@dataclass(frozen=True)
class Turn:
    """The running allocation and all samples of its rate: one turn of the loop in Algorithm 1."""

    stage: Stage
    samples: tuple[AllocationSample, ...]
    """D, the running allocation last; a size that does not keep up has no latency."""
    scores: Floats
    box: Box
    base: Floats
    """π^t."""
    likely: float
    """Probability that the running allocation meets the target."""
    met: bool
    """Whether it keeps up, and probably meets the target."""
    evidence: Mapping[str, float]
    because: str

    @property
    def running(self) -> AllocationSample:
        """The running allocation."""
        return self.samples[-1]

    @property
    def score(self) -> float:
        """The score of the running allocation."""
        return float(self.scores[-1])


def latency_step(situation: At, stage: Stage, at: LatencySettings) -> Decision:
    """Return the next step of the search for π^p; a hold with a steady stage ends it."""
    turn = evaluate(situation, stage, at)
    return finish(situation, turn, at) or next_size(situation, turn, at)


def evaluate(situation: At, stage: Stage, at: LatencySettings) -> Turn:
    """Look at the running allocation, score it and add it to the samples (lines 7 to 10)."""
    window, running = situation.window, situation.running
    assert window.latency is not None
    load = stage.load_per_s(situation)
    looks = (*stage.search.looks, window.latency.p50_s)[-LOOKS:] if is_settled(window) else stage.search.looks
    settled_s = math.exp(sum(map(math.log, np.maximum(looks, 1e-12))) / len(looks)) if looks else None
    done = window.throughput_per_s
    box, base = box_of(situation, stage.base), as_row(situation, stage.base).astype(float)
    here = AllocationSample(load, running.tasks, load if done is None else done, settled_s)
    samples = (*in_space(situation, box, load, without=running.tasks), here)
    likely = feasible(looks, at.target_s)
    scores = score_all(situation, samples, base, at)
    latency_s = math.inf if settled_s is None else settled_s
    evidence = {
        "latency_s": latency_s, "target_s": at.target_s, "score": float(scores[-1]), "likely": likely,
        "iterations": float(stage.search.iterations),
    }  # fmt: skip
    met = here.keeps_up and likely >= sure_after(len(looks))
    because = f"processing latency is {1e3 * latency_s:.0f} ms, the target {1e3 * at.target_s:g} ms"
    if settled_s is None:
        because = f"{running} does not run at its load of {rate(load)}"
    return Turn(stage.searched(looks=looks), samples, scores, box, base, likely, met, evidence, because)


def finish(situation: At, turn: Turn, at: LatencySettings) -> Decision | None:
    """Return the end of the search if the target is met with a score of at least s_l (lines 11 to 13).

    A window that leaves open whether it is met is followed by another one.
    """
    if turn.score < enough(at.alpha, at.waste) or not turn.running.keeps_up:  # Eq 8
        return None
    if turn.met:
        sentence = f"autrascale: {turn.because}, score {turn.score:.3f}: keeps {situation.running}"
        return settle(situation, turn, sentence)
    return look_again(turn)


def sure_after(looks: int) -> float:
    """Return the probability from which on a target counts as met after some windows."""
    return SURE if looks < LOOKS else 0.5


def look_again(turn: Turn) -> Decision | None:
    """Hold for another window if it is open whether the target is met."""
    if not 1.0 - SURE < turn.likely < SURE or len(turn.stage.search.looks) >= LOOKS:
        return None
    sentence = f"autrascale: {turn.because}, met with a probability of {turn.likely:.0%}; waits for another window"
    return Decision.hold(Reason.WAITING, sentence, evidence=turn.evidence, memo=turn.stage.memo())


def settle(situation: At, turn: Turn, sentence: str) -> Decision:
    """End the search with the running allocation."""
    memo = turn.stage.searched(missed=0, unreachable=False).memo(phase="steady")
    expects = sustains(turn.running.load_per_s)
    return Decision.hold(Reason.STEADY, sentence, evidence=turn.evidence, expects=expects, memo=memo)


def next_size(situation: At, turn: Turn, at: LatencySettings) -> Decision:
    """Return the next allocation to run: that with the largest expected improvement (lines 14 to 17).

    The bootstrapping set S comes first (line 2), unless another rate's model takes its place (Algorithm 2).
    """
    stage, search, samples = turn.stage, turn.stage.search, turn.samples
    old = richer(situation, turn, at)
    if old is None and at.uniform and not situation.knowledge.trial_problem:
        asked = search.asked or tuple(map(as_tuple, bootstrapping(turn.box, at.uniform)))
        measured = {as_tuple(as_row(situation, s.tasks)) for s in situation.knowledge.at(samples[-1].load_per_s)}
        missing = tuple(row for row in asked if row not in measured)
        stage = stage.searched(asked=asked)
        if missing:
            sentence = f"autrascale: {turn.because}; {len(missing)} bootstrapping samples are measured first"
            wanted = trials(situation, stage, "bootstrap", missing, at.trial_s)
            return Decision.hold(Reason.TRIAL, sentence, evidence=turn.evidence, memo=stage.memo(), trials=wanted)
    proposal = None
    if search.iterations < at.most + (at.transfer_most if old else 0):
        tasks = task_rows(samples, situation.spec.tunable_names)
        surrogate: Surrogate = (
            JointGP.fit(tasks, turn.scores) if old is None else _transferred(situation, turn, at, old)
        )
        proposal = propose(situation, surrogate, turn.box, samples, turn.scores, turn.base, at.xi)
    if proposal is None:
        return give_up(situation, turn, at)
    target, gain = proposal
    how = f"the model of {rate(old[0].load_per_s)} and" if old else "the model of"
    sentence = f"autrascale: {changes(situation.running, target)}, because {turn.because}; {how} {len(samples)} samples"
    return change(situation, stage, target, f"{sentence} suggest it", {**turn.evidence, "expected_improvement": gain})


def change(situation: At, stage: Stage, target: Allocation, sentence: str, evidence: Mapping[str, float]) -> Decision:
    """Return a change of the search."""
    moved = stage.searched(iterations=stage.search.iterations + 1, waited=0, looks=())
    expects = sustains(stage.load_per_s(situation))
    return Decision(target, direction(situation.running, target), sentence, evidence, expects, moved.memo())


def in_space(
    situation: At, box: Box, load: float, without: Mapping[str, int] | None = None
) -> tuple[AllocationSample, ...]:
    """Return the samples of Ω at a rate that have a latency, or do not keep up."""
    least = box.least
    return tuple(
        s
        for s in situation.knowledge.at(load)
        if (s.latency_s is not None or not s.keeps_up)
        and s.tasks != without
        and (as_row(situation, s.tasks) >= least).all()
    )


def score_all(situation: At, samples: Sequence[AllocationSample], base: Floats, at: LatencySettings) -> Floats:
    """Return Eq 4 of every sample; a size that does not keep up has no benefit of latency."""
    latency = np.array([math.inf if s.latency_s is None else s.latency_s for s in samples], dtype=float)
    return benefit(latency, at.target_s, base, task_rows(samples, situation.spec.tunable_names), at.alpha)


def propose(
    situation: At,
    surrogate: Surrogate,
    box: Box,
    samples: Sequence[AllocationSample],
    scores: Floats,
    base: Floats,
    xi: float,
) -> tuple[Allocation, float] | None:
    """Return the allocation with the largest expected improvement (Algorithm 1, line 15); None if none has any."""
    best = float(scores.max())

    def improvement(tasks: Floats) -> Floats:
        mean, sd = surrogate.predict(tasks)
        return expected_improvement(mean, sd, best, xi)

    measured = [as_row(situation, s.tasks) for s in samples]
    anchors: list[Ints] = [base.astype(np.int64), measured[int(np.argmax(scores))]]
    excluded = [*measured, as_row(situation, situation.running.tasks)]
    best_row = maximise(box, improvement, anchors, situation.rng(), excluded)
    if best_row is None or not best_row[1] > WORTH:
        return None
    target = situation.fit(as_allocation(situation, best_row[0]).tasks)
    return None if target == situation.running else (target, best_row[1])


# -- Algorithm 2 ------------------------------------------------------------------------------------------------------


Old = tuple[Base, tuple[AllocationSample, ...]]


def richer(situation: At, turn: Turn, at: LatencySettings) -> Old | None:
    """Return π^t and the samples of the nearest other rate; None unless it has more samples than this one.

    Num ends the transfer, too: afterwards Algorithm 1 has the choice (lines 24 to 27).
    """
    if at.transfer == "none" or turn.stage.search.iterations >= at.transfer_most:
        return None
    load = turn.running.load_per_s
    nearest = situation.knowledge.nearest(load, len(turn.base) + 1)
    if nearest is None:
        return None
    before = in_space(situation, box_of(situation, nearest.tasks), nearest.load_per_s)
    return (nearest, before) if len(before) > len(turn.samples) else None


def _transferred(situation: At, turn: Turn, at: LatencySettings, old: Old) -> Surrogate:
    """Return the old rate's model with a model of this rate's residuals (lines 2 to 15)."""
    nearest, before = old
    names = situation.spec.tunable_names
    tasks, base = task_rows(turn.samples, names), as_row(situation, nearest.tasks).astype(float)
    model = JointGP.fit(task_rows(before, names), score_all(situation, before, base, at))
    if at.transfer == "light":
        return Transferred.light(model, tasks, turn.scores, at.transfer_alpha)
    bootstrap = np.array(bootstrapping(turn.box, max(at.uniform, 1)), dtype=float)
    return traditional(model, tasks, turn.scores, bootstrap, at.transfer_alpha)


# -- ours -------------------------------------------------------------------------------------------------------------


def recall(situation: At, stage: Stage, at: LatencySettings) -> Stage | Decision:
    """Return to the best sample of this rate that is probably feasible, before any search.

    A rate that was solved before has its π^t; without one there is nothing to recall. A size whose capacity has fallen
    since then is not recalled.
    """
    load = stage.load_per_s(situation)
    base = situation.knowledge.base(load)
    if base is None:
        return stage
    stage = stage.searched(recalled=True)
    row = as_row(situation, base.tasks).astype(float)
    # A steady job that misses its target does not return to the same size.
    missing = situation.running.tasks if stage.search.missed else None
    good = [
        s
        for s in in_space(situation, box_of(situation, base.tasks), load, without=missing)
        if s.keeps_up
        and s.latency_s is not None
        and feasible([s.latency_s] * s.count, at.target_s) >= sure_after(s.count)
        and situation.fit(s.tasks).tasks == s.tasks
    ]
    good = serving(situation, good)
    scores = score_all(situation, good, row, at) if good else np.zeros(0)
    if not len(scores) or scores.max() < enough(at.alpha, at.waste):  # Eq 8
        return stage
    best = good[int(np.argmax(scores))]
    here = next((s for s in good if s.tasks == situation.running.tasks), best)
    if sum(here.tasks.values()) <= (1 + WORTHWHILE) * sum(best.tasks.values()):
        best = here
    solved = {"load_per_s": base.load_per_s, "tasks": dict(base.tasks)}
    # One window more does not outweigh the earlier ones.
    looks = (best.latency_s or 0.0,) * min(best.count, LOOKS - 1)
    stage = replace(stage, phase="latency", solved=solved, search=Search(looks, recalled=True))
    target = situation.fit(best.tasks)
    if target == situation.running:
        return stage
    evidence = {"score": float(scores.max()), "recalled": 1.0}
    sentence = f"autrascale: {changes(situation.running, target)}, which met {1e3 * at.target_s:g} ms at {rate(load)}"
    return Decision(target, direction(situation.running, target), sentence, evidence, sustains(load), stage.memo())


def give_up(situation: At, turn: Turn, at: LatencySettings) -> Decision:
    """Return to the measured allocation with the best score, among those that meet the target if there are any."""
    samples, running, evidence = turn.samples, situation.running, dict(turn.evidence)
    latency = [math.inf if s.latency_s is None else s.latency_s for s in samples]
    load = turn.running.load_per_s
    stable = [k for k, s in enumerate(samples) if s.throughput_per_s >= KEEPS_UP * load] or list(range(len(samples)))
    meets = [k for k in stable if latency[k] <= at.target_s]
    best = max(meets or stable, key=lambda k: turn.scores[k])
    target = situation.fit(samples[best].tasks)
    evidence["best_seen"] = 1.0
    why = "this is the best measured size"
    if not meets:
        evidence["unreachable"] = 1.0
        why = f"none of {len(samples)} measured sizes is below {1e3 * min(latency):.0f} ms; {why}"
    ended = turn.stage.searched(
        missed=0, unreachable=not meets, looks=() if target != running else turn.stage.search.looks
    )
    memo: dict[str, Any] = ended.memo(phase="steady")
    if target == running:
        reason = Reason.STEADY if meets else Reason.UNDER_PROVISIONED
        return Decision.hold(reason, f"autrascale: {turn.because}; {why}", evidence=evidence, memo=memo)
    sentence = f"autrascale: {changes(running, target)}, because {turn.because}; {why}"
    return Decision(target, direction(running, target), sentence, evidence, sustains(load), memo)
