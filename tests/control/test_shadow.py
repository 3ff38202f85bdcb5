"""A dry run decides as if its decisions were applied, and is scored against what really ran."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from rheostat.control.cycle import Mind, State, advance, think
from rheostat.control.shadow import score_shadow, trace_shadow
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.guards import UNGUARDED, Guards
from rheostat.job.observation import Observation, OperatorReading, SourceReading
from rheostat.job.record import Record, Run
from rheostat.job.slo import SLO, Bounds
from rheostat.policy.ds2 import DS2

JOB = "job"
RATE = 100.0
"""Records/s of one slot."""
STEP_S = 10.0
WATCHING = replace(UNGUARDED, dry_run=True)
OBJECTIVES = SLO(max_lag_s=15.0, headroom=0.0)


def spec(cores: int = 1) -> JobSpec:
    return JobSpec("clicks", Graph((JOB,), (), (JOB,)), (Tunable(JOB, Bounds(cores, 20 * cores), cores),))


def window(at_s: float, load: float, slots: int, lag_s: float = 0.0) -> Observation:
    served = min(load, RATE * slots)
    return Observation(
        at_s,
        at_s - STEP_S,
        at_s,
        Allocation({JOB: slots}),
        Allocation({JOB: slots}),
        sources=(SourceReading(JOB, load, lag_s * load, lag_s),),
        operators=(OperatorReading(JOB, slots, served, served / (RATE * slots), RATE),),
        overloaded=(JOB,) if load > RATE * slots else (),
    )


def watch(
    windows: Iterable[Observation], guards: Guards = WATCHING, slo: SLO = OBJECTIVES, cores: int = 1
) -> list[Record]:
    """Return the records of a controller that sees these windows."""
    policy = DS2()
    mind = Mind(policy, spec(cores), slo, guards, 0)
    run = Run("clicks", 0.0, "0", 0, mind.spec, slo, guards, policy.name, settings={"mode": "micro-batch"})
    state, knowledge = advance(State(), run), policy.initial()
    records: list[Record] = [run]
    for seen in windows:
        thought = think(mind, state, knowledge, seen)
        state, knowledge = thought.state, thought.knowledge
        records += thought.records
    return records


def shadows(records: Iterable[Record]) -> list[int]:
    return [one.shadow.slots for one in records if isinstance(one, Decision) and one.shadow is not None]


def day(seconds: float, load: Callable[[float], float], slots: int) -> list[Observation]:
    """A job of a fixed size, with the age of its oldest waiting record."""
    waiting: deque[list[float]] = deque()
    seen = []
    for step in range(1, int(seconds / STEP_S) + 1):
        at_s, room = step * STEP_S, RATE * slots * STEP_S
        waiting.append([at_s - STEP_S, load(at_s) * STEP_S])
        while waiting and room > 0:
            served = min(room, waiting[0][1])
            waiting[0][1] -= served
            room -= served
            if waiting[0][1] <= 0:
                waiting.popleft()
        seen.append(window(at_s, load(at_s), slots, at_s - waiting[0][0] if waiting else 0.0))
    return seen


def test_a_dry_run_applies_nothing_and_names_the_size_that_would_run() -> None:
    records = watch(day(100, lambda _: 250.0, 8))
    decisions = [one for one in records if isinstance(one, Decision)]
    assert all(one.target is None for one in decisions)
    assert set(shadows(records)) == {3}
    assert decisions[0].asked == Allocation({JOB: 3})
    assert [note.guard for note in decisions[0].guards] == ["dry_run"]


def test_guards_compare_with_the_size_that_would_run() -> None:
    """After 300 s of low load it would shrink, then grow at once, and shrink again 300 s after the peak."""
    guards = replace(WATCHING, shrink_after_s=300.0)
    records = watch(day(1500, lambda at_s: 500.0 if 600 < at_s <= 700 else 200.0, 8), guards)
    sizes = shadows(records)
    assert sizes[:29] == [8] * 29
    assert sizes[35:60] == [2] * 25
    assert sizes[60:70] == [5] * 10
    assert sizes[75:95] == [5] * 20
    assert sizes[-20:] == [2] * 20


def test_a_hold_at_the_real_size_is_a_wish_for_it() -> None:
    """Dynamic allocation has come down to what the dry run said: it still says so."""
    windows = [window(10.0 * k, 300.0, 6 if k < 5 else 3) for k in range(1, 12)]
    assert shadows(watch(windows)) == [3] * 11


def test_a_run_that_applies_forgets_the_shadow() -> None:
    state = State()
    for record in watch(day(50, lambda _: 100.0, 4)):
        state = advance(state, record)
    assert state.stability.shadow == Allocation({JOB: 1})
    run = Run("clicks", 99.0, "0", 0, spec(), OBJECTIVES, UNGUARDED, "ds2")
    assert advance(state, run).stability.shadow is None


def test_what_a_dry_run_saves() -> None:
    score = score_shadow(watch(day(3600, lambda _: 250.0, 8)))
    assert score.seconds == 3590
    assert score.unit == "executor"
    assert score.real_unit_s == pytest.approx(8 * 3590)
    assert score.shadow_unit_s == pytest.approx(3 * 3590)
    assert score.saved_unit_h == pytest.approx(5 * 3590 / 3600)
    assert (score.over_s, score.changes) == (0, 0)
    assert score.shadow_over_s is not None
    assert score.shadow_over_s.middle == 0
    assert score.seen_share == 0  # three slots never ran


def test_a_dry_run_over_time() -> None:
    """Two slots fall behind in the peak; the dry run would have had a backlog for a moment only."""
    score, series = trace_shadow(watch(day(1800, lambda at_s: 500.0 if 600 < at_s <= 900 else 150.0, 2)))
    assert len(series.at_s) == 180
    assert set(series.real.tolist()) == {2.0}
    assert series.shadow.max() == 5.0
    assert series.max_lag_s == 15.0
    fast_s, lag_s, slow_s = series.shadow_lag_s
    assert (fast_s <= lag_s).all()
    assert (lag_s <= slow_s).all()
    assert lag_s.max() < 0.2 * series.lag_s.max()
    assert series.shadow_backlog.max() < 0.2 * series.backlog.max()
    held_s = np.append(np.diff(series.at_s), 0.0)
    assert held_s[series.lag_s > 15.0].sum() == score.over_s


def test_executors_of_several_cores_count_as_one() -> None:
    score = score_shadow(watch(day(600, lambda _: 350.0, 12), cores=4))
    assert (score.real_unit_s, score.shadow_unit_s) == (3 * 590, 590)


def test_what_a_dry_run_avoids() -> None:
    """Two slots cannot serve the peak; the dry run would have grown in time."""
    score = score_shadow(watch(day(1800, lambda at_s: 500.0 if 600 < at_s <= 900 else 150.0, 2)))
    assert score.over_s is not None
    assert score.over_s > 300
    assert score.model_over_s == pytest.approx(score.over_s, abs=3 * STEP_S)
    assert score.avoided_s is not None
    assert score.avoided_s.middle > 0.9 * score.over_s
    assert score.shadow_unit_s > score.real_unit_s


def test_a_shadow_that_would_have_been_late_is_told() -> None:
    records = watch(day(1200, lambda at_s: 600.0 if at_s > 300 else 150.0, 8))
    records = [replace(one, shadow=Allocation({JOB: 2})) if isinstance(one, Decision) else one for one in records]
    score = score_shadow(records)
    assert score.over_s == 0
    assert score.shadow_over_s is not None
    assert score.shadow_over_s.middle > 800
    assert score.avoided_s is not None
    assert score.avoided_s.middle < -800


def test_a_spread_of_rates_is_a_range_of_seconds() -> None:
    quick = [
        replace(one, operators=(replace(one.operators[0], true_rate_per_s=RATE * (0.7 if k % 2 else 1.3)),))
        for k, one in enumerate(day(1200, lambda at_s: 190.0 if at_s > 300 else 150.0, 8))
    ]
    records = [replace(one, shadow=Allocation({JOB: 2})) if isinstance(one, Decision) else one for one in watch(quick)]
    score = score_shadow(records)
    assert score.rate_spread == pytest.approx(0.3, abs=0.01)
    assert score.shadow_over_s is not None
    assert score.shadow_over_s.low == 0
    assert score.shadow_over_s.high > 500


def test_a_gap_between_controllers_is_not_scored() -> None:
    late = [window(90_000 + 10.0 * k, 250.0, 4) for k in range(20)]
    score = score_shadow(watch([*day(200, lambda _: 250.0, 4), *late]))
    assert score.seconds == pytest.approx(19 * STEP_S + 5 * STEP_S + 19 * STEP_S)


def test_without_a_limit_no_seconds_are_over() -> None:
    score = score_shadow(watch(day(300, lambda _: 250.0, 4), slo=SLO(headroom=0.0)))
    assert (score.over_s, score.shadow_over_s, score.avoided_s) == (None, None, None)


def test_a_journal_without_a_dry_run_says_so() -> None:
    with pytest.raises(InvalidValue, match="attach with dry_run=True"):
        score_shadow(watch(day(300, lambda _: 250.0, 4), guards=UNGUARDED))
