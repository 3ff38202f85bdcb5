"""AuTraScale+'s PLO solver: Algorithm 1, Algorithm 2 if another rate was solved before, and our own model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.model.capacity import CapacityCurve, Floats
from rheostat.model.experience import KEEPS_UP, AllocationSample, task_rows
from rheostat.model.joint import JointGP, Surrogate, expected_improvement
from rheostat.model.registry import MODELS
from rheostat.policy.autrascale.benefit import Transferred, benefit, enough, traditional
from rheostat.policy.autrascale.box import Box, Ints, maximise
from rheostat.policy.autrascale.latency_model import DecomposedLatency, Network
from rheostat.policy.autrascale.space import At, Stage, as_allocation, as_row, bootstrapping, box_of, trials
from rheostat.policy.demand import demand, measured_selectivity
from rheostat.policy.explanation import rate, sustains

WORTH = 1e-6
"""Least expected improvement of a proposal."""
MARGIN = 0.95
"""Ours: share of the target that our model aims at, since latencies are measured with an error of a few per cent."""
SAVES = 0.9
"""Ours: a job that meets its target shrinks only to this share of its slots or less."""
NEIGHBOURS = 4
"""Ours: changes to neighbours of the model's optimum before the target counts as unreachable."""


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
    model: Literal["benefit", "decomposed"]
    trial_s: float


def latency_step(situation: At, stage: Stage, at: LatencySettings) -> Decision:
    """Return the next step of the search for π^p; a hold with a steady stage ends it."""
    window, running = situation.window, situation.running
    assert window.latency is not None
    load, now_s = window.load_per_s or 0.0, window.latency.p50_s
    samples = _samples(situation, load, now_s)
    base = as_row(situation, stage.base).astype(float)
    score = _scores([samples[-1]], base, situation, at)[0]
    quick, keeps_up = now_s <= at.target_s, samples[-1].throughput_per_s >= KEEPS_UP * load
    old = situation.knowledge.nearest(load, len(base) + 1) if at.transfer != "none" else None
    carried = old is not None and stage.iterations < at.transfer_most and at.model == "benefit"
    evidence = {"latency_s": now_s, "target_s": at.target_s, "score": score, "iterations": float(stage.iterations)}
    because = f"processing latency is {1e3 * now_s:.0f} ms, the target {1e3 * at.target_s:g} ms"
    good = carried or at.model == "decomposed" or score >= enough(at.alpha, at.waste)  # Eq 8
    box = box_of(situation, stage.base)
    if quick and keeps_up and good and at.model == "benefit":
        sentence = f"autrascale: {because}, score {score:.3f}: keeps {running}"
        memo = stage.memo(phase="steady", missed=0, unreachable=False)
        return Decision.hold(Reason.STEADY, sentence, evidence=evidence, expects=sustains(load), memo=memo)
    if at.model == "decomposed":
        return _decomposed(situation, stage, at, box, samples, quick and keeps_up, evidence, because)
    if not carried and not stage.bootstrapped:
        measured = {tuple(as_row(situation, s.tasks).tolist()) for s in samples}
        missing = [row for row in bootstrapping(box, at.uniform) if tuple(row.tolist()) not in measured]
        if missing and at.uniform and not situation.knowledge.trial_problem:
            sentence = f"autrascale: {because}; {len(missing)} bootstrapping samples are measured first"
            asked = trials(situation, "bootstrap", missing, 1.0, at.trial_s)
            memo = stage.memo(bootstrapped=True)
            return Decision.hold(Reason.TRIAL, sentence, evidence=evidence, memo=memo, trials=asked)
    proposal = None
    if stage.iterations < at.most + (at.transfer_most if carried else 0):
        surrogate = _surrogate(situation, at, box, samples, base, carried)
        proposal = propose(situation, surrogate, box, samples, _scores(samples, base, situation, at), base, at.xi)
    if proposal is None:
        return _give_up(situation, stage, at, samples, base, evidence, because)
    target, gain = proposal
    how = f"the model of {rate(old.load_per_s)} and" if carried and old else "the model of"
    sentence = f"autrascale: {changes(running, target)}, because {because}; {how} {len(samples)} samples suggest it"
    evidence["expected_improvement"] = gain
    memo = stage.memo(iterations=stage.iterations + 1, waited=0)
    return Decision(target, direction(running, target), sentence, evidence, sustains(load), memo)


def _samples(situation: At, load: float, now_s: float) -> list[AllocationSample]:
    """Return the samples at this rate, the present window last."""
    running, done = situation.running, situation.window.throughput_per_s
    earlier = [s for s in situation.knowledge.at(load) if s.latency_s is not None and s.tasks != running.tasks]
    return [*earlier, AllocationSample(load, running.tasks, load if done is None else done, now_s)]


def _scores(samples: Sequence[AllocationSample], base: Floats, situation: At, at: LatencySettings) -> Floats:
    latency = np.array([s.latency_s for s in samples], dtype=float)
    return benefit(latency, at.target_s, base, task_rows(samples, situation.spec.tunable_names), at.alpha)


def _surrogate(
    situation: At, at: LatencySettings, box: Box, samples: Sequence[AllocationSample], base: Floats, carried: bool
) -> Surrogate:
    """Return M of this rate (Algorithm 1), or the model that is transferred from the nearest one (Algorithm 2)."""
    names = situation.spec.tunable_names
    tasks, scores = task_rows(samples, names), _scores(samples, base, situation, at)
    if not carried:
        return JointGP.fit(tasks, scores)
    load = situation.window.load_per_s or 0.0
    nearest = situation.knowledge.nearest(load, len(base) + 1)
    assert nearest is not None
    before = [s for s in situation.knowledge.at(nearest.load_per_s) if s.latency_s is not None]
    old_base = as_row(situation, nearest.tasks).astype(float)
    old = JointGP.fit(task_rows(before, names), _scores(before, old_base, situation, at))
    if at.transfer == "light":
        return Transferred.light(old, tasks, scores, at.transfer_alpha)
    bootstrap = np.array(bootstrapping(box, max(at.uniform, 1)), dtype=float)
    return traditional(old, tasks, scores, bootstrap, at.transfer_alpha)


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


def _give_up(
    situation: At,
    stage: Stage,
    at: LatencySettings,
    samples: Sequence[AllocationSample],
    base: Floats,
    evidence: dict[str, float],
    because: str,
) -> Decision:
    """Return to the measured allocation with the best score, among those that meet the target if there are any."""
    scores = _scores(samples, base, situation, at)
    load, running = situation.window.load_per_s or 0.0, situation.running
    stable = [k for k, s in enumerate(samples) if s.throughput_per_s >= KEEPS_UP * load] or list(range(len(samples)))
    meets = [k for k in stable if (samples[k].latency_s or 0.0) <= at.target_s]
    best = max(meets or stable, key=lambda k: scores[k])
    target = situation.fit(samples[best].tasks)
    least_s = min(s.latency_s or 0.0 for s in samples)
    evidence["best_seen"] = 1.0
    why = "this is the best measured size"
    if not meets:
        evidence["unreachable"] = 1.0
        why = f"none of {len(samples)} measured sizes is below {1e3 * least_s:.0f} ms; {why}"
    memo = stage.memo(phase="steady", missed=0, unreachable=not meets)
    if target == running:
        reason = Reason.STEADY if meets else Reason.UNDER_PROVISIONED
        return Decision.hold(reason, f"autrascale: {because}; {why}", evidence=evidence, memo=memo)
    sentence = f"autrascale: {changes(running, target)}, because {because}; {why}"
    return Decision(target, direction(running, target), sentence, evidence, sustains(load), memo)


# -- ours -------------------------------------------------------------------------------------------------------------


def _decomposed(
    situation: At,
    stage: Stage,
    at: LatencySettings,
    box: Box,
    samples: Sequence[AllocationSample],
    met: bool,
    evidence: dict[str, float],
    because: str,
) -> Decision:
    """Size every operator for its part of the latency, without bootstrapping or a search over the whole box."""
    load, running = situation.window.load_per_s or 0.0, situation.running
    stable = [s for s in samples[:-1] if s.keeps_up] + [samples[-1]]
    model = latency_model(situation, box, stable)
    row, expected_s = model.cheapest(box, MARGIN * at.target_s)
    target = situation.fit(as_allocation(situation, row).tasks)
    evidence = {**evidence, "expected_s": expected_s}
    measured = {s.tasks: s for s in samples if s.tasks == target.tasks}
    base = as_row(situation, stage.base).astype(float)
    if met and (target.slots > SAVES * running.slots or target.tasks in measured or stage.iterations >= at.most):
        sentence = f"autrascale: {because}; the model expects {target.slots} slots to be enough: keeps {running}"
        memo = stage.memo(phase="steady", missed=0, unreachable=False)
        return Decision.hold(Reason.STEADY, sentence, evidence=evidence, expects=sustains(load), memo=memo)
    if target == running or target.tasks in measured:
        # The model has no better size: measuring the best neighbour may correct it.
        beside = model.beside(box, as_row(situation, running.tasks), [as_row(situation, s.tasks) for s in samples])
        if beside is None or stage.iterations >= min(at.most, NEIGHBOURS):
            return _give_up(situation, stage, at, samples, base, evidence, because)
        expected_s = float(model.latency_s(beside[None])[0])
        target = situation.fit(as_allocation(situation, beside).tasks)
    if target == running or stage.iterations >= at.most:
        return _give_up(situation, stage, at, samples, base, evidence, because)
    expected = f"{1e3 * expected_s:.0f} ms are expected"
    sentence = f"autrascale: {changes(running, target)}, because {because}; with this size {expected}"
    memo = stage.memo(iterations=stage.iterations + 1, waited=0)
    return Decision(target, direction(running, target), sentence, evidence, sustains(load), memo)


def latency_model(situation: At, box: Box, samples: Sequence[AllocationSample]) -> DecomposedLatency:
    """Fit our latency model to samples at this rate."""
    spec, names = situation.spec, situation.spec.tunable_names
    selectivity = measured_selectivity(spec.graph, situation.window)
    needed, load = demand(situation), situation.window.load_per_s or 1.0
    index = {name: k for k, name in enumerate(names)}
    edges = tuple(
        (
            index.get(e.upstream, -1),
            index.get(e.downstream, -1),
            needed[e.upstream] * selectivity[e.upstream, e.downstream] / max(load, 1e-300),
        )
        for e in spec.graph.edges
    )
    curves = capacity_curves(situation, [int(each[-1]) for each in box.choices])
    network = Network(
        tuple(curve.capacity_per_s for curve in curves),
        np.array([needed[name] for name in names]),
        edges,
        float(max((pinned.tasks for pinned in spec.pinned), default=1)),
    )
    tasks = task_rows(samples, names).astype(np.int64)
    return DecomposedLatency.fit(network, tasks.tolist(), [s.latency_s or 0.0 for s in samples])


def capacity_curves(situation: At, most: Sequence[int]) -> list[CapacityCurve]:
    """Return the capacity of 1, 2, 3 ... tasks of every operator, from all its samples."""
    curves = []
    for name, top in zip(situation.spec.tunable_names, most, strict=True):
        samples = situation.knowledge.capacities.samples(name)
        if samples:
            curves.append(MODELS["loglog"](samples).curve(top))
            continue
        per_task = situation.window.operator(name).true_rate_per_s or 1e12
        flat = per_task * np.arange(1.0, top + 1.0)
        curves.append(CapacityCurve(flat, np.zeros(top), np.zeros(top)))
    return curves


def restart_search(stage: Stage) -> Stage:
    """Return the stage in which the search begins again after a missed target."""
    return replace(stage, phase="latency", iterations=0, missed=0, waited=0)
