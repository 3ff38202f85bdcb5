"""Storms: nothing is violated, a seed repeats, and what must hold is really watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rheostat.control import guards
from rheostat.control.controller import Step
from rheostat.control.limits import limits
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.guards import Guards
from rheostat.job.observation import Observation
from rheostat.job.record import Ending, Intent, IntentEnd, Record
from rheostat.job.slo import SLO, Bounds
from rheostat.lab.bench.chaos import chaos, run_storms
from rheostat.lab.chaos.storm import Storm
from rheostat.lab.chaos.watch import Watch
from rheostat.testing.situations import word_count

SMALL, LARGE = Allocation({"split": 2, "count": 2}), Allocation({"split": 2, "count": 4})


def test_storms_violate_nothing() -> None:
    reported: list[str] = []
    measures = {m.measure: m for m in chaos(True, reported.append, seeds=8, days=0.05)}
    assert measures["violations"].value == 0, reported
    assert (measures["seeds"].value, measures["days"].value) == (8, 0.05)
    assert measures["faults"].value > 50
    assert measures["replayed_steps"].value > 400


def test_a_storm_is_the_same_alone_and_among_others() -> None:
    def course(storm: Storm) -> tuple[object, ...]:
        watch = storm.watch
        return dict(storm.faults), watch.steps, watch.changes, watch.decisions, [o.intent for o in watch._opened]

    among = {storm.seed: course(storm) for storm in run_storms([2, 5, 6], 0.06, lambda _: None)}
    [alone] = run_storms([5], 0.06, lambda _: None)
    assert course(alone) == among[5]


def test_a_dry_run_that_acts_is_reported_with_its_seed_and_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(decision: Decision, scene: guards.Scene) -> Decision:
        return guards.apply_guards(decision, replace(scene, guards=replace(scene.guards, dry_run=False)))

    monkeypatch.setattr(guards, "_dry_run", forgets)
    monkeypatch.setattr("rheostat.lab.chaos.driver.DRY_RUN", 1.0)
    reported: list[str] = []
    measures = {m.measure: m for m in chaos(True, reported.append, days=0.02, seed=4)}
    assert measures["violations"].value > 0
    assert "--seed 4 repeats it" in measures["violations"].note
    assert any("seed 4, day 0 00:" in line and "acted in a dry run" in line for line in reported)


def opened(name: str, target: Allocation = LARGE, previous: Allocation = SMALL) -> Intent:
    return Intent(name, 0, 0.0, target, previous)


def ended(name: str) -> IntentEnd:
    return IntentEnd(name, 0.0, Ending.DONE, LARGE)


def journaled(*records: Record) -> Callable[[Watch], None]:
    def happen(watch: Watch) -> None:
        for record in records:
            watch.journaled([record], 0.0)

    return happen


def act(**how: bool) -> Callable[[Watch], None]:
    def acted(watch: Watch) -> None:
        watch.journaled([opened("a"), ended("a")] if how.pop("over", False) else [opened("a")], 0.0)
        watch.acted("first", opened("a"), **{"current": True, "dry_run": False, **how})

    return acted


def blind(watch: Watch) -> None:
    held = Step(0, Observation.blind(0.0, "x"), Decision.hold(Reason.UNUSABLE, "stale"))
    watch.started("first")
    for _ in range(3):
        watch.stepped("first", held, clean=True)


def restless(watch: Watch) -> None:
    for turn in range(13):
        watch.now_s += 310.0 if turn else 0.0
        name, sizes = str(turn), (LARGE, SMALL) if turn % 2 else (SMALL, LARGE)
        watch.now_s -= 250.0 if turn and turn % 2 == 0 else 0.0
        watch.journaled([opened(name, sizes[1], sizes[0]), ended(name)], 0.0)


CASES: dict[str, tuple[Callable[[Watch], Any], str]] = {
    "two open": (journaled(opened("a"), opened("b")), "began before a had ended"),
    "ended twice": (journaled(opened("a"), ended("a"), ended("a")), "ended twice"),
    "out of bounds": (journaled(opened("a", Allocation({"split": 9, "count": 9}))), "was asked for"),
    "shrinks too soon": (journaled(opened("a"), ended("a"), opened("b", SMALL, LARGE)), "shrinks 0 s after a change"),
    "restless": (restless, "within an hour"),
    "overtaken": (act(current=False), "after it was overtaken"),
    "dry run": (act(dry_run=True), "in a dry run"),
    "after its end": (act(over=True), "after it had ended"),
    "no decision": (blind, "no decision within 3 clean windows (unusable window: stale)"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_invariant_is_watched(case: str) -> None:
    happens, says = CASES[case]
    spec = word_count()
    watch = Watch(3, spec, limits(spec, SLO(job=Bounds(2, 12))), replace(Guards(), max_changes_per_hour=8))
    happens(watch)
    assert any(says in str(violation) for violation in watch.violations), watch.violations
