"""Outages by source offsets, and the series of past loads."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.engine.simulated import Fleet
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.loads import Constant
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import from_json, to_json
from rheostat.job.observation import Observation, SourceReading, Status
from rheostat.job.record import Ending, Intent, IntentEnd
from rheostat.lab.jobs.phoebe import top_speed, ysb
from rheostat.policy.phoebe.load_series import LONGEST_GAP, MAX_STEPS, LoadSeries
from rheostat.policy.phoebe.outage import PREDICTED, Outages, fold

HERE = Allocation({"job": 4})


def look(
    at_s: float, lag_s: float, status: Status = Status.RUNNING, uptime_s: float = 1e4, backlog: float = 0.0
) -> Observation:
    source = SourceReading("job", 100.0, backlog, lag_s)
    return Observation(at_s, at_s - 60.0, at_s, HERE, HERE, status=status, sources=(source,), uptime_s=uptime_s)


def failure(began_s: float = 1000.0) -> list[Observation]:
    """A checkpoint 5 s before the failure, up again 65 s after it, caught up 125 s after it."""
    return [
        look(began_s - 10, 0.0),
        look(began_s + 20, 25.0, Status.DOWN, 0.0, 2500),
        look(began_s + 50, 55.0, Status.DOWN, 0.0, 5500),
        look(began_s + 80, 52.5, Status.RECOVERING, 15.0, 5250),
        look(began_s + 110, 17.5, Status.RECOVERING, 45.0, 1750),
        look(began_s + 140, 0.0, Status.RUNNING, 75.0),
    ]


def fold_all(records: list[Any], start: Outages | None = None) -> Outages:
    outages = start or Outages(interval_s=10.0)
    for record in records:
        outages = fold(outages, record)
    return outages


def test_offsets_show_a_failure() -> None:
    (recovery,) = fold_all(failure()).recoveries
    assert recovery.began_s == pytest.approx(1000.0)
    assert recovery.downtime_s == pytest.approx(65.0)
    assert recovery.took_s == pytest.approx(125.0)


def test_the_prediction_before_a_failure_is_stored_with_it() -> None:
    predicted = Decision.hold(Reason.STEADY, "so", evidence={PREDICTED: 120.0})
    later = Decision.hold(Reason.STEADY, "so", evidence={PREDICTED: 5.0})
    first, *rest = failure()
    (recovery,) = fold_all([first, predicted, *rest[:2], later, *rest[2:]]).recoveries
    assert recovery.predicted_s == 120.0
    never = Decision.hold(Reason.STEADY, "so", evidence={PREDICTED: math.inf})
    assert fold_all([first, never, *rest]).recoveries[0].predicted_s is None


def test_a_planned_change_is_not_a_failure() -> None:
    intent = Intent("1", 1, 995.0, HERE, HERE)
    end = IntentEnd("1", 1075.0, Ending.DONE, HERE)
    outages = fold_all([intent, *failure()[:3], end, *failure()[3:]])
    assert not outages.recoveries
    assert not outages.downtimes.restarts


def test_a_change_during_a_catch_up_drops_the_recovery_but_not_the_downtime() -> None:
    outages = fold_all([*failure()[:4], Intent("1", 1, 1085.0, HERE, HERE)])
    assert not outages.recoveries
    assert len(outages.downtimes.restarts) == 1
    assert not outages.under_way


def test_a_failure_during_recovery_starts_a_new_one() -> None:
    again = [
        look(1115, 20.0, Status.DOWN, 0.0),
        look(1145, 22.0, Status.RECOVERING, 5.0),
        look(1175, 0.0, uptime_s=35.0),
    ]
    outages = fold_all([*failure()[:5], *again])
    assert len(outages.downtimes.restarts) == 2
    assert len(outages.recoveries) == 1
    assert outages.recoveries[0].took_s >= 0


def test_a_clock_that_jumps_is_ignored() -> None:
    down = failure()[:3]
    assert not fold_all([*down, look(500.0, 52.0, Status.RECOVERING, 15.0)]).downtimes.restarts
    assert not fold_all([*down, look(1e6, 9e5, Status.RECOVERING, 15.0)]).downtimes.restarts


def test_it_survives_json() -> None:
    outages = fold_all(failure()[:4])
    assert from_json(Outages, to_json(outages)) == outages


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e6), st.floats(0, 1e5), st.sampled_from(list(Status)), st.floats(0, 1e6), st.floats(0, 1e9)
        ),
        max_size=30,
    )
)
def test_nothing_is_ever_negative_or_nan(windows: list[tuple[float, float, Status, float, float]]) -> None:
    outages = fold_all([look(at, lag, status, up, backlog) for at, lag, status, up, backlog in windows])
    for recovery in outages.recoveries:
        assert recovery.took_s >= recovery.downtime_s >= 0
        assert math.isfinite(recovery.took_s)
    assert 0 <= outages.downtimes.quantile(0.9) < math.inf


@pytest.mark.parametrize("plant", [top_speed(), ysb()], ids=["tsw", "ysb"])
def test_the_simulators_failures_are_learned(plant: Plant) -> None:
    """Output resumes 65 s after a failure on average; the engine itself reports a shorter stop."""
    fleet = Fleet(plant, [Constant(60e3)] * 6, range(6), failures_s=(600.0, 1500.0, 2400.0))
    engines, folded = [fleet.engine(r) for r in range(6)], [Outages(interval_s=10.0)] * 6
    for _ in range(110):
        fleet.advance(30)
        folded = [fold(outages, engine.observe()) for outages, engine in zip(folded, engines, strict=True)]
    downtimes = [r.downtime_s for outages in folded for r in outages.recoveries]
    assert len(downtimes) == 18
    assert sum(downtimes) / 18 == pytest.approx(65.0, abs=6.0)
    assert max(restart.downtime_s for restart in folded[0].downtimes.restarts) > 45.0


def test_a_series_is_regular_and_bounded() -> None:
    series = LoadSeries(30.0)
    for k in range(MAX_STEPS + 50):
        series = series.add(30.0 * k, float(k))
    assert len(series.rates) == MAX_STEPS
    assert series.newest == MAX_STEPS + 49
    series = series.add(30.0 * (MAX_STEPS + 52), 7.0)
    assert series.rates[-3:] == (None, None, 7.0)
    assert math.isnan(series.values()[-2])


def test_odd_readings_are_counted_and_dropped() -> None:
    series = LoadSeries(30.0).add(3000.0, 5.0)
    for at, rate in ((2970.0, 9.0), (3030.0, -1.0), (3030.0, math.nan), (math.inf, 3.0)):
        series = series.add(at, rate)
    assert (series.rates, series.odd) == ((5.0,), 4)
    assert series.add(3005.0, 6.0).rates == (6.0,)
    assert series.add(3030.0, None) is series


def test_after_a_jump_of_the_clock_the_series_starts_again() -> None:
    series = LoadSeries(30.0).add(0.0, 5.0).add(30.0, 6.0)
    assert series.add(30.0 * (LONGEST_GAP + 9), 7.0).rates == (7.0,)
    later = replace(series, last=10_000)
    assert later.add(0.0, 7.0).rates == (7.0,)
