"""The suite's runs: explorations on the simulator, replays of small sizes, plans verified at their full size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Trial
from rheostat.job.observation import Observation
from rheostat.job.plan import Estimate, Plan
from rheostat.lab.jobs import job
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.streambed import paper
from rheostat.lab.papers.streambed.paper import GB, QUERIES
from rheostat.lab.papers.streambed.recordings import Recorded, recorded
from rheostat.lab.papers.streambed.truth import Truth
from rheostat.planner.campaign import OnTestbed, explore
from rheostat.planner.capacity_estimator import dichotomic, estimate
from rheostat.planner.configuration_optimizer import bids2
from rheostat.planner.extrapolation import Points, select_fit
from rheostat.planner.plan import make_plan
from rheostat.planner.resource_explorer import HELPER, Geometric, Paper, Space
from rheostat.planner.rig import Feed
from rheostat.planner.sequential_estimator import sequential

HELD = 0.95
"""Processed share from which a rate counts as sustained: the worst of q1, q2 and q11 in the paper's replays."""
REPLAY_S, WARM_S = 600.0, 120.0
WAYS = (paper.RULE, paper.OURS)
ESTIMATORS = {paper.DICHOTOMIC: dichotomic, paper.SEQUENTIAL: sequential}


@dataclass(frozen=True)
class Size:
    """The size of the suite."""

    seeds: int
    budgets: int
    """Number of Figure 9's sixteen budgets per query."""
    repeats: int
    """Replays of every budget."""


@dataclass(frozen=True)
class Explored:
    """One exploration: its measurements, its family, and its slots for the request."""

    estimates: tuple[Estimate, ...]
    calls_co: int
    family: str
    slots: Mapping[float, float]
    """GB per slot -> slots for the request; infinite if none suffice."""
    plan: Plan | None = None
    verified: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Plan -> share of the request -> processed over requested."""

    @property
    def minutes(self) -> float:
        """Simulated minutes on the testbed."""
        return sum(e.seconds for e in self.estimates) / 60


@dataclass(frozen=True)
class Replayed:
    """One budget of Figure 9: the processed share of 100 and of 150 % of its estimate; None if it has none."""

    slots: int
    gb: float
    minutes: float
    share: float | None
    share_150: float | None
    useful: Mapping[str, tuple[int, float]]
    """Operator -> tasks and useful share at 100 % (Figure 10)."""


@dataclass(frozen=True)
class Found:
    """All runs of the suite."""

    size: Size
    explored: Mapping[str, Mapping[str, list[Explored]]]
    """Query -> way -> exploration per seed."""
    replayed: Mapping[str, Mapping[str, list[Replayed]]]
    verified: Mapping[str, Mapping[str, Mapping[str, list[float]]]]
    """Query -> plan -> share of the request -> processed over requested, by seed."""
    needed: Mapping[str, Mapping[float, float]]
    """Query -> GB -> slots needed on the simulator, with the paper's 110 %."""
    recorded: Mapping[str, Recorded]


def parts(size: Size) -> list[Task]:
    """Return the parts, query by query."""
    tasks: list[Task] = []
    for query in QUERIES:
        tasks += [(f"{query} {way} {k}", exploration, (query, way, k)) for way in WAYS for k in range(size.seeds)]
        tasks += [(f"{query} replay {way}", replays, (query, way, size.budgets, size.repeats)) for way in ESTIMATORS]
    return tasks


def gather(size: Size, done: Mapping[str, Any]) -> Found:
    """Return the runs by query, with the slots needed and the recorded measurements."""
    explored = {q: {way: [done[f"{q} {way} {k}"] for k in range(size.seeds)] for way in WAYS} for q in QUERIES}
    replayed = {q: {way: done[f"{q} replay {way}"] for way in ESTIMATORS} for q in QUERIES}
    verified = {q: by_share([run.verified for run in explored[q][paper.OURS]]) for q in QUERIES}
    needed = {
        q: {gb: Truth(job(p.job)).slots_for(1.1 * p.rate_per_s, round(1024 * gb)) for gb in p.gb}
        for q, p in QUERIES.items()
    }
    return Found(size, explored, replayed, verified, needed, {q: recorded_or_none(q) for q in QUERIES})


def by_share(runs: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, list[float]]]:
    """Return the processed shares of all seeds: plan -> share of the request -> seed."""
    return {plan: {share: [run[plan][share] for run in runs] for share in shares} for plan, shares in runs[0].items()}


def recorded_or_none(query: str) -> Recorded:
    """Return the recorded measurements, or an empty search if the data are not on this machine."""
    try:
        return recorded(query)
    except InvalidValue:
        return Recorded(job(QUERIES[query].job).spec(), (), ())


def exploration(query: str, way: str, seed: int) -> Explored:
    """Explore one query on the simulator, in the paper's way or in ours."""
    settings = QUERIES[query]
    plant = job(settings.job)
    spec, feed = plant.spec(), Feed.of(plant.graph.sources)
    bed = SimulatedTestbed(plant, seed)
    memories = tuple(round(1024 * gb) for gb in settings.gb)
    space = Space(settings.least, settings.most, memories)
    if way == paper.RULE:
        done, _ = explore(Paper(space, seed), OnTestbed(bed, spec, feed, settings.phases))
        helpers = [e for e in done if e.why.startswith(HELPER)]
        fit = select_fit(Points.of([e for e in done if e not in helpers]))
        slots = {gb: float(fit.slots_for(settings.rate_per_s, 1024 * gb) or math.inf) for gb in settings.gb}
        return Explored(tuple(done), len(done) - len(helpers), fit.family, slots)
    optimizer = OnTestbed(bed, spec, feed, settings.phases, sequential, split_by_curves=True)
    done, _ = explore(Geometric(Space(settings.least, settings.most, (memories[0], memories[-1]))), optimizer)
    plan = make_plan(spec, done, settings.rate_per_s, memories_mb=memories, most_slots=settings.most)
    top = max(plan.weights, key=lambda name: plan.weights[name])
    slots = {(c.memory_mb or 0) / 1024: c.slots.middle for c in plan.choices}
    return Explored(tuple(done), len(done), top, slots, plan, verifications(query, plan, seed))


def replays(query: str, way: str, count: int, repeats: int) -> list[Replayed]:
    """Estimate budgets of Figure 9 and replay each estimate at 100 and at 150 %."""
    settings = QUERIES[query]
    plant = job(settings.job)
    feed = Feed.of(plant.graph.sources)
    truth = Truth(plant)
    budgets = [(slots, gb) for gb in GB for slots in settings.small]
    budgets = budgets if count >= len(budgets) else budgets[::5][:count]
    replayed = []
    for k, (slots, gb) in enumerate(budgets * repeats):
        memory = round(1024 * gb)
        bed = SimulatedTestbed(plant, 1000 + k)
        tasks = Allocation(dict(bids2(truth.capacities(memory), slots).tasks), memory)
        mst = estimate(bed, tasks, feed, settings.phases, ESTIMATORS[way])
        if not mst.usable:
            replayed.append(Replayed(slots, gb, mst.seconds / 60, None, None, {}))
            continue
        (share, window), (share_150, _) = replay(bed, tasks, feed, [mst.middle_per_s, 1.5 * mst.middle_per_s])
        useful = {n: (c, window.operator(n).useful_share or 0.0) for n, c in tasks.tasks.items()}
        replayed.append(Replayed(slots, gb, mst.seconds / 60, share, share_150, useful))
    return replayed


def replay(
    bed: SimulatedTestbed, tasks: Allocation, feed: Feed, rates_per_s: Sequence[float]
) -> list[tuple[float, Observation]]:
    """Run an allocation at each rate for ten minutes; return the processed shares, and the windows."""
    phases = [(feed.phase(WARM_S, rate), feed.phase(REPLAY_S, rate, True)) for rate in rates_per_s]
    replayed = []
    for rate, measured in zip(
        rates_per_s, bed.measure_all([Trial("replay", tasks, each) for each in phases]), strict=True
    ):
        assert measured.observation is not None
        replayed.append(((measured.observation.throughput_per_s or 0.0) / rate, measured.observation))
    return replayed


def verifications(query: str, plan: Plan, seed: int) -> dict[str, dict[str, float]]:
    """Run Table IV's size and ours at 100, 120 and 150 % of the request, with 4 GB."""
    settings = QUERIES[query]
    plant = job(settings.job)
    feed, truth, memory = Feed.of(plant.graph.sources), Truth(plant), 4096
    sizes = {"Table IV's slots": settings.slots[4.0], f"{paper.OURS}'s plan": plan.allocation.slots}
    rates = {f"{100 * share:.0f} %": settings.rate_per_s * share for share in (1.0, 1.2, 1.5)}
    shares: dict[str, dict[str, float]] = {}
    for name, slots in sizes.items():
        tasks = Allocation(dict(bids2(truth.capacities(memory), slots).tasks), memory)
        replayed = replay(SimulatedTestbed(plant, 77 + seed), tasks, feed, list(rates.values()))
        shares[name] = {at: share for at, (share, _) in zip(rates, replayed, strict=True)}
    return shares


def median(values: list[float]) -> float:
    """Return the median; infinite values are larger than all others."""
    return float(np.median(values)) if values else math.nan
