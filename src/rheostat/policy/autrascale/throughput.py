"""AuTraScale+'s TO solver: the fewest tasks that keep up with the load (section IV-B)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.job.fit import round_up
from rheostat.model.experience import KEEPS_UP, keeps_up
from rheostat.policy.autrascale.space import as_allocation, as_row
from rheostat.policy.autrascale.stage import At, Sizing, Stage
from rheostat.policy.demand import linear_tasks, measured_selectivity
from rheostat.policy.ds2 import optimal_tasks
from rheostat.policy.explanation import rate, sustains

MOST_STEPS = 12
"""Configurations after which the best of them is selected; the solver has never needed half as many."""
REPEATS = 2
"""Further windows before an external limit is assumed: under such a limit Eq 3 suggests the same size every time, under
noise it does not."""
SAME = 0.99
"""Ratio of two throughputs from which on they count as equal; among equals the smallest configuration is selected."""


def throughput_step(situation: At, stage: Stage, literal: bool) -> Stage | Decision:
    """Return the next configuration to run, or the stage with π^t when this solver has finished.

    It has finished when the throughput reaches the input rate, nothing is overloaded and Eq 3 suggests no fewer tasks;
    or when Eq 3 suggests the running size, or an earlier one (ours: the paper only compares with the last one). Then
    the configuration with the highest throughput is π^t, among equals the smallest; it need not be the last (section
    V-B).
    """
    running, load = situation.running, situation.window.load_per_s
    room = 1.0 + situation.headroom()
    suggested = literal_eq_3(situation) if literal else optimal_tasks(situation)
    target = situation.fit({name: round_up(count * room) for name, count in suggested.items()})
    here = tuple(int(count) for count in as_row(situation, running.tasks))
    tried = tuple(dict.fromkeys((*stage.sizing.tried, here)))
    shrinks = any(target.tasks[name] < count for name, count in running.tasks.items())
    if target == running and not keeps_up(situation.window) and stage.sizing.waited < REPEATS:
        sentence = f"autrascale: {rate(load)} arrive and Eq 3 suggests the running size; waits for another window"
        return Decision.hold(Reason.WAITING, sentence, memo=stage.sized(waited=stage.sizing.waited + 1).memo())
    again = target == running or tuple(int(c) for c in as_row(situation, target.tasks)) in tried
    grows = any(target.tasks[name] > count for name, count in running.tasks.items())
    suffices = keeps_up(situation.window) and not shrinks and not (grows and situation.window.overloaded)
    if suffices or again or len(tried) >= MOST_STEPS:
        best, most = _best(situation, tried, running)
        limited = load is not None and most < KEEPS_UP * load
        solved = {"load_per_s": load or 0.0, "tasks": dict(best.tasks)}
        end = replace(stage, phase="latency", sizing=Sizing(), solved=solved, limited=limited)
        if best == running:
            return end
        why = f"it is the smallest of {len(tried)} sizes with the highest throughput, {rate(most)}"
        sentence = f"autrascale: {changes(running, best)}, because {why} of {rate(load)}"
        return Decision(best, direction(running, best), sentence, {}, sustains(most), end.memo())
    needs = ", ".join(f"{name} {count:.3g}" for name, count in suggested.items())
    sentence = f"autrascale: {changes(running, target)}, because {rate(load)} arrive and need {needs} tasks (Eq 3)"
    evidence = {f"{name}.eq3_tasks": count for name, count in suggested.items()}
    memo = stage.memo(sizing=Sizing(tried))
    return Decision(target, direction(running, target), sentence, evidence, sustains(load), memo)


def literal_eq_3(situation: At) -> dict[str, float]:
    """Return Eq 3 as printed: an operator is sized for the capacity of its upstreams with their rounded tasks."""
    graph, window = situation.spec.graph, situation.window
    selectivity = measured_selectivity(graph, window)
    sends: dict[str, float] = {}
    suggested: dict[str, float] = {}
    rates = {source.name: source.rate_per_s or 0.0 for source in window.sources}
    for name in graph.order:
        needed = rates.get(name, 0.0) if name in graph.sources else 0.0
        needed += sum(sends[e.upstream] * selectivity[e.upstream, e.downstream] for e in graph.inputs[name])
        true_rate = window.operator(name).true_rate_per_s
        sends[name] = needed
        if name in situation.spec.tunable_names and (true_rate or not needed):
            suggested[name] = linear_tasks(needed, true_rate or 0.0)
            sends[name] = max(needed, round_up(suggested[name]) * (true_rate or 0.0))
    return suggested


def _best(situation: At, tried: tuple[tuple[int, ...], ...], running: Allocation) -> tuple[Allocation, float]:
    """Return the smallest of the configurations with the highest throughput, and that throughput."""
    load, now = situation.window.load_per_s, situation.window.throughput_per_s or 0.0
    throughput: dict[tuple[int, ...], float] = {}
    if load:
        for sample in situation.knowledge.at(load):
            throughput[_key(situation, sample.tasks)] = min(sample.throughput_per_s, load)
    throughput[_key(situation, running.tasks)] = min(now, load) if load else now
    measured = {row: throughput[row] for row in tried if row in throughput}
    most = max(measured.values())
    best = min((row for row in measured if measured[row] >= SAME * most), key=lambda row: (sum(row), row))
    # The limits may have moved since it ran.
    return situation.fit(as_allocation(situation, np.array(best, dtype=np.int64)).tasks), most


def _key(situation: At, tasks: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(count) for count in as_row(situation, tasks))
