from __future__ import annotations

import math

import pytest

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Expectation, Interval
from rheostat.job.guards import FrozenPeriod, Guards
from rheostat.job.slo import SLO, Bounds, Budget
from rheostat.report import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, words.NONE),
        (math.nan, words.NONE),
        (math.inf, "∞"),
        (0.0, "0"),
        (0.0123, "0.0123"),
        (57.0, "57"),
        (999.6, "1k"),
        (340_000.0, "340k"),
        (1.234e6, "1.23M"),
        (-2.5e9, "-2.5G"),
    ],
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, words.NONE),
        (math.inf, "forever"),
        (0.0, "0 s"),
        (0.05, "50 ms"),
        (0.9999, "1 s"),
        (12.34, "12.3 s"),
        (150.0, "2.5 min"),
        (12_000.0, "3 h 20 min"),
        (7_200.0, "2 h"),
        (187_200.0, "2 d 4 h"),
    ],
)
def test_lengths_of_time(value: float | None, text: str) -> None:
    assert words.seconds(value) == text


def test_moments_are_dates_only_on_a_clock_that_counts_from_1970() -> None:
    assert words.moment(3_725.0) == "1:02:05"
    assert words.moment(1_780_000_000.0) == "2026-05-28 20:26:40"


def test_a_change_names_only_what_differs() -> None:
    before = Allocation({"split": 2, "count": 4}, 1024)
    assert words.change(before, before.with_tasks({"split": 3})) == "split 2 → 3"
    assert words.change(before, Allocation(before.tasks, 2048)) == "memory 1024 → 2048 MB"
    assert words.change(before, before) == "no change"
    assert words.change(None, before) == "split=2 count=4 memory=1024MB"
    assert words.change(before, None) == words.NONE


def test_an_expectation_in_words() -> None:
    expects = Expectation(2e6, Interval.at_least(1.9e6), Interval(1.0, 2.0, 3.0), Interval.at_most(180))
    text = "throughput ≥ 1.9M/s, latency 2 s (1 s to 3 s), recovery ≤ 3 min, while load ≤ 2M/s"
    assert words.expectation(expects) == text
    assert words.expectation(Expectation()) == words.NONE


def test_settings_tell_what_is_set_and_nothing_else() -> None:
    slo = SLO(max_latency_s=10, operators={"b": Bounds(1, 20)}, budget=Budget(slots=60), job=Bounds(2))
    assert words.settings(slo) == {
        "max_latency_s": "10",
        "budget": "slots 60",
        "job": f"2 to {words.NONE}",
        "operators": "b: 1 to 20",
    }
    assert words.settings(SLO()) == {}
    guards = Guards(frozen=(FrozenPeriod.parse("22:00-06:00"),))
    assert words.settings(guards)["frozen"] == "22:00:00 to 6:00:00 every day (UTC)"
