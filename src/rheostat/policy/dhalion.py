"""Dhalion: symptom, diagnosis, resolution, for one operator at a time; failed scale-downs are not repeated.

Floratou, Agrawal, Graham, Rao, Ramasamy: "Dhalion: self-regulating stream processing in Heron", VLDB 2017.

| paper | here |
|---|---|
| symptom: back pressure | `window.overloaded` (engines name its origins) |
| diagnosis: the bolt that starts it | among them the largest `blocking_share`, then the most downstream |
| resolution: tasks x (1 + suspended / not suspended time) | tasks x 1 / (1 - `blocking_share`), at least one more |
| symptom: no pending packets at a bolt, no back pressure | `pending` worth less than `idle_pending_s` of its input |
| resolution: scale down by a factor | tasks x `scale_down`, at least one less, for the idlest operator only |
| a scale-down that brings back pressure | undone at once; that size is barred |

Ours, where the paper is silent: the scale-up is bounded (`max_scale_up`; a share of 1 would mean infinity), an idle
operator also has less useful time than `idle_below`, and a size is barred only until the load has clearly fallen below
the one at which it failed. Back pressure is attributed to a scale-down if the shrunk operator is its origin and the
load is about the same; otherwise the load has grown, and the ordinary resolution applies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from rheostat.job.decision import Decision, Expectation, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.job.observation import OperatorReading
from rheostat.policy.explanation import rate, sustains
from rheostat.policy.fit import fit_one
from rheostat.ports import Policy, Situation

CLEARLY = 0.1
"""Relative difference from which on two loads differ clearly."""


@dataclass(frozen=True)
class Dhalion(Policy[None]):
    """Grows the origin of back pressure; without back pressure, shrinks the idlest operator."""

    name: ClassVar[str] = "dhalion"

    scale_up: float = 1.2
    """Growth of the bottleneck if the engine does not measure how long it blocked its upstreams."""
    max_scale_up: float = 2.0
    """Largest growth in one step."""
    scale_down: float = 0.8
    """Share of its tasks that an idle operator keeps."""
    idle_pending_s: float = 0.05
    """Pending records, in seconds of the operator's input, up to which its queue counts as empty."""
    idle_below: float | None = 0.7
    """Useful share below which an operator is idle; none: only pending records count, as in the paper."""

    def __post_init__(self) -> None:
        check_number("scale_up of policy 'dhalion'", self.scale_up, least=1.0)
        check_number("max_scale_up of policy 'dhalion'", self.max_scale_up, least=1.0)
        check_number("scale_down of policy 'dhalion'", self.scale_down, most=1.0)
        check_number("idle_pending_s of policy 'dhalion'", self.idle_pending_s)
        check_number("idle_below of policy 'dhalion'", self.idle_below, most=1.0)

    def decide(self, situation: Situation[None]) -> Decision:
        """Resolve back pressure if there is any, else shrink an idle operator."""
        load_per_s = situation.window.load_per_s
        shrunk = dict(situation.memo.get("shrunk", {}))
        barred = [
            entry
            for entry in situation.memo.get("barred", ())
            if load_per_s is None or load_per_s >= (1 - CLEARLY) * entry["load_per_s"]
        ]
        memo: dict[str, Any] = {"shrunk": shrunk, "barred": barred}
        if situation.window.overloaded:
            return self._relieve(situation, memo)
        return self._save(situation, memo)

    def _relieve(self, situation: Situation[None], memo: dict[str, Any]) -> Decision:
        window, running = situation.window, situation.running
        order = situation.spec.graph.order
        roots = [name for name in order if name in window.overloaded and name in running.tasks]
        if not roots:
            names = ", ".join(window.overloaded)
            why = "; ".join(f"{p.operator}: {p.why}" for p in situation.spec.pinned if p.operator in window.overloaded)
            sentence = f"dhalion: back pressure starts at {names}, which cannot be scaled ({why or 'not tunable'})"
            return Decision.hold(Reason.UNDER_PROVISIONED, sentence, memo=memo)
        root = max(roots, key=lambda name: (window.operator(name).blocking_share or 0.0, order.index(name)))
        tasks, load_per_s = running.tasks[root], window.load_per_s
        share = window.operator(root).blocking_share
        evidence = {f"{root}.tasks": float(tasks)} | ({} if share is None else {f"{root}.blocking_share": share})

        last = memo["shrunk"].pop(root, None)
        if last is not None and tasks < last["from"] and not _clearly_above(load_per_s, last["load_per_s"]):
            failed = {"operator": root, "tasks": tasks, "load_per_s": load_per_s or 0.0}
            memo["barred"] = [e for e in memo["barred"] if e["operator"] != root or e["tasks"] > tasks] + [failed]
            target = fit_one(situation, root, last["from"])
            sentence = f"dhalion: {root} {tasks} -> {last['from']}, because {tasks} tasks caused back pressure"
            sentence += f" at {rate(load_per_s)}"
            if target != running:
                return Decision(target, Reason.UNDO, sentence, evidence, sustains(load_per_s), memo)

        needed = self.scale_up if share is None else 1 / (1 - share) if share < 1 else math.inf
        factor = min(needed, self.max_scale_up)
        evidence[f"{root}.scale_up"] = factor
        target = fit_one(situation, root, max(tasks * factor, tasks + 1))
        blocked = "an unknown part" if share is None else f"{share:.0%}"
        because = f"{root} blocked its upstreams for {blocked} of the time"
        if target == running:
            sentence = f"dhalion: {because}, but the limits keep it at {tasks} tasks"
            return Decision.hold(Reason.UNDER_PROVISIONED, sentence, evidence=evidence, memo=memo)
        enough = share is not None and target.tasks[root] >= tasks * needed
        expects = sustains(load_per_s) if enough else Expectation(load_per_s=load_per_s)
        sentence = f"dhalion: {changes(running, target)} (x{factor:.3g}), because {because}"
        return Decision(target, direction(running, target), sentence, evidence, expects, memo)

    def _save(self, situation: Situation[None], memo: dict[str, Any]) -> Decision:
        running, window = situation.running, situation.window
        load_per_s = window.load_per_s
        idle = [name for name in situation.spec.tunable_names if self.is_idle(window.operator(name))]
        # The idlest first; operators without a measured useful time last.
        idle.sort(key=lambda name: 1.0 if (share := window.operator(name).useful_share) is None else share)
        for name in idle:
            tasks, quantum = running.tasks[name], situation.limits.quantum.get(name, 1)
            floor = max((e["tasks"] + 1 for e in memo["barred"] if e["operator"] == name), default=0)
            wanted = max(min(tasks * self.scale_down, tasks - quantum), floor)
            target = fit_one(situation, name, wanted)
            if target.tasks[name] >= tasks:
                continue
            memo["shrunk"][name] = {"from": tasks, "load_per_s": load_per_s}
            useful = window.operator(name).useful_share
            evidence = {f"{name}.tasks": float(tasks)} | ({} if useful is None else {f"{name}.useful_share": useful})
            busy = (
                "its queue is empty"
                if useful is None
                else f"its queue is empty and it is busy {useful:.0%} of the time"
            )
            sentence = f"dhalion: {changes(running, target)}, because {name} is idle: {busy}"
            return Decision(target, direction(running, target), sentence, evidence, sustains(load_per_s), memo)
        stay = f"{', '.join(idle)} cannot shrink" if idle else "no operator is idle"
        sentence = f"dhalion: no back pressure at {rate(load_per_s)}, and {stay}"
        return Decision.hold(Reason.STEADY, sentence, expects=sustains(load_per_s), memo=memo)

    def is_idle(self, reading: OperatorReading) -> bool:
        """Whether the operator's queue is empty and it has spare time; a missing measurement counts for neither."""
        signs: list[bool] = []
        if reading.pending is not None and reading.records_in_per_s is not None:
            signs.append(reading.pending <= self.idle_pending_s * reading.records_in_per_s)
        if reading.useful_share is not None and self.idle_below is not None:
            signs.append(reading.useful_share < self.idle_below)
        return bool(signs) and all(signs)


def _clearly_above(load_per_s: float | None, before_per_s: float | None) -> bool:
    """Whether the load has clearly grown; an unknown load counts as the same."""
    return load_per_s is not None and before_per_s is not None and load_per_s > (1 + CLEARLY) * before_per_s
