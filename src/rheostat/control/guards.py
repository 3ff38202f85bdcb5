"""The guards after a decision, in order. Each one is a function that cuts or stops, and says why."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, GuardNote, Reason
from rheostat.job.fit import clip
from rheostat.job.guards import Guards
from rheostat.job.observation import Observation, Status
from rheostat.job.slo import SLO, Limits


@dataclass(frozen=True, slots=True)
class Scene:
    """What the guards look at: all of it is recorded, so that replay guards alike."""

    running: Allocation
    window: Observation
    limits: Limits
    slo: SLO
    guards: Guards
    reason: Reason
    changed_at_s: float | None


Guard = Callable[[Allocation, Scene], tuple[Allocation, str]]


def bounds(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Keep within bounds, quota and budget."""
    return clip(target, scene.limits)


def exploring(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Stop experiments on the live job unless they are allowed."""
    if scene.reason is Reason.EXPLORE and scene.guards.explore != "live":
        return scene.running, f"exploring on the live job needs explore = live, it is {scene.guards.explore}"
    return target, ""


def step_size(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Cut steps that are larger than allowed; one quantum is always allowed."""
    tasks = dict(target.tasks)
    for name, now in scene.running.tasks.items():
        quantum = scene.limits.quantum.get(name, 1)
        if scene.guards.max_step_up is not None:
            tasks[name] = min(tasks[name], max(now + quantum, math.floor(now * scene.guards.max_step_up)))
        if scene.guards.max_step_down is not None:
            tasks[name] = max(tasks[name], min(now - quantum, math.ceil(now * scene.guards.max_step_down)))
    # A ratio need not be a multiple of the quantum, and a step down by one may undercut a bound.
    cut, _ = clip(Allocation({n: max(1, c) for n, c in tasks.items()}, target.memory_mb), scene.limits)
    return cut, "" if cut == target else f"the largest step allows {cut}"


def recovering(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Do not shrink before the backlog of a failure, a change or a peak is worked off; growing is allowed."""
    behind = scene.window.status is Status.RECOVERING or scene.window.catching_up
    if not behind or scene.guards.shrink_while_recovering:
        return target, ""
    kept = _without(target, scene.running, shrink=True)
    return kept, "" if kept == target else "no shrinking while the job recovers"


def over_slo(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Do not shrink while the objective is broken: policies that look at rates alone do not see what waits."""
    kept = _without(target, scene.running, shrink=True)
    if scene.guards.shrink_over_slo or kept == target:
        return target, ""
    latency_s = scene.window.latency.event_p99_s if scene.window.latency else None
    for what, value, promised in (
        ("latency", latency_s, scene.slo.max_latency_s),
        ("lag", scene.window.lag_s, scene.slo.max_lag_s),
    ):
        if value is not None and promised is not None and value > promised:
            return kept, f"no shrinking while {what} is {value:.3g} s, promised are {promised:g} s"
    return target, ""


def hindered(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Do not grow while something slows the job down that size does not cure."""
    kept = _without(target, scene.running, shrink=False)
    if not scene.window.bottlenecks or kept == target:
        return target, ""
    return kept, f"growing would not help: {'; '.join(scene.window.bottlenecks)}"


def cool_down(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Do not grow or shrink again too soon after a change."""
    if scene.changed_at_s is None:
        return target, ""
    age_s = scene.window.at_s - scene.changed_at_s
    kept, why = target, []
    for shrink, wait_s in ((False, scene.guards.cooldown_up_s), (True, scene.guards.cooldown_down_s)):
        if age_s < wait_s and (cut := _without(kept, scene.running, shrink)) != kept:
            kept = cut
            why.append(f"{'shrinking' if shrink else 'growing'} waits {wait_s - age_s:.0f} s more")
    return kept, ", ".join(why)


def frozen(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Change nothing inside a frozen period."""
    if target != scene.running and any(period.covers(scene.window.at_s) for period in scene.guards.frozen):
        return scene.running, "inside a frozen period"
    return target, ""


def shadow(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Change nothing at all; the decision says what would have been done."""
    if scene.guards.shadow and target != scene.running:
        return scene.running, f"shadow mode: {target} is not applied"
    return target, ""


CHAIN: tuple[Guard, ...] = (exploring, frozen, bounds, step_size, recovering, over_slo, hindered, cool_down, shadow)


def guarded(decision: Decision, scene: Scene) -> Decision:
    """Return the decision as the guards leave it: the target cut, or hold, with notes that say so."""
    if decision.target is None:
        return decision
    target, notes = decision.target, []
    for guard in CHAIN:
        cut, why = guard(target, scene)
        if why:
            notes.append(GuardNote(guard.__name__, why))
        target = cut
    left = None if target == scene.running else target
    if left == decision.target and not notes:
        return decision
    return replace(decision, target=left, asked=decision.target, guards=(*decision.guards, *notes))


def _without(target: Allocation, running: Allocation, shrink: bool) -> Allocation:
    """Undo the shrinking, or the growing, part of a change."""
    keep = max if shrink else min
    return target.with_tasks({n: keep(c, running.tasks[n]) for n, c in target.tasks.items()})
