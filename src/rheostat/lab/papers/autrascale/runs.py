"""The suite's runs: throughput, latency, transfer, backlogs, overhead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from rheostat.engine.simulated import Plant
from rheostat.job.allocation import Allocation
from rheostat.lab.jobs import job
from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.backlog_runs import Case, Caught, catch_up
from rheostat.lab.papers.autrascale.overhead import measure
from rheostat.lab.papers.autrascale.scaling_runs import Solved, solve
from rheostat.lab.papers.autrascale.truth import exhaustive
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.play import Method
from rheostat.policy.autrascale.policy import AuTraScale
from rheostat.policy.drs import DRS
from rheostat.policy.ds2 import DS2
from rheostat.policy.exponent import Exponent
from rheostat.policy.max_tasks import MaxTasks
from rheostat.policy.proportion import Proportion

TRIAL_S = 100.0
"""Seconds of a trial, as long as a window of the live job."""
TIGHTER_S = 0.1
"""A tighter latency target for WordCount, whose fewest tasks meet Table V's target already."""
ELO_JOB, ELO_LEVEL, ELO_TARGET_S = "yahoo-open", 30.0, 0.3
STARTS = ("tight", "wasteful")
WASTEFUL = 20
"""Tasks of every operator at the wasteful start; the widest operator of the tight start has 15."""


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    seeds: int
    grid_seeds: int
    repeats: int


@dataclass(frozen=True)
class Found:
    """All runs of the suite."""

    size: Size
    throughput: Mapping[str, Mapping[str, list[Solved]]]
    """Workload -> method -> seed."""
    latency: Mapping[str, Mapping[str, list[Solved]]]
    """Test -> method -> seed."""
    transfer: Mapping[str, Mapping[str, list[Solved]]]
    """Workload -> method -> seed, at the new rate."""
    backlog: Mapping[str, Mapping[str, list[list[Caught]]]]
    """Start -> method -> cell -> seed."""
    overhead_ms: Mapping[str, list[float]]


def grid() -> list[Case]:
    """Return Figure 11's 27 cells."""
    return [
        Case(records, target / 1e3, minutes * 60.0)
        for records, target, minutes in product(paper.BACKLOGS.values(), paper.TARGETS_MS, paper.LIMITS_MIN)
    ]


def case_name(case: Case) -> str:
    """Return the name of a cell, with the paper's coordinates."""
    return f"{case.backlog / 1e6:.0f}M ({case.target_s * 1e3:.0f} ms, {case.limit_s / 60:.0f} min)"


def transfers() -> dict[str, tuple[paper.Workload, float]]:
    """Return Table V's workloads with their targets, and WordCount once more with a tighter one."""
    workloads = {name: (each, each.target_s) for name, each in paper.WORKLOADS.items()}
    return workloads | {f"WordCount, {TIGHTER_S * 1e3:.0f} ms": (paper.WORKLOADS["WordCount"], TIGHTER_S)}


def run_throughput(name: str, seeds: int) -> dict[str, list[Solved]]:
    """Run Figure 7 on one workload: from one task each, without a latency target."""
    workload = paper.WORKLOADS[name]
    methods = [
        Method(paper.TO, AuTraScale),
        Method(paper.LITERAL, partial(AuTraScale, literal=True)),
        Method(paper.DS2, partial(DS2, ignore_single_decrease=False)),
    ]
    return _solve(workload.job, methods, [workload.level], seeds)


def run_latency(name: str, seeds: int) -> dict[str, list[Solved]]:
    """Run one test of Table IV."""
    test = paper.TESTS[name]
    methods = [
        Method(paper.DRS_OBSERVED, partial(DRS, rates="observed", processing_s=test.target_s)),
        Method(paper.DRS_TRUE, partial(DRS, rates="true", processing_s=test.target_s)),
        Method(paper.PLO, partial(AuTraScale, processing_s=test.target_s, uniform=test.uniform, trial_s=TRIAL_S)),
        Method(paper.OURS, partial(AuTraScale, processing_s=test.target_s, model="decomposed")),
    ]
    return _solve(test.job, methods, [test.level], seeds, test.start)


def run_transfer(name: str, seeds: int) -> dict[str, list[Solved]]:
    """Run Figure 10 on one workload: a model of the old rate, then the new one."""
    workload, target_s = transfers()[name]
    make = partial(AuTraScale, processing_s=target_s, trial_s=TRIAL_S)
    methods = [
        Method(paper.TRADITIONAL, partial(make, transfer="traditional")),
        Method(paper.LIGHT, partial(make, transfer="light")),
        Method(paper.SCRATCH, partial(make, transfer="none")),
        Method(paper.OURS, partial(make, model="decomposed")),
    ]
    return _solve(workload.job, methods, [workload.old, workload.new], seeds)


def _solve(
    job_name: str, methods: Sequence[Method], levels: Sequence[float], seeds: int, start: Sequence[int] = ()
) -> dict[str, list[Solved]]:
    """Return the last level of every run; by default it starts with one task each."""
    plant = job(job_name)
    first = start or [1] * len(plant.spec().tunable_names)
    solved = solve(plant, methods, levels, first, seeds, paper.MOST)
    return {name: [levels[-1] for levels in runs] for name, runs in solved.items()}


def elo_starts() -> tuple[Plant, dict[str, Allocation]]:
    """Return Figure 11's job, and the two steady allocations from which it is run."""
    plant = job(ELO_JOB)
    tight = exhaustive(plant, ELO_LEVEL * 1e3, ELO_TARGET_S, paper.MOST)
    assert tight is not None
    return plant, {"tight": tight, "wasteful": tight.with_tasks(dict.fromkeys(tight.tasks, WASTEFUL))}


def run_backlog(start: str, seeds: int) -> dict[str, list[list[Caught]]]:
    """Run Figure 11's grid from one steady allocation."""
    plant, starts = elo_starts()
    make = partial(AuTraScale, processing_s=ELO_TARGET_S, trial_s=TRIAL_S)
    methods = [
        Method(paper.MAX, MaxTasks),
        Method(paper.PROPORTION, Proportion),
        Method(paper.EXPONENT, Exponent),
        Method(paper.ELO, make),
        Method(paper.OURS, partial(make, model="decomposed")),
    ]
    return catch_up(plant, methods, starts[start], ELO_LEVEL, grid(), seeds, paper.MOST)


def parts(size: Size) -> list[Task]:
    """Return the parts that run on all cores."""
    return [
        *((f"Figure 11, {start} start", run_backlog, (start, size.grid_seeds)) for start in STARTS),
        *((f"Figure 10, {name}", run_transfer, (name, size.seeds)) for name in transfers()),
        *((f"Table IV, {name}", run_latency, (name, size.seeds)) for name in paper.TESTS),
        *((f"Figure 7, {name}", run_throughput, (name, size.seeds)) for name in paper.WORKLOADS),
    ]


def alone(size: Size) -> list[Task]:
    """Return the overhead part, which runs alone."""
    return [("Table VI", measure, (size.repeats,))]


def gather(size: Size, done: Mapping[str, Any]) -> Found:
    """Return all runs, by their use."""
    return Found(
        size,
        {name: done[f"Figure 7, {name}"] for name in paper.WORKLOADS},
        {name: done[f"Table IV, {name}"] for name in paper.TESTS},
        {name: done[f"Figure 10, {name}"] for name in transfers()},
        {start: done[f"Figure 11, {start} start"] for start in STARTS},
        done["Table VI"],
    )
