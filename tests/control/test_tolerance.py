"""What the live loop tolerates, a restart tolerates: poisoned windows, policies and snapshots; clocks; lost answers."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from loop_world import JOB, Scripted, World

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.control.cycle import State
from rheostat.control.memory import remember
from rheostat.control.replay import replay
from rheostat.errors import JournalError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Phase, Reason, Trial
from rheostat.job.frozen import from_json, to_json
from rheostat.job.guards import UNGUARDED, Guards
from rheostat.job.observation import Observation, Status
from rheostat.job.record import Intent, IntentEnd, Record, Run, Snapshot
from rheostat.job.slo import SLO
from rheostat.journal.memory import MemoryJournal
from rheostat.journal.sql import SqlJournal
from rheostat.policy.conttune.policy import ContTune
from rheostat.policy.ds2 import DS2
from rheostat.ports import Engine, Lease, Note, Situation


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqlJournal]:
    opened = SqlJournal(tmp_path / "journal.db", wall=time.time)
    yield opened
    opened.close()


class Spoilt:
    """An engine that changes some of its windows."""

    def __init__(self, engine: Engine, spoil: Any, at: tuple[int, ...] = (1,)) -> None:
        self.engine, self.spoil, self.at, self.looks = engine, spoil, at, -1

    def describe(self) -> Any:
        return self.engine.describe()

    def observe(self) -> Observation:
        self.looks += 1
        window = self.engine.observe()
        return self.spoil(window) if self.looks in self.at else window

    def apply(self, intent: Intent, note: Note) -> None:
        self.engine.apply(intent, note)


def many(window: Observation) -> Observation:
    return replace(window, sources=tuple(replace(s, rate_per_s="many") for s in window.sources))  # type: ignore[arg-type]


def restarted(world: World, policy: Any = None, **rest: Any) -> Controller[Any]:
    """Start another controller on the same journal, after the first has ended without a word."""
    world.controller._lease = None
    journal, clock = world.journal, world.clock
    with sqlite_free(journal):
        again: Controller[Any] = Controller(
            world.engine, policy or world.controller.mind.policy, journal, clock, pace=world.controller.pace, **rest
        )
        again.start()
    return again


@contextmanager
def sqlite_free(journal: Any) -> Iterator[None]:
    """Let every lease have ended."""
    before = journal._wall
    journal._wall = lambda: before() + 1000.0
    try:
        yield
    finally:
        journal._wall = before


@pytest.mark.parametrize(
    "spoil",
    [
        many,
        lambda window: replace(window, bottlenecks=(3,)),
        lambda window: replace(window, running={"splitter": 3}),
        lambda window: replace(window, at_s=True),
        lambda window: replace(window, overdue_s=[1.0]),
        lambda window: replace(window, problem=object()),
    ],
)
def test_a_wrongly_typed_window_is_blind_live_and_after_a_restart(journal: SqlJournal, spoil: Any) -> None:
    world = World(DS2(), journal=journal, spoil=lambda engine: Spoilt(engine, spoil))
    assert world.step().observation.usable
    poisoned = world.step()
    assert poisoned.decision.target is None
    assert poisoned.decision.reason is Reason.UNUSABLE
    assert world.step().observation.usable
    again = restarted(world)
    world.fleet.advance(60)
    assert again.step().observation.usable
    assert (again.state, again.knowledge) == remember(journal, again.mind)


@dataclass(frozen=True)
class Delicate(Scripted):
    """Cannot learn from the second window."""

    name: ClassVar[str] = "delicate"

    def learn(self, knowledge: int, record: Record) -> int:
        if isinstance(record, Observation) and 120.0 < record.at_s < 360.0:
            raise ValueError("cannot learn from this")
        return knowledge + 1


def test_a_policy_that_cannot_learn_from_one_window_restarts(journal: SqlJournal) -> None:
    world = World(Delicate((None,) * 9), journal=journal)
    steps = [world.step() for _ in range(4)]
    assert [step.policy_failure is not None for step in steps] == [False, True, False, False]
    live = world.controller.state, world.controller.knowledge
    again = restarted(world)
    assert (again.state.step, again.knowledge) == (live[0].step, live[1] + 1), "the run record is the only news"


@pytest.mark.parametrize(
    ("state", "knowledge"), [('{"shape": 2}', "0"), ("no json", "0"), (None, '{"other": "shape"}'), (None, "[")]
)
def test_a_snapshot_of_another_shape_is_passed_over(
    journal: SqlJournal, state: str | None, knowledge: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(Scripted((7, None, None)), journal=journal)
    for _ in range(3):
        world.step()
    good = (world.controller.state, world.controller.knowledge)
    from rheostat.control.memory import snapshot

    shot = snapshot(good[0], good[1], world.clock.now())
    bad = replace(shot, state=shot.state if state is None else state, knowledge=knowledge)
    assert world.controller._lease is not None
    journal.append(world.controller._lease, 3, [bad])
    with caplog.at_level(logging.WARNING, logger="rheostat"):
        again = restarted(world)
    assert again.state.step == good[0].step
    assert "snapshot" in caplog.text


def test_a_record_that_cannot_be_read_is_skipped_and_reported(
    journal: SqlJournal, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(Scripted((None,) * 9), journal=journal)
    for _ in range(3):
        world.step()
    numbers = [entry.number for entry in journal.read(JOB, kinds=("observation",))]
    with closing(sqlite3.connect(tmp_path / "journal.db")) as raw, raw:
        raw.execute('UPDATE record SET body = \'{"at_s": "soon"}\' WHERE number = ?', (numbers[1],))
    with caplog.at_level(logging.WARNING, logger="rheostat"):
        again = restarted(world)
    assert again.step().decision.reason is not Reason.UNJOURNALED
    assert f"record {numbers[1]} " in caplog.text


def test_knowledge_of_more_tasks_than_any_cluster_has_is_passed_over(journal: SqlJournal, tmp_path: Path) -> None:
    world = World(ContTune(), journal=journal)
    for _ in range(3):
        world.step()
    world.controller.stop()
    knowledge = json.loads(to_json(world.controller.knowledge))
    knowledge["operators"]["splitter"][-1]["tasks"] = 10**18
    with closing(sqlite3.connect(tmp_path / "journal.db")) as raw, raw:
        query = "UPDATE record SET body = json_set(body, '$.knowledge', ?) WHERE kind = 'snapshot'"
        raw.execute(query, (json.dumps(knowledge),))
    again = restarted(world, ContTune())
    assert again.knowledge == world.controller.knowledge


def test_a_policy_that_cannot_read_its_memo_starts_afresh(journal: SqlJournal) -> None:
    @dataclass(frozen=True)
    class Muddled(Scripted):
        def decide(self, situation: Situation[int]) -> Decision:
            turns = situation.memo.get("turns", 0) + 1
            return Decision.hold(Reason.STEADY, "", memo={"turns": "many" if situation.step == 1 else turns})

    world = World(Muddled(()), journal=journal)
    reasons = [world.step().decision.reason for _ in range(5)]
    assert reasons == [Reason.STEADY, Reason.STEADY, Reason.NO_POLICY, Reason.STEADY, Reason.STEADY]
    assert replay(journal, JOB, lambda _: Muddled(())).differences == ()


def test_a_memo_is_the_same_after_a_restart_from_a_snapshot(journal: SqlJournal) -> None:
    @dataclass(frozen=True)
    class Listing(Scripted):
        def decide(self, situation: Situation[int]) -> Decision:
            return Decision.hold(Reason.STEADY, "", memo={"seen": [1, [2, {"deep": []}]]})

    world = World(Listing(()), journal=journal, pace=replace(IMMEDIATE, snapshot_every=1))
    world.step()
    live = world.controller.state.memo
    assert live == {"seen": (1, (2, {"deep": ()}))}
    assert restarted(world).state.memo == live


@pytest.mark.parametrize("kind", ["run", "observation", "decision", "intent", "intent_end", "snapshot"])
def test_replay_skips_the_steps_that_a_damaged_record_hides(journal: SqlJournal, tmp_path: Path, kind: str) -> None:
    world = World(Scripted((7, None) * 20), journal=journal, pace=replace(IMMEDIATE, snapshot_every=5))
    for _ in range(8):
        world.step(60)
    number = next(entry.number for entry in journal.read(JOB, kinds=(kind,)))
    with closing(sqlite3.connect(tmp_path / "journal.db")) as raw, raw:
        raw.execute("UPDATE record SET body = substr(body, 1, 9) WHERE number = ?", (number,))
    again = restarted(world)
    for _ in range(12):
        world.fleet.advance(60)
        again.step()
    found = replay(journal, JOB, lambda _: Scripted((7, None) * 20))
    assert found.differences == ()
    assert found.skipped < 14, "steps are repeated again after the restart and its first snapshot"
    assert found.steps + found.skipped == 20 - (kind == "observation")


def test_a_start_that_fails_gives_the_lease_back() -> None:
    class Broken(Scripted):
        def initial(self) -> int:
            return 0

    journal = MemoryJournal()
    world = World(Broken(()), journal=journal)
    world.controller.stop()

    def fail(*_: Any, **__: Any) -> Any:
        raise JournalError("the connection is gone")

    read, journal.read = journal.read, fail  # type: ignore[method-assign]
    with pytest.raises(JournalError, match="gone"):
        world.controller.start()
    journal.read = read  # type: ignore[method-assign]
    world.controller.start()


def test_a_dry_run_does_not_finish_the_change_of_a_dead_controller() -> None:
    class Deaf(Spoilt):
        def apply(self, intent: Intent, note: Note) -> None:
            note("ask")  # killed here

    world = World(Scripted((7,)), spoil=lambda engine: Deaf(engine, None, ()))
    world.step()
    assert [r.target.tasks["splitter"] for r in world.records(Intent) if isinstance(r, Intent)] == [7]
    asked: list[Intent] = []
    world.engine.apply = lambda intent, note: asked.append(intent)  # type: ignore[method-assign]
    again = restarted(world, guards=replace(UNGUARDED, dry_run=True))
    reasons = []
    for _ in range(4):
        world.fleet.advance(60)
        reasons.append(again.step().decision.reason)
    assert asked == []
    assert Reason.CHANGING not in reasons[1:], "a change that is given up does not hold decisions"
    (end,) = [r for r in world.records(IntentEnd) if isinstance(r, IntentEnd)]
    assert "dry run" in end.why


@pytest.mark.parametrize("ahead_s", [3600.0, 86_400.0 * 365])
@pytest.mark.parametrize("whole", [True, False])
def test_one_window_from_the_future_costs_one_window(journal: SqlJournal, ahead_s: float, whole: bool) -> None:
    def spoil(window: Observation) -> Observation:
        at_s = window.at_s + ahead_s if whole else window.at_s
        return replace(window, at_s=at_s, start_s=window.start_s + ahead_s, end_s=window.end_s + ahead_s)

    world = World(DS2(), journal=journal, spoil=lambda engine: Spoilt(engine, spoil))
    windows = [world.step().observation for _ in range(5)]
    assert [window.usable for window in windows] == [True, False, True, True, True]
    if whole:
        assert "and the clock says 240 s" in (windows[1].problem or "")
    again = restarted(world)
    world.fleet.advance(120)
    assert again.step().observation.usable


def test_a_clock_that_is_set_back_costs_no_windows(journal: SqlJournal) -> None:
    def spoil(window: Observation) -> Observation:
        return replace(window, at_s=window.at_s - 3600, start_s=window.start_s - 3600, end_s=window.end_s - 3600)

    world = World(DS2(), journal=journal, spoil=lambda engine: Spoilt(engine, spoil, tuple(range(2, 99))))
    now = world.clock.now
    usable = []
    for turn in range(6):
        if turn == 2:
            world.clock.now = lambda: now() - 3600.0  # type: ignore[method-assign]
        usable.append(world.step().observation.usable)
    assert usable == [True] * 6


class Dumb(Exception):  # noqa: N818
    """An exception without a message."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


@pytest.mark.parametrize("error", [ValueError("\ud800"), Dumb(), KeyError("x" * 10**6)])
@pytest.mark.parametrize("place", ["observe", "describe", "decide", "learn", "measure", "apply"])
def test_the_text_of_an_exception_stops_no_step(journal: SqlJournal, error: Exception, place: str) -> None:
    def fail(*_: Any) -> Any:
        raise error

    class Bed:
        measure = staticmethod(fail)

    trial = Trial("t", Allocation({"splitter": 3, "count": 3}), (Phase(10.0, {"lines": 1.0}, observed=True),))
    policy = Scripted((7,) * 9, trials=(trial,))
    world = World(policy, journal=journal, testbed=Bed())
    owner = policy if place in ("decide", "learn") else world.engine
    if place != "measure":
        object.__setattr__(owner, place, fail)
    world.step()
    world.step()
    assert (
        max(len(entry.record.problem or "") for entry in journal.read(JOB) if isinstance(entry.record, Observation))
        < 1000
    )
    world.controller.stop()


def test_a_policy_that_cannot_learn_from_the_run_record_starts(journal: SqlJournal) -> None:
    @dataclass(frozen=True)
    class Unable(Scripted):
        def learn(self, knowledge: int, record: Record) -> int:
            if isinstance(record, Run):
                raise ValueError("not from this")
            return knowledge + 1

    world = World(Unable((None,)), journal=journal)
    assert world.controller.policy_failures == 1
    assert world.step().decision.reason is Reason.MIXED
    again = restarted(world)
    assert (again.state, again.knowledge) == remember(journal, again.mind)


def test_knowledge_that_json_cannot_hold_costs_the_snapshot(journal: SqlJournal) -> None:
    @dataclass(frozen=True)
    class Odd(Scripted):
        def learn(self, knowledge: Any, record: Record) -> Any:
            return object()

    world = World(Odd((None,) * 9), journal=journal, pace=replace(IMMEDIATE, snapshot_every=1))
    assert world.step().decision.reason is Reason.MIXED
    world.controller.stop()
    assert world.records(Snapshot) == []


def test_a_measurement_that_json_cannot_hold_is_a_measurement_with_a_problem(journal: SqlJournal) -> None:
    class Bed:
        def measure(self, trial: Trial) -> Measurement:
            return Measurement(trial, None, "soon", 0.0, object())  # type: ignore[arg-type]

    trial = Trial("t", Allocation({"splitter": 3, "count": 3}), (Phase(10.0, {"lines": 1.0}, observed=True),))
    world = World(Scripted((None,), trials=(trial,)), journal=journal, testbed=Bed())
    (measurement,) = world.step().measurements
    assert "Measurement" in (measurement.problem or "")
    assert world.records(Measurement) == [measurement]


def test_the_description_of_another_job_is_not_believed(journal: SqlJournal) -> None:
    world = World(DS2(), journal=journal)
    spec = world.engine.describe()
    world.engine.describe = lambda: replace(spec, name="another")  # type: ignore[method-assign]
    step = world.step()
    assert step.decision.reason is Reason.UNUSABLE
    assert "another" in (step.observation.problem or "")
    world.engine.describe = lambda: spec  # type: ignore[method-assign]
    assert world.step().observation.usable
    assert len(world.records(Run)) == 1


def test_a_window_that_nothing_can_be_computed_from_is_blind(journal: SqlJournal) -> None:
    def huge(window: Observation) -> Observation:
        return replace(window, running=Allocation({"splitter": 10**400, "count": 3}))

    world = World(DS2(), journal=journal, guards=Guards(), spoil=lambda engine: Spoilt(engine, huge))
    assert [world.step().observation.usable for _ in range(3)] == [True, False, True]


def test_a_window_that_breaks_the_thinking_is_blind_and_seen(
    journal: SqlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflow(*_: Any) -> Any:
        raise OverflowError("int too large to convert to float")

    world = World(DS2(), journal=journal)
    with monkeypatch.context() as broken:
        broken.setattr("rheostat.control.cycle.apply_guards", overflow)
        step = world.step()
    assert step.decision.reason is Reason.UNUSABLE
    assert "OverflowError" in str(step.policy_failure)
    assert world.controller.policy_failures == 1
    assert world.step().policy_failure is None
    assert restarted(world).state.step == 2


@pytest.mark.parametrize("value", [1e18, 1e300])
def test_an_absurd_load_does_not_enter_what_is_remembered(journal: SqlJournal, value: float) -> None:
    def absurd(window: Observation) -> Observation:
        sources = tuple(replace(s, rate_per_s=value) for s in window.sources)
        return replace(window, status=Status.RECOVERING, sources=sources, downtime_s=value, uptime_s=1.0)

    slo = SLO(max_recovery_s=100.0)
    world = World(DS2(), journal=journal, slo=slo, spoil=lambda engine: Spoilt(engine, absurd, (1, 2)))
    for _ in range(4):
        world.step()
    state = world.controller.state
    assert state.loads is not None
    assert max(state.loads.rates_per_s) < 1e9
    assert state.recoveries is not None
    assert state.recoveries.downtimes.quantile(0.9, 0.0) < 1e9


class Lossy(MemoryJournal):
    """Commits, and loses the answer, where it should."""

    lose = False

    def append(self, lease: Lease, step: int, records: Any) -> int:
        number = super().append(lease, step, records)
        if self.lose:
            self.lose = False
            raise JournalError("the answer was lost")
        return number


def test_a_lost_answer_before_the_end_leaves_a_snapshot_that_is_the_fold() -> None:
    journal = Lossy()
    world = World(Scripted((7, None, None)), journal=journal)
    world.step()
    journal.lose = True
    assert world.step().decision.reason is Reason.UNJOURNALED
    world.controller.stop()
    mind = world.controller.mind
    entries = list(journal.read(JOB))
    snapshots = [entry for entry in entries if isinstance(entry.record, Snapshot)]
    folded = MemoryJournal()
    lease = folded.acquire(JOB, "fold", 60.0)
    if snapshots:
        before = [entry.record for entry in entries if entry.number < snapshots[-1].number]
        folded.append(lease, 0, before)
        assert isinstance(snapshots[-1].record, Snapshot)
        assert from_json(State, snapshots[-1].record.state) == remember(folded, mind)[0]
    assert len(world.records(IntentEnd)) == 1


def test_a_decision_that_json_cannot_hold_is_the_policys_failure(journal: SqlJournal) -> None:
    @dataclass(frozen=True)
    class Odd(Scripted):
        def decide(self, situation: Situation[int]) -> Decision:
            return replace(Decision.hold(Reason.STEADY, "odd"), sentence=3, evidence={"x": "many"})  # type: ignore[arg-type, dict-item]

    world = World(Odd(()), journal=journal)
    step = world.step()
    assert step.decision.reason is Reason.NO_POLICY
    again = restarted(world)
    world.fleet.advance(60)
    assert again.step().decision.reason is Reason.NO_POLICY


class Stepped:
    """A wall clock that is set back by an hour after the second turn; sleeping takes no real time."""

    def __init__(self) -> None:
        self.passed_s, self.offset_s = 0.0, 1e6

    def now(self) -> float:
        return self.passed_s + self.offset_s

    def monotonic(self) -> float:
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        self.passed_s += max(0.0, seconds)


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_a_wall_clock_that_is_set_does_not_change_the_pace(jump_s: float) -> None:
    world, clock = World(Scripted(())), Stepped()
    world.controller.clock = clock
    turns: list[float] = []

    def each(_: Any) -> None:
        turns.append(clock.monotonic())
        if len(turns) == 2:
            clock.offset_s += jump_s
        if len(turns) == 6:
            world.controller.halt()

    world.controller.run(10.0, each=each)
    assert turns == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
