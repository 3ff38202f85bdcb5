"""HPA: Kubernetes' Horizontal Pod Autoscaler, one for every operator.

Kubernetes documentation, "Horizontal Pod Autoscaling" (autoscaling/v2), with its default behaviour.

| Kubernetes | here |
|---|---|
| desiredReplicas = ceil(currentReplicas x current / desired metric) | tasks x `cpu_share` / `target_cpu`, rounded up |
| tolerance 0.1 | `tolerance`: a ratio within 1 +- 0.1 changes nothing |
| scaleDown.stabilizationWindowSeconds 300 | `stabilise_down_s`: the largest recommendation in that time applies |
| scaleUp: 100 % or 4 pods, whichever is more, per 15 s | `max_scale_up_ratio`, `_tasks`, `scale_up_period_s` |
| scaleDown: 100 % per 15 s | no bound |
| the window holds recommendations before these limits | so does the memo |
| without a ready pod nothing changes | for `readiness_s` after a restart no task is ready |
| pods without metrics never reverse the direction | an operator without a metric keeps its tasks |

Ours: where no operator has a `cpu_share`, `useful_share` replaces it. HPA also decides in windows that are unusable for
learning, because Kubernetes does not have this distinction; there it may grow but never shrink, because missing reports
(of a task that starts, say) make an operator look idle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Reason, changes, direction
from rheostat.job.fit import round_up
from rheostat.job.frozen import check_number, check_whole
from rheostat.job.observation import Observation, Status
from rheostat.policy.explanation import sustains
from rheostat.ports import Policy, Situation

KUBERNETES_TARGET = 0.8
"""Kubernetes' default target: 80 % of the CPU."""


@dataclass(frozen=True)
class HPA(Policy[None]):
    """Keeps every operator's CPU near a target: grows at once, shrinks to the maximum of the last five minutes."""

    name: ClassVar[str] = "hpa"
    reads_partial_windows: ClassVar[bool] = True
    factor_option: ClassVar[str] = "target_cpu"

    target_cpu: float | None = None
    """Share of its CPU that a task should use; default: 1 / (1 + the SLO's headroom), or 0.8 without a headroom."""
    tolerance: float = 0.1
    """Distance of the ratio from 1 up to which nothing changes."""
    stabilise_down_s: float = 300.0
    """Seconds over which the largest recommendation applies before an operator shrinks."""
    max_scale_up_ratio: float = 2.0
    """Largest growth in one period as a ratio; the larger of both limits applies."""
    max_scale_up_tasks: int = 4
    """Largest growth in one period in tasks; the larger of both limits applies."""
    scale_up_period_s: float = 15.0
    """Seconds of the period that these limits are for."""
    readiness_s: float = 30.0
    """Seconds after a restart in which tasks are not ready: their CPU does not count."""

    def __post_init__(self) -> None:
        check_number("target_cpu of policy 'hpa'", self.target_cpu, least=0.01, most=1.0)
        check_number("tolerance of policy 'hpa'", self.tolerance)
        check_number("stabilise_down_s of policy 'hpa'", self.stabilise_down_s)
        check_number("scale_up_period_s of policy 'hpa'", self.scale_up_period_s)
        check_number("readiness_s of policy 'hpa'", self.readiness_s)
        check_number("max_scale_up_ratio of policy 'hpa'", self.max_scale_up_ratio, least=1.0)
        check_whole("max_scale_up_tasks of policy 'hpa'", self.max_scale_up_tasks, least=0)

    def decide(self, situation: Situation[None]) -> Decision:
        """Recommend tasks per operator from its CPU, and shrink only to the maximum of the last minutes."""
        window, running = situation.window, situation.window.running
        memo = situation.memo
        if window.status is Status.DOWN:
            return Decision.hold(Reason.DOWN, "hpa: the job is down, so its CPU is meaningless", memo=memo)
        if running is None or set(running.tasks) != set(situation.spec.tunable_names):
            return Decision.hold(Reason.UNUSABLE, "hpa: the running allocation is not known", memo=memo)
        if 0 < window.uptime_s < self.readiness_s:
            return Decision.hold(
                Reason.UNUSABLE, f"hpa: no task is ready, {window.uptime_s:.0f} s after the restart", memo=memo
            )
        metric, values = _metric(window, running)
        if not values:
            return Decision.hold(Reason.UNUSABLE, "hpa: no operator reports a CPU or useful share", memo=memo)

        target_share = self.target(situation)
        recommended: dict[str, int] = {}
        history: dict[str, list[tuple[float, int]]] = {}
        grown: dict[str, list[tuple[float, int]]] = {}
        for name, tasks in running.tasks.items():
            now = self.recommend(tasks, values.get(name), target_share, may_shrink=window.usable)
            since_s = window.at_s - self.scale_up_period_s
            grown[name] = [(at_s, more) for at_s, more in memo.get("grown", {}).get(name, ()) if at_s > since_s]
            # As in Kubernetes, the running size counts as the first recommendation, so a restart never shrinks the job.
            before = memo.get("recommended", {}).get(name, ((window.at_s, tasks),))
            recent = [(at_s, count) for at_s, count in before if at_s > window.at_s - self.stabilise_down_s]
            history[name] = _drop_dominated([*recent, (window.at_s, now)])
            if now > tasks:
                recommended[name] = min(now, self.limit(tasks, sum(more for _, more in grown[name])))
            else:
                recommended[name] = min(tasks, max(count for _, count in history[name]))

        target = situation.fit(recommended)
        enough = all(target.tasks[name] >= count for name, count in recommended.items())
        evidence = {f"{name}.{metric}": value for name, value in values.items()} | {"target_cpu": target_share}
        missing = [name for name in running.tasks if name not in values]
        notes = f"; {', '.join(missing)} reports no {metric} and keeps its tasks" if missing else ""
        notes += "" if enough else "; the limits allow no more"
        notes += "" if window.usable else f"; partial window ({window.problem}), nothing shrinks"
        shares = ", ".join(f"{name} {value:.0%}" for name, value in values.items())
        because = f"{metric} is {shares} for a target of {target_share:.0%}{notes}"
        expects = sustains(window.load_per_s) if enough else Expectation()
        for name, tasks in running.tasks.items():
            if target.tasks[name] > tasks:
                grown[name].append((window.at_s, target.tasks[name] - tasks))
        after = {"recommended": history, "grown": {name: own for name, own in grown.items() if own}}
        if target == running:
            reason = Reason.STEADY if enough else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"hpa: {because}", evidence=evidence, expects=expects, memo=after)
        sentence = f"hpa: {changes(running, target)}, because {because}"
        return Decision(target, direction(running, target), sentence, evidence, expects, after)

    def target(self, situation: Situation[None]) -> float:
        """Return the target CPU share; a headroom of 25 % and a target of 80 % mean the same."""
        if self.target_cpu is not None:
            return self.target_cpu
        headroom = situation.slo.headroom
        return KUBERNETES_TARGET if headroom is None else 1 / (1 + headroom)

    def recommend(
        self,
        tasks: int,
        share: float | None,
        target_share: float,
        may_shrink: bool = True,
        ready: int | None = None,
    ) -> int:
        """Return the tasks that bring the share of the ready tasks (default: all) to its target."""
        counted = tasks if ready is None else ready
        if share is None or not counted:
            return tasks
        ratio = share / target_share
        if ratio > 1 and counted < tasks:
            # Tasks that are not ready count as idle, and must not turn growth into its opposite.
            ratio, counted = ratio * counted / tasks, tasks
            if ratio < 1:
                return tasks
        # The small term makes 0.72 / 0.8 count as a tenth off 1 in spite of binary fractions.
        if abs(ratio - 1) <= self.tolerance + 1e-9 or (ratio < 1 and not may_shrink):
            return tasks
        return round_up(counted * ratio)

    def limit(self, tasks: int, added: int) -> int:
        """Return the largest number of tasks now, given the tasks that this period added already."""
        before = tasks - added
        return max(tasks, math.ceil(before * self.max_scale_up_ratio), before + self.max_scale_up_tasks)


def _metric(window: Observation, running: Allocation) -> tuple[str, dict[str, float]]:
    """Return CPU shares if any operator has one, else useful shares: the two are never mixed."""
    for metric in ("cpu_share", "useful_share"):
        shares: Mapping[str, float | None] = {name: getattr(window.operator(name), metric) for name in running.tasks}
        measured = {n: v for n, v in shares.items() if v is not None and math.isfinite(v) and v >= 0}
        if measured:
            return metric, measured
    return "cpu_share", {}


def _drop_dominated(history: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Drop recommendations with a later, larger one: the maximum is the same, and the memo stays small."""
    result: list[tuple[float, int]] = []
    for at_s, count in reversed(history):
        if not result or count > result[-1][1]:
            result.append((at_s, count))
    return result[::-1]
