"""Two controllers on one journal and one job, in random storms: at most one acts, and nothing happens twice.

A storm freezes a controller inside a change, lets a change hang and go on later, kills a controller, stops it, pauses
it, loses answers of the journal, sets clocks, and lets the other one take over; some controllers are dry runs.
RHEOSTAT_STORMS in the environment sets their number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar

import pytest

from rheostat.control.controller import IMMEDIATE, Controller, Step
from rheostat.control.memory import remember
from rheostat.errors import EngineError, EngineLate, JournalError, LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.graph import JobSpec
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Change, Observation
from rheostat.job.record import Intent, IntentEnd
from rheostat.journal.memory import MemoryJournal
from rheostat.ports import Lease, Note, Policy, Situation
from rheostat.testing.situations import window, word_count

STORMS = int(os.environ.get("RHEOSTAT_STORMS", "2000"))
PARTS = 4
TURNS = 24
LEASE_S = 40.0
SPEC = word_count()


class World:
    """Time, a job, and what was done to it."""

    def __init__(self, seed: int) -> None:
        self.random, self.passed_s = Random(seed), 0.0
        self.journal = Lossy(self)
        self.tasks = {"split": 4, "count": 4}
        self.violations: list[str] = []
        self.actors = [Actor(self, dry_run=self.random.random() < 0.2) for _ in range(2)]


class Lossy(MemoryJournal):
    """Loses an answer now and then, after or before it has written."""

    def __init__(self, world: World) -> None:
        super().__init__(wall=lambda: world.passed_s)
        self.world, self.losing = world, False

    def append(self, lease: Lease, step: int, records: Any) -> int:
        lost = self.losing and self.world.random.random() < 0.3
        if lost and self.world.random.random() < 0.5:
            raise JournalError("the connection broke before the write")
        number = super().append(lease, step, records)
        if lost:
            raise JournalError("the connection broke after the write")
        return number

    def token(self) -> int:
        return self._jobs[SPEC.name].lease.token

    def ended(self) -> set[str]:
        return {e.record.intent for e in self._jobs[SPEC.name].entries if isinstance(e.record, IntentEnd)}


class Actor:
    """One driver: its clock, its view of the job, and its controller, which it may lose."""

    def __init__(self, world: World, dry_run: bool) -> None:
        self.world, self.offset_s, self.dry_run = world, 0.0, dry_run
        self.controller: Controller[None] | None = None
        self.freeze = self.hang = False
        self.late: list[Iterator[None]] = []
        """Calls that hang: each act of theirs still comes."""

    # -- the clock
    def now(self) -> float:
        return 1e6 + self.world.passed_s + self.offset_s

    def monotonic(self) -> float:
        return self.world.passed_s

    def sleep(self, seconds: float) -> None:
        self.world.passed_s += max(0.0, seconds)

    # -- the engine
    def describe(self) -> JobSpec:
        return SPEC

    def observe(self) -> Observation:
        seen = window(SPEC, 500.0, 4, 600.0, at_s=self.now())
        running = Allocation(self.world.tasks)
        return replace(seen, running=running, wanted=running, change=Change.NONE)

    def apply(self, intent: Intent, note: Note) -> None:
        lease = self.controller._lease if self.controller else None
        assert lease is not None
        acts = self.act(intent, note, lease)
        if self.hang:
            self.hang = False
            for _ in range(self.world.random.randrange(3)):
                next(acts, None)
            self.late.append(acts)
            raise EngineLate("apply did not return within 120 s")
        for _ in acts:
            pass

    def act(self, intent: Intent, note: Note, lease: Lease) -> Iterator[None]:
        for name, tasks in intent.target.tasks.items():
            note(f"{name} {tasks}")
            if lease.token != self.world.journal.token():
                self.world.violations.append("an overtaken controller acted")
            if self.dry_run:
                self.world.violations.append("a dry run acted")
            if intent.id in self.world.journal.ended():
                self.world.violations.append("a change acted after its end")
            self.world.tasks = {**self.world.tasks, name: tasks}
            if self.freeze:
                # Suspended: the other one has all the time that it needs.
                self.freeze = False
                self.world.passed_s += self.world.random.choice((1.0, LEASE_S / 2, 3 * LEASE_S))
                for actor in self.world.actors:
                    if actor is not self and self.world.random.random() < 0.8:
                        actor.turn()
            yield

    # -- what happens to it
    def go_on(self) -> None:
        """Let a call that hangs do its next act; one of a controller that was killed is gone with it."""
        if self.late:
            with suppress(JournalError, EngineError):
                next(self.late[0], None)
                return
            self.late.pop(0)

    def lose(self) -> None:
        self.controller = None
        self.late.clear()

    def turn(self) -> Step | None:
        world = self.world
        try:
            if self.controller is None:
                guards = replace(UNGUARDED, dry_run=self.dry_run, change_patience_s=100.0)
                pace = replace(IMMEDIATE, lease_s=LEASE_S, snapshot_every=7)
                starting: Controller[None] = Controller(
                    self, Wandering(), world.journal, self, guards=guards, pace=pace
                )
                starting.start()
                self.controller = starting
            held = self.controller
            step = held.step()
            overtaken = held._lease is None or held._lease.token != world.journal.token()
            if not held._unsure and not overtaken and world.random.random() < 0.3:
                assert (held.state, held.knowledge) == remember(world.journal, held.mind), "memory is not the fold"
            assert step.decision.reason is not Reason.NO_POLICY, step.decision.sentence
        except LeaseRefused:
            self.controller = None
            return None
        except JournalError:
            return None
        return step


@dataclass(frozen=True)
class Wandering(Policy[None]):
    """Asks for another size at nearly every step."""

    name: ClassVar[str] = "wandering"

    def decide(self, situation: Situation[None]) -> Decision:
        tasks = {name: 2 + (7 * situation.step + place) % 5 for place, name in enumerate(situation.running.tasks)}
        return situation.change_to(situation.fit(tasks))


def storm(seed: int) -> None:
    world = World(seed)
    random = world.random
    for _ in range(TURNS):
        world.passed_s += random.choice((1.0, 10.0, 10.0, 10.0, 60.0))
        actor = random.choice(world.actors)
        happens = random.random()
        world.journal.losing = random.random() < 0.2
        if happens < 0.08:
            actor.lose()  # killed
        elif happens < 0.14 and actor.controller is not None:
            with suppress(JournalError):
                actor.controller.stop()
            actor.controller = None
        elif happens < 0.20:
            actor.offset_s += random.choice((-3600.0, -25.0, 25.0, 3600.0))
        elif happens < 0.32:
            actor.freeze = True
        elif happens < 0.44:
            actor.hang = True
        elif happens < 0.54:
            actor.go_on()
        if happens > 0.94 and actor.controller is not None and actor.controller._heart is not None:
            # Paused, or busy with a trial: only its heart beats.
            for _ in range(random.randrange(8)):
                world.passed_s += LEASE_S / 4
                actor.controller._heart.beat()
        else:
            actor.turn()
    world.journal.losing = False
    assert world.violations == []
    check_intents(world)
    check_calm(world)


def check_intents(world: World) -> None:
    """Every intent ends at most once, only the last may be open, and nothing is done after its end."""
    opened: list[str] = []
    ended: dict[str, int] = {}
    for entry in world.journal.read(SPEC.name):
        record = entry.record
        if isinstance(record, Intent):
            opened.append(record.id)
        elif isinstance(record, IntentEnd):
            ended[record.intent] = ended.get(record.intent, 0) + 1
    assert all(count == 1 for count in ended.values()), ended
    assert len(opened) == len(set(opened)), "an intent was opened twice"
    assert set(opened[:-1]) <= set(ended), "an intent before the last one is still open"


def check_calm(world: World) -> None:
    """Once the storm is over, a controller decides within three clean windows."""
    (first, second) = world.actors
    second.lose()
    first.freeze = first.hang = False
    world.passed_s += 10 * LEASE_S
    steps: list[Step] = []
    for _ in range(5):
        world.passed_s += 60.0
        if (step := first.turn()) is not None and len(steps) < 3:  # overtaken: it starts again
            steps.append(step)
    reasons = [step.decision.reason for step in steps]
    assert set(reasons) - {Reason.UNUSABLE, Reason.CHANGING, Reason.UNDO, Reason.UNJOURNALED, Reason.DOWN}, reasons


@pytest.mark.parametrize("part", range(PARTS))
def test_storms_on_two_controllers(part: int) -> None:
    for seed in range(part, STORMS, PARTS):
        try:
            storm(seed)
        except AssertionError as error:
            raise AssertionError(f"storm {seed}: {error}") from error
