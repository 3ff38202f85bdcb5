"""The suite's runs: both experiments, every method, five seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rheostat.lab.data import data_folder
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.play import Method, Run, play, profile
from rheostat.policy.hpa import HPA
from rheostat.policy.phoebe.anticipate import Anticipate
from rheostat.policy.phoebe.policy import Phoebe
from rheostat.policy.phoebe.twres import TWRES

CONFIDENCE = 0.9
"""Share of failures that our policy aims to recover from in time."""
Runs = Mapping[str, list[Run]]
"""Method -> run per seed."""


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    seeds: int
    unrefreshed: bool
    """Whether Phoebe also runs with a profile that is never corrected."""


@dataclass(frozen=True)
class Found:
    """All runs of the suite."""

    size: Size
    folder: Path
    experiments: Mapping[str, Runs]
    profile_slot_seconds: Mapping[str, float]


def phoebe_row(downtime_s: float, refreshed: bool = True) -> str:
    """Return the name of Phoebe with one D."""
    if refreshed and downtime_s == paper.MAIN_D:
        return paper.PHOEBE
    return f"{paper.PHOEBE}, D = {downtime_s:g}" + ("" if refreshed else ", profile never corrected")


def phoebe(downtime_s: float, refreshed: bool = True) -> Method:
    """Return Phoebe with one D, the paper's settings otherwise."""
    make = partial(Phoebe, downtime_s=downtime_s, target_s=paper.TARGET_S, refresh="full" if refreshed else "never")
    return Method(phoebe_row(downtime_s, refreshed), make)


def methods(size: Size) -> list[list[Method]]:
    """Return the methods in groups of similar duration."""
    statics = [Method(row, None, workers) for row, workers in ((paper.S24, 24), (paper.S12, 12), (paper.S4, 4))]
    # Kubernetes' defaults, and the CPU share of Flink's example.
    others = [Method(paper.REACTIVE, partial(HPA, target_cpu=0.35)), Method(paper.TWRES, TWRES)]
    ours = Method(paper.OURS, partial(Anticipate, target_s=paper.TARGET_S, confidence=CONFIDENCE))
    groups = [[*statics, *others, ours], [phoebe(d) for d in paper.DOWNTIMES]]
    if size.unrefreshed:
        groups[1] += [phoebe(d, refreshed=False) for d in paper.DOWNTIMES]
    return groups


def run_group(name: str, group: int, size: Size, folder: Path) -> tuple[Runs, float]:
    """Run one group of methods on one experiment; return its runs, and the slot-seconds of the profile."""
    cost = sum(measurement.slot_seconds for measurement in profile(name, folder))
    return play(name, folder, methods(size)[group], range(size.seeds)), cost


def parts(size: Size) -> list[Task]:
    """Return the parts; experiments alternate, so that a process reuses its profile."""
    folder = data_folder()
    groups = range(len(methods(size)))
    return [
        (f"{name} {group}", run_group, (name, group, size, folder)) for group in groups for name in paper.EXPERIMENTS
    ]


def gather(size: Size, done: Mapping[str, tuple[Runs, float]]) -> Found:
    """Return the runs by experiment and method."""
    groups = range(len(methods(size)))
    return Found(
        size,
        data_folder(),
        {name: {k: v for g in groups for k, v in done[f"{name} {g}"][0].items()} for name in paper.EXPERIMENTS},
        {name: done[f"{name} 0"][1] for name in paper.EXPERIMENTS},
    )
