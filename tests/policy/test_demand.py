"""Demand: measured selectivities, propagation through the graph, linear tasks."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rheostat.errors import InvalidValue
from rheostat.job.observation import EdgeReading
from rheostat.policy.demand import demand, linear_tasks, measured_selectivity
from rheostat.testing.situations import diamond, read, situation, window, word_count

WORDS = word_count()
WINDOW = window(WORDS, 100.0, 4, 1000.0)  # 100 lines/s in, 500 words/s out


def edges(split_to_count: float | None) -> tuple[EdgeReading, ...]:
    return (EdgeReading("lines", "split", 100.0), EdgeReading("split", "count", split_to_count))


@pytest.mark.parametrize(
    ("observation", "selectivity"),
    [
        pytest.param(replace(WINDOW, edges=edges(700.0)), 7.0, id="measured"),
        pytest.param(replace(WINDOW, edges=edges(None)), 5.0, id="edge not measured"),
        pytest.param(replace(WINDOW, edges=()), 5.0, id="edges not reported"),
        pytest.param(replace(WINDOW, edges=edges(0.0)), 5.0, id="nothing emitted between two bursts"),
        pytest.param(read(WINDOW, "split", records_in_per_s=0.0), 5.0, id="upstream processed nothing"),
        pytest.param(read(WINDOW, "split", records_in_per_s=None), 5.0, id="upstream not measured"),
        pytest.param(read(WINDOW, "split", records_in_per_s=5e-324), 5.0, id="an infinite ratio"),
    ],
)
def test_selectivity_is_measured_or_the_graphs_own(observation: object, selectivity: float) -> None:
    assert measured_selectivity(WORDS.graph, observation)[("split", "count")] == selectivity  # type: ignore[arg-type]


def test_demand_follows_the_arrivals_not_the_throughput() -> None:
    limited = window(WORDS, 1000.0, 1, 100.0)
    assert limited.operator("count").records_in_per_s == pytest.approx(100.0)
    assert demand(situation(WORDS, limited, None)) == pytest.approx({"lines": 1000, "split": 1000, "count": 5000})


def test_demand_adds_up_over_forks_and_joins() -> None:
    spec = diamond()
    observation = window(spec, {"clicks": 100.0, "views": 40.0}, 4, 1000.0)
    expected = {"clicks": 100, "views": 40, "clean": 120, "count": 30, "enrich": 120, "join": 270}
    assert demand(situation(spec, observation, None)) == pytest.approx(expected)


def test_a_source_without_a_rate_is_refused_by_name() -> None:
    with pytest.raises(InvalidValue, match="lines"):
        demand(situation(WORDS, replace(WINDOW, sources=()), None))


@pytest.mark.parametrize(
    ("demand_per_s", "true_rate_per_s", "tasks"),
    [(250.0, 100.0, 2.5), (0.0, 100.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0, math.inf)],
)
def test_linear_tasks(demand_per_s: float, true_rate_per_s: float, tasks: float) -> None:
    assert linear_tasks(demand_per_s, true_rate_per_s) == tasks
