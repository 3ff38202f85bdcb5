"""Ours: PLO with a latency model of single operators (`latency_model.py`) instead of the joint benefit model.

It needs no bootstrapping samples: one window is enough for a first size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rheostat.job.decision import Decision, changes
from rheostat.model.experience import AllocationSample, task_rows
from rheostat.policy.autrascale.box import Box
from rheostat.policy.autrascale.capacities import by_capacity, capacity_curves
from rheostat.policy.autrascale.latency import LatencySettings, change, evaluate, give_up, look_again, settle
from rheostat.policy.autrascale.latency_model import DecomposedLatency, Network
from rheostat.policy.autrascale.space import as_allocation, as_row
from rheostat.policy.autrascale.stage import At, Stage
from rheostat.policy.demand import demand, measured_selectivity

MARGIN = 0.95
"""Share of the target that the model aims at, since latencies are measured with an error of a few per cent."""
SAVES = 0.9
"""A job that meets its target shrinks only to this share of its slots or less."""
NEIGHBOURS = 4
"""Changes to neighbours of the model's optimum before the target counts as unreachable."""
ROOM = 0.9
"""Utilisation that a size gets which does not run at its load, so that it works off its backlog."""


def decomposed_step(situation: At, stage: Stage, at: LatencySettings) -> Decision:
    """Return the next step of our search for π^p; a hold with a steady stage ends it."""
    turn = evaluate(situation, stage, at)
    if turn.running.keeps_up and (again := look_again(turn)) is not None:
        return again
    iterations, running = stage.search.iterations, situation.running
    stable = [s for s in turn.samples if s.keeps_up and s.latency_s is not None]
    if not stable:
        target = by_capacity(situation, turn.running.load_per_s / ROOM)
        if target == running or iterations >= at.most:
            return give_up(situation, turn, at)
        sentence = f"autrascale: {changes(running, target)}, because {turn.because}; sized by the capacities"
        return change(situation, turn.stage, target, sentence, turn.evidence)
    model = latency_model(situation, turn.box, stable)
    row, expected_s = model.cheapest(turn.box, MARGIN * at.target_s)
    target = situation.fit(as_allocation(situation, row).tasks)
    evidence = {**turn.evidence, "expected_s": expected_s}
    measured = {s.tasks for s in turn.samples}
    done = target.slots > SAVES * running.slots or target.tasks in measured or iterations >= at.most
    if turn.met and done:
        why = f"the model expects {target.slots} slots to be enough: keeps {running}"
        return settle(situation, turn, f"autrascale: {turn.because}; {why}")
    if target == running or target.tasks in measured:
        # The model has no better size: measuring the best neighbour may correct it.
        rows = [as_row(situation, s.tasks) for s in turn.samples]
        beside = model.beside(turn.box, as_row(situation, running.tasks), rows)
        if beside is None or iterations >= min(at.most, NEIGHBOURS):
            return give_up(situation, turn, at)
        expected_s = float(model.latency_s(beside[None])[0])
        target = situation.fit(as_allocation(situation, beside).tasks)
    if target == running or iterations >= at.most:
        return give_up(situation, turn, at)
    because = f"{turn.because}; with this size {1e3 * expected_s:.0f} ms are expected"
    return change(situation, turn.stage, target, f"autrascale: {changes(running, target)}, because {because}", evidence)


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
