"""The suite's runs: every method on every workload, under budgets, and over 400 slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rheostat.lab.jobs import job
from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.methods import dhalion, late, methods
from rheostat.lab.papers.dragster.paper import Workload
from rheostat.lab.papers.dragster.play import Run, play
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.play import Method
from rheostat.policy.dragster.policy import Dragster

Runs = Mapping[str, list[Run]]
"""Method -> seed -> slots."""

LONG_SLOTS = 400
"""Slots of the runs for regret and fit."""
BUDGETS = (4, 5, 7, 9, 11, 13)
"""Budgets in slots; the best configuration of the whole grid has 16."""
SPLIT_SLOTS = 20
HOLD_SLOTS = 20
CONSTANT, SIX = "WordCount, constant load", "YSB, constant load"
SWITCHING = f"WordCount, load that switches every {HOLD_SLOTS} slots"
EUCLIDEAN = Method(paper.EUCLIDEAN, partial(Dragster, projection="euclidean"))
"""Dragster with the paper's Euclidean projection."""
LONG: Mapping[str, Workload] = {CONSTANT: paper.WORDCOUNT, SIX: paper.YSB, SWITCHING: paper.WORDCOUNT}


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    seeds: int
    long_seeds: int
    split_seeds: int

    @property
    def switching_seeds(self) -> int:
        """Seeds of the long runs under a switching load, about which nothing is claimed."""
        return max(self.long_seeds // 3, 1)


@dataclass(frozen=True)
class Found:
    """All runs of the suite."""

    size: Size
    workloads: Mapping[str, Runs]
    """WordCount, YSB, and Figure 5's others."""
    budget: Runs
    """WordCount under Figure 4's budget."""
    splits: Mapping[int, Runs]
    """WordCount under several budgets."""
    long: Mapping[str, Runs]
    """Kind of load -> runs."""


WORKLOADS: Mapping[str, Workload] = {
    "WordCount": paper.WORDCOUNT,
    "YSB": paper.YSB,
    "Window": paper.WINDOW,
    **paper.ONE,
}


def run_workload(name: str, seeds: int) -> Runs:
    """Run all methods on one workload."""
    return _run(WORKLOADS[name], WORKLOADS[name].each, seeds)


def run_budget(seeds: int) -> Runs:
    """Run WordCount's first phase under the budget of Figure 4, with both projections and both Dhalions."""
    threshold = paper.WORDCOUNT.idle_below
    first = Method(paper.FIRST, partial(dhalion, threshold, True))
    return _run_split([*methods(threshold), first, EUCLIDEAN], paper.BUDGET, seeds)


def run_split(slots: int, seeds: int) -> Runs:
    """Run Dragster with both projections under one budget."""
    return _run_split([Method(paper.SADDLE, Dragster), EUCLIDEAN], slots, seeds)


def run_long(kind: str, seeds: int) -> Runs:
    """Run a workload for 400 slots, with a constant or a switching load."""
    workload = LONG[kind]
    high, low = workload.levels[:2]
    levels = [low if kind == SWITCHING and slot // HOLD_SLOTS % 2 else high for slot in range(LONG_SLOTS)]
    return _run(workload, levels, seeds, Method(paper.LETTER, partial(Dragster, margin=0.0, shortfall=1.0)))


def _run(workload: Workload, levels: Sequence[float], seeds: int, *more: Method) -> Runs:
    plant = job(workload.job)
    return play(plant, [*methods(workload.idle_below), late(plant, levels), *more], levels, seeds)


def _run_split(selected: Sequence[Method], slots: int, seeds: int) -> Runs:
    return play(job(paper.WORDCOUNT.job), selected, (paper.HIGH,) * SPLIT_SLOTS, seeds, slots)


def parts(size: Size) -> list[Task]:
    """Return the parts, the long ones first."""
    return [
        *((kind, run_long, (kind, size.long_seeds)) for kind in (CONSTANT, SIX)),
        (SWITCHING, run_long, (SWITCHING, size.switching_seeds)),
        *((name, run_workload, (name, size.seeds)) for name in WORKLOADS),
        ("budget", run_budget, (size.seeds,)),
        *((f"{slots} slots", run_split, (slots, size.split_seeds)) for slots in BUDGETS),
    ]


def gather(size: Size, done: Mapping[str, Runs]) -> Found:
    """Return all runs, by their use."""
    return Found(
        size,
        {name: done[name] for name in WORKLOADS},
        done["budget"],
        {slots: done[f"{slots} slots"] for slots in BUDGETS},
        {kind: done[kind] for kind in LONG},
    )
