"""StreamBed's suite: the recorded measurements, the simulated truths, and the tables made of runs."""

from __future__ import annotations

import pytest

from rheostat.errors import InvalidValue
from rheostat.lab.bench.planner import planning
from rheostat.lab.data import data_folder
from rheostat.lab.jobs import job
from rheostat.lab.papers.claim import HOLDS, UNKNOWN
from rheostat.lab.papers.registry import suite
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.streambed import SUITE, paper
from rheostat.lab.papers.streambed.paper import QUERIES
from rheostat.lab.papers.streambed.recordings import Recorded, recorded, table_iv_points
from rheostat.lab.papers.streambed.runs import Found, Size, by_share, exploration, replays
from rheostat.lab.papers.streambed.truth import Truth
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


class TestTruth:
    def test_the_simulated_queries_are_as_large_as_the_papers(self) -> None:
        for query in paper.SIMPLE_QUERIES:
            asked = QUERIES[query]
            needed = Truth(job(asked.job)).slots_for(1.1 * asked.rate_per_s)
            assert needed == pytest.approx(asked.slots[4.0], rel=0.2)

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
    explored = {way: [exploration("q1", way, seed) for seed in range(3)] for way in (paper.RULE, paper.OURS)}
    replayed = {way: replays("q1", way, 2, 2) for way in (paper.DICHOTOMIC, paper.SEQUENTIAL)}
    return SUITE.result(
        Found(
            Size(3, 2, 2),
            dict.fromkeys(QUERIES, explored),
            dict.fromkeys(QUERIES, replayed),
            dict.fromkeys(QUERIES, by_share([run.verified for run in explored[paper.OURS]])),
            {q: dict.fromkeys(paper.GB, 197.0) for q in QUERIES},
            dict.fromkeys(QUERIES, Recorded(job("streambed-q1").spec(), (), ())),
        )
    )


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
        assert not any(c.fitted for c in found.cells)

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
