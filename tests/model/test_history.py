"""The windows that add samples of an operator, and the samples that are retained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rheostat.job.frozen import from_json, to_json
from rheostat.job.graph import Edge, Graph, JobSpec, Tunable
from rheostat.job.guards import Guards
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.record import Run
from rheostat.job.slo import SLO
from rheostat.model.history import MAX_SAMPLES_PER_SIZE, MAX_SIZES, History, fold
from rheostat.testing.situations import read, window, word_count

WORDS = word_count()


def look(tasks: int = 4, true_rate_per_s: float = 100.0) -> Observation:
    return window(WORDS, 50.0, tasks, true_rate_per_s)


def run(spec: JobSpec) -> Run:
    return Run(spec.name, 0.0, "1", 0, spec, SLO(), Guards(), "conttune")


def test_a_window_adds_the_capacity_of_every_operator() -> None:
    history = fold(fold(History(), look(4)), look(6, 90.0))
    assert [(s.tasks, s.capacity_per_s) for s in history.samples("split")] == [(4, 400.0), (6, 540.0)]
    assert history.most_tasks == {"split": 6, "count": 6}
    assert history.samples("unknown") == ()


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(replace(look(), problem="the window overlaps a change"), id="unusable"),
        pytest.param(replace(look(), status=Status.RECOVERING), id="recovering"),
        pytest.param(replace(look(), status=Status.DOWN), id="down"),
        pytest.param(replace(look(), change=Change.UNDER_WAY), id="a change under way"),
        pytest.param(Observation.blind(60.0, "the engine did not answer"), id="blind"),
    ],
)
def test_windows_with_a_failure_or_a_change_add_no_sample(bad: Observation) -> None:
    history = fold(History(), look())
    assert fold(history, bad) == history


def test_an_idle_operator_adds_no_sample() -> None:
    idle = read(look(), "count", records_in_per_s=0.0, true_rate_per_s=None)
    history = fold(History(), idle)
    assert history.samples("count") == ()
    assert len(history.samples("split")) == 1


def test_the_newest_samples_of_a_size_are_retained() -> None:
    history = History()
    for rate in range(1, 3 * MAX_SAMPLES_PER_SIZE):
        history = fold(history, look(4, float(rate)))
    capacities = [s.capacity_per_s for s in history.samples("split")]
    assert capacities == [4.0 * rate for rate in range(2 * MAX_SAMPLES_PER_SIZE, 3 * MAX_SAMPLES_PER_SIZE)]


def test_it_does_not_grow_with_the_jobs_age_and_p_max_is_not_forgotten() -> None:
    history = History()
    for tasks in range(100, 1, -1):
        history = fold(history, look(tasks))
    assert {s.tasks for s in history.samples("split")} == set(range(2, 2 + MAX_SIZES))
    assert history.most_tasks["split"] == 100


def test_a_new_graph_removes_operators_that_left_it() -> None:
    history = fold(History(), look())
    graph = Graph(("lines", "split", "tally"), (Edge("lines", "split"), Edge("split", "tally", 5.0)), ("lines",))
    renamed = JobSpec("word-count", graph, tuple(Tunable(name) for name in graph.operators))
    after = fold(history, run(renamed))
    assert after.samples("split") == history.samples("split")
    assert set(after.operators) == {"split"}
    assert set(after.most_tasks) == {"split"}
    assert fold(history, run(WORDS)) == history


def test_it_survives_json() -> None:
    history = fold(fold(History(), look(4)), look(6))
    assert from_json(History, to_json(history)) == history
