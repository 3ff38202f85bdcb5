"""The defaults of a careful operator: growth at once, shrinking after minutes, few changes per hour."""

from __future__ import annotations

from dataclasses import replace

from loop_world import Scripted, World

from rheostat.control.guards import Low, Scene, Stability, apply_guards
from rheostat.control.guards import fold_stability as fold
from rheostat.control.limits import limits
from rheostat.control.memory import remember
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, GuardNote, Reason
from rheostat.job.guards import UNGUARDED, Guards
from rheostat.job.observation import Latency
from rheostat.job.record import Ending, Intent, IntentEnd
from rheostat.job.slo import SLO
from rheostat.testing.situations import window, word_count

SPEC = word_count()

RUNNING = Allocation({"split": 4, "count": 4})
LATE = Latency(1, 1, 1, 2, 4, 9)


def decide(tasks: dict[str, int], guards: Guards, stability: Stability, **seen: object) -> Decision:
    calm: dict[str, object] = {"overloaded": ()}
    seen_window = replace(window(SPEC, 1000.0, 4, 600.0, at_s=1000.0), **calm | seen)  # type: ignore[arg-type]
    target, slo = RUNNING.with_tasks(tasks), SLO(max_latency_s=5.0)
    scene = Scene(RUNNING, seen_window, limits(SPEC, SLO()), slo, guards, Reason.MIXED, None, stability)
    return apply_guards(Decision(target, Reason.MIXED, "because"), scene)


def test_shrinking_waits_until_the_smaller_size_has_been_enough_for_minutes() -> None:
    guards = replace(UNGUARDED, shrink_after_s=300.0)
    first = decide({"split": 2, "count": 9}, guards, Stability())
    assert first.target == RUNNING.with_tasks({"count": 9}), "growth is immediate"
    assert first.guards == (
        GuardNote("stay_low", "shrinking waits until the smaller size has been enough for 300 s more"),
    )
    early = decide({"split": 2}, guards, Stability(low={"split": Low(800.0, 2)}))
    assert early.target is None
    assert "100 s more" in early.guards[0].why
    late = decide({"split": 1}, guards, Stability(low={"split": Low(700.0, 2)}))
    assert late.target == RUNNING.with_tasks({"split": 2}), "two were needed in that time"


def test_changes_per_hour_are_bounded_but_for_growth_in_an_emergency() -> None:
    guards = replace(UNGUARDED, max_changes_per_hour=2)
    busy = Stability(changes_s=(100.0, 900.0))
    calm = Stability(changes_s=(-2601.0, 900.0))
    assert decide({"split": 9}, guards, calm).target == RUNNING.with_tasks({"split": 9})
    held = decide({"split": 9}, guards, busy)
    assert held.target is None
    assert held.guards == (GuardNote("change_rate", "2 changes within an hour, the most is 2"),)
    for emergency in ({"latency": LATE}, {"overloaded": ("split",)}, {"overdue_s": 3.0}):
        urgent = decide({"split": 9, "count": 2}, guards, busy, **emergency)
        assert urgent.target == RUNNING.with_tasks({"split": 9}), emergency


def test_low_demand_ends_with_a_decision_that_needs_the_size_and_with_a_change() -> None:
    stability = fold(Stability(), window(SPEC, 1000.0, 4, 600.0, at_s=1000.0))
    fewer = Decision(RUNNING.with_tasks({"split": 2}), Reason.OVER_PROVISIONED, "too large")
    stability = fold(stability, fewer)
    stability = fold(stability, window(SPEC, 1000.0, 4, 600.0, at_s=1060.0))
    stability = fold(stability, Decision.hold(Reason.UNUSABLE, "no batch"))
    # A guard held the second one back: what was asked for counts.
    stability = fold(stability, replace(fewer, target=None, asked=RUNNING.with_tasks({"split": 3})))
    assert stability.low == {"split": Low(1000.0, 3)}
    assert fold(stability, Decision.hold(Reason.STEADY, "right")).low == {}
    assert fold(stability, IntentEnd("i", 1070.0, Ending.DONE, RUNNING)).low == {}
    many = stability
    for at_s in range(0, 7200, 600):
        many = fold(many, Intent("i", 1, float(at_s), RUNNING, RUNNING))
    assert many.changes_s == tuple(float(at_s) for at_s in range(3600, 7200, 600))


def test_the_loop_shrinks_late_and_remembers_why_after_a_restart() -> None:
    world = World(Scripted((2,) * 12), guards=replace(UNGUARDED, shrink_after_s=300.0))
    changes = []
    for _ in range(8):
        changes.append(world.step(60).intent is not None)
        assert (world.controller.state, world.controller.knowledge) == remember(world.journal, world.controller.mind)
    assert changes.index(True) == 5, changes
