"""Who may act: only the holder of the lease, only while its change is open, however late a call comes."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from loop_world import Scripted, World

from rheostat.control.controller import Controller, Pace
from rheostat.errors import EngineError, JournalError, LeaseRefused
from rheostat.job.decision import Reason
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Change
from rheostat.job.record import Ending, Intent, IntentEnd
from rheostat.journal.memory import MemoryJournal
from rheostat.ports import Note


class Frozen:
    """A clock whose process is suspended: its monotonic time jumps."""

    def __init__(self, clock: Any) -> None:
        self.clock, self.lost_s = clock, 0.0

    def now(self) -> float:
        return float(self.clock.now())

    def monotonic(self) -> float:
        return float(self.clock.monotonic()) + self.lost_s

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)


def other(world: World, journal: Any, pace: Pace | None = None) -> Controller[Any]:
    return Controller(world.engine, Scripted(()), journal, world.clock, pace=pace or world.controller.pace)


def test_a_controller_frozen_inside_a_change_does_not_act_after_a_take_over() -> None:
    wall_s = [0.0]
    journal = MemoryJournal(wall=lambda: wall_s[0])
    world = World(Scripted((7,)), journal=journal)
    effects: list[str] = []

    def apply(intent: Intent, note: Note) -> None:
        note("first")
        effects.append("first")
        wall_s[0] += 1000.0  # suspended here for longer than the lease
        other(world, journal).start()
        note("second")
        effects.append("second")

    world.engine.apply = apply  # type: ignore[method-assign]
    with pytest.raises(LeaseRefused):
        world.step()
    assert effects == ["first"]


def test_a_lease_that_could_not_be_renewed_in_time_is_not_acted_upon() -> None:
    """Also before anybody has taken it over: the journal cannot say so while it does not answer."""
    world = World(Scripted((7,)))
    clock = Frozen(world.clock)
    world.controller.clock = clock
    append, effects = world.journal.append, list[str]()

    def slow(*arguments: Any) -> Any:
        answer = append(*arguments)
        clock.lost_s += 1000.0  # the answer comes after the lease has ended
        return answer

    def apply(intent: Intent, note: Note) -> None:
        world.journal.append = slow  # type: ignore[method-assign]
        note("first")
        effects.append("first")

    world.controller._heart._clock = clock  # type: ignore[union-attr]
    world.engine.apply = apply  # type: ignore[method-assign]
    with pytest.raises(LeaseRefused, match="could not be renewed in time"):
        world.step()
    assert effects == []


def test_a_hung_change_does_not_act_after_it_was_journaled_as_failed() -> None:
    release, effects, errors = threading.Event(), list[str](), list[Exception]()
    world = World(Scripted((7,)), pace=Pace(observe_deadline_s=5.0, apply_deadline_s=0.05))

    def apply(intent: Intent, note: Note) -> None:
        if effects or errors:
            return
        release.wait(30.0)
        try:
            note("late")
            effects.append("late")
        except Exception as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)

    world.engine.apply = apply  # type: ignore[method-assign]
    try:
        assert "did not return" in (world.step().problem or "")
        for _ in range(8):
            world.step(60)
        ends = [r for r in world.records(IntentEnd) if isinstance(r, IntentEnd)]
        assert [end.ending for end in ends] == [Ending.FAILED]
        release.set()
        deadline_s = time.monotonic() + 10.0
        while not errors and not effects and time.monotonic() < deadline_s:
            time.sleep(0.01)
    finally:
        release.set()
        world.controller.stop()
    assert effects == []
    assert isinstance(errors[0], EngineError)
    assert "too late" in str(errors[0])


@pytest.mark.parametrize("busy", ["paused", "remember"])
def test_the_lease_is_renewed_while_the_controller_does_something_else(busy: str) -> None:
    journal, pace = MemoryJournal(), Pace(lease_s=0.4)
    world = World(Scripted((None,)), journal=journal, pace=pace)
    try:
        if busy == "remember":
            world.controller.stop()
            read = journal.read

            def slow(*arguments: Any, **named: Any) -> Any:
                time.sleep(1.2)
                return read(*arguments, **named)

            journal.read = slow  # type: ignore[method-assign]
            starting = threading.Thread(target=world.controller.start)
            starting.start()
            time.sleep(0.8)
        else:
            world.controller.paused = True
            time.sleep(1.2)
        with pytest.raises(LeaseRefused, match="is held by"):
            journal.acquire(world.controller.mind.spec.name, "another", 1.0)
        if busy == "remember":
            starting.join()
    finally:
        world.controller.stop()
    journal.acquire(world.controller.mind.spec.name, "another", 1.0)


def test_a_change_does_not_act_after_an_end_whose_answer_was_lost() -> None:
    """Storm 1097: the end is in the journal, the controller does not know, and a call that hung goes on."""
    world = World(Scripted((7, None)))
    notes: list[Note] = []
    world.engine.apply = lambda intent, note: notes.append(note)  # type: ignore[method-assign]
    world.step(60)
    append = world.journal.append

    def lose(*arguments: Any) -> Any:
        append(*arguments)
        raise JournalError("the connection broke after the write")

    world.journal.append = lose  # type: ignore[method-assign]
    world.fleet.advance(600)  # beyond the patience: this step ends the change
    assert world.controller.step().decision.reason is Reason.UNJOURNALED
    world.journal.append = append  # type: ignore[method-assign]
    assert world.records(IntentEnd)
    for name in ("remove an executor", ""):
        with pytest.raises(EngineError, match="too late"):
            notes[0](name)


def test_a_change_that_stays_under_way_ends_at_its_deadline() -> None:
    """Otherwise a restart that hangs would hold every decision for ever."""
    world = World(Scripted((7, *(None,) * 3, 6)), guards=replace(UNGUARDED, change_deadline_s=300.0))
    observe, notes = world.engine.observe, list[Note]()
    world.engine.apply = lambda intent, note: notes.append(note)  # type: ignore[method-assign]
    stuck = [False]
    world.engine.observe = lambda: replace(observe(), change=Change.UNDER_WAY if stuck[0] else Change.NONE)  # type: ignore[method-assign]
    assert world.step(60).intent is not None
    stuck[0] = True
    reasons = [world.step(60).decision.reason for _ in range(8)]
    (end,) = [r for r in world.records(IntentEnd) if isinstance(r, IntentEnd)]
    assert end.ending is Ending.FAILED
    assert "under way after 3" in end.why
    with pytest.raises(EngineError, match="too late"):
        notes[0]("stop the query")
    assert reasons[-1] is Reason.CHANGING, "two changes at once are not better than one"
    stuck[0] = False
    assert world.step(60).decision.reason is not Reason.CHANGING


def test_a_take_over_waits_for_a_journal_that_restarts() -> None:
    world = World(Scripted(()))
    journal, heir = world.journal, other(world, world.journal)
    world.controller.stop()
    acquire, failures = journal.acquire, [JournalError("the database cannot be reached")] * 3

    def unreachable(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return acquire(*arguments)

    journal.acquire = unreachable  # type: ignore[method-assign]
    failures.append(refusal := LeaseRefused("held by another"))
    refused: list[LeaseRefused] = []
    heir.start_when_free(refused.append)
    assert heir.started
    assert refused == [refusal]
    heir.stop()
    failures.extend([JournalError("the database cannot be reached")] * 1000)
    with pytest.raises(JournalError, match="cannot be reached"):
        heir.start_when_free()
    assert 900 < len(failures) < 990
