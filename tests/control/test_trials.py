"""Trials run beside the loop: the controller looks at its job while they last, and their results are records."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from rheostat.control.controller import IMMEDIATE, Controller, Step
from rheostat.control.replay import replay
from rheostat.control.trials import Trials
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.testbed.loads import Constant
from rheostat.errors import JournalError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Phase, Reason, Trial
from rheostat.job.record import Record
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.jobs import job
from rheostat.ports import Policy, Situation

JOB = "wordcount"
WAIT_S = 20.0
"""Seconds after which a test gives up on a thread."""


def trial(name: str) -> Trial:
    tasks = dict.fromkeys(job(JOB).spec().tunable_names, 3)
    return Trial(name, Allocation(tasks), (Phase(75.0, {"lines": 1.0}, observed=True),))


class SlowBed:
    """A testbed whose trials end when the test says so."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Semaphore(0), threading.Semaphore(0)
        self.names: list[str] = []
        self.at_once, self.most_at_once = 0, 0

    def measure(self, trial: Trial) -> Measurement:
        self.names.append(trial.name)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.begun.release()
        assert self.may_end.acquire(timeout=WAIT_S)
        self.at_once -= 1
        return Measurement(trial, None, 75.0, 75.0)

    def next(self) -> None:
        """Let the running trial end."""
        assert self.begun.acquire(timeout=WAIT_S)
        self.may_end.release()


@dataclass(frozen=True)
class Curious(Policy[tuple[str, ...]]):
    """Requests the trials that it has not learned of yet."""

    name: ClassVar[str] = "curious"
    wants: tuple[str, ...] = ("a", "b")

    def initial(self) -> tuple[str, ...]:
        return ()

    def learn(self, knowledge: tuple[str, ...], record: Record) -> tuple[str, ...]:
        return (*knowledge, record.trial.name) if isinstance(record, Measurement) else knowledge

    def decide(self, situation: Situation[tuple[str, ...]]) -> Decision:
        missing = tuple(trial(name) for name in self.wants if name not in situation.knowledge)
        return Decision.hold(Reason.TRIAL, f"knows {situation.knowledge}", trials=missing)


class World:
    """A controller whose engine is read on a thread, as on Spark."""

    def __init__(self, policy: Policy[Any], bed: Any) -> None:
        self.fleet, self.journal = Fleet(job(JOB), [Constant(1.0)], [0]), MemoryJournal()
        pace = replace(IMMEDIATE, observe_deadline_s=WAIT_S)
        clock = FleetClock(self.fleet)
        self.controller = Controller(self.fleet.engine(0), policy, self.journal, clock, testbed=bed, pace=pace)
        self.controller.start()

    def step(self) -> Step:
        self.fleet.advance(60)
        return self.controller.step()

    def settle(self, count: int) -> None:
        """Wait until so many measurements have ended that no step has taken."""
        trials, passed = self.controller._trials, threading.Event()
        for _ in range(int(WAIT_S / 0.01)):
            with trials._lock:
                if len(trials._ended) >= count:
                    return
            passed.wait(0.01)
        raise AssertionError("the trial has not ended")


def test_the_job_is_looked_at_while_a_trial_runs_and_the_result_enters_a_later_step() -> None:
    bed = SlowBed()
    world = World(Curious(), bed)
    first, second = world.step(), world.step()
    assert (first.measurements, second.measurements) == ((), ())
    assert second.observation.usable
    bed.next()
    world.settle(1)
    third = world.step()
    assert [m.trial.name for m in third.measurements] == ["a"]
    assert third.decision.sentence == "knows ('a',)", "folded before the policy is asked"
    bed.next()
    world.settle(1)
    fourth = world.step()
    assert fourth.decision.sentence == "knows ('a', 'b')"
    world.step()
    assert bed.names == ["a", "b"], "none is started twice"
    assert bed.most_at_once == 1
    assert replay(world.journal, JOB, lambda run: Curious()).differences == ()


def test_what_is_no_longer_requested_is_not_started() -> None:
    bed = SlowBed()
    trials = Trials(bed, beside=True)
    trials.request([trial("a"), trial("b")])
    trials.request([trial("c")])
    trials.request([])
    assert bed.begun.acquire(timeout=WAIT_S)
    bed.may_end.release()
    for thread in threading.enumerate():
        if thread.name == "rheostat-trials":
            thread.join(WAIT_S)
    assert bed.names == ["a"]
    assert [m.trial.name for m in trials.take()] == ["a"]
    assert trials.take() == []


def test_a_controller_that_stops_starts_no_further_trial() -> None:
    bed = SlowBed()
    world = World(Curious(), bed)
    world.step()
    world.controller.stop()
    bed.next()
    world.settle(1)
    assert bed.names == ["a"]


@pytest.mark.parametrize("beside", [False, True])
def test_a_trial_that_breaks_is_a_measurement_with_a_problem_and_the_next_one_runs(beside: bool) -> None:
    class Bed:
        def measure(self, trial: Trial) -> Measurement:
            if trial.name == "a":
                raise OSError("no such cluster")
            return Measurement(trial, None, 1.0, 1.0)

    trials = Trials(Bed(), beside)
    trials.request([trial("a"), trial("b")])
    for thread in threading.enumerate():
        if thread.name == "rheostat-trials":
            thread.join(WAIT_S)
    assert [m.problem for m in trials.take()] == ["OSError: no such cluster", None]


def test_a_measurement_that_cannot_be_journaled_is_requested_again() -> None:
    bed = SlowBed()
    world = World(Curious(("a",)), bed)
    world.step()
    bed.next()
    world.settle(1)
    append = world.journal.append

    def fail(*_: Any) -> int:
        raise JournalError("full")

    world.journal.append = fail  # type: ignore[method-assign, assignment]
    world.step()
    world.journal.append = append  # type: ignore[method-assign]
    world.step()
    bed.next()
    world.settle(1)
    assert world.step().decision.sentence == "knows ('a',)"
    assert bed.names == ["a", "a"]
