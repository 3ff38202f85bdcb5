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
from rheostat.lab.papers.autrascale.case_runs import Held, run_cases, run_sizes
from rheostat.lab.papers.autrascale.other_laws import LAWS, OUTSIDE, optimum_of, plant_of, target_of
from rheostat.lab.papers.autrascale.overhead import cases
from rheostat.lab.papers.autrascale.runs import (
    RECALLED,
    STARTS,
    Found,
    Size,
    case_name,
    elo_starts,
    grid,
    run_recall,
    transfers,
)
from rheostat.lab.papers.autrascale.scaling_runs import Solved, prepared, solve
from rheostat.lab.papers.autrascale.tables import (
    ROWS_4,
    ROWS_7,
    ROWS_10,
    ROWS_11,
    ROWS_LAWS,
    ROWS_RECALL,
    SIMULATED,
    minimal,
)
from rheostat.lab.papers.autrascale.truth import exhaustive, fewest, latency_s
from rheostat.lab.papers.claim import UNEXPLAINED
from rheostat.lab.papers.difference import INSIDE
from rheostat.lab.papers.play import Method
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.table import Cell
from rheostat.policy.autrascale.policy import AuTraScale
from rheostat.policy.max_tasks import MaxTasks

ITERATIONS = {paper.PLO: 1, paper.PLO_UNROUNDED: 1, paper.OURS: 1, paper.LIGHT: 1, paper.TRADITIONAL: 2}
EXTRA = {
    paper.DRS_OBSERVED: 20,
    paper.DRS_TRUE: 0,
    paper.CALIBRATED: 15,
    paper.PLO: 4,
    paper.PLO_UNROUNDED: 4,
    paper.OURS: 1,
}


def solved(job_name: str, level: float, row: str, extra: int = 0) -> Solved:
    base = fewest(job(job_name), level * 1e3, paper.MOST)
    end = base.with_tasks({name: min(count + extra, 40) for name, count in base.tasks.items()})
    latency = 0.05 if extra else 0.5
    return Solved(
        4, 3, ITERATIONS.get(row, 3), 10 if row == paper.PLO else 0, end, latency, level * 1e3, base.tasks, (4, 30)
    )


TASKS = {
    paper.MAX: 200,
    paper.EXPONENT: 150,
    paper.PROPORTION: 120,
    paper.ELO: 100,
    paper.THRIFT: 60,
    paper.BOUND: 90,
    paper.OURS: 50,
}


def caught(row: str, reachable: bool) -> Caught:
    met = reachable and row != paper.PROPORTION
    return Caught(300.0 if met else 700.0, TASKS[row], 3, met, not reachable, True, 25)


@pytest.fixture(scope="module")
def found() -> Result:
    held = [Held(150e3, 0.1, 0.1, 0.0)] * 2
    operators = {*paper.OPERATORS, *paper.TRANSFER_OPERATORS.values()}
    return SUITE.result(
        Found(
            Size(2, 1, 1),
            {n: {r: [solved(w.job, min(w.level, 36), r)] * 2 for r in ROWS_7} for n, w in paper.WORKLOADS.items()},
            {n: {r: [solved(t.job, t.level, r, EXTRA[r])] * 2 for r in ROWS_4} for n, t in paper.TESTS.items()},
            {n: {r: [solved(w.job, w.new, r, 2)] * 2 for r in ROWS_10} for n, (w, _) in transfers().items()},
            {
                start: {row: [[caught(row, math.isfinite(tasks))] for tasks in minimal(start)] for row in ROWS_11}
                for start in STARTS
            },
            {n: {r: [[solved("autrascale-q5", 10, r)] * 3] * 2 for r in ROWS_RECALL} for n in RECALLED},
            {law: {r: [solved("autrascale-wordcount", 350, r, 2)] * 2 for r in ROWS_LAWS} for law in LAWS},
            ([held] * len(paper.CASE_1), [held] * len(paper.CASE_2)),
            [held] * len(paper.SIZES_7B),
            {row: {n: [1.0, 1.1] for n in operators} for row in (*paper.OVERHEAD_MS, paper.OURS)},
        )
    )


def cell(found: Result, table: str, row: str, column: str) -> Cell:
    (only,) = [c for c in found.cells if (c.table, c.row, c.column) == (table, row, column)]
    return only


def test_every_table_is_there_with_the_papers_numbers(found: Result) -> None:
    tables = found.tables()
    assert {"Figure 7", "IV, tasks", "IV, bootstrap runs", "Figure 10, tasks", "VI"} <= set(tables)
    assert {"Figure 4(a)", "Figure 5(a)", "Figure 7(b), throughput", "Headline, tasks saved"} <= set(tables)
    assert cell(found, "Figure 5(a)", SIMULATED, "p = 3").paper == 275
    assert cell(found, "Headline, tasks saved", paper.PLO, "scale-down").paper == 66.6
    printed = cell(found, "Headline, tasks saved", "Table IV as printed", "scale-down")
    assert printed.ours == pytest.approx(62.3, abs=0.05), "the paper's own rows do not give its headline"
    assert cell(found, "Headline, tasks saved", paper.ELO, "event-time, as published start").paper == 26.9
    assert cell(found, "Figure 7, tasks", paper.TO, "WordCount").paper == 29
    assert cell(found, "IV, score", paper.PLO, "Yahoo Up").paper == 0.994
    assert cell(found, "IV, bootstrap runs", paper.PLO, "Yahoo Down").paper == 40
    assert cell(found, "Figure 11, AuTraScale+ saves", paper.MAX, "as published start").paper == 49.5
    assert cell(found, "VI", "Algorithm 1", "10 operators").paper == 88
    assert cell(found, "IV, tasks over exhaustive", paper.OURS, "WC Up").ours == pytest.approx(33 / 31)


def test_the_whole_grid_is_printed_with_the_fewest_tasks_beside_it(found: Result) -> None:
    for start, table, count in ((STARTS[0], "Figure 11(b)", 27), (STARTS[1], "Figure 11(b), tight start", 9)):
        names = [case_name(each) for each in grid(start)]
        assert len(names) == len(set(names)) == count
        for row in ROWS_11:
            assert {c.column for c in found.tables()[table] if c.row == row} == {*names, "mean"}
    assert sum(math.isinf(tasks) for tasks in minimal()) == 3
    assert cell(found, "Figure 11, out of reach", paper.ELO, "said so, tight start").ours == 100


def test_fitted_cells_say_so(found: Result) -> None:
    fitted = {(c.table, c.row) for c in found.cells if c.fitted}
    both = {(table, row) for table in ("Figure 7", "Figure 7, tasks") for row in (paper.TO, paper.UNROUNDED)}
    cases = ("Figure 4(a)", "Figure 5(a)", "Figure 5(b), processing latency", "Figure 7(b), throughput")
    assert fitted == both | {(table, SIMULATED) for table in cases}
    assert not cell(found, "Figure 5(a)", SIMULATED, "p = 3").fitted, "predicted from one and two tasks"


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


def test_the_simulator_follows_every_other_law() -> None:
    """The exhaustive search judges by the law that the job has."""
    for law in OUTSIDE:
        plant = plant_of(law)
        still = replace(prepared(plant), operators=tuple(replace(o, noise=0.0) for o in plant.operators))
        row = (5, 6, 16, 14)
        start = Allocation(dict(zip(plant.spec().tunable_names, row, strict=True)))
        fleet = Fleet(still, [Constant(350.0)], [0], start=[start])
        fleet.advance(120)
        assert fleet.latency[0, 0] == pytest.approx(latency_s(plant, np.array([row]), 350e3)[0], rel=0.01), law


def test_no_law_has_an_easier_target() -> None:
    """The target asks for some tasks more than the throughput, under every law."""
    for law in LAWS:
        base = fewest(plant_of(law), 350e3, 40)
        assert base.slots < optimum_of(law) <= 1.4 * base.slots
        assert latency_s(plant_of(law), np.array([list(base.tasks.values())]), 350e3)[0] > target_of(law)


def test_the_case_studies_come_from_the_first_two_throughputs() -> None:
    rising, sizes = run_cases(1)
    assert [round(runs[0].throughput_per_s / 1e3) for runs in sizes[:2]] == pytest.approx([150, 250], rel=0.03)
    assert rising[2][0].backlog < 1e5
    assert rising[-1][0].backlog > 1e7, "50K records/s too many for ten minutes"
    assert sizes[5][0].latency_s > sizes[4][0].latency_s
    (first, *_) = run_sizes("yahoo", 60.0, [(40,) * 5], 1)
    assert first[0].throughput_per_s == pytest.approx(36.5e3, rel=0.02)


def test_a_rate_that_returns_is_recalled() -> None:
    runs = run_recall("Nex-Q5", 2)
    for row in ROWS_RECALL:
        for first, _, again in runs[row]:
            assert again.end.slots <= first.end.slots
            assert again.trials == 0


def test_as_published_every_seed_starts_with_its_own_search() -> None:
    plant, starts = elo_starts(STARTS[0], 2)
    for start in starts:
        assert set(start.base) == set(start.tasks.tasks) == set(plant.spec().tunable_names)
        assert all(start.tasks.tasks[name] >= count for name, count in start.base.items())
        law = latency_s(plant, np.array([list(start.tasks.tasks.values())]), 30e3)
        assert law[0] <= 0.25


def test_a_real_backlog_is_worked_off_in_time_and_the_steady_allocation_returns() -> None:
    plant, starts = elo_starts("tight", 1)
    methods = [
        Method("max", MaxTasks),
        Method("ours", partial(AuTraScale, processing_s=0.25, model="decomposed")),
    ]
    cases = [Case(6e6, 1.0, 480.0), Case(16e6, 1.0, 360.0)]
    runs = catch_up(plant, methods, starts, 30.0, cases, 40)
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
