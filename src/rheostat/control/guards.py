"""The guards after a decision, in order. Each one is a function that cuts or stops, and says why."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, GuardNote, Reason
from rheostat.job.fit import clip, fit_suggestions
from rheostat.job.frozen import FrozenMap, put
from rheostat.job.guards import Guards
from rheostat.job.observation import Observation, Status
from rheostat.job.record import Intent, IntentEnd, Record, Run
from rheostat.job.slo import SLO, Bounds, Limits

HOUR_S = 3600.0
DRY_RUN = "dry_run"
"""Name of the guard that applies nothing."""
NO_ANSWER = frozenset(
    {Reason.UNUSABLE, Reason.CHANGING, Reason.DOWN, Reason.NO_POLICY, Reason.UNJOURNALED, Reason.WAITING, Reason.TRIAL}
)
"""Reasons of decisions that say nothing about the size: they neither start nor end a time of low demand."""


@dataclass(frozen=True, slots=True)
class Low:
    """A time in which the policy asked for fewer tasks of an operator than run."""

    since_s: float
    most: int
    """The most tasks that it asked for in this time."""


@dataclass(frozen=True, slots=True)
class Stability:
    """What the guards against restless changes look at."""

    at_s: float = 0.0
    running: Allocation | None = None
    """The allocation of the last window, and when it was seen."""
    shadow: Allocation | None = None
    """In a dry run, the allocation that would run now."""
    low: Mapping[str, Low] = field(default_factory=FrozenMap)
    """Operators that have been larger than needed, since the last change at most."""
    changes_s: tuple[float, ...] = ()
    """When the changes of the last hour were decided."""

    def __post_init__(self) -> None:
        put(self, low=FrozenMap(self.low))

    @property
    def size(self) -> Allocation | None:
        """The allocation that changes start from."""
        shadow, running = self.shadow, self.running
        return shadow if shadow and running and set(shadow.tasks) == set(running.tasks) else running


def fold_stability(stability: Stability, record: Record) -> Stability:
    """Fold one record in."""
    match record:
        case Run():
            return stability if record.guards.dry_run else replace(stability, shadow=None)
        case Observation() if record.running is not None:
            return replace(stability, at_s=record.at_s, running=record.running)
        case Decision() if record.reason not in NO_ANSWER:
            # The running allocation is what a policy that holds asks for.
            asked = record.asked or record.target or (record.shadow and stability.running)
            changed = record.shadow not in (None, stability.size)
            low = {} if changed else _low(stability, asked)
            stability = replace(stability, low=low, shadow=record.shadow or stability.shadow)
            return _with_change(stability, stability.at_s) if changed else stability
        case Intent():
            return _with_change(stability, record.at_s)
        case IntentEnd():
            return replace(stability, low={})
    return stability


def _with_change(stability: Stability, at_s: float) -> Stability:
    recent = tuple(change_s for change_s in stability.changes_s if at_s - change_s < HOUR_S)
    return replace(stability, changes_s=(*recent, at_s))


def _low(stability: Stability, asked: Allocation | None) -> dict[str, Low]:
    """Extend the times of low demand by one decision; an operator that needs its tasks has none."""
    if asked is None or stability.size is None:
        return {}
    low = {}
    for name, running in stability.size.tasks.items():
        tasks = asked.tasks.get(name, running)
        if tasks < running:
            before = stability.low.get(name, Low(stability.at_s, tasks))
            low[name] = Low(before.since_s, max(before.most, tasks))
    return low


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
    stability: Stability = Stability()


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
    kept = _without(target, scene, shrink=True)
    return kept, "" if kept == target else "no shrinking while the job recovers"


def over_slo(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Do not shrink while an objective is broken: policies that look at rates alone do not see the backlog."""
    kept = _without(target, scene, shrink=True)
    broken = _broken_objective(scene)
    if scene.guards.shrink_over_slo or kept == target or not broken:
        return target, ""
    return kept, f"no shrinking while {broken}"


def _broken_objective(scene: Scene) -> str:
    """Return which objective the window breaks; "" where it breaks none."""
    latency_s = scene.window.latency.event_p99_s if scene.window.latency else None
    for what, value, most in (
        ("latency", latency_s, scene.slo.max_latency_s),
        ("lag", scene.window.lag_s, scene.slo.max_lag_s),
    ):
        if value is not None and most is not None and value > most:
            return f"{what} is {value:.3g} s, over the objective of {most:g} s"
    return ""


def bottleneck(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Do not grow while something slows the job down that size does not cure."""
    kept = _without(target, scene, shrink=False)
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
        if age_s < wait_s and (cut := _without(kept, scene, shrink)) != kept:
            kept = cut
            why.append(f"{'shrinking' if shrink else 'growing'} waits {wait_s - age_s:.0f} s more")
    return kept, ", ".join(why)


def stay_low(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Shrink only after a smaller size has been enough for a while, and to the largest size of that time."""
    wait_s, tasks, longest_s = scene.guards.shrink_after_s, dict(target.tasks), 0.0
    if wait_s <= 0:
        return target, ""
    for name, asked in target.tasks.items():
        running = scene.running.tasks[name]
        if asked >= running:
            continue
        low = scene.stability.low.get(name)
        left_s = wait_s - (scene.window.at_s - low.since_s if low else 0.0)
        longest_s = max(longest_s, left_s)
        tasks[name] = running if left_s > 0 or low is None else min(running, max(asked, low.most))
    cut = _fit_between(target.with_tasks(tasks), scene, least=tasks)
    if cut == target:
        return target, ""
    if longest_s > 0:
        return cut, f"shrinking waits until the smaller size has been enough for {longest_s:.0f} s more"
    return cut, f"in the last {wait_s:.0f} s up to {cut} was needed"


def change_rate(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Bound the changes per hour; only growth in an emergency exceeds it."""
    most = scene.guards.max_changes_per_hour
    made = sum(scene.window.at_s - change_s < HOUR_S for change_s in scene.stability.changes_s)
    if most is None or made < most or target == scene.running:
        return target, ""
    emergency = bool(scene.window.overloaded or scene.window.overdue_s > 0 or _broken_objective(scene))
    kept = _without(target, scene, shrink=True) if emergency else scene.running
    return kept, "" if kept == target else f"{made} changes within an hour, the most is {most}"


def frozen(target: Allocation, scene: Scene) -> tuple[Allocation, str]:
    """Change nothing inside a frozen period."""
    if target != scene.running and any(period.covers(scene.window.at_s) for period in scene.guards.frozen):
        return scene.running, "inside a frozen period"
    return target, ""


CHAIN: tuple[Guard, ...] = (
    exploring,
    frozen,
    bounds,
    step_size,
    recovering,
    over_slo,
    bottleneck,
    cool_down,
    stay_low,
    change_rate,
)


def apply_guards(decision: Decision, scene: Scene) -> Decision:
    """Return the decision as the guards leave it: the target cut, or hold, with notes that say so."""
    if scene.guards.dry_run:
        return _dry_run(decision, scene)
    if decision.target is None:
        return decision
    target, notes = _guarded(decision.target, scene)
    left = None if target == scene.running else target
    if left == decision.target and not notes:
        return decision
    return replace(decision, target=left, asked=decision.target, guards=(*decision.guards, *notes))


def _dry_run(decision: Decision, scene: Scene) -> Decision:
    """Hold, and say what would run: guards compare with the size that earlier decisions would have led to."""
    real = scene.window.running
    assert real is not None
    if decision.target is None and decision.reason in NO_ANSWER:
        return decision
    would = scene.stability.size or real
    shadow, notes = _guarded(decision.target or real, replace(scene, running=would))
    if shadow != real:
        notes.append(GuardNote(DRY_RUN, f"dry run: {shadow} is not applied"))
    noted = (*decision.guards, *notes)
    return replace(decision, target=None, asked=decision.target or decision.asked, guards=noted, shadow=shadow)


def _guarded(target: Allocation, scene: Scene) -> tuple[Allocation, list[GuardNote]]:
    notes = []
    for guard in CHAIN:
        cut, why = guard(target, scene)
        if why:
            notes.append(GuardNote(guard.__name__, why))
        target = cut
    return target, notes


def _without(target: Allocation, scene: Scene, shrink: bool) -> Allocation:
    """Undo the shrinking, or the growing, part of a change."""
    keep, running = max if shrink else min, scene.running.tasks
    kept = target.with_tasks({name: keep(count, running[name]) for name, count in target.tasks.items()})
    return _fit_between(kept, scene, least=running) if shrink else _fit_between(kept, scene, most=running)


def _fit_between(
    target: Allocation, scene: Scene, least: Mapping[str, int] | None = None, most: Mapping[str, int] | None = None
) -> Allocation:
    """Keep within the job's slots where half a change is left; no operator goes below `least` or above `most`.

    Growth that needs the slots of an operator that may not shrink waits with it, and the other way round.
    """
    if scene.limits.slots.clip(target.slots) == target.slots:
        return target
    operators = {}
    for name, bounds in scene.limits.operators.items():
        low = min(least[name], scene.running.tasks[name]) if least else bounds.min
        high = most[name] if most else bounds.max
        # Outside its bounds an operator may have any size between them and its own.
        operators[name] = Bounds(low) if high is None else Bounds(min(low, high), max(low, high))
    return target.with_tasks(fit_suggestions(Limits(operators, scene.limits.slots, scene.limits.quantum), target.tasks))
