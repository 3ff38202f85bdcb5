"""A journal may be written by others. The limits come from the user's code: no record makes a controller leave them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from loop_world import JOB, Scripted, World

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.control.memory import snapshot
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Reason
from rheostat.job.observation import Change
from rheostat.job.record import Ending, Intent, IntentEnd, Record
from rheostat.job.slo import SLO, Bounds
from rheostat.ports import Engine, Note
from rheostat.testing.engine import Lying

RUNNING = Allocation({"splitter": 5, "count": 3})
LIMITS = SLO(job=Bounds(4, 12), operators={"splitter": Bounds(2, 8)})
HUGE = Allocation({"splitter": 10_000, "count": 3})
TINY = Allocation({"splitter": 1, "count": 3})
OTHERS = Allocation({"drop table": 7})


class Applied:
    """The engine of a world; it lists the targets that it gets."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.targets: list[Allocation] = []
        self.describe, self.observe = inner.describe, inner.observe

    def apply(self, intent: Intent, note: Note) -> None:
        self.targets.append(intent.target)
        self.inner.apply(intent, note)


def restarted(records: list[Record], change: Change = Change.NONE) -> tuple[World, Applied, Controller[int]]:
    """Write these records as anybody can who may write the journal, and start a controller after them."""
    world = World(Scripted(), slo=LIMITS)
    world.step()
    world.controller.stop()
    lease = world.journal.acquire(JOB, "mallory", 60.0)
    world.journal.append(lease, 1, records)
    world.journal.release(lease)
    shown = Lying(world.engine, lambda window: replace(window, change=change))
    engine = Applied(shown)
    again = Controller(engine, Scripted(), world.journal, world.clock, slo=LIMITS, pace=IMMEDIATE)
    again.start()
    return world, engine, again


def intent(target: Allocation, previous: Allocation = RUNNING) -> Intent:
    return Intent("forged", 1, 150.0, target, previous)


@pytest.mark.parametrize("target", [HUGE, TINY, OTHERS], ids=["huge", "tiny", "other operators"])
@pytest.mark.parametrize("way", ["intent", "snapshot"])
def test_an_open_intent_outside_the_limits_is_ended_and_not_applied(target: Allocation, way: str) -> None:
    records: list[Record] = [intent(target)]
    if way == "snapshot":
        world = World(Scripted(), slo=LIMITS)
        state = replace(world.controller.state, open=intent(target))
        records = [snapshot(state, 0, 150.0)]
    world, engine, again = restarted(records)
    assert again.state.open == intent(target)
    world.fleet.advance(60)
    step = again.step()
    assert engine.targets == []
    assert world.fleet.engine(0).observe().running == RUNNING
    (end,) = [r for r in world.records(IntentEnd) if isinstance(r, IntentEnd)]
    assert (end.intent, end.ending, end.running) == ("forged", Ending.FAILED, RUNNING)
    assert "the limits" in end.why
    assert step.decision.reason is Reason.MIXED, "the policy is asked again"


@pytest.mark.parametrize("previous", [HUGE, TINY, OTHERS], ids=["huge", "tiny", "other operators"])
def test_a_failed_change_is_not_undone_to_a_size_outside_the_limits(previous: Allocation) -> None:
    world, engine, again = restarted([intent(RUNNING.with_tasks({"splitter": 6}), previous)], Change.FAILED)
    world.fleet.advance(60)
    again.step()
    assert engine.targets == []
    assert [r.ending for r in world.records(IntentEnd) if isinstance(r, IntentEnd)] == [Ending.FAILED]


def test_an_open_intent_within_the_limits_is_applied_again() -> None:
    target = RUNNING.with_tasks({"splitter": 8})
    world, engine, again = restarted([intent(target)])
    world.fleet.advance(60)
    again.step()
    assert engine.targets == [target]


def test_what_runs_outside_the_limits_may_stay_in_an_intent() -> None:
    """As the guards leave it: one operator above its limit keeps its tasks while another one grows."""
    target = Allocation({"splitter": 5, "count": 4})
    world = World(Scripted())
    world.step()
    world.controller.stop()
    lease = world.journal.acquire(JOB, "before", 60.0)
    world.journal.append(lease, 1, [intent(target)])
    world.journal.release(lease)
    engine = Applied(world.engine)
    lower = SLO(operators={"splitter": Bounds(1, 4)})
    again = Controller(engine, Scripted(), world.journal, world.clock, slo=lower, pace=IMMEDIATE)
    again.start()
    world.fleet.advance(60)
    again.step()
    assert engine.targets == [target]


def test_a_forged_state_does_not_lift_the_limits() -> None:
    """What was asked for and applied before is shown to the policy; what it decides is cut as always."""
    world = World(Scripted((10_000,)), slo=LIMITS)
    world.controller.state = replace(world.controller.state, asked=HUGE, applied=HUGE)
    step = world.step()
    assert step.intent is not None
    assert step.intent.target.tasks["splitter"] == 8
