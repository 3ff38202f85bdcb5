from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from rheostat.config import build
from rheostat.engine.testbed.loads import Steps
from rheostat.errors import InvalidValue
from rheostat.job.guards import DAY_S, FrozenPeriod, Guards
from rheostat.job.slo import SLO, Bounds, Budget
from rheostat.policy.ds2 import DS2


def test_nested_dataclasses_and_mappings_are_built() -> None:
    slo = build(SLO, {"budget": {"slots": 9}, "operators": {"count": {"min": 2, "max": 4}}}, "slo")
    assert slo == SLO(budget=Budget(9), operators={"count": Bounds(2, 4)})


def test_lists_become_tuples_and_whole_numbers_floats() -> None:
    assert build(Steps, {"levels": [1, 2.5], "noise": 0.1}, "load") == Steps((1.0, 2.5), noise=0.1)


@pytest.mark.parametrize("infinity", ["Infinity", math.inf])
def test_infinity_may_be_the_journals_text_or_a_number(infinity: object) -> None:
    assert build(DS2, {"target_rate_ratio": infinity}, "policy ds2").target_rate_ratio == math.inf


def test_frozen_periods_may_be_text_or_mappings() -> None:
    guards = build(Guards, {"frozen": ["22:00-06:00", {"start_s": 1, "end_s": 2}]}, "guards")
    assert guards.frozen == (FrozenPeriod(79200, 21600, DAY_S), FrozenPeriod(1, 2))


@pytest.mark.parametrize(
    ("cls", "values", "where", "words"),
    [
        (SLO, {"max_latncy_s": 5}, "slo", ["'slo.max_latncy_s'", "did you mean 'max_latency_s'?"]),
        (SLO, {"budget": {"slts": 5}}, "slo", ["'slo.budget.slts'", "'slots'"]),
        (SLO, {"operators": {"count": {"maxx": 5}}}, "slo", ["'slo.operators.count.maxx'", "'max'"]),
        (SLO, {"max_latency_s": "abc"}, "slo", ["slo.max_latency_s must be a number, not 'abc'"]),
        (SLO, {"max_latency_s": "5"}, "slo", ["not '5'"]),
        (SLO, {"max_latency_s": True}, "slo", ["not True"]),
        (SLO, {"max_latency_s": -5}, "slo", ["slo.max_latency_s", "-5"]),
        (SLO, {"max_latency_s": math.nan}, "slo", ["slo.max_latency_s", "NaN"]),
        (SLO, {"budget": {"slots": 0}}, "slo", ["slo.budget.slots", "0"]),
        (SLO, {"operators": {"count": {"min": 5, "max": 2}}}, "slo", ["slo.operators.count: min 5 is above max 2"]),
        (SLO, {"operators": {"count": {"min": 1.5}}}, "slo", ["slo.operators.count.min", "whole number", "1.5"]),
        (SLO, {"operators": 7}, "slo", ["slo.operators", "mapping", "7"]),
        (Guards, {"frozen": ["22-6"]}, "guards", ["guards.frozen.0", "'22-6'"]),
        (Guards, {"frozen": 3}, "guards", ["guards.frozen", "3"]),
        (Guards, {"explore": "sometimes"}, "guards", ["guards.explore", "'sometimes'"]),
        (DS2, {"activation_windows": 0}, "policy ds2", ["activation_windows of policy 'ds2'", "0"]),
        (DS2, {"windows": 3}, "policy ds2", ["'policy ds2: windows'"]),
    ],
)
def test_what_is_wrong_is_named_with_its_path(
    cls: type, values: Mapping[str, Any], where: str, words: list[str]
) -> None:
    with pytest.raises(InvalidValue) as caught:
        build(cls, values, where)
    for word in words:
        assert word in str(caught.value)


def test_every_mistake_is_said_at_once() -> None:
    with pytest.raises(InvalidValue, match=r"slo\.headroom.*slo\.max_lag") as caught:
        build(SLO, {"headroom": "much", "max_lag": 3}, "slo")
    assert str(caught.value).count(";") == 1


def test_what_is_no_mapping_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"slo must be a mapping.*5"):
        build(SLO, 5, "slo")  # type: ignore[arg-type]


class Bare:
    pass


def test_a_class_without_fields_takes_no_options() -> None:
    assert isinstance(build(Bare, {}, "policy bare"), Bare)
    with pytest.raises(InvalidValue, match=r"no options.*speed"):
        build(Bare, {"speed": 1}, "policy bare")


@dataclass(frozen=True)
class Odd:
    thing: Bare


def test_types_that_no_file_can_hold_are_an_error() -> None:
    with pytest.raises(InvalidValue, match="Odd"):
        build(Odd, {}, "policy odd")
