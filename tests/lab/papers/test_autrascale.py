"""AuTraScale+'s suite: the truth behind it, tables from runs, and the conclusions drawn from them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from charts import has_nan

from rheostat.engine.simulated import Fleet
from rheostat.engine.testbed.loads import Constant
from rheostat.job.allocation import Allocation
from rheostat.lab.jobs import job
from rheostat.lab.papers.autrascale import SUITE, paper
from rheostat.lab.papers.autrascale.backlog_runs import Case, Caught, catch_up
from rheostat.lab.papers.autrascale.overhead import cases
from rheostat.lab.papers.autrascale.runs import STARTS, Found, Size, case_name, elo_starts, grid, transfers
from rheostat.lab.papers.autrascale.scaling_runs import Solved, prepared, solve
from rheostat.lab.papers.autrascale.tables import ROWS_4, ROWS_7, ROWS_10, ROWS_11, minimal
from rheostat.lab.papers.autrascale.truth import exhaustive, fewest, latency_s
from rheostat.lab.papers.claim import UNEXPLAINED
from rheostat.lab.papers.difference import INSIDE
from rheostat.lab.papers.play import Method
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.table import Cell
from rheostat.policy.autrascale.policy import AuTraScale
from rheostat.policy.max_tasks import MaxTasks

ITERATIONS = {paper.PLO: 1, paper.OURS: 1, paper.LIGHT: 1, paper.TRADITIONAL: 2}
EXTRA = {paper.DRS_OBSERVED: 20, paper.DRS_TRUE: 0, paper.PLO: 4, paper.OURS: 1}


def solved(job_name: str, level: float, row: str, extra: int = 0) -> Solved:
    base = fewest(job(job_name), level * 1e3, paper.MOST)
    end = base.with_tasks({name: min(count + extra, 40) for name, count in base.tasks.items()})
    latency = 0.05 if extra else 0.5
    return Solved(4, 3, ITERATIONS.get(row, 3), 10 if row == paper.PLO else 0, end, latency, level * 1e3)


def caught(row: str, reachable: bool) -> Caught:
    tasks = {paper.MAX: 200, paper.EXPONENT: 150, paper.PROPORTION: 120, paper.ELO: 100, paper.OURS: 50}[row]
    met = reachable and row != paper.PROPORTION
    return Caught(300.0 if met else 700.0, tasks, 3, met, not reachable, True)


@pytest.fixture(scope="module")
def found() -> Result:
    reach = [math.isfinite(tasks) for tasks in minimal()]
    return SUITE.result(
        Found(
            Size(2, 1, 1),
            {n: {r: [solved(w.job, min(w.level, 36), r)] * 2 for r in ROWS_7} for n, w in paper.WORKLOADS.items()},
            {n: {r: [solved(t.job, t.level, r, EXTRA[r])] * 2 for r in ROWS_4} for n, t in paper.TESTS.items()},
            {n: {r: [solved(w.job, w.new, r, 2)] * 2 for r in ROWS_10} for n, (w, _) in transfers().items()},
            {start: {row: [[caught(row, can)] for can in reach] for row in ROWS_11} for start in STARTS},
            {row: [1.0] * 5 for row in (*paper.OVERHEAD_MS, paper.OURS)},
        )
    )


def cell(found: Result, table: str, row: str, column: str) -> Cell:
    (only,) = [c for c in found.cells if (c.table, c.row, c.column) == (table, row, column)]
    return only


def test_every_table_is_there_with_the_papers_numbers(found: Result) -> None:
    tables = found.tables()
    assert {"Figure 7", "IV, tasks", "IV, bootstrap runs", "Figure 10, tasks", "VI"} <= set(tables)
    assert cell(found, "Figure 7, tasks", paper.TO, "WordCount").paper == 29
    assert cell(found, "IV, score", paper.PLO, "Yahoo Up").paper == 0.994
    assert cell(found, "IV, bootstrap runs", paper.PLO, "Yahoo Down").paper == 40
    assert cell(found, "Figure 11, AuTraScale+ saves", paper.MAX, "wasteful start").paper == 49.5
    assert cell(found, "VI", "Algorithm 1", "10 operators").paper == 88
    assert cell(found, "IV, tasks over exhaustive", paper.OURS, "WC Up").ours == pytest.approx(33 / 31)


def test_the_whole_grid_is_printed_from_both_starts_with_the_fewest_tasks_beside_it(found: Result) -> None:
    names = [case_name(each) for each in grid()]
    assert len(names) == len(set(names)) == 27
    for table in ("Figure 11(b)", "Figure 11(b), wasteful start"):
        for row in ROWS_11:
            assert {c.column for c in found.tables()[table] if c.row == row} == {*names, "mean"}
    assert sum(math.isinf(tasks) for tasks in minimal()) == 3
    assert cell(found, "Figure 11, out of reach", paper.ELO, "said so, tight start").ours == 100


def test_fitted_cells_say_so(found: Result) -> None:
    fitted = {(c.table, c.row) for c in found.cells if c.fitted}
    assert fitted == {("Figure 7", paper.TO), ("Figure 7, tasks", paper.TO)}


def test_every_claim_has_a_verdict_and_no_canned_cause(found: Result) -> None:
    assert set(found.verdicts()) == {claim.key for claim in SUITE.claims}
    assert {d.cause for d in found.differences} <= {UNEXPLAINED, INSIDE}
    assert not [drawing.title for drawing in found.drawings if has_nan(drawing.figure)]


def test_yes_and_no_of_table_iv_are_compared_with_the_papers(found: Result) -> None:
    """The paper's "misses" is 0 %, which no relative difference can be taken from."""
    misses = cell(found, "IV, meets QoS", paper.DRS_OBSERVED, "WC Up")
    assert (misses.paper, misses.flags) == (0.0, True)
    assert misses.off(0.1) == (misses.ours >= 50.0)
    assert cell(found, "IV, meets QoS", paper.DRS_TRUE, "Yahoo Up").paper == 100.0


def test_the_law_is_what_the_simulator_does() -> None:
    """Without noise, at every size: the latency falls and then rises with tasks (Figure 5)."""
    plant = job("autrascale-wordcount")
    still = replace(prepared(plant), operators=tuple(replace(o, noise=0.0) for o in plant.operators))
    sizes = [(3, 4, 12, 10), (4, 5, 14, 12), (10, 10, 20, 20), (40, 40, 40, 40)]
    starts = [Allocation(dict(zip(plant.spec().tunable_names, row, strict=True))) for row in sizes]
    fleet = Fleet(still, [Constant(350.0)] * len(sizes), [0] * len(sizes), start=starts)
    fleet.advance(120)
    law = latency_s(plant, np.array(sizes), 350e3)
    assert fleet.latency[0] == pytest.approx(law, rel=0.01)
    assert law[0] > law[1] < law[3]


def test_the_published_configurations_are_the_fewest_that_keep_up() -> None:
    for name, workload in paper.WORKLOADS.items():
        level = 34 if name == "Yahoo" else workload.level
        assert tuple(fewest(job(workload.job), level * 1e3, 40).tasks.values()) == workload.final


def test_exhaustive_search_finds_the_fewest_and_says_when_there_are_none() -> None:
    plant = job("autrascale-wordcount")
    best = exhaustive(plant, 350e3, 0.18, 40)
    assert best is not None
    assert best.slots == 31
    assert exhaustive(plant, 350e3, 0.02, 40) is None


def test_a_real_run_of_a_scaling_test_counts_changes_and_trials() -> None:
    test = paper.TESTS["Yahoo Up"]
    make = partial(AuTraScale, processing_s=test.target_s)
    methods = [Method("joint", make), Method("ours", partial(make, model="decomposed"))]
    runs = solve(job(test.job), methods, [test.level], test.start, 1, 40)
    joint, ours = runs["joint"][0][0], runs["ours"][0][0]
    assert joint.trials > 5
    assert ours.trials == 0
    assert 1 <= ours.iterations <= 3
    assert joint.changes >= joint.iterations >= 1
    assert ours.end.slots <= joint.end.slots
    assert ours.throughput_per_s == pytest.approx(34e3, rel=0.01)


def test_a_real_backlog_is_worked_off_in_time_and_the_steady_allocation_returns() -> None:
    plant, starts = elo_starts()
    methods = [
        Method("max", MaxTasks),
        Method("ours", partial(AuTraScale, processing_s=0.3, model="decomposed")),
    ]
    cases = [Case(6e6, 1.0, 480.0), Case(16e6, 1.0, 360.0)]
    runs = catch_up(plant, methods, starts["tight"], 30.0, cases, 1, 40)
    easy, hard = runs["max"][0][0], runs["max"][1][0]
    assert easy.met
    assert easy.returned
    assert easy.tasks == 200
    assert not hard.met
    assert hard.says_unreachable
    ours = runs["ours"][0][0]
    assert ours.met
    assert ours.tasks < 60


@pytest.mark.parametrize("operators", [2, 10])
def test_every_algorithm_of_table_vi_has_something_to_propose(operators: int) -> None:
    for name, (policy, at) in cases(operators).items():
        decision = policy.decide(at)
        assert decision.target is not None or decision.trials, name
