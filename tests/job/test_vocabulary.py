"""Allocation, SLO, guards, observation and decision: frozen, checked, and exact in JSON."""

import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Interval, Phase, Reason, Trial
from rheostat.job.frozen import FrozenMap, from_json, to_json
from rheostat.job.guards import FrozenPeriod, Guards
from rheostat.job.observation import Latency, Observation, OperatorReading, SourceReading, mark_problem
from rheostat.job.slo import SLO, Bounds, Budget
from rheostat.testing.situations import window, word_count


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_tasks_are_whole_numbers_of_at_least_one(count: Any) -> None:
    with pytest.raises(InvalidValue, match="map"):
        Allocation({"map": count})


def test_an_allocation_cannot_be_changed() -> None:
    allocation = Allocation({"map": 2})
    with pytest.raises(FrozenInstanceError):
        allocation.memory_mb = 5  # type: ignore[misc]
    with pytest.raises(TypeError, match="frozen"):
        allocation.tasks["map"] = 3  # type: ignore[index]
    with pytest.raises(TypeError, match="frozen"):
        FrozenMap({"a": 1}).update({"b": 2})
    source = {"map": 2}
    copied = Allocation(source)
    source["map"] = 9
    assert copied.tasks["map"] == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_latency_s": -1.0}, "slo.max_latency_s"),
        ({"max_lag_s": math.nan}, "slo.max_lag_s"),
        ({"max_recovery_s": math.inf}, "slo.max_recovery_s"),
        ({"recovery_quantile": 0.95}, "needs slo.max_recovery_s"),
        ({"downtime_s": 60}, "needs slo.max_recovery_s"),
        ({"downtime_s": 0, "max_recovery_s": 60}, "slo.downtime_s"),
        ({"recovery_quantile": 1.0, "max_recovery_s": 60}, "slo.recovery_quantile"),
        ({"headroom": -0.1}, "slo.headroom"),
        ({"headroom": 20}, r"slo.headroom is 20, .* for 20 % write 0.2"),
        ({"max_recovery_s": 180_000}, r"slo.max_recovery_s is 180000 s, more than a day.* for 180000 ms write 180"),
        ({"headroom": "much"}, "much"),
    ],
)
def test_slo_names_what_is_wrong(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        SLO(**values)


def test_bounds_that_cannot_be_met() -> None:
    with pytest.raises(InvalidValue, match="min 5 is above max 3"):
        Bounds(5, 3)
    with pytest.raises(InvalidValue, match="min 4 is above max 2"):
        Bounds(4, 9).within(Bounds(1, 2))


@pytest.mark.parametrize(
    ("budget", "slots"),
    [
        (Budget(), None),
        (Budget(slots=7), 7),
        (Budget(cost_per_hour=1.6, price_per_slot_hour=0.1), 16),
        (Budget(slots=7, cost_per_hour=1.6, price_per_slot_hour=0.1), 7),
        (Budget(slots=70, cost_per_hour=1.69, price_per_slot_hour=0.1), 16),
    ],
)
def test_budget_in_slots(budget: Budget, slots: int | None) -> None:
    assert budget.max_slots == slots


def test_money_needs_a_price_and_must_pay_for_one_slot() -> None:
    with pytest.raises(InvalidValue, match="both"):
        Budget(cost_per_hour=3.0)
    with pytest.raises(InvalidValue, match="does not pay"):
        Budget(cost_per_hour=0.05, price_per_slot_hour=0.1)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("22:00-06:00", [23 * 3600, 86400 + 5 * 3600], [12 * 3600, 6 * 3600]),
        ("09:30-10:00", [9.6 * 3600, 4 * 86400 + 9.5 * 3600], [10 * 3600, 9.4 * 3600]),
        ("1970-01-02T00:00/1970-01-02T01:00", [86400, 86400 + 3599], [0, 86400 + 3600, 3 * 86400]),
    ],
)
def test_frozen_periods(text: str, inside: list[float], outside: list[float]) -> None:
    period = FrozenPeriod.parse(text)
    assert all(period.covers(t) for t in inside)
    assert not any(period.covers(t) for t in outside)


@pytest.mark.parametrize("text", ["", "tomorrow", "25:00-26:00", "2026-12-27T00:00/2026-12-24T00:00", "10:00"])
def test_frozen_periods_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidValue):
        FrozenPeriod.parse(text)


@pytest.mark.parametrize(
    "values",
    [
        {"max_step_up": 0.5},
        {"max_step_down": 1.5},
        {"cooldown_up_s": -1},
        {"explore": "always"},
        {"change_patience_s": 0},
    ],
)
def test_guards_name_what_is_wrong(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(values))):
        Guards(**values)


def test_interval_is_ordered() -> None:
    with pytest.raises(InvalidValue, match="ordered"):
        Interval(2, 1, 3)
    assert Interval.at_least(5).holds(5)
    assert not Interval.at_most(5).holds(5.1)


def test_a_trial_must_observe_something() -> None:
    with pytest.raises(InvalidValue, match="observes nothing"):
        Trial("t", Allocation({"a": 1}), (Phase(10, {"s": 1.0}),))


SPEC = word_count()
GOOD = window(SPEC, 400.0, 4, 600.0)


def with_reading(observation: Observation, **values: Any) -> Observation:
    """Change the first tunable operator's reading."""
    readings = tuple(replace(r, **values) if r.name == "split" else r for r in observation.operators)
    return replace(observation, operators=readings)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (with_reading(GOOD, true_rate_per_s=math.nan), "true_rate_per_s of split is nan"),
        (with_reading(GOOD, records_in_per_s=-5.0), "records_in_per_s of split is -5"),
        (with_reading(GOOD, true_rate_per_s=0.0), "true_rate_per_s of split is 0"),
        (with_reading(GOOD, useful_share=1.5), "useful_share of split"),
        (with_reading(GOOD, true_rate_per_s=math.inf), "true_rate_per_s of split is inf"),
        (with_reading(GOOD, true_rate_per_s=None), "no true rate of operator split"),
        (with_reading(GOOD, records_in_per_s=None), "no records of operator split"),
        (replace(GOOD, operators=()), "no records of operator"),
        (replace(GOOD, sources=()), "no rate of source lines"),
        (replace(GOOD, sources=(SourceReading("lines", -1.0),)), "rate_per_s of lines is -1"),
        (replace(GOOD, running=None), "running allocation is not known"),
        (replace(GOOD, running=Allocation({"split": 1})), "does not match the job: count"),
        (replace(GOOD, start_s=GOOD.end_s + 1), "window from"),
        (replace(GOOD, latency=Latency(1, 2, math.nan, 1, 1, 1)), "p99_s of the job is nan"),
    ],
)
def test_absurd_or_incomplete_windows_are_marked(bad: Observation, message: str) -> None:
    assert message in (mark_problem(bad, SPEC).problem or "")


def test_a_good_window_stays_as_it_is() -> None:
    assert mark_problem(GOOD, SPEC) is GOOD
    assert GOOD.throughput_per_s == pytest.approx(GOOD.load_per_s)


def test_a_total_with_a_missing_part_is_none() -> None:
    half = replace(GOOD, sources=(*GOOD.sources, SourceReading("more", None)))
    assert half.load_per_s is None
    assert half.operator("absent") == OperatorReading("absent", 0)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(min_size=1), st.integers(1, 10**6), min_size=1, max_size=4),
    st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=4),
    st.dictionaries(st.text(), json_values, max_size=3),
    st.text(),
)
def test_decisions_survive_json_exactly(
    tasks: dict[str, int], evidence: dict[str, float], memo: dict[str, Any], sentence: str
) -> None:
    decision = Decision(
        Allocation(tasks, 2048),
        Reason.MIXED,
        sentence,
        evidence,
        Expectation(1.0, Interval(0, 1, math.inf), Interval.at_most(3), Interval.at_least(math.inf)),
        memo,
        (Trial("t", Allocation(tasks), (Phase(1.0, {"s": 2.0}, observed=True),)),),
    )
    again = from_json(Decision, to_json(decision))
    assert again == decision
    assert to_json(again) == to_json(from_json(Decision, to_json(again)))


def test_evidence_is_never_nan() -> None:
    with pytest.raises(InvalidValue, match="'rate'"):
        Decision(None, Reason.STEADY, "", {"rate": math.nan})


def test_invalid_json_names_the_field() -> None:
    with pytest.raises(InvalidValue, match="cannot read SLO: max_latency_s"):
        from_json(SLO, '{"max_latency_s": "soon"}')


@pytest.mark.parametrize("memo", [{"best": math.inf}, {"a": [math.nan]}, {"by_tasks": {3: 1.0}}, {"when": object()}])
def test_a_memo_that_json_would_change_is_refused(memo: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="memo"):
        Decision.hold(Reason.STEADY, "", memo=memo)
