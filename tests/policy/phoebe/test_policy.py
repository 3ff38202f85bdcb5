"""Phoebe, TWRES and anticipate: sizes, forecasts, waiting, and runs in the control loop."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.control.limits import limits
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Reason
from rheostat.job.forecast import Forecast
from rheostat.job.frozen import from_json, to_json
from rheostat.job.observation import Latency, Observation
from rheostat.job.slo import SLO
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.jobs.phoebe import ysb
from rheostat.model.downtime import Downtimes
from rheostat.model.profile import Point
from rheostat.model.recovery import Course, recovery_time_s
from rheostat.policy.phoebe.anticipate import Anticipate
from rheostat.policy.phoebe.knowledge import Knowledge, forecast_rates
from rheostat.policy.phoebe.load_series import LoadSeries
from rheostat.policy.phoebe.outage import PREDICTED, Outages
from rheostat.policy.phoebe.policy import Phoebe, projected_load
from rheostat.policy.phoebe.twres import TWRES
from rheostat.policy.registry import make_policy
from rheostat.ports import Situation

PLANT = ysb()
SPEC = PLANT.spec()


def capacity(size: int) -> float:
    return PLANT.capacity_per_s("job", size, Allocation({"job": size}))


def profile() -> tuple[Point, ...]:
    """The profile of this job, without running one."""
    points = []
    for size in (2, 8, 14, 20):
        for rate in np.arange(20e3, capacity(size) + 20e3, 20e3):
            full = rate > capacity(size)
            points.append(Point(size, float(rate), min(float(rate), capacity(size)), 30.0 if full else 1.05))
    return tuple(points)


def series(rates: list[float], at_s: float = 6000.0) -> LoadSeries:
    result = LoadSeries()
    for k, value in enumerate(rates):
        result = result.add(at_s - 30.0 * (len(rates) - 1 - k), value)
    return result


def at(rates: list[float], running: int = 12, slo: SLO | None = None, **rest: Any) -> Situation[Knowledge]:
    fleet = Fleet(PLANT, [Constant(rates[-1])], [0], start=[Allocation({"job": running})])
    fleet.advance(200)
    window = replace(fleet.engine(0).observe(), at_s=6000.0, start_s=5900.0, end_s=5960.0, uptime_s=6000.0)
    downtimes = rest.pop("downtimes", Downtimes((), 65.0))
    knowledge = Knowledge(load=series(rates), outages=Outages(downtimes, interval_s=10.0), profile=profile())
    slo = slo or SLO()
    window = replace(window, **rest)
    return Situation(SPEC, slo, limits(SPEC, slo), window, knowledge, 10, 0, {})


def slots_after(decision: Decision, running: int = 12) -> int:
    return running if decision.target is None else decision.target.slots


DONE: dict[str, Any] = {"smallest": 2, "largest": 20, "deployments": 4}
"""Options under which the profile above is complete."""


def test_phoebe_selects_the_smallest_scale_out_that_recovers_in_time() -> None:
    for load in (30e3, 60e3, 90e3, 120e3):
        decision = Phoebe(downtime_s=90.0, target_s=180.0, forecast="last value", **DONE).decide(at([load] * 40, 24))
        size = slots_after(decision, 24)
        course = Course.constant(load)
        assert recovery_time_s(capacity(size), course, 10.0, 90.0) <= 182.0
        assert recovery_time_s(capacity(size - 1), course, 10.0, 90.0) > 178.0
        assert decision.evidence[PREDICTED] <= 180.0


def test_phoebe_reads_the_objective_from_the_slo() -> None:
    strict, loose = (Phoebe(**DONE).decide(at([60e3] * 40, 12, SLO(max_recovery_s=s))) for s in (150.0, 600.0))
    assert slots_after(strict) > slots_after(loose)


def test_a_load_above_every_capacity_gets_the_largest_size() -> None:
    for policy in (Phoebe(**DONE), Anticipate(**DONE)):
        decision = policy.decide(at([900e3] * 40, 12))
        assert slots_after(decision) == 24
        assert "recovers within 180 s" in decision.sentence
        assert decision.evidence[PREDICTED] == math.inf


def test_without_load_the_smallest_size_is_selected() -> None:
    for policy in (Phoebe(**DONE), TWRES(**DONE), Anticipate(price_s=0.0, **DONE)):
        assert slots_after(policy.decide(at([0.0] * 40))) == 2


def test_phoebe_waits_for_an_interval_of_uptime() -> None:
    policy = Phoebe(**DONE)
    decision = policy.decide(at([150e3] * 40, 4, uptime_s=599.0))
    assert decision.target is None
    assert decision.reason is Reason.WAITING
    assert decision.memo["due_s"] == 6600.0
    situation = replace(at([150e3] * 40, 4), memo={"at_s": 5800.0, "due_s": 6400.0})
    assert policy.decide(situation).reason is Reason.WAITING
    # A clock that was set back does not delay it for ever.
    assert policy.decide(replace(situation, memo={"at_s": 9e5, "due_s": 9e5})).target is not None


def test_bins_look_far_ahead_when_load_rises_and_near_when_it_falls() -> None:
    rising = np.linspace(100.0, 200.0, 20)
    assert projected_load(rising, 5) == pytest.approx(rising[-4:].mean())
    assert projected_load(rising[::-1], 5) == pytest.approx(rising[-4:].mean())
    assert projected_load([7.0], 5) == 7.0


def test_latency_may_need_more_than_recovery() -> None:
    relaxed = Phoebe(downtime_s=1.0, target_s=86_400.0, **DONE).decide(at([150e3] * 40, 24))
    size = slots_after(relaxed, 24)
    assert capacity(size) > 150e3
    assert size >= 9


def test_a_trace_of_three_points_is_enough() -> None:
    for policy in (Phoebe(**DONE), TWRES(**DONE), Anticipate(**DONE)):
        decision = policy.decide(at([60e3] * 3))
        assert all(not math.isnan(value) for value in decision.evidence.values())
        assert decision.evidence


def test_ours_learns_downtimes_from_failures() -> None:
    fast = Downtimes((), 65.0)
    for seconds in (60.0, 66.0, 64.0, 70.0, 65.0):
        fast = fast.with_restart(seconds)
    slow = Downtimes((), 65.0)
    for _ in range(10):
        slow = slow.with_restart(110.0)
    short, long = (Anticipate(price_s=0.0, **DONE).decide(at([80e3] * 40, 2, downtimes=d)) for d in (fast, slow))
    assert slots_after(long) > slots_after(short)
    downtime = short.evidence["downtime_s"]
    assert downtime == pytest.approx(fast.quantile(0.9))
    assert recovery_time_s(capacity(slots_after(short)), Course.constant(80e3), 5.0, downtime) <= 181.0


def test_ours_grows_before_the_load_arrives() -> None:
    rising = [40e3 + 80.0 * 30 * k for k in range(30)]
    flat = [rising[-1]] * 30
    assert slots_after(Anticipate(price_s=0.0, **DONE).decide(at(rising, 9))) > slots_after(
        Anticipate(price_s=0.0, **DONE).decide(at(flat, 9))
    )


def test_ours_shrinks_once_the_waste_equals_the_price() -> None:
    policy, situation = Anticipate(price_s=100.0, **DONE), at([60e3] * 40, 20)
    assert slots_after(Anticipate(price_s=0.0, **DONE).decide(situation), 20) < 20
    size, looks, wasted = 20, 0, 0.0
    while size == 20:
        decision = policy.decide(situation)
        size, looks = slots_after(decision, 20), looks + 1
        assert decision.memo["wasted"] >= wasted or size < 20
        wasted = float(decision.memo["wasted"])
        moved = replace(situation.window, at_s=situation.window.at_s + 30.0)
        situation = replace(situation, window=moved, memo=decision.memo)
    # 100 s of 24 workers, over the saving of every window of 30 s; the first window has no duration yet.
    assert looks == math.ceil(100.0 * 24 / (30.0 * (20 - size))) + 1


def test_ours_grows_further_where_the_load_climbs_fast() -> None:
    steep, slow = ([150e3 - slope * 30.0 * k for k in range(39, -1, -1)] for slope in (80.0, 20.0))
    free, paid = (Anticipate(price_s=price, **DONE) for price in (0.0, 100.0))
    assert slots_after(paid.decide(at(steep, 9)), 9) > slots_after(free.decide(at(steep, 9)), 9)
    assert slots_after(paid.decide(at(steep, 9)), 9) >= slots_after(paid.decide(at(slow, 9)), 9)


def test_ours_holds_while_the_job_catches_up() -> None:
    situation = at([80e3] * 40, 24)
    source = replace(situation.window.sources[0], lag_s=50.0)
    behind = replace(situation, window=replace(situation.window, sources=(source,)))
    assert Anticipate(price_s=0.0, **DONE).decide(situation).target is not None
    held = Anticipate(price_s=0.0, **DONE).decide(behind)
    assert held.target is None
    assert "catches up" in held.sentence


def test_twres_sizes_for_the_load_and_adds_one_when_latency_is_too_high() -> None:
    calm = TWRES(forecast="last value", **DONE).decide(at([100e3] * 40, 12))
    assert capacity(slots_after(calm)) >= 100e3 > capacity(slots_after(calm) - 1) * 0.9
    slow = Latency(3.0, 3.0, 3.0, 3.0, 3.0, 3.0)
    assert slots_after(TWRES(**DONE).decide(at([100e3] * 40, 12, latency=slow))) == 13


@pytest.mark.parametrize("name", ["phoebe", "twres", "anticipate"])
def test_impossible_options_are_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match="horizon_s"):
        make_policy(name, {"horizon_s": 0})
    with pytest.raises(InvalidValue, match="deployments"):
        make_policy(name, {"deployments": 0})


def controlled(
    policy: Any,
    testbed: Any = None,
    hours: float = 1.0,
    load: float = 60e3,
    failures_s: tuple[float, ...] = (900.0, 2400.0),
) -> Controller[Any]:
    fleet = Fleet(PLANT, [Constant(load)], [1], failures_s=failures_s)
    controller = Controller(
        fleet.engine(0), policy, MemoryJournal(), FleetClock(fleet), testbed=testbed, pace=IMMEDIATE
    )
    with controller:
        controller.run(30.0, until_s=3600.0 * hours)
    return controller


def test_in_the_loop_it_profiles_first_and_journals_the_trials() -> None:
    small: dict[str, Any] = {
        "smallest": 2,
        "largest": 14,
        "deployments": 3,
        "rate_step_per_s": 50e3,
        "settle_s": 60.0,
        "observe_s": 30.0,
    }
    for policy in (Phoebe(**small), Anticipate(**small)):
        controller = controlled(policy, SimulatedTestbed(PLANT), load=15e3)
        entries = list(controller.journal.read(SPEC.name))
        trials = [e.record for e in entries if isinstance(e.record, Measurement)]
        assert trials
        assert all(m.problem is None and m.slot_seconds > 0 for m in trials)
        decisions = [e.record for e in entries if isinstance(e.record, Decision)]
        assert next(d for d in decisions if d.reason is not Reason.UNUSABLE).reason is Reason.TRIAL
        assert any(d.target is not None for d in decisions)
        knowledge = controller.knowledge
        assert from_json(Knowledge, to_json(knowledge)) == knowledge


def test_without_a_testbed_live_windows_are_used() -> None:
    controller = controlled(Anticipate())
    entries = [e.record for e in controller.journal.read(SPEC.name)]
    assert any(isinstance(r, Measurement) and r.problem for r in entries)
    last = [r for r in entries if isinstance(r, Decision)][-1]
    assert last.evidence["t_max_per_s"] > 60e3
    assert len(controller.knowledge.outages.recoveries) == 2
    assert last.evidence["last_recovery_s"] > 60.0


@pytest.mark.parametrize("load", [0.0, 60e3, 900e3])
@pytest.mark.parametrize(
    "failures_s", [(5.0,), (600.0, 650.0, 700.0, 760.0)], ids=["first minute", "while it recovers"]
)
def test_failures_at_the_worst_moments_are_handled(load: float, failures_s: tuple[float, ...]) -> None:
    for policy in (Phoebe(profile=False, evaluation_s=120.0), Anticipate(profile=False), TWRES(profile=False)):
        controller = controlled(policy, load=load, failures_s=failures_s, hours=0.5)
        for entry in controller.journal.read(SPEC.name):
            if isinstance(entry.record, Decision):
                assert entry.record.reason is not Reason.NO_POLICY, entry.record.sentence
                assert not any(math.isnan(value) for value in entry.record.evidence.values())
                assert entry.record.evidence.get(PREDICTED, 0.0) >= 0.0
        for recovery in controller.knowledge.outages.recoveries:
            assert 0.0 <= recovery.downtime_s <= recovery.took_s < math.inf


def test_the_loops_own_forecast_can_be_used() -> None:
    forecast = Forecast(6000.0, 60.0, (0.1, 0.5, 0.9), tuple((0.0, 100e3 + 4e3 * k, 1e9) for k in range(10)))
    situation = replace(at([100e3] * 40, 12), forecast=forecast)
    path = forecast_rates(situation, "chosen", 900.0)
    assert list(path[:4]) == [100e3, 100e3, 104e3, 104e3]
    assert path[-1] == 136e3
    assert list(forecast_rates(replace(situation, forecast=None), "chosen", 60.0)) == [100e3, 100e3]
    assert Anticipate(forecast="chosen").wants_forecast
    controller = controlled(Anticipate(forecast="chosen", profile=False))
    assert controller.journal.latest(SPEC.name, "forecast") is not None


def test_the_same_journal_gives_the_same_decisions() -> None:
    def sentences() -> list[str]:
        entries = controlled(Anticipate(profile=False)).journal.read(SPEC.name)
        return [e.record.sentence for e in entries if isinstance(e.record, Decision)]

    assert sentences() == sentences()


def test_it_holds_without_knowledge() -> None:
    situation = at([60e3] * 40)
    knowledge = Knowledge()
    blind = replace(situation, knowledge=knowledge, window=replace(situation.window, latency=None))
    for policy in (Phoebe(profile=False), TWRES(profile=False), Anticipate(profile=False)):
        assert policy.decide(blind).target is None
    assert Phoebe().learn(knowledge, Observation.blind(1.0, "nothing")) == knowledge
