"""The suite's runs: both experiments and every method; priors of the downtime and other downtimes with fewer seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rheostat.lab.data import data_folder
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.play import Method, Run, play, profile
from rheostat.model.downtime import PRIORS, SCATTER, Kind
from rheostat.policy.hpa import HPA
from rheostat.policy.phoebe.anticipate import Anticipate
from rheostat.policy.phoebe.policy import Phoebe
from rheostat.policy.phoebe.twres import TWRES

CONFIDENCE = 0.9
"""Share of failures that our policy aims to recover from in time."""
NARROW_PRIORS_S = (10.0, 30.0, 60.0, 100.0, 140.0)
"""Downtimes that ours believes in before the first failure, each with the weight of one failure."""
TRUE_DOWNTIMES_S = (35.0, 100.0, 130.0)
"""Mean downtimes of plants other than the paper's, whose 65 s lie next to the middle of our prior."""
PRIOR_S = 60.0
NEVER = ", profile never corrected"
DRILLED, NO_LATENCY, TWRES_NEVER = f"{paper.OURS}, drilled", "Phoebe without M_L", f"{paper.TWRES}{NEVER}"
Runs = Mapping[str, list[Run]]
"""Method -> run per seed."""


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    seeds: int
    ablations: bool
    """Whether Phoebe also runs with more values of D and without its latency model, and Phoebe and TWRES with a profile
    that is never corrected."""
    prior_seeds: int = 0
    """Seeds of the narrow priors and of other downtimes; 0 leaves them out."""


@dataclass(frozen=True)
class Found:
    """All runs of the suite."""

    size: Size
    folder: Path
    experiments: Mapping[str, Runs]
    profile_slot_seconds: Mapping[str, float]
    """Slot-seconds of the whole profile."""
    windows_slot_seconds: Mapping[str, float] = field(default_factory=dict)
    """Slot-seconds of its measuring windows."""
    others: Mapping[float, Runs] = field(default_factory=dict)
    """Mean downtime -> runs of TSW."""


def phoebe_row(downtime_s: float, refreshed: bool = True) -> str:
    """Return the name of Phoebe with one D."""
    if refreshed and downtime_s == paper.MAIN_D:
        return paper.PHOEBE
    return f"{paper.PHOEBE}, D = {downtime_s:g}" + ("" if refreshed else NEVER)


def phoebe(downtime_s: float, refreshed: bool = True) -> Method:
    """Return Phoebe with one D, the paper's settings otherwise."""
    make = partial(Phoebe, downtime_s=downtime_s, target_s=paper.TARGET_S, refresh="full" if refreshed else "never")
    return Method(phoebe_row(downtime_s, refreshed), make)


def prior_row(downtime_s: float) -> str:
    """Return the name of ours with a narrow prior."""
    return f"{paper.OURS}, prior {downtime_s:g}"


def prior(downtime_s: float) -> Method:
    """Return ours with a narrow prior."""
    return _ours(prior_row(downtime_s), prior=(downtime_s, SCATTER))


def _ours(row: str, drilled: bool = False, prior: tuple[float, float] = PRIORS[Kind.RESTART]) -> Method:
    mean_s, spread = prior
    make = partial(
        Anticipate,
        target_s=paper.TARGET_S,
        confidence=CONFIDENCE,
        prior_downtime_s=mean_s,
        prior_spread=spread,
    )
    return Method(row, make, drilled=drilled)


def methods(size: Size) -> list[list[Method]]:
    """Return the methods in groups of similar duration."""
    statics = [Method(row, None, workers) for row, workers in ((paper.S24, 24), (paper.S12, 12), (paper.S4, 4))]
    # Kubernetes' defaults, and the CPU share of Flink's example.
    others = [Method(paper.REACTIVE, partial(HPA, target_cpu=0.35)), Method(paper.TWRES, TWRES)]
    groups = [
        [*statics, *others, _ours(paper.OURS)],
        [phoebe(paper.MAIN_D), phoebe(paper.EQUAL_D), _ours(DRILLED, drilled=True)],
    ]
    if size.ablations:
        without = Method(NO_LATENCY, partial(Phoebe, downtime_s=paper.MAIN_D, target_s=paper.TARGET_S, latency=False))
        never = Method(TWRES_NEVER, partial(TWRES, refresh="never"))
        more_d = [phoebe(d) for d in paper.DOWNTIMES if d not in (paper.MAIN_D, paper.EQUAL_D)]
        groups.append([*more_d, without, phoebe(paper.MAIN_D, refreshed=False), never])
    return groups


def run_group(name: str, group: int, size: Size, folder: Path) -> tuple[Runs, float, float]:
    """Run one group of methods on one experiment; return its runs, and the cost of the profile and of its windows."""
    measured = profile(name, folder)
    cost = sum(measurement.slot_seconds for measurement in measured)
    windows = sum(
        measurement.trial.allocation.slots * phase.seconds
        for measurement in measured
        for phase in measurement.trial.phases
        if phase.observed
    )
    return play(name, folder, methods(size)[group], range(size.seeds)), cost, windows


def run_priors(name: str, size: Size, folder: Path) -> Runs:
    """Run ours with the narrow priors."""
    return play(name, folder, [prior(d) for d in NARROW_PRIORS_S], range(size.prior_seeds))


def run_other(downtime_s: float, size: Size, folder: Path) -> Runs:
    """Run ours on TSW with another mean downtime: with its wide prior, and with a narrow one."""
    compared = [Method(paper.S24, None, 24), _ours(paper.OURS), prior(PRIOR_S)]
    return play(paper.TSW, folder, compared, range(size.prior_seeds), downtime_s)


def parts(size: Size) -> list[Task]:
    """Return the parts; experiments alternate, so that a process reuses its profile."""
    folder = data_folder()
    groups = range(len(methods(size)))
    tasks: list[Task] = [
        (f"{name} {group}", run_group, (name, group, size, folder)) for group in groups for name in paper.EXPERIMENTS
    ]
    if size.prior_seeds:
        tasks += [(f"{name} priors", run_priors, (name, size, folder)) for name in paper.EXPERIMENTS]
        tasks += [(f"downtime {each:g}", run_other, (each, size, folder)) for each in TRUE_DOWNTIMES_S]
    return tasks


def gather(size: Size, done: Mapping[str, tuple[Runs, float, float] | Runs]) -> Found:
    """Return the runs by experiment and method."""
    experiments: dict[str, dict[str, list[Run]]] = {name: {} for name in paper.EXPERIMENTS}
    costs: dict[str, tuple[float, float]] = {}
    others: dict[float, Runs] = {}
    for name in paper.EXPERIMENTS:
        for group in range(len(methods(size))):
            part = done[f"{name} {group}"]
            assert isinstance(part, tuple)
            runs, *cost = part
            experiments[name].update(runs)
            costs[name] = cost[0], cost[1]
    if size.prior_seeds:
        for name in paper.EXPERIMENTS:
            narrow = done[f"{name} priors"]
            assert isinstance(narrow, Mapping)
            experiments[name].update(narrow)
        for each in TRUE_DOWNTIMES_S:
            other = done[f"downtime {each:g}"]
            assert isinstance(other, Mapping)
            others[each] = other
    whole, windows = ({name: cost[k] for name, cost in costs.items()} for k in (0, 1))
    return Found(size, data_folder(), experiments, whole, windows, others)
