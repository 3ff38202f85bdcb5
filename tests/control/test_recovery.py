"""A promised recovery time raises the smallest size, before any policy decides."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.control.cycle import State, advance
from rheostat.control.limits import limits
from rheostat.control.recovery import Recoveries, doubt, explain_floor, fold, raise_limits, recovery_floor
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Phase, Reason, Trial
from rheostat.job.forecast import Forecast
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.guards import Guards
from rheostat.job.observation import Observation, Status
from rheostat.job.record import Run
from rheostat.job.slo import SLO, Bounds
from rheostat.model.downtime import PRIORS, Downtimes, Kind, prior_of
from rheostat.model.recovery import Course, recovery_time_s
from rheostat.policy.phoebe import outage
from rheostat.policy.phoebe.outage import Outages
from rheostat.testing.situations import window, word_count

JOB = JobSpec("job", Graph(("job",), (), ("job",)), (Tunable("job", Bounds(1, 24)),), checkpoint_interval_s=10.0)
OBJECTIVES = SLO(max_recovery_s=180.0)
PER_TASK = 10_000.0


def known(spec: JobSpec = JOB, downtimes: tuple[float, ...] = (60.0,) * 20) -> Recoveries:
    """Capacities seen at several sizes, and downtimes."""
    state = Recoveries()
    for k, tasks in enumerate((2, 6, 12, 20)):
        state = fold(state, window(spec, 1000.0, tasks, PER_TASK, at_s=60.0 * (k + 1)), spec)
    seen = Downtimes()
    for downtime in downtimes:
        seen = seen.with_restart(downtime)
    return replace(state, downtimes=seen)


def ahead(rates: list[float], at_s: float = 60.0) -> Forecast:
    return Forecast(at_s, 60.0, (0.5, 0.95), tuple((rate, rate * 1.001) for rate in rates), "profile")


def test_the_floor_keeps_the_objective_and_is_not_much_too_large() -> None:
    found = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 60e3, 7, PER_TASK), known(), None)
    assert found is not None
    assert found.met
    least = found.tasks["job"]
    course = Course.constant(60e3)
    assert recovery_time_s(least * PER_TASK * 0.98, course, 10.0, found.downtime_s) <= 180.0
    # The room that saves the next change is a tenth; one size is rounding.
    assert recovery_time_s((least / 1.1 - 1.5) * PER_TASK, course, 10.0, found.downtime_s) > 180.0
    assert f"needs at least job {least}" in found.why
    assert raise_limits(limits(JOB, OBJECTIVES), found).operators["job"] == Bounds(least, 24)


def test_a_little_too_large_stays_and_much_too_large_may_shrink() -> None:
    grown = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 60e3, 7, PER_TASK), known(), None)
    assert grown is not None
    size = grown.tasks["job"]
    for tasks, least in ((size, size), (size + 1, size + 1), (24, size)):
        found = recovery_floor(
            limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 60e3, tasks, PER_TASK), known(), None
        )
        assert found is not None
        assert found.tasks["job"] == least, tasks


def test_a_load_that_will_rise_asks_for_more_and_one_that_falls_soon_again_keeps_the_job_large() -> None:
    flat, rising = (
        recovery_floor(
            limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 40e3, 5, PER_TASK), known(), ahead([rate] * 10)
        )
        for rate in (40e3, 80e3)
    )
    assert flat is not None
    assert rising is not None
    assert rising.tasks["job"] > 1.5 * flat.tasks["job"]
    assert "forecast by profile" in rising.why
    # A rise late in the horizon is no reason to grow now, but one not to shrink.
    late = ahead([40e3] * 7 + [80e3] * 3)
    grown = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 40e3, 16, PER_TASK), known(), late)
    assert grown is not None
    assert grown.tasks["job"] >= 14


def test_more_downtime_needs_more() -> None:
    sizes = []
    for downtime in (40.0, 80.0, 120.0):
        state = known(downtimes=(downtime,) * 20)
        found = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 50e3, 1, PER_TASK), state, None)
        assert found is not None
        sizes.append(found.tasks["job"])
    assert sizes == sorted(set(sizes))


def test_a_load_above_every_size_takes_the_largest_and_says_that_the_objective_is_broken() -> None:
    found = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 1e6, 12, PER_TASK), known(), None)
    assert found is not None
    assert (found.tasks["job"], found.met) == (24, False)
    assert "is broken: job cannot be large enough" in found.why


def test_a_downtime_beyond_the_objective_breaks_it_at_any_size() -> None:
    found = recovery_floor(
        limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 10e3, 12, PER_TASK), known(downtimes=(300.0,) * 20), None
    )
    assert found is not None
    assert (found.tasks["job"], found.met, found.needed_per_s) == (24, False, math.inf)
    assert "broken at any size" in found.why


def test_slots_that_do_not_suffice_break_it_too() -> None:
    slo = replace(OBJECTIVES, job=Bounds(1, 10))
    found = recovery_floor(limits(JOB, slo), JOB, slo, window(JOB, 90e3, 10, PER_TASK), known(), None)
    assert found is not None
    assert (found.tasks["job"], found.met) == (10, False)


def test_every_operator_of_a_graph_gets_its_share() -> None:
    spec = replace(word_count(), checkpoint_interval_s=10.0)
    seen = window(spec, 40e3, 8, PER_TASK)
    found = recovery_floor(limits(spec, OBJECTIVES), spec, OBJECTIVES, seen, known(spec), None)
    assert found is not None
    # Five words a line: five times the demand, five times the tasks, but for rounding.
    assert found.tasks["count"] >= 4 * found.tasks["split"] > 0


@pytest.mark.parametrize(
    ("slo", "seen", "state"),
    [
        (SLO(), window(JOB, 1e4, 4, PER_TASK), known()),
        (OBJECTIVES, window(JOB, 1e4, 4, PER_TASK), Recoveries()),
        (OBJECTIVES, window(JOB, 0.0, 4, PER_TASK), known()),
        (OBJECTIVES, Observation.blind(60.0, "nothing"), known()),
    ],
)
def test_there_is_no_floor_where_nothing_is_promised_known_or_comes(
    slo: SLO, seen: Observation, state: Recoveries
) -> None:
    assert recovery_floor(limits(JOB, slo), JOB, slo, seen, state, None) is None


def test_a_job_that_catches_up_is_not_stopped_again_and_one_that_cannot_is_helped() -> None:
    for tasks, stays in ((7, True), (5, False)):
        seen = replace(window(JOB, 60e3, tasks, PER_TASK), status=Status.RECOVERING)
        found = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, seen, known(), None)
        assert (found is None) is stays, tasks


def test_a_hold_below_the_floor_grows_to_it() -> None:
    running = Allocation({"job": 7})
    found = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 60e3, 7, PER_TASK), known(), None)
    assert found is not None
    allowed = raise_limits(limits(JOB, OBJECTIVES), found)
    decision = explain_floor(Decision.hold(Reason.STEADY, "all is well"), found, allowed, running)
    assert decision.target == Allocation({"job": found.tasks["job"]})
    assert decision.reason is Reason.UNDER_PROVISIONED
    assert "recovery within 180 s needs" in decision.sentence
    assert decision.guards[-1].guard == "recovery"
    assert decision.evidence["recovery.job.least_tasks"] == found.tasks["job"]
    assert decision.expects.recovery_s is not None
    assert decision.expects.recovery_s.high <= 180.0
    failed = Decision.hold(Reason.NO_POLICY, "broken")
    assert explain_floor(failed, found, allowed, running).target is None


def test_a_decision_above_the_floor_is_left_alone() -> None:
    running = Allocation({"job": 24})
    found = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window(JOB, 30e3, 24, PER_TASK), known(), None)
    assert found is not None
    decision = explain_floor(Decision.hold(Reason.STEADY, "all is well"), found, limits(JOB, OBJECTIVES), running)
    assert decision.target is None
    assert decision.guards == ()


def after_failure(lag_s: float, uptime_s: float = 20.0, downtime_s: float = 45.0) -> Observation:
    seen = window(JOB, 60e3, 12, PER_TASK, at_s=1000.0)
    source = replace(seen.sources[0], lag_s=lag_s)
    return replace(
        seen, status=Status.RECOVERING, uptime_s=uptime_s, downtime_s=downtime_s, sources=(source,), problem="too short"
    )


def test_the_lag_tells_what_a_failure_really_cost() -> None:
    """Noticed after 20 s, down for 45, 25 s read again: 70 s of load waited, half an interval of it from before."""
    before = known(downtimes=())
    # At 120k/s against 60k/s, 20 s of work took 40 s of load away, and 20 s came.
    found = fold(before, after_failure(lag_s=70.0 + 20.0 - 40.0), JOB)
    assert found.downtimes.restarts[-1].downtime_s == pytest.approx(65.0, abs=2.0)
    assert fold(found, after_failure(lag_s=1.0), JOB).downtimes == found.downtimes


def test_where_the_lag_says_less_the_engine_is_believed() -> None:
    before = known(downtimes=())
    assert fold(before, after_failure(lag_s=0.0), JOB).downtimes.restarts[-1].downtime_s == 45.0
    late = after_failure(lag_s=500.0, uptime_s=400.0)
    assert fold(before, late, JOB).downtimes.restarts[-1].downtime_s == 45.0
    assert fold(before, after_failure(lag_s=math.nan), JOB).downtimes.restarts[-1].downtime_s == 45.0


def test_a_failure_in_the_first_minute_is_learned_although_nothing_else_is_known() -> None:
    found = fold(Recoveries(), after_failure(lag_s=30.0), JOB)
    assert [restart.downtime_s for restart in found.downtimes.restarts] == [45.0]


def test_the_floor_and_the_policy_learn_the_same_downtime() -> None:
    """Both fold the same records by the same rule; they differed by half an interval, and in what they could see."""
    seen = after_failure(lag_s=70.0 + 20.0 - 40.0)
    down = replace(seen, at_s=970.0, status=Status.DOWN, uptime_s=0.0, sources=(replace(seen.sources[0], lag_s=60.0),))
    up = replace(down, at_s=900.0, status=Status.RUNNING, uptime_s=900.0)
    for records in ([up, down, seen], [after_failure(0.0)]):
        floor, policy = Recoveries(), Outages(interval_s=10.0)
        for record in records:
            floor, policy = fold(floor, record, JOB), outage.fold(policy, record)
        assert [r.downtime_s for r in floor.downtimes.restarts] == [r.downtime_s for r in policy.downtimes.restarts]
        assert floor.downtimes.restarts


def run_record(prior: tuple[float, float] | None) -> Run:
    return Run("job", 0.0, "x", 0, JOB, OBJECTIVES, Guards(), "ds2", prior_downtime=prior)


def test_before_the_first_failure_the_floor_provides_for_what_may_be_and_names_the_drill() -> None:
    window_now = window(JOB, 30e3, 12, PER_TASK)
    floors = {}
    for prior in (None, PRIORS[Kind.RESTART]):
        state = fold(known(downtimes=()), run_record(prior), JOB)
        floors[prior] = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window_now, state, None)
    older, wide = floors.values()
    assert older is not None
    assert wide is not None
    assert "drill" not in older.why
    assert "`rheostat drill` measures it" in wide.why
    assert wide.downtime_s > 110.0 > older.downtime_s
    assert wide.tasks["job"] > older.tasks["job"]


def test_a_downtime_that_the_user_knows_takes_the_place_of_the_wide_prior() -> None:
    window_now = window(JOB, 30e3, 12, PER_TASK)
    needed = []
    for known_s in (None, 60.0):
        state = fold(known(downtimes=()), run_record(prior_of(known_s)), JOB)
        found = recovery_floor(limits(JOB, OBJECTIVES), JOB, OBJECTIVES, window_now, state, None)
        assert found is not None
        assert ("slo.downtime_s" in found.why) == (known_s is None)
        needed.append(found.tasks["job"])
    assert needed[0] > 1.4 * needed[1]
    state = fold(fold(known(downtimes=()), run_record(prior_of(60.0)), JOB), after_failure(30.0, downtime_s=100.0), JOB)
    assert state.downtimes.expected_s() > 75.0


def test_a_drill_before_the_first_run_is_remembered() -> None:
    """`rheostat drill` writes its records before a controller starts."""
    trial = Trial("drill restart 1", Allocation({"job": 4}), (Phase(60.0, {"job": 1.0}, observed=True),))
    drilled = Measurement(trial, replace(window(JOB, 1e4, 4, PER_TASK), downtime_s=66.0), 60.0, 240.0)
    state = advance(advance(State(), drilled), run_record(PRIORS[Kind.RESTART]))
    assert state.recoveries is not None
    assert not state.recoveries.downtimes.guessed
    assert state.recoveries.downtimes.expected_s() == pytest.approx(66.0, abs=1.0)
    aimless = replace(run_record(None), slo=SLO())
    assert advance(advance(State(), drilled), aimless).recoveries is None


@pytest.mark.parametrize("wrong", [math.nan, -1.0, math.inf])
def test_an_absurd_downtime_teaches_nothing(wrong: float) -> None:
    assert not fold(known(downtimes=()), after_failure(30.0, downtime_s=wrong), JOB).downtimes.restarts


def test_two_doubts_together_are_the_promised_one() -> None:
    assert doubt(0.5) == pytest.approx(0.5)
    assert 0.8 < doubt(0.9) == doubt(None) < 0.83


@settings(deadline=None, max_examples=60)
@given(
    st.floats(0, 1e7),
    st.integers(1, 24),
    st.lists(st.floats(0, 1e7), max_size=10),
    st.lists(st.floats(0, 1000), max_size=5),
    st.floats(1, 1000),
)
def test_whatever_comes_the_floor_is_within_the_limits(
    load: float, tasks: int, rates: list[float], downtimes: list[float], objective_s: float
) -> None:
    slo = SLO(max_recovery_s=objective_s)
    forecast = ahead(rates) if rates else None
    state = known(downtimes=tuple(downtimes))
    found = recovery_floor(limits(JOB, slo), JOB, slo, window(JOB, load, tasks, PER_TASK), state, forecast)
    if found is None:
        return
    assert 1 <= found.tasks["job"] <= 24
    assert not math.isnan(found.needed_per_s)
    expected = found.expected_s(Allocation({"job": found.tasks["job"]}))
    assert expected is not None
    assert expected >= 0
    assert found.tasks["job"] == 24 or found.met
