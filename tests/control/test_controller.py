"""The loop survives its engine and its policy, holds when it is blind, and judges what it applied."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from loop_world import JOB, Scripted, World

from rheostat.control.controller import Pace
from rheostat.control.cycle import Awaiting, judge
from rheostat.control.memory import remember
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Interval, Measurement, Phase, Reason, Trial, Verdict
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Observation
from rheostat.job.record import Ending, Intent, IntentEnd, IntentStep, Record, Run
from rheostat.lab.jobs import job
from rheostat.policy.ds2 import DS2
from rheostat.policy.hpa import HPA
from rheostat.ports import Policy, Situation
from rheostat.testing.engine import Failing, Ignoring, Late, Lying, Partial
from rheostat.testing.situations import window, word_count


def test_a_step_journals_before_it_applies() -> None:
    world = World(Scripted((7,)))
    seen: list[list[type]] = []
    apply = world.engine.apply

    def watched(intent: Intent, note: Any) -> None:
        seen.append([type(r) for r in world.records()])
        apply(intent, note)

    world.engine.apply = watched  # type: ignore[method-assign]
    step = world.step()
    assert step.intent is not None
    assert seen == [[Run, Observation, Decision, Intent]]
    assert [type(r) for r in world.records()] == [Run, Observation, Decision, Intent, IntentStep, IntentStep]
    later = world.step()
    assert later.decision.reason is Reason.MIXED
    ends = world.records(IntentEnd)
    assert [(e.ending, e.running) for e in ends if isinstance(e, IntentEnd)] == [
        (Ending.DONE, Allocation({"splitter": 7, "count": 3}))
    ]


def test_an_engine_may_journal_its_steps_from_a_thread_of_its_own() -> None:
    """As an engine does that restarts a job in the background, while the loop goes on."""

    class Yielding(Scripted):
        def learn(self, knowledge: int, record: Record) -> int:
            time.sleep(0)  # lets the other thread in between reading and writing
            return knowledge + 1

    world = World(Yielding((7,)))
    noting: list[threading.Thread] = []

    def apply(intent: Intent, note: Any) -> None:
        noting.append(threading.Thread(target=lambda: [note(f"step {k}") for k in range(200)]))
        noting[0].start()

    world.engine.apply = apply  # type: ignore[method-assign]
    world.step()
    while noting[0].is_alive():
        world.step(1)
    world.step()
    assert [r.name for r in world.records(IntentStep) if isinstance(r, IntentStep)] == [f"step {k}" for k in range(200)]
    # Knowledge and state are folds over the records: none was lost.
    assert (world.controller.state, world.controller.knowledge) == remember(world.journal, world.controller.mind)


def test_holds_while_a_change_is_under_way() -> None:
    world = World(Scripted((7, 9)))
    world.step()
    assert world.step(5).decision.reason is Reason.UNUSABLE
    assert world.step(25).decision.target is None
    assert world.step(120).decision.target == Allocation({"splitter": 9, "count": 3})


def test_the_policy_is_told_what_it_asked_for_and_what_it_got() -> None:
    seen: list[Situation[Any]] = []

    @dataclass(frozen=True)
    class Watcher(Scripted):
        def decide(self, situation: Situation[int]) -> Decision:
            seen.append(situation)
            return super().decide(situation)

    world = World(Watcher((50, None)), guards=replace(UNGUARDED, max_step_up=2.0))
    world.step()
    world.step()
    assert seen[1].asked == Allocation({"splitter": 50, "count": 3})
    assert seen[1].applied == Allocation({"splitter": 10, "count": 3})
    assert seen[1].memo == {"turn": 1}
    assert seen[1].changed_at_s is not None


NAN = math.nan


@pytest.mark.parametrize(
    "lie",
    [
        lambda w: None,
        lambda w: {"rate": 5},
        lambda w: replace(w, sources=tuple(replace(s, rate_per_s=NAN) for s in w.sources)),
        lambda w: replace(w, operators=tuple(replace(o, records_in_per_s=-1.0) for o in w.operators)),
        lambda w: replace(w, operators=tuple(replace(o, true_rate_per_s=0.0) for o in w.operators)),
        lambda w: replace(w, running=Allocation({"somebody": 1})),
        lambda w: replace(w, operators=()),
        lambda w: replace(w, operators=None),
        lambda w: replace(w, sources=tuple(replace(s, rate_per_s="many") for s in w.sources)),
        lambda w: replace(w, running=None),
    ],
)
@pytest.mark.parametrize("policy", [DS2(), HPA()])
def test_rubbish_means_hold(lie: Callable[[Observation], Any], policy: Policy[Any]) -> None:
    world = World(policy, spoil=lambda e: Lying(e, lie), load=0.5)
    for _ in range(3):
        step = world.step()
        assert step.decision.target is None
        assert step.observation.problem
    assert not world.records(Intent)


def test_a_window_seen_before_is_stale() -> None:
    kept: list[Observation] = []

    def same(window: Observation) -> Observation:
        kept.append(window)
        return replace(kept[0], at_s=window.at_s)

    world = World(DS2(), spoil=lambda e: Lying(e, same), load=0.5)
    world.step()
    step = world.step()
    assert step.decision.reason is Reason.UNUSABLE
    assert "stale" in (step.observation.problem or "")


@pytest.mark.parametrize("call", ["describe", "observe"])
def test_an_engine_that_raises_is_asked_again_later(call: str) -> None:
    world = World(Scripted((7,)), spoil=lambda e: Failing(e, {}))
    assert isinstance(world.engine, Failing)
    world.engine.times[call] = 2
    for _ in range(2):
        step = world.step()
        assert step.decision.reason is Reason.UNUSABLE
        assert "connection refused" in (step.observation.problem or "")
    assert world.step().decision.target is not None


def test_an_engine_that_hangs_does_not_hang_the_loop() -> None:
    pace = Pace(observe_deadline_s=0.05, apply_deadline_s=0.05)
    world = World(Scripted((7,)), spoil=lambda e: Late(e, "observe"), pace=pace)
    assert isinstance(world.engine, Late)
    first, second = world.step(), world.step()
    assert "did not return within" in (first.observation.problem or "")
    assert "earlier observe" in (second.observation.problem or "")
    world.engine.let_go.set()
    late = world.controller._observing._late
    assert late is not None
    late.join()
    assert world.step().decision.target is not None


def test_an_apply_that_hangs_stays_open_until_it_shows() -> None:
    pace = Pace(observe_deadline_s=None, apply_deadline_s=0.05)
    world = World(Scripted((7,)), spoil=lambda e: Late(e, "apply"), pace=pace)
    assert isinstance(world.engine, Late)
    assert "EngineLate" in (world.step().problem or "")
    assert world.step().decision.reason is Reason.CHANGING
    world.engine.let_go.set()
    late = world.controller._applying._late
    assert late is not None
    late.join()
    world.step()
    world.step()
    assert [e.ending for e in world.records(IntentEnd) if isinstance(e, IntentEnd)] == [Ending.DONE]


def test_a_refused_change_is_tried_again_with_the_same_intent() -> None:
    world = World(Scripted((7,)), spoil=lambda e: Failing(e, {"apply": 2}))
    assert "connection refused" in (world.step().problem or "")
    world.step()
    world.step()
    world.step()
    intents = [r for r in world.records(Intent) if isinstance(r, Intent)]
    ends = [r for r in world.records(IntentEnd) if isinstance(r, IntentEnd)]
    assert len(intents) == 1
    assert [e.ending for e in ends] == [Ending.DONE]
    assert world.fleet.running[0].tasks["splitter"] == 7


def test_a_partial_grant_is_noticed_and_decided_upon() -> None:
    world = World(Scripted((9,)), spoil=lambda e: Partial(e, 6))
    world.step()
    world.step()
    (end,) = (r for r in world.records(IntentEnd) if isinstance(r, IntentEnd))
    assert end.ending is Ending.PARTIAL
    assert end.running == Allocation({"splitter": 6, "count": 3})
    assert "wanted splitter=9" in end.why


def test_a_change_that_never_shows_fails_after_the_patience() -> None:
    world = World(Scripted((7,)), spoil=Ignoring, guards=replace(UNGUARDED, change_patience_s=300.0))
    assert isinstance(world.engine, Ignoring)
    for _ in range(4):
        world.step()
    (end,) = (r for r in world.records(IntentEnd) if isinstance(r, IntentEnd))
    assert end.ending is Ending.FAILED
    assert len({i.id for i in world.engine.applied}) == 1


@pytest.mark.parametrize("left", [6, 9])
def test_a_failed_change_that_left_something_else_is_undone(left: int) -> None:
    """The engine says that it failed, half way or with the right number: the loop asks for what ran before."""

    class HalfWay(Ignoring):
        def observe(self) -> Observation:
            window = super().observe()
            if not self.applied or any(i.undoes for i in self.applied):
                return replace(window, change=self.engine.observe().change)
            return replace(window, running=Allocation({"splitter": left, "count": 3}))

    world = World(Scripted((9,)), spoil=lambda e: HalfWay(e, fail=True))
    world.step()
    undoing = world.step()
    assert undoing.decision.reason is Reason.UNDO
    assert undoing.intent is not None
    assert undoing.intent.target == Allocation({"splitter": 5, "count": 3})
    world.step()
    endings = [r.ending for r in world.records(IntentEnd) if isinstance(r, IntentEnd)]
    assert endings == [Ending.FAILED, Ending.UNDONE]


@pytest.mark.parametrize(
    ("expects", "verdict", "says"),
    [
        (Expectation(3e5, Interval.at_least(2.9e5)), Verdict.KEPT, "as expected"),
        (Expectation(3e5, Interval.at_least(9e5)), Verdict.MISSED, "throughput_per_s"),
        (Expectation(3e5, None, Interval.at_most(1e-6)), Verdict.MISSED, "latency_s"),
        (Expectation(1e5, Interval.at_least(9e5)), Verdict.LOAD_CHANGED, "above the expected"),
        (Expectation(), Verdict.UNJUDGED, "nothing was expected"),
    ],
)
def test_every_applied_decision_is_judged(expects: Expectation, verdict: Verdict, says: str) -> None:
    world = World(Scripted((9,), expects))
    world.step()
    outcome = world.step(300).outcome
    assert outcome is not None
    assert (outcome.step, outcome.verdict) == (0, verdict)
    assert says in outcome.sentence
    assert outcome.downtime_s is not None
    assert world.step().outcome is None


def test_a_decision_that_is_replaced_too_soon_is_unjudged() -> None:
    @dataclass(frozen=True)
    class Hasty(Scripted):
        reads_partial_windows: ClassVar[bool] = True

    world = World(Hasty((9, 8)))
    world.step()
    step = world.step(25)  # it runs again, but there is no clean window yet
    assert step.outcome is not None
    assert step.outcome.verdict is Verdict.UNJUDGED


def test_a_policy_that_breaks_means_hold() -> None:
    @dataclass(frozen=True)
    class Broken(Scripted):
        def decide(self, situation: Situation[int]) -> Decision:
            raise ZeroDivisionError("division by zero")

    @dataclass(frozen=True)
    class Forgetful(Scripted):
        def learn(self, knowledge: int, record: Record) -> int:
            if isinstance(record, Observation):
                raise KeyError("splitter")
            return knowledge

    @dataclass(frozen=True)
    class Confused(Scripted):
        def decide(self, situation: Situation[int]) -> Decision:
            return Decision(Allocation({"mapper": 3}), Reason.MIXED, "wrong job")

    for policy in (Broken((7,)), Forgetful((7,)), Confused()):
        decision = World(policy).step().decision
        assert decision.reason is Reason.NO_POLICY
        assert decision.target is None


def test_trials_run_on_the_testbed_and_are_learned_from() -> None:
    phases = (Phase(30, {"lines": 2e5}), Phase(30, {"lines": 2e5}, observed=True))
    trial = Trial("profile", Allocation({"splitter": 4, "count": 2}), phases)
    policy = Scripted((None,), trials=(trial,))
    world = World(policy, testbed=SimulatedTestbed(job(JOB)))
    before = world.controller.knowledge
    (measured,) = world.step().measurements
    assert measured.problem is None
    assert measured.observation is not None
    assert world.controller.knowledge == before + 3  # window, decision, measurement

    class Broken:
        def measure(self, trial: Trial) -> Measurement:
            raise OSError("no such cluster")

    for guards, testbed, says in (
        (UNGUARDED, None, "not run: there is no testbed"),
        (replace(UNGUARDED, explore="never"), SimulatedTestbed(job(JOB)), "not run: explore = never"),
        (UNGUARDED, Broken(), "OSError: no such cluster"),
    ):
        (skipped,) = World(policy, testbed=testbed, guards=guards).step().measurements
        assert skipped == Measurement(trial, None, 0.0, 0.0, says)


def test_an_engine_without_a_time_is_blind() -> None:
    world = World(DS2(), spoil=lambda e: Lying(e, lambda w: replace(w, at_s=NAN)))
    step = world.step()
    assert step.observation.at_s == 120.0
    assert step.decision.target is None


def test_a_window_that_begins_with_the_change_judges_it() -> None:
    seen = window(word_count(), 500.0, 4, 600.0, at_s=1000.0)
    for since_s, judged in ((seen.start_s - 1.0, True), (seen.start_s, True), (seen.start_s + 1.0, False)):
        waiting = Awaiting(3, Decision(None, Reason.MIXED, "larger"), since_s, None)
        assert (judge(waiting, seen) is not None) is judged


def test_a_change_says_how_long_it_will_stop_the_output() -> None:
    class Costly(Failing):
        def observe(self) -> Any:
            return replace(super().observe(), change_costs_s={"splitter": 12.0, "count": 30.0})

    step = World(Scripted((7,)), spoil=lambda engine: Costly(engine, {})).step()
    assert step.decision.evidence["expected_downtime_s"] == 12.0, "of the operators that change"
