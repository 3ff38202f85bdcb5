"""The loop looks ahead where an objective or a policy needs it, journals what it saw, and replay comes to the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from loop_world import JOB, Scripted, World

from rheostat.control.replay import replay
from rheostat.errors import InvalidValue
from rheostat.forecast.loads import Loads, backtest_is_due, forecast_load
from rheostat.job.decision import Decision, Reason
from rheostat.job.forecast import LAST_VALUE, Forecast, ForecastChoice, Foresight
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Observation, SourceReading
from rheostat.job.record import Run
from rheostat.job.slo import SLO
from rheostat.journal.memory import MemoryJournal
from rheostat.policy.registry import make_policy
from rheostat.ports import Policy, Situation

OBJECTIVES = SLO(max_recovery_s=180.0)


@dataclass(frozen=True)
class Curious(Policy[None]):
    """Says what it was told about the future."""

    name: ClassVar[str] = "curious"
    wants_forecast: ClassVar[bool] = True

    def decide(self, situation: Situation[None]) -> Decision:
        forecast = situation.forecast
        told = forecast.path(0.5) if forecast else ()
        evidence = {f"ahead.{k}": rate for k, rate in enumerate(told)}
        return Decision.hold(Reason.STEADY, forecast.model if forecast else "nothing", evidence=evidence)


def test_without_need_nothing_is_forecast() -> None:
    world = World(Scripted())
    world.step()
    assert not world.records(Forecast, ForecastChoice)
    assert world.controller.state.loads is None


def test_a_policy_that_wants_it_is_handed_a_forecast_of_this_very_step() -> None:
    world = World(Curious())
    step = world.step(60)
    world.step(60)
    (first, second) = world.records(Forecast)
    assert isinstance(first, Forecast)
    assert isinstance(second, Forecast)
    assert first.at_s == step.observation.at_s
    assert step.decision.sentence == LAST_VALUE
    assert step.decision.evidence["ahead.0"] == pytest.approx(step.observation.load_per_s)
    assert len(second.rates_per_s) == 10


def test_the_choice_is_made_after_enough_was_seen_and_then_from_time_to_time() -> None:
    world = World(Curious(), foresight=Foresight(horizon_s=300.0, choose_every_s=600.0))
    for _ in range(55):
        world.step(60)
    choices = [record for record in world.records() if isinstance(record, ForecastChoice)]
    assert len(choices) == 3
    assert {choice.model for choice in choices} == {LAST_VALUE}
    assert "never changed" in choices[0].why


def test_a_restarted_controller_remembers_loads_choice_and_downtimes() -> None:
    world = World(make_policy("ds2", {}), slo=OBJECTIVES)
    for _ in range(10):
        world.step(60)
    world.fleet.fail(0)
    for _ in range(6):
        world.step(30)
    before = world.controller.state
    assert before.recoveries is not None
    assert before.loads is not None
    assert len(before.recoveries.downtimes.restarts) == 1
    world.controller.stop()
    again = World(make_policy("ds2", {}), slo=OBJECTIVES, journal=world.journal).controller.state
    # A new run begins without having seen the job up.
    started = replace(before.recoveries, downtimes=replace(before.recoveries.downtimes, up=False))
    assert again.recoveries == started
    assert again.loads == before.loads
    # Without the objective, what it was kept by is not carried along.
    bare = World(make_policy("ds2", {}), journal=_copied(world)).controller.state
    assert (bare.recoveries, bare.loads, bare.forecast) == (None, None, None)


def _copied(world: World) -> Any:
    world.controller.stop()
    journal = MemoryJournal()
    lease = journal.acquire(JOB, "copy", 60.0)
    for entry in world.journal.read(JOB):
        journal.append(lease, entry.step, [entry.record])
    journal.release(lease)
    return journal


def test_replay_comes_to_the_same_decisions() -> None:
    world = World(make_policy("ds2", {}), slo=OBJECTIVES, foresight=Foresight(300.0, choose_every_s=900.0))
    for _ in range(50):
        world.step(60)
    world.fleet.fail(0)
    for _ in range(10):
        world.step(60)
    replayed = replay(world.journal, JOB, lambda run: make_policy(run.policy, run.options))
    assert replayed.steps == 60
    assert replayed.differences == ()


def test_the_objective_raises_what_a_policy_may_ask_for() -> None:
    plain, promised = (World(make_policy("ds2", {}), slo=slo) for slo in (SLO(), OBJECTIVES))
    for _ in range(6):
        small, large = plain.step(60), promised.step(60)
    assert large.observation.running.slots > small.observation.running.slots
    assert "recovery.downtime_s" in large.decision.evidence
    (run,) = promised.records(Run)
    assert isinstance(run, Run)
    assert run.foresight == Foresight()


def test_the_floor_can_be_turned_off() -> None:
    world = World(make_policy("ds2", {}), slo=OBJECTIVES, guards=replace(UNGUARDED, recovery_floor=False))
    for _ in range(3):
        step = world.step(60)
    assert not any(name.startswith("recovery") for name in step.decision.evidence)
    assert world.controller.foresight is None


def test_a_policy_that_never_moves_is_moved_to_the_floor() -> None:
    world = World(Scripted(), slo=OBJECTIVES)
    steps = [world.step(60) for _ in range(4)]
    assert any(step.intent and "recovery within 180 s" in step.decision.sentence for step in steps)


def test_a_misspelt_forecaster_is_an_error_at_the_start() -> None:
    with pytest.raises(InvalidValue, match="did you mean 'profile'"):
        World(Curious(), foresight=Foresight(candidates=("profil",)))


def test_a_clock_that_jumps_costs_a_choice_and_nothing_else() -> None:
    loads = Loads(tuple(60.0 * k for k in range(60)), tuple(100.0 + k % 7 for k in range(60)))
    choice, ahead = ForecastChoice(1e9), Foresight(horizon_s=300.0)
    assert backtest_is_due(loads, choice, ahead, 3600.0)
    assert not backtest_is_due(loads, ForecastChoice(3000.0), ahead, 3600.0)
    back = Loads((*loads.at_s, 30.0), (*loads.rates_per_s, 100.0))
    told = forecast_load(back, None, ahead, (0.5,), 3600.0)
    assert told is not None
    assert any("backwards" in note for note in told.notes)


def test_windows_that_do_not_know_the_load_are_left_out() -> None:
    seen = Loads().with_window(Observation.blind(5.0, "nothing"))
    assert seen == Loads()
    for wrong in (float("nan"), -1.0, float("inf"), None):
        window = Observation(5.0, 0.0, 5.0, None, None, sources=(SourceReading("s", wrong),))
        assert Loads().with_window(window) == Loads()
    assert forecast_load(Loads(), None, Foresight(), (0.5,), 5.0) is None
