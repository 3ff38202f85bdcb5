"""Downtimes: the prior, the failures and drills that replace it, and the line in the state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial
from rheostat.job.frozen import from_json, to_json
from rheostat.job.guards import Guards
from rheostat.job.observation import Observation, SourceReading, Status
from rheostat.job.record import Ending, Intent, IntentEnd, Record, Run
from rheostat.job.slo import SLO
from rheostat.model.downtime import LEGACY_PRIOR, MAX_RESTARTS, PRIORS, Downtimes, Kind, fold
from rheostat.testing.situations import word_count

GB = 1e9


def test_a_downtime_is_assumed_before_the_first_restart() -> None:
    assert Downtimes().expected_s() == LEGACY_PRIOR[0]
    assert Downtimes(assumed_s=100.0).quantile(0.5) == 100.0
    assert Downtimes().quantile(0.95) > LEGACY_PRIOR[0]


@pytest.mark.parametrize("downtime_s", [20.0, 65.0, 100.0, 140.0])
def test_an_unknown_downtime_is_provided_for_whatever_it_is(downtime_s: float) -> None:
    """The prior of 60 s with the weight of one failure provided for 73 s, and was tested on 65 s alone."""
    assert Downtimes().quantile(0.9) < 75.0
    assert Downtimes.unknown().guessed
    assert Downtimes.unknown().quantile(0.9) > downtime_s


@pytest.mark.parametrize("downtime_s", [20.0, 65.0, 140.0])
def test_the_wide_prior_has_next_to_no_weight_after_one_failure(downtime_s: float) -> None:
    known = Downtimes.unknown().with_restart(downtime_s)
    assert known.expected_s() == pytest.approx(downtime_s, rel=0.05)
    assert downtime_s < known.quantile(0.9) < 1.45 * downtime_s
    assert not known.guessed
    assert Downtimes().with_restart(140.0).expected_s() == pytest.approx(100.0)


def test_a_quantile_is_that_of_the_worst_kind() -> None:
    restarts, executors = Downtimes.unknown(), Downtimes.unknown()
    for _ in range(5):
        restarts = restarts.with_restart(50.0)
        executors = executors.with_restart(5.0, kind=Kind.EXECUTOR)
    assert executors.quantile(0.9) == Downtimes.unknown().quantile(0.9)
    assert executors.guessed
    both = restarts
    for _ in range(2 * MAX_RESTARTS):
        both = both.with_restart(5.0, kind=Kind.EXECUTOR)
    assert both.quantile(0.9) == restarts.quantile(0.9)
    assert len(both.of(Kind.RESTART)) == 5
    hung = restarts.with_restart(120.0, kind=Kind.EXECUTOR)
    assert hung.expected_s() == pytest.approx(120.0, rel=0.1)


def test_restarts_replace_the_assumption() -> None:
    rng = np.random.default_rng(0)
    downtimes = Downtimes()
    for downtime in rng.normal(90.0, 8.0, 30):
        downtimes = downtimes.with_restart(float(downtime), GB)
    assert downtimes.expected_s(GB) == pytest.approx(90.0, abs=4.0)
    drawn = rng.normal(90.0, 8.0, 20_000)
    for q in (0.5, 0.9, 0.95):
        assert (drawn <= downtimes.quantile(q, GB)).mean() == pytest.approx(q, abs=0.12)


def test_an_upper_quantile_covers_from_the_first_restarts_on() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 3, 8):
        covered = []
        for _ in range(400):
            downtimes = Downtimes()
            for downtime in rng.normal(65.0, 8.0, count):
                downtimes = downtimes.with_restart(float(downtime))
            covered.append(rng.normal(65.0, 8.0) <= downtimes.quantile(0.95))
        assert np.mean(covered) >= 0.93, count


def test_larger_states_take_longer() -> None:
    downtimes = Downtimes()
    for state in (1.0, 2.0, 5.0, 10.0, 20.0):
        downtimes = downtimes.with_restart(40.0 + 6.0 * state, state * GB)
    assert downtimes.expected_s(20 * GB) == pytest.approx(160.0, rel=0.1)
    assert downtimes.expected_s(GB) == pytest.approx(46.0, rel=0.2)
    assert downtimes.quantile(0.9, 20 * GB) > downtimes.quantile(0.9, GB)


def test_no_line_is_fitted_to_states_that_hardly_differ() -> None:
    downtimes = Downtimes()
    for downtime, state in ((40.0, 1.0), (60.0, 1.01), (80.0, 1.02), (90.0, 1.03), (100.0, 1.04)):
        downtimes = downtimes.with_restart(downtime, state * GB)
    assert downtimes.expected_s(100 * GB) == downtimes.expected_s(GB)


def test_no_line_is_fitted_to_chance() -> None:
    rng = np.random.default_rng(4)
    fitted = 0
    for _ in range(200):
        downtimes = Downtimes()
        for downtime, state in zip(rng.normal(65, 8, 8), rng.uniform(1, 5, 8), strict=True):
            downtimes = downtimes.with_restart(float(downtime), float(state) * GB)
        fitted += downtimes.expected_s(5 * GB) != downtimes.expected_s(GB)
    assert fitted < 0.05 * 200


def test_a_falling_line_is_refused() -> None:
    downtimes = Downtimes()
    for downtime, state in ((90.0, 1.0), (60.0, 5.0), (50.0, 7.0), (40.0, 8.0), (30.0, 10.0)):
        downtimes = downtimes.with_restart(downtime, state * GB)
    assert downtimes.expected_s(100 * GB) == downtimes.expected_s(GB) > 0


def test_only_the_newest_restarts_are_retained_and_survive_a_snapshot() -> None:
    downtimes = Downtimes()
    for k in range(100):
        downtimes = downtimes.with_restart(float(k))
    assert [r.downtime_s for r in downtimes.restarts] == [float(k) for k in range(100 - MAX_RESTARTS, 100)]
    assert from_json(Downtimes, to_json(downtimes)) == downtimes
    assert from_json(Downtimes, to_json(Downtimes())) == Downtimes()


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.none() | st.floats(0, 1e15)), max_size=40),
    st.floats(0.01, 0.99),
    st.none() | st.floats(0, 1e15),
)
def test_never_nan_never_negative_and_rising_with_the_quantile(
    restarts: list[tuple[float, float | None]], q: float, state: float | None
) -> None:
    downtimes = Downtimes()
    for downtime, size in restarts:
        downtimes = downtimes.with_restart(downtime, size)
    low, high = downtimes.quantile(q / 2, state), downtimes.quantile(q, state)
    assert 0 <= low <= high < math.inf


@pytest.mark.parametrize("q", [0.0, 1.0, -1.0, math.nan])
def test_impossible_quantiles_are_refused(q: float) -> None:
    with pytest.raises(InvalidValue, match="between 0 and 1"):
        Downtimes().quantile(q)


HERE = Allocation({"job": 4})


def look(
    at_s: float,
    lag_s: float,
    status: Status = Status.RUNNING,
    uptime_s: float = 1e4,
    downtime_s: float | None = None,
    load_per_s: float = 100.0,
) -> Observation:
    source = SourceReading("job", load_per_s, 0.0, lag_s)
    return Observation(
        at_s, at_s - 60.0, at_s, HERE, HERE, status=status, sources=(source,), uptime_s=uptime_s, downtime_s=downtime_s
    )


def learned(*records: Record, served: float | None = None) -> list[float]:
    known = Downtimes.unknown()
    for record in records:
        known = fold(known, record, 10.0, lambda _: served)
    return [restart.downtime_s for restart in known.restarts]


UP, DOWN = look(990.0, 0.0), look(1050.0, 55.0, Status.DOWN, 0.0)


def test_the_lag_at_the_resumption_shows_the_downtime() -> None:
    """A checkpoint 5 s before the failure at 1000 s, up again at 1065 s; the engine has noticed it after 20 s."""
    again = look(1110.0, 17.5, Status.RECOVERING, 45.0, 45.0)
    for status in (Status.RECOVERING, Status.RUNNING):
        blind = Observation.blind(1060.0, "nothing was seen")
        assert learned(UP, DOWN, blind, look(1080.0, 52.5, status, 15.0, 45.0), again) == [65.0]
    # No window showed it down: what was caught up since then, at twice the load, is counted in.
    assert learned(look(1080.0, 55.0, Status.RECOVERING, 15.0, 45.0), again, served=2.0) == [65.0]
    # Nothing but the engine's report says how long it took.
    assert learned(look(1080.0, 55.0, Status.RECOVERING, 15.0, 45.0), again) == [45.0]
    assert learned(look(1080.0, 0.0, Status.RECOVERING, 15.0, 45.0), served=1.0) == [45.0]


def test_a_query_that_its_engine_restarts_was_down_until_then() -> None:
    """Spark's real-time mode: the engine reports the time since it has noticed the failure, 20 s late."""
    restarting = look(1050.0, 55.0, Status.RECOVERING, 0.0)
    assert learned(UP, restarting, look(1080.0, 52.5, Status.RUNNING, 15.0, 45.0)) == [65.0]


def test_a_job_that_starts_is_no_job_that_failed() -> None:
    start = replace(DOWN, sources=(replace(DOWN.sources[0], lag_s=5000.0),))
    run = Run("job", 0.0, "x", 0, word_count(), SLO(), Guards(), "ds2")
    assert learned(start, look(1080.0, 5030.0, Status.RUNNING, 15.0)) == []
    assert learned(UP, run, start, look(1080.0, 5030.0, Status.RUNNING, 15.0)) == []


def test_a_planned_change_teaches_nothing_about_failures() -> None:
    change, end = Intent("1", 1, 990.0, HERE, HERE), IntentEnd("1", 1080.0, Ending.DONE, HERE, downtime_s=60.0)
    assert learned(UP, change, DOWN, end, look(1090.0, 40.0, Status.RECOVERING, 25.0, 60.0)) == []


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_an_absurd_window_teaches_nothing(wrong: float) -> None:
    assert learned(look(1080.0, 55.0, Status.RECOVERING, 15.0, wrong)) == []
    assert learned(look(1080.0, 55.0, Status.RECOVERING, wrong, 45.0)) == []
    assert learned(UP, DOWN, look(500.0, 52.0, Status.RECOVERING, 15.0)) == []


def test_a_drill_is_learned_by_its_kind() -> None:
    def drill(name: str, downtime_s: float | None) -> Measurement:
        trial = Trial(name, HERE, (Phase(60.0, {"job": 100.0}, observed=True),))
        return Measurement(trial, look(100.0, 0.0, downtime_s=downtime_s), 60.0, 240.0)

    assert learned(drill("drill restart 1", 66.0), drill("profile 4 at 100/s", 99.0), drill("drill x", 9.0)) == [66.0]
    assert learned(drill("drill restart 1", None)) == []
    known = fold(Downtimes.unknown(), drill("drill executor 1", 7.0), 10.0)
    assert [restart.kind for restart in known.restarts] == [Kind.EXECUTOR]
    assert known.quantile(0.5) == PRIORS[Kind.RESTART][0]
