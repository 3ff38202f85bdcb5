"""What the loop remembers: journal before deed, leases, restarts, retention, replay."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loop_world import JOB, Scripted, World

from rheostat.control.controller import IMMEDIATE, Controller, Pace
from rheostat.control.cycle import Mind
from rheostat.control.replay import replay
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.testbed.loads import Steps
from rheostat.errors import InvalidValue, JournalError, LeaseRefused
from rheostat.job.decision import Reason
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Observation
from rheostat.job.record import Ending, Intent, IntentEnd, Record, Run, Snapshot
from rheostat.job.slo import SLO, Bounds
from rheostat.journal import open_journal
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.jobs import job
from rheostat.policy.ds2 import DS2
from rheostat.policy.hpa import HPA
from rheostat.ports import Lease, Policy
from rheostat.testing.engine import Failing


class Flaky(MemoryJournal):
    """A journal whose disk is full for a while."""

    full = False

    def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
        if self.full:
            raise JournalError("database or disk is full")
        return super().append(lease, step, records)


def test_what_cannot_be_written_down_is_not_done() -> None:
    journal = Flaky()
    world = World(Scripted((7,)), journal=journal)
    journal.full = True
    step = world.step()
    assert step.decision.reason is Reason.UNJOURNALED
    assert "disk is full" in (step.problem or "")
    assert world.fleet.wanted[0].tasks["splitter"] == 5
    journal.full = False
    assert world.step().decision.target is not None
    assert world.fleet.wanted[0].tasks["splitter"] == 7


def test_a_second_controller_is_refused_and_a_dead_ones_lease_expires() -> None:
    now = [1000.0]
    journal = MemoryJournal(wall=lambda: now[0])
    first = World(Scripted((7,)), journal=journal)
    with pytest.raises(LeaseRefused):
        World(Scripted(), journal=journal)
    now[0] += 61.0
    second = World(Scripted(), journal=journal)
    second.step()
    with pytest.raises(LeaseRefused):
        first.step()
    assert first.fleet.wanted[0].tasks["splitter"] == 5


def test_state_and_knowledge_outlive_the_controller(tmp_path: Path) -> None:
    journal = open_journal(str(tmp_path / "j.db"))
    world = World(Scripted((7, 8, 9)), journal=journal, pace=replace(IMMEDIATE, snapshot_every=2))
    for _ in range(3):
        world.step()
    assert world.records(Snapshot)
    known = world.controller.knowledge
    world.controller.stop()
    again = Controller(world.engine, Scripted((7, 8, 9)), journal, world.clock, pace=IMMEDIATE)
    again.start()
    assert again.state.step == 3
    assert again.state.memo == {"turn": 3}
    assert again.state.open == world.controller.state.open
    assert again.knowledge >= known
    other = DS2()
    again.stop()
    changed = Controller(world.engine, other, journal, world.clock, pace=IMMEDIATE)
    changed.start()
    assert changed.state.memo == {}
    journal.close()


def test_a_change_that_a_dead_controller_left_open_is_finished() -> None:
    now = [0.0]
    journal = MemoryJournal(wall=lambda: now[0])
    world = World(Scripted((7,)), journal=journal, spoil=lambda e: Failing(e, {"apply": 1}))
    world.step()  # the intent is written, the engine refused, and the controller dies here
    now[0] += 1000.0
    heir = Controller(world.engine, Scripted(()), journal, world.clock, pace=IMMEDIATE)
    heir.start()
    for _ in range(3):
        world.fleet.advance(100)
        heir.step()
    assert world.fleet.running[0].tasks["splitter"] == 7
    (end,) = (r for r in world.records(IntentEnd) if isinstance(r, IntentEnd))
    assert end.ending is Ending.DONE


def test_old_records_go_behind_a_snapshot_and_replay_still_works() -> None:
    world = World(DS2(), pace=replace(IMMEDIATE, snapshot_every=5, retention_s=600.0))
    for _ in range(30):
        world.step(60)
    windows = world.records(Observation)
    assert len(windows) < 25
    assert isinstance(world.records()[0], Run)
    replayed = replay(world.journal, JOB, lambda run: DS2())
    assert replayed.differences == ()
    assert replayed.steps == len(windows)


def test_retention_is_bounded_unless_it_is_switched_off() -> None:
    """Of 2.9 kB per step at 10 s, 14 days are 0.4 GB and a year is 9 GB."""
    assert Pace().retention_s == 14 * 86_400.0
    assert IMMEDIATE.retention_s is None
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidValue, match="retention_s"):
            Pace(retention_s=wrong)
    changing = [0]

    class Restless(Failing):
        def describe(self) -> Any:
            changing[0] += 1
            return replace(super().describe(), slots_available=50 + changing[0] % 2)

    pace = replace(IMMEDIATE, snapshot_every=5, retention_s=600.0)
    world = World(DS2(), pace=pace, spoil=lambda engine: Restless(engine, {}))
    sizes = []
    for _ in range(60):
        world.step(60)
        sizes.append(len(world.records()))
    assert max(sizes[30:]) <= max(sizes[:30]), "neither windows nor runs add up"


def test_a_policy_that_takes_over_learns_from_a_bounded_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rheostat.control.memory.TAIL", 40)
    journal = MemoryJournal()
    world = World(DS2(), journal=journal, pace=replace(IMMEDIATE, snapshot_every=10))
    for _ in range(60):
        world.step(60)
    live = world.controller.state
    world.controller.stop()
    read = []
    whole = journal.read

    def counted(*arguments: Any, **named: Any) -> Any:
        for entry in whole(*arguments, **named):
            read.append(entry.number)
            yield entry

    journal.read = counted  # type: ignore[method-assign]
    heir = Controller(world.engine, Scripted((None,) * 9), journal, world.clock, pace=IMMEDIATE)
    heir.start()
    journal.read = whole  # type: ignore[method-assign]
    assert heir.knowledge == 40 + 2, "the last records, then its own run and snapshot"
    assert len(read) < 60
    assert heir.state.step == live.step
    assert heir.state.stability == live.stability
    for _ in range(3):
        world.fleet.advance(60)
        heir.step()
    known = heir.knowledge
    heir.stop()
    again = Controller(world.engine, Scripted((None,) * 9), journal, world.clock, pace=IMMEDIATE)
    again.start()
    assert again.knowledge == known + 1, "its own snapshot of the end is found, then the new run"
    policies: dict[str, Any] = {"ds2": DS2(), "scripted": Scripted((None,) * 9)}
    replayed = replay(journal, JOB, lambda run: policies[run.policy])
    assert (replayed.steps, replayed.differences) == (63, ())


def test_replay_begins_at_a_snapshot_where_records_before_it_are_partly_deleted() -> None:
    world = World(DS2(), pace=replace(IMMEDIATE, snapshot_every=5), load=6.0)
    for _ in range(12):
        world.step(60)
    entries = world.journal._jobs[JOB].entries
    world.journal._jobs[JOB].entries = [entries[0], *entries[7:]]
    replayed = replay(world.journal, JOB, lambda run: DS2())
    assert replayed.differences == ()
    assert 0 < replayed.steps < 12


@pytest.mark.parametrize("policy", [DS2(), HPA(), Scripted((7, None, 12, 3))])
def test_replay_decides_alike(policy: Policy[Any]) -> None:
    world = World(policy, guards=replace(UNGUARDED, cooldown_down_s=200.0, max_step_up=1.5), load=6.0)
    for _ in range(12):
        world.step(60)
    assert world.records(Intent)
    found = replay(world.journal, JOB, lambda run: policy)
    assert (found.steps, found.differences) == (12, ())
    other = replay(world.journal, JOB, lambda run: Scripted((40,)))
    assert other.differences


def test_replay_of_an_unknown_job_names_the_known_ones() -> None:
    world = World(DS2())
    with pytest.raises(InvalidValue, match="it has: wordcount"):
        replay(world.journal, "nobody", lambda run: DS2())


def test_a_changed_description_is_journaled() -> None:
    class Growing(Failing):
        def describe(self) -> Any:
            spec = super().describe()
            return replace(spec, slots_available=None if world_step[0] < 1 else 20)

    world_step = [0]
    world = World(Scripted((50, 50)), spoil=lambda e: Growing(e, {}))
    world_step[0] = 1
    step = world.step()
    assert len(world.records(Run)) == 2
    assert step.decision.target is not None
    assert step.decision.target.slots <= 20
    assert step.decision.guards[0].guard == "bounds"


def test_run_repeats_on_the_clock_and_skips_missed_turns() -> None:
    world = World(Scripted())
    times: list[float] = []
    step = world.controller.step

    def slow() -> Any:
        times.append(world.clock.now())
        if len(times) == 2:
            world.fleet.advance(100)
        if len(times) == 4:
            world.controller.halt()
        return step()

    world.controller.step = slow  # type: ignore[method-assign]
    world.controller.run(60.0)
    assert times == [0.0, 60.0, 180.0, 240.0]


def test_run_ends_at_a_moment() -> None:
    world = World(Scripted())
    world.controller.run(60.0, until_s=300.0)
    assert world.controller.state.step == 6


def test_a_load_that_has_just_jumped_is_looked_at_again_soon_and_not_decided_from() -> None:
    world = World(Scripted((7,)))
    observe = world.controller.engine.observe
    seen: list[tuple[float, Reason, str]] = []

    def jumping() -> Observation:
        return replace(observe(), settles_in_s=2.0 if len(seen) == 1 else 0.0)

    def each(step: Any) -> None:
        seen.append((world.clock.now(), step.decision.reason, step.decision.sentence))

    world.controller.engine.observe = jumping  # type: ignore[method-assign]
    world.controller.run(60.0, until_s=190.0, each=each)
    assert [at_s for at_s, _, _ in seen] == [0.0, 60.0, 62.0, 122.0, 182.0]
    assert seen[1][1:] == (Reason.WAITING, "the load has just jumped: it is measured again in 2.0 s")
    assert Reason.WAITING not in {reason for at, (_, reason, _) in enumerate(seen) if at != 1}


def test_one_factor_only() -> None:
    spec = job(JOB).spec()
    with pytest.raises(InvalidValue, match=r"slo.headroom \(0.2\) and ds2's scaling_factor \(0.1\)"):
        Mind(DS2(scaling_factor=0.1), spec, SLO(headroom=0.2), UNGUARDED, 0)
    assert Mind(DS2(), spec, SLO(headroom=0.2, job=Bounds(1, 9)), UNGUARDED, 0).limits.slots.max == 9


def test_a_rising_load_is_followed_end_to_end() -> None:
    fleet = Fleet(job(JOB), [Steps((1.0, 6.0, 2.0), 900)], [1], trace=True)
    clock = FleetClock(fleet)
    with Controller(
        fleet.engine(0), DS2(), MemoryJournal(), clock, slo=SLO(headroom=0.2), pace=IMMEDIATE
    ) as controller:
        controller.run(60.0, until_s=2700.0)
    slots = fleet.trace()["slots"][:, 0]
    assert slots[890] < slots[1790] > slots[2690]
    assert fleet.trace()["backlog"][1790, 0] == 0.0


def test_a_batch_that_was_written_after_all_is_found_and_finished() -> None:
    """The connection is lost while committing: nobody told the loop that its intent is in the journal."""

    class LostAnswer(MemoryJournal):
        lost = False

        def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
            number = super().append(lease, step, records)
            if self.lost:
                self.lost = False
                raise JournalError("server closed the connection unexpectedly")
            return number

    journal = LostAnswer()
    world = World(Scripted((7,)), journal=journal)
    journal.lost = True
    assert world.step().decision.reason is Reason.UNJOURNALED
    assert world.fleet.wanted[0].tasks["splitter"] == 5
    for _ in range(3):
        world.step()
    assert world.fleet.running[0].tasks["splitter"] == 7
    assert len(world.records(Intent)) == 1
    assert len(world.records(IntentEnd)) == 1


def test_a_paused_controller_does_not_look() -> None:
    world = World(Scripted())
    seen: list[int] = []

    def each(step: Any) -> None:
        seen.append(step.number)
        world.controller.paused = len(seen) == 2

    world.controller.run(60.0, until_s=300.0, each=each)
    assert seen == [0, 1]
