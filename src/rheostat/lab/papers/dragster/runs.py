"""The suite's runs: all methods on all workloads, under budgets, over many slots, after a drop of capacity, and with a
backlog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rheostat.engine.simulated import Plant
from rheostat.lab.jobs import job
from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.methods import DEPARTURES, NO_CATCH_UP, REMEMBERS, SPLIT, dhalion, late, methods
from rheostat.lab.papers.dragster.paper import Workload
from rheostat.lab.papers.dragster.play import Run, play
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.play import Method
from rheostat.lab.papers.tuning import LOOK_S

Runs = Mapping[str, list[Run]]
"""Method -> seed -> slots."""

BUDGETS = (4, 5, 7, 9, 11, 13)
"""Budgets in slots; the best configuration of the whole grid has 16."""
SPLIT_SLOTS = 20
HOLD_SLOTS = 20
CONSTANT, SIX = "WordCount, constant load", "YSB, constant load"
SWITCHING = f"WordCount, load that switches every {HOLD_SLOTS} slots"
LONG: Mapping[str, Workload] = {CONSTANT: paper.WORDCOUNT, SIX: paper.YSB, SWITCHING: paper.WORDCOUNT}
LOW_RATE = "WordCount, low rate"
DROP, BEFORE = 0.9, 40
"""Share of every capacity that a drop leaves, and the slots before it."""
DROPS: Mapping[str, tuple[Workload, float]] = {"WordCount": (paper.WORDCOUNT, 130.0), "YSB": (paper.YSB, 273.0)}
"""Workloads of the drop, and their loads: the largest sizes serve them after it, too."""
DROP_ROWS = (paper.DHALION, paper.PLAIN, paper.OWN_SADDLE, paper.REMEMBERS, paper.OWN_GRADIENT)
RISES: Mapping[str, tuple[Workload, float, float]] = {
    "WordCount": (paper.WORDCOUNT, paper.LOW, 130.0),
    "YSB": (paper.YSB, 150.0, 240.0),
}
"""Workloads with a backlog: the load before and after a rise."""
RISE_ROWS = (paper.DHALION, paper.SADDLE, paper.PLAIN, paper.OWN_SADDLE, paper.NO_CATCH_UP)
SPLIT_ROWS = (paper.SADDLE, paper.PLAIN, paper.SPLIT, paper.OWN_SADDLE)


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    seeds: int
    long_seeds: int
    split_seeds: int
    long_slots: int
    drop_slots: int
    """Slots after a drop of capacity."""

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
    drops: Mapping[str, Runs]
    """Workload -> runs with a drop of capacity."""
    rises: Mapping[str, Runs]
    """Workload -> runs with a backlog."""


WORKLOADS: Mapping[str, Workload] = {
    "WordCount": paper.WORDCOUNT,
    "YSB": paper.YSB,
    "Window": paper.WINDOW,
    **paper.ONE,
    LOW_RATE: paper.WORDCOUNT_LOW,
}


def run_workload(name: str, seeds: int) -> Runs:
    """Run all methods on one workload; on the two with tables, also with one departure each."""
    more = DEPARTURES if name in ("WordCount", "YSB") else ()
    return _run(WORKLOADS[name], WORKLOADS[name].each, seeds, *more)


def run_budget(seeds: int) -> Runs:
    """Run WordCount's first phase under the budget of Figure 4, with both projections and both Dhalions."""
    threshold = paper.WORDCOUNT.idle_below
    first = Method(paper.FIRST, partial(dhalion, threshold, True))
    return _run_split([*methods(threshold), first, SPLIT], paper.BUDGET, seeds)


def run_split(slots: int, seeds: int) -> Runs:
    """Run Dragster with both projections under one budget."""
    return _run_split(_named(SPLIT_ROWS, 0.0), slots, seeds)


def run_long(kind: str, seeds: int, slots: int) -> Runs:
    """Run a workload for many slots, with a constant or a switching load."""
    workload = LONG[kind]
    high, low = workload.levels[:2]
    levels = [low if kind == SWITCHING and slot // HOLD_SLOTS % 2 else high for slot in range(slots)]
    return _run(workload, levels, seeds)


def run_drop(name: str, seeds: int, slots: int) -> Runs:
    """Run a constant load while every capacity drops."""
    workload, level = DROPS[name]
    plant = drop(job(workload.job), DROP, BEFORE)
    return play(plant, _named(DROP_ROWS, workload.idle_below), (level,) * (BEFORE + slots), seeds)


def drop(plant: Plant, factor: float, slot: int) -> Plant:
    """Return the plant with this share of every capacity from a slot on."""
    points = ((slot * LOOK_S - 1.0, 1.0), (float(slot * LOOK_S), factor))
    tuned = plant.spec().tunable_names
    return replace(plant, operators=tuple(replace(o, drift=points) if o.name in tuned else o for o in plant.operators))


def run_rise(name: str, seeds: int) -> Runs:
    """Run a load that rises, with a source whose backlog remains."""
    workload, low, high = RISES[name]
    levels = (low,) * HOLD_SLOTS + (high,) * HOLD_SLOTS
    return play(job(workload.job), _named(RISE_ROWS, workload.idle_below), levels, seeds, backlog=True)


def _named(rows: Sequence[str], idle_below: float) -> list[Method]:
    every = (*methods(idle_below), SPLIT, REMEMBERS, NO_CATCH_UP)
    return [method for method in every if method.name in rows]


def _run(workload: Workload, levels: Sequence[float], seeds: int, *more: Method) -> Runs:
    plant = job(workload.job)
    return play(plant, [*methods(workload.idle_below), late(plant, levels), *more], levels, seeds)


def _run_split(selected: Sequence[Method], slots: int, seeds: int) -> Runs:
    return play(job(paper.WORDCOUNT.job), selected, (paper.HIGH,) * SPLIT_SLOTS, seeds, slots)


def parts(size: Size) -> list[Task]:
    """Return the parts, the long ones first."""
    return [
        *((kind, run_long, (kind, size.long_seeds, size.long_slots)) for kind in (CONSTANT, SIX)),
        (SWITCHING, run_long, (SWITCHING, size.switching_seeds, size.long_slots)),
        *((f"{name} with a drop", run_drop, (name, size.long_seeds, size.drop_slots)) for name in DROPS),
        *((name, run_workload, (name, size.seeds)) for name in WORKLOADS),
        ("budget", run_budget, (size.seeds,)),
        *((f"{slots} slots", run_split, (slots, size.split_seeds)) for slots in BUDGETS),
        *((f"{name} with a backlog", run_rise, (name, size.split_seeds)) for name in RISES),
    ]


def gather(size: Size, done: Mapping[str, Runs]) -> Found:
    """Return all runs, by their use."""
    return Found(
        size,
        {name: done[name] for name in WORKLOADS},
        done["budget"],
        {slots: done[f"{slots} slots"] for slots in BUDGETS},
        {kind: done[kind] for kind in LONG},
        {name: done[f"{name} with a drop"] for name in DROPS},
        {name: done[f"{name} with a backlog"] for name in RISES},
    )
