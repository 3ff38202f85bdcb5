"""The suite's runs: throughput, latency, transfer, recall, other laws, backlogs, case studies, overhead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from rheostat.engine.simulated import Plant
from rheostat.lab.jobs import job
from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.backlog_runs import LOOK_S, Case, Caught, Steady, catch_up
from rheostat.lab.papers.autrascale.case_runs import Held, run_cases, run_sizes
from rheostat.lab.papers.autrascale.other_laws import LAWS, WORDS, plant_of, target_of
from rheostat.lab.papers.autrascale.overhead import measure
from rheostat.lab.papers.autrascale.scaling_runs import Solved, solve
from rheostat.lab.papers.autrascale.truth import exhaustive, fewest
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
ELO_JOB, ELO_LEVEL, ELO_TARGET_S = "yahoo-open", 30.0, 0.25
"""Figure 11's job, its load, and L_p: the smallest L_e of the grid, as section II-A assumes."""
STARTS = ("as published", "tight")
"""Section V-E: one task each, TO, PLO, and then the backlog; and a control, whose π^p is the fewest tasks for L_p."""
CONTROL_MS = 500
"""Event-time target of the control's cells; the target hardly changes V_t."""
RECALLED = ("Nex-Q5", "Nex-Q11", "WordCount, 100 ms")
"""Workloads that return to a rate that was solved before; on the others π^t meets the target."""


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    seeds: int
    grid_seeds: int
    repeats: int
    targets_ms: tuple[int, ...] = paper.TARGETS_MS
    """Event-time targets of Figure 11's cells."""


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
    recall: Mapping[str, Mapping[str, list[list[Solved]]]]
    """Workload -> method -> seed -> the new rate, the old one, and the new one again."""
    laws: Mapping[str, Mapping[str, list[Solved]]]
    """Law -> method -> seed."""
    cases: tuple[list[list[Held]], list[list[Held]]]
    """Case 1 by level and seed, case 2 by size and seed."""
    sizes: list[list[Held]]
    """Figure 7(b)'s sizes, by size and seed."""
    overhead_ms: Mapping[str, Mapping[int, list[float]]]
    """Algorithm -> operators -> repetition."""


def grid(start: str = STARTS[0], targets_ms: Sequence[int] = paper.TARGETS_MS) -> list[Case]:
    """Return Figure 11's cells, or the nine of the control."""
    targets = targets_ms if start == STARTS[0] else (CONTROL_MS,)
    return [
        Case(records, target / 1e3, minutes * 60.0)
        for records, target, minutes in product(paper.BACKLOGS.values(), targets, paper.LIMITS_MIN)
    ]


def case_name(case: Case) -> str:
    """Return the name of a cell, with the paper's coordinates."""
    return f"{case.backlog / 1e6:.0f}M ({case.target_s * 1e3:.0f} ms, {case.limit_s / 60:.0f} min)"


def transfers() -> dict[str, tuple[paper.Workload, float]]:
    """Return Table V's workloads with their targets, and WordCount once more with a tighter one."""
    workloads = {name: (each, each.target_s) for name, each in paper.WORKLOADS.items()}
    return workloads | {f"WordCount, {TIGHTER_S * 1e3:.0f} ms": (paper.WORKLOADS["WordCount"], TIGHTER_S)}


PUBLISHED = partial(AuTraScale, literal=True, trial_s=TRIAL_S)
"""The paper's rows: Eq 3 and Algorithm 3 to the letter."""
UNROUNDED = partial(AuTraScale, trial_s=TRIAL_S)
"""The same with DS2's demand, which rounds no upstream: π^t is smaller, so that more is left to PLO."""


def run_throughput(name: str, seeds: int) -> dict[str, list[Solved]]:
    """Run Figure 7 on one workload: from one task each, without a latency target."""
    workload = paper.WORKLOADS[name]
    methods = [
        Method(paper.TO, PUBLISHED),
        Method(paper.UNROUNDED, AuTraScale),
        Method(paper.DS2, partial(DS2, ignore_single_decrease=False)),
    ]
    return _solve(workload.job, methods, [workload.level], seeds)


def run_latency(name: str, seeds: int) -> dict[str, list[Solved]]:
    """Run one test of Table IV."""
    test = paper.TESTS[name]
    drs = partial(DRS, processing_s=test.target_s)
    methods = [
        Method(paper.DRS_OBSERVED, partial(drs, rates="observed")),
        Method(paper.DRS_TRUE, drs),
        Method(paper.CALIBRATED, partial(drs, calibrate=True)),
        Method(paper.PLO, partial(PUBLISHED, processing_s=test.target_s, uniform=test.uniform)),
        Method(paper.PLO_UNROUNDED, partial(UNROUNDED, processing_s=test.target_s, uniform=test.uniform)),
        Method(paper.OURS, partial(AuTraScale, processing_s=test.target_s, model="decomposed")),
    ]
    return _solve(test.job, methods, [test.level], seeds, test.start)


def run_transfer(name: str, seeds: int) -> dict[str, list[Solved]]:
    """Run Figure 10 on one workload: a model of the old rate, then the new one."""
    workload, target_s = transfers()[name]
    make = partial(PUBLISHED, processing_s=target_s)
    methods = [
        Method(paper.TRADITIONAL, partial(make, transfer="traditional")),
        Method(paper.LIGHT, partial(make, transfer="light")),
        Method(paper.TRADITIONAL_UNROUNDED, partial(UNROUNDED, processing_s=target_s, transfer="traditional")),
        Method(paper.LIGHT_UNROUNDED, partial(UNROUNDED, processing_s=target_s)),
        Method(paper.OURS, partial(AuTraScale, processing_s=target_s, model="decomposed")),
    ]
    return _solve(workload.job, methods, [workload.old, workload.new], seeds)


def run_recall(name: str, seeds: int) -> dict[str, list[list[Solved]]]:
    """Run a workload at its new rate, at the old one, and at the new one again."""
    workload, target_s = transfers()[name]
    plant = job(workload.job)
    methods = [
        Method(paper.LIGHT_UNROUNDED, partial(UNROUNDED, processing_s=target_s)),
        Method(paper.OURS, partial(AuTraScale, processing_s=target_s, model="decomposed")),
    ]
    first = [1] * len(plant.spec().tunable_names)
    return solve(plant, methods, [workload.new, workload.old, workload.new], first, seeds, paper.MOST)


def run_law(law: str, seeds: int) -> dict[str, list[Solved]]:
    """Run WordCount with another latency law; both models with the same TO."""
    target_s = target_of(law)
    methods = [
        Method(paper.PLO_UNROUNDED, partial(UNROUNDED, processing_s=target_s)),
        Method(paper.OURS, partial(AuTraScale, processing_s=target_s, model="decomposed")),
    ]
    runs = solve(plant_of(law), methods, [WORDS.level], WORDS.start, seeds, paper.MOST)
    return {name: [levels[-1] for levels in each] for name, each in runs.items()}


def _solve(
    job_name: str, methods: Sequence[Method], levels: Sequence[float], seeds: int, start: Sequence[int] = ()
) -> dict[str, list[Solved]]:
    """Return the last level of every run; by default it starts with one task each."""
    plant = job(job_name)
    first = start or [1] * len(plant.spec().tunable_names)
    solved = solve(plant, methods, levels, first, seeds, paper.MOST)
    return {name: [levels[-1] for levels in runs] for name, runs in solved.items()}


def elo_start() -> tuple[Plant, Steady]:
    """Return Figure 11's job, and its fewest tasks that meet L_p."""
    plant = job(ELO_JOB)
    tight = exhaustive(plant, ELO_LEVEL * 1e3, ELO_TARGET_S, paper.MOST)
    assert tight is not None
    return plant, Steady(tight, fewest(plant, ELO_LEVEL * 1e3, paper.MOST).tasks)


def elo_starts(start: str, seeds: int) -> tuple[Plant, list[Steady]]:
    """Return Figure 11's job, and the steady allocation of every seed."""
    plant, tight = elo_start()
    if start != STARTS[0]:
        return plant, [tight] * seeds
    make = partial(PUBLISHED, processing_s=ELO_TARGET_S)
    runs = _solve(ELO_JOB, [Method(paper.PLO, make)], [ELO_LEVEL], seeds)
    return plant, [Steady(run.end, run.base) for run in runs[paper.PLO]]


def run_backlog(start: str, seeds: int, targets_ms: Sequence[int]) -> dict[str, list[list[Caught]]]:
    """Run Figure 11's grid from one kind of start."""
    plant, starts = elo_starts(start, seeds)
    elo = partial(AuTraScale, processing_s=ELO_TARGET_S, trial_s=float(LOOK_S))
    methods = [
        Method(paper.MAX, MaxTasks),
        Method(paper.PROPORTION, Proportion),
        Method(paper.EXPONENT, Exponent),
        Method(paper.ELO, partial(elo, literal=True)),
        Method(paper.THRIFT, partial(elo, literal=True, thrift=True)),
        Method(paper.BOUND, elo),
        Method(paper.OURS, partial(elo, model="decomposed")),
    ]
    return catch_up(plant, methods, starts, ELO_LEVEL, grid(start, targets_ms), paper.MOST)


def parts(size: Size) -> list[Task]:
    """Return the parts that run on all cores."""
    yahoo = paper.WORKLOADS["Yahoo"]
    return [
        *((f"Figure 11, {start} start", run_backlog, (start, size.grid_seeds, size.targets_ms)) for start in STARTS),
        *((f"Figure 10, {name}", run_transfer, (name, size.seeds)) for name in transfers()),
        *((f"Recall, {name}", run_recall, (name, size.seeds)) for name in RECALLED),
        *((f"Other laws, {law}", run_law, (law, size.seeds)) for law in LAWS),
        *((f"Table IV, {name}", run_latency, (name, size.seeds)) for name in paper.TESTS),
        *((f"Figure 7, {name}", run_throughput, (name, size.seeds)) for name in paper.WORKLOADS),
        ("Figure 7(b)", run_sizes, (yahoo.job, yahoo.level, tuple(paper.SIZES_7B.values()), size.seeds)),
        ("Figures 4 and 5", run_cases, (size.seeds,)),
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
        {name: done[f"Recall, {name}"] for name in RECALLED},
        {law: done[f"Other laws, {law}"] for law in LAWS},
        done["Figures 4 and 5"],
        done["Figure 7(b)"],
        done["Table VI"],
    )
