"""StreamBed's suite: the recorded measurements, the simulated truths, and the tables made of runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Observation
from rheostat.lab.bench.planner import planning
from rheostat.lab.data import data_folder
from rheostat.lab.jobs import job
from rheostat.lab.papers.claim import HOLDS, UNKNOWN
from rheostat.lab.papers.registry import suite
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.streambed import SUITE, paper, runs
from rheostat.lab.papers.streambed.paper import QUERIES
from rheostat.lab.papers.streambed.production import brackets, with_other_profile
from rheostat.lab.papers.streambed.recordings import Recorded, recorded, table_iv_points
from rheostat.lab.papers.streambed.runs import Found, Size, by_share, explorations, replays, watch
from rheostat.lab.papers.streambed.truth import Truth
from rheostat.planner import scaling
from rheostat.planner.extrapolation import Points, fit_family
from rheostat.planner.failures import find_doubtful


def here() -> bool:
    try:
        return (data_folder() / "streambed").is_dir()
    except InvalidValue:
        return False


needs_data = pytest.mark.skipif(not here(), reason="StreamBed's measured data are not here (see $RHEOSTAT_DATA)")


@needs_data
class TestRecorded:
    @pytest.mark.parametrize("query", ["q1", "q2", "q8", "q11"])
    def test_the_papers_family_gives_table_iv(self, query: str) -> None:
        asked = QUERIES[query]
        fit = fit_family(Points.of(table_iv_points(query, recorded(query))), asked.family)
        for gb, slots in asked.slots.items():
            memory = 1024 * gb * paper.SLOTS_PER_MANAGER
            assert fit.slots_for(asked.rate_per_s, memory) == pytest.approx(slots, abs=2)

    def test_single_task_runs_and_operators_are_read(self) -> None:
        found = recorded("q5")
        assert not found.named[0]
        assert set(found.estimates[0].allocation.tasks.values()) == {1}
        assert found.estimates[1].allocation.tasks["GroupWindowAggregate#2"] == 35
        window = found.estimates[1].observation
        assert window is not None
        assert window.operator("GroupWindowAggregate#2").true_rate_per_s == pytest.approx(4e4, rel=0.3)

    def test_runs_that_failed_are_recognised(self) -> None:
        assert 320884 in [round(e.middle_per_s) for e in find_doubtful(recorded("q11").estimates)]


@needs_data
class TestProduction:
    def test_the_small_runs_alone_meet_the_production_runs(self) -> None:
        runs = [run for query in QUERIES for run in brackets(query, recorded(query))]
        assert len(runs) == 16
        assert np.mean([run.covered for run in runs]) >= 0.85

    def test_a_law_without_drift_is_refuted_on_q2(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scaling, "DRIFT_SD", 1e-6)
        assert not any(run.covered for run in brackets("q2", recorded("q2")))

    def test_the_run_of_another_profile_narrows_the_answer(self) -> None:
        for query in QUERIES:
            *_, alone = brackets(query, recorded(query))
            informed = with_other_profile(query, recorded(query))
            assert informed.high / informed.low < alone.predicted.high / alone.predicted.low
            assert informed.low <= alone.failed_per_s
            assert informed.high >= alone.sustained_per_s
            assert informed.holds(alone.sustained_per_s)


class TestTruth:
    def test_the_simulated_queries_are_as_large_as_the_papers(self) -> None:
        for query in paper.SIMPLE_QUERIES:
            asked = QUERIES[query]
            needed = Truth(job(asked.job)).slots_for(1.1 * asked.rate_per_s)
            assert needed == pytest.approx(asked.slots[4.0], rel=0.2)

    def test_windows_that_leave_in_bursts_need_more_slots(self) -> None:
        truth = Truth(job("streambed-q8"))
        rate = QUERIES["q8"].rate_per_s
        smooth, bursts = truth.slots_for(rate, 4096), truth.slots_with_bursts(rate, 4096)
        assert bursts > 1.1 * smooth
        (enough,) = truth.saturated_per_s([int(bursts)], 4096)
        (short,) = truth.saturated_per_s([int(smooth)], 4096)
        assert short < rate <= enough
        q1 = Truth(job("streambed-q1"))
        assert q1.slots_with_bursts(8e7, 4096) == q1.slots_for(8e7, 4096)

    def test_every_query_has_the_operators_that_were_counted(self) -> None:
        for asked in QUERIES.values():
            assert len(job(asked.job).spec().tunable) == asked.operators == asked.least

    def test_a_planning_knows_what_it_missed(self) -> None:
        found = planning("q1", 1)
        assert found.sizes <= 8
        assert found.slots_error < 0.5
        assert found.width > 1.0
        assert found == planning("q1", 1)


@pytest.fixture(scope="module")
def found() -> Result:
    """All tables from three real explorations of one query."""
    explored = {way: explorations("q1", way, range(3), False) for way in (paper.RULE, paper.OURS)}
    replayed = {way: replays("q1", way, 2, 2) for way in (paper.DICHOTOMIC, paper.SEQUENTIAL)}
    return SUITE.result(
        Found(
            Size(3, 2, 2, False),
            dict.fromkeys(QUERIES, explored),
            dict.fromkeys(QUERIES, replayed),
            dict.fromkeys(QUERIES, by_share(explored)),
            {q: dict.fromkeys(paper.GB, 197.0) for q in QUERIES},
            dict.fromkeys(QUERIES, Recorded(job("streambed-q1").spec(), (), ())),
        )
    )


class TestRuns:
    def test_figure_11_runs_the_plans_own_split_and_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ran = []

        def look(query: str, trials: list[Any], *rest: int) -> list[list[Observation]]:
            ran.extend(trials)
            return watch(query, trials, 10, 60, 60)

        monkeypatch.setattr(runs, "watch", look)
        (one,) = explorations("q1", paper.OURS, range(1), True)
        assert [tasks for tasks, *_ in ran] == [one.plan.allocation] * 3
        assert [rate for _, rate, _ in ran] == [1.6e8, 1.2 * 1.6e8, 1.5 * 1.6e8]

    def test_the_papers_runs_last_as_long_as_the_papers(self) -> None:
        assert [QUERIES[q].minutes_11 for q in ("q1", "q2", "q11", "q5", "q8")] == [30, 30, 30, 90, 120]
        assert (SUITE.full.whole, SUITE.quick.whole) == (True, False)

    def test_samples_follow_one_another(self) -> None:
        tasks = Allocation({"calc": 2, "sink": 1}, 4096)
        ((first, *_, last),) = watch("q1", [(tasks, 1e9, 0)], 60, 120, 5)
        assert last.end_s - first.end_s == 115
        assert (last.backlog or 0.0) > (first.backlog or 0.0) > 0.0


class TestTables:
    def test_the_tables_are_the_papers(self, found: Result) -> None:
        names = set(found.tables())
        for name in ("III, minutes", "IV, 4 GB, simulated", "Figure 9, sustained at 100 %", "Figure 10, q1"):
            assert name in names
        assert any(name.startswith("Figure 11") for name in names)

    def test_papers_numbers_stand_beside_ours(self, found: Result) -> None:
        (cell,) = [c for c in found.cells if (c.table, c.row, c.column) == ("III, minutes", paper.RULE, "q1")]
        assert cell.paper == 139
        assert cell.ours > 60
        assert {c.table for c in found.cells if c.fitted} == {"II, rate of single tasks"}

    def test_verdicts_come_from_real_runs(self, found: Result) -> None:
        verdicts = found.verdicts()
        assert verdicts["Figure 9: q1: our estimator takes at least 30 % less time"] == HOLDS
        assert (
            verdicts["Figure 9: auto: estimates of q1, q2 and q11 are failing at 150 %, nine in ten at least"]
            == UNKNOWN
        )
        assert len(found.drawings) == len(QUERIES) + 2
        plan = [c for c in found.cells if (c.table, c.row, c.column) == ("Figure 11, auto's plan", "100 %", "q1")]
        assert len(plan[0].values) == 3

    def test_a_budget_without_an_estimate_counts_as_not_sustained(self, found: Result) -> None:
        (cell,) = [
            c for c in found.cells if (c.table, c.row, c.column) == ("Figure 9, sustained at 100 %", "StreamBed", "q1")
        ]
        assert (len(cell.values), cell.flags, cell.paper) == (4, True, 1.0)


def test_it_is_registered() -> None:
    assert suite("streambed") is SUITE
