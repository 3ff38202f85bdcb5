"""The suite's runs: every policy on every ground and seed, each beside the least cost of its seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rheostat.engine.simulated.plant import Plant
from rheostat.errors import PolicyError, RheostatError, first_line
from rheostat.lab.experiment.comparison import ORACLE
from rheostat.lab.experiment.config import make_config
from rheostat.lab.experiment.grounds import GROUNDS, OURS, PUBLISHED, Ground
from rheostat.lab.experiment.run import Run
from rheostat.lab.experiment.score import DAY_S, run_cost, windows_short
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.papers.parallel import Task

SEEDS_PER_PART = 10
"""Seeds of a hard ground in one part: they share a fleet and the rounds of their profiles."""
ROUNDING = 1e-9
"""Relative distance below the bound that is rounding."""


class BelowBound(RheostatError):  # noqa: N818
    """A policy is cheaper than the least cost: the bound, or the cost, is wrong."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the suite."""

    seeds: int
    """Seeds of a hard ground."""
    trace_seeds: int
    trace_hours: float
    """Hours of every recorded trace, from its start."""
    oracle_seeds: int
    """Seeds of which the oracle's schedule is played, too: to find it takes longer than a run."""
    every_s: float
    """Seconds between two decisions: all policies and seeds must end within minutes."""


@dataclass(frozen=True, slots=True)
class Played:
    """One policy on one ground with one seed."""

    policy: str
    seed: int
    cost: float
    bound: float
    slot_seconds: float
    lost: float
    """Slot-seconds lost to changes."""
    over_min: float
    """Minutes over the SLO."""
    changes_per_day: float
    windows_short: float
    """Decision intervals in which less than the demand was taken in."""
    latency_p99_s: float


@dataclass(frozen=True, slots=True)
class Found:
    """All runs of the suite."""

    size: Size
    grounds: Mapping[str, Mapping[str, tuple[Played, ...]]]
    """Ground -> policy -> a run per seed, in order."""
    missing: Mapping[str, str]
    """Ground that did not run -> why."""


def run_ground(name: str, size: Size, seeds: tuple[int, ...]) -> list[Played]:
    """Run all policies on some seeds of a ground."""
    ground = GROUNDS[name]
    values = {**ground.values, "interval_s": size.every_s}
    if ground.trace:
        values["duration_s"] = size.trace_hours * 3600.0
    oracle_seeds = min(size.oracle_seeds, 1) if ground.trace else size.oracle_seeds
    trial = make_config(values).trial(seeds)
    trials = [replace(trial, way=way, seed=seed) for way in (*PUBLISHED, *OURS) for seed in seeds]
    trials += [replace(trial, way=ORACLE, seed=seed) for seed in seeds if seed < oracle_seeds]
    return [read_run(name, run) for run in Simulated(profiled=True).run(trials, lambda _: None)]


def read_run(ground: str, run: Run[Plant]) -> Played:
    """Return a run's measurements; a policy that failed, or is below the bound, is an error."""
    where = f"{run.policy} on {ground}, seed {run.seed}"
    if run.policy_failure is not None:
        raise PolicyError(f"{where}: {first_line(run.policy_failure)} ({run.policy_failures} decisions failed)")
    assert run.bound is not None
    cost = run_cost(run)
    if cost.total < run.bound.total * (1 - ROUNDING):
        raise BelowBound(f"{where} costs {cost.total / run.bound.total:.4f} of the least cost: the bound is wrong")
    return Played(
        run.policy,
        run.seed,
        cost.total,
        run.bound.total,
        cost.slot_seconds,
        cost.lost,
        cost.over_s / 60.0,
        run.reconfigurations * DAY_S / run.end_s,
        windows_short(run),
        float(np.quantile(run.trace["latency_s"], 0.99)),
    )


def parts(size: Size) -> list[Task]:
    """Return the parts, the traces first; grounds whose data are not on this machine are left out."""
    tasks: list[Task] = []
    for ground in sorted(GROUNDS.values(), key=lambda ground: not ground.trace):
        if not ground.missing:
            tasks += [(_name(ground, seeds), run_ground, (ground.name, size, seeds)) for seeds in _seeds(size, ground)]
    return tasks


def gather(size: Size, done: Mapping[str, Iterable[Played]]) -> Found:
    """Return all runs, by ground and policy."""
    grounds: dict[str, dict[str, tuple[Played, ...]]] = {}
    for ground in GROUNDS.values():
        if not ground.missing:
            played = [run for seeds in _seeds(size, ground) for run in done[_name(ground, seeds)]]
            grounds[ground.name] = {
                policy: tuple(sorted((run for run in played if run.policy == policy), key=lambda run: run.seed))
                for policy in dict.fromkeys(run.policy for run in played)
            }
    return Found(size, grounds, {ground.name: ground.missing for ground in GROUNDS.values() if ground.missing})


def _seeds(size: Size, ground: Ground) -> list[tuple[int, ...]]:
    """Return the seeds of each part of a ground."""
    count, step = (size.trace_seeds, 1) if ground.trace else (size.seeds, SEEDS_PER_PART)
    return [tuple(range(start, min(start + step, count))) for start in range(0, count, step)]


def _name(ground: Ground, seeds: tuple[int, ...]) -> str:
    return f"{ground.name}, {f'seed {seeds[0]}' if len(seeds) == 1 else f'seeds {seeds[0]} to {seeds[-1]}'}"
