"""The suite's runs: explorations on the simulator, replays of small sizes, plans verified at their full size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rheostat.engine.simulated.fleet import Fleet
from rheostat.engine.testbed.simulated import PhaseLoad, SimulatedTestbed, trial_seed
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Observation
from rheostat.job.plan import Estimate, Plan
from rheostat.lab.jobs import job
from rheostat.lab.papers.parallel import Task
from rheostat.lab.papers.streambed import paper
from rheostat.lab.papers.streambed.paper import GB, QUERIES
from rheostat.lab.papers.streambed.recordings import Recorded, recorded
from rheostat.lab.papers.streambed.truth import Truth
from rheostat.planner.campaign import OnTestbed, explore
from rheostat.planner.capacity_estimator import dichotomic
from rheostat.planner.plan import make_plan
from rheostat.planner.resource_explorer import HELPER, Ask, Geometric, Paper, Space
from rheostat.planner.rig import Feed
from rheostat.planner.sequential_estimator import sequential
from rheostat.planner.streambed import final_split, streambed_plan

HELD = 0.95
"""Processed share from which a rate counts as sustained: the worst of q1, q2 and q11 in the paper's replays."""
RULE = 0.99
"""Processed share from which the paper's estimator calls a rate sustained."""
REPLAY_S, WARM_S, SAMPLE_S = 600, 120, 5
"""Seconds of Figure 9's replays, of their warm-up, and of a sample, as in the paper."""
RAMP_UP_S, LOOK_S = 300, 60
"""Seconds of the ramp-up of Figure 11's runs, as in the paper, and of a sample."""
SHARES = (1.0, 1.2, 1.5)
BLOCK = 10
"""Explorations of one part: their plans run together."""
TABLE_IV = "Table IV's slots"
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
    whole: bool
    """Whether Figure 11's runs last as long as the paper's; else ten minutes."""


@dataclass(frozen=True)
class Verified:
    """One run of Figure 11."""

    processed: float
    """Share of the requested rate."""
    pending_s: float
    """Pending records at the end, in seconds of the rate."""


@dataclass(frozen=True)
class Explored:
    """One exploration: its measurements, its family, and its slots for the request."""

    estimates: tuple[Estimate, ...]
    calls_co: int
    family: str
    slots: Mapping[float, float]
    """GB per slot -> slots for the request; infinite if none suffice."""
    plan: Plan
    verified: Mapping[str, Mapping[str, Verified]] = field(default_factory=dict)
    """Plan -> share of the request -> its run."""

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
    deviation: float
    """Standard deviation of the share of 100 % over its samples."""
    useful: Mapping[str, tuple[int, tuple[float, ...]]]
    """Operator -> tasks, and useful shares at 100 %, sample by sample (Figure 10)."""


@dataclass(frozen=True)
class Found:
    """All runs of the suite."""

    size: Size
    explored: Mapping[str, Mapping[str, list[Explored]]]
    """Query -> way -> exploration per seed."""
    replayed: Mapping[str, Mapping[str, list[Replayed]]]
    verified: Mapping[str, Mapping[str, Mapping[str, list[Verified]]]]
    """Query -> plan -> share of the request -> runs by seed."""
    needed: Mapping[str, Mapping[float, float]]
    """Query -> GB -> slots needed on the simulator, with the paper's 110 %."""
    recorded: Mapping[str, Recorded]


def parts(size: Size) -> list[Task]:
    """Return the parts, query by query."""
    tasks: list[Task] = []
    for query in QUERIES:
        for way in WAYS:
            tasks += [
                (f"{query} {way} {seeds.start}", explorations, (query, way, seeds, size.whole))
                for seeds in blocks(size)
            ]
        tasks += [(f"{query} replay {way}", replays, (query, way, size.budgets, size.repeats)) for way in ESTIMATORS]
        tasks.append((f"{query} needed", needed, (query,)))
    return tasks


def blocks(size: Size) -> list[range]:
    """Return the seeds part by part."""
    return [range(k, min(k + BLOCK, size.seeds)) for k in range(0, size.seeds, BLOCK)]


def gather(size: Size, done: Mapping[str, Any]) -> Found:
    """Return the runs by query, with the slots needed and the recorded measurements."""
    explored = {
        q: {way: [one for seeds in blocks(size) for one in done[f"{q} {way} {seeds.start}"]] for way in WAYS}
        for q in QUERIES
    }
    replayed = {q: {way: done[f"{q} replay {way}"] for way in ESTIMATORS} for q in QUERIES}
    verified = {q: by_share(explored[q]) for q in QUERIES}
    slots = {q: done[f"{q} needed"] for q in QUERIES}
    return Found(size, explored, replayed, verified, slots, {q: recorded_or_none(q) for q in QUERIES})


def by_share(ways: Mapping[str, Sequence[Explored]]) -> dict[str, dict[str, list[Verified]]]:
    """Return the runs of all seeds: plan -> share of the request -> seed."""
    return {
        plan: {share: [run.verified[plan][share] for run in runs] for share in shares}
        for runs in ways.values()
        for plan, shares in runs[0].verified.items()
    }


def needed(query: str) -> dict[float, float]:
    """Return the slots needed on the simulator for 110 % of the request: GB -> slots."""
    settings = QUERIES[query]
    truth = Truth(job(settings.job))
    return {gb: truth.slots_with_bursts(1.1 * settings.rate_per_s, round(1024 * gb)) for gb in settings.gb}


def recorded_or_none(query: str) -> Recorded:
    """Return the recorded measurements, or an empty search if the data are not on this machine."""
    try:
        return recorded(query)
    except InvalidValue:
        return Recorded(job(QUERIES[query].job).spec(), (), ())


def explorations(query: str, way: str, seeds: range, whole: bool) -> list[Explored]:
    """Explore one query on the simulator, once per seed, and run what was planned."""
    runs = [exploration(query, way, seed) for seed in seeds]
    settings = QUERIES[query]
    sizes: list[tuple[int, str, Allocation]] = []
    for k, run in enumerate(runs):
        sizes.append((k, f"{way}'s plan", run.plan.allocation))
        if way == paper.RULE:
            spec = job(settings.job).spec()
            split = final_split(spec, run.estimates, settings.slots[4.0], 4096)
            sizes.append((k, TABLE_IV, Allocation(dict(split.tasks), 4096)))
    trials = [(tasks, settings.rate_per_s * share, 77 + seeds[k]) for k, _, tasks in sizes for share in SHARES]
    seconds = 60 * settings.minutes_11 if whole else REPLAY_S
    watched = iter(watch(query, trials, RAMP_UP_S if whole else WARM_S, seconds, LOOK_S))
    found: list[dict[str, dict[str, Verified]]] = [{} for _ in runs]
    for k, plan, _ in sizes:
        for share in SHARES:
            windows, rate = next(watched), settings.rate_per_s * share
            pending_s = (windows[-1].backlog or 0.0) / rate
            processed = Verified(float(np.mean(processed_shares(windows, rate))), pending_s)
            found[k].setdefault(plan, {})[f"{100 * share:.0f} %"] = processed
    return [replace(run, verified=each) for run, each in zip(runs, found, strict=True)]


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
        plan = streambed_plan(spec, done, settings.rate_per_s, memories_mb=memories)
        calls_co = sum(not e.why.startswith(HELPER) for e in done)
    else:
        optimizer = OnTestbed(bed, spec, feed, settings.phases, sequential, split_by_curves=True)
        done, _ = explore(Geometric(Space(settings.least, settings.most, (memories[0], memories[-1]))), optimizer)
        plan = make_plan(
            spec, done, settings.rate_per_s, memories_mb=(memories[0], memories[-1]), most_slots=settings.most
        )  # fmt: skip
        calls_co = len(done)
    top = max(plan.weights, key=lambda name: plan.weights[name])
    slots = {(c.memory_mb or 0) / 1024: c.slots.middle for c in plan.choices}
    return Explored(tuple(done), calls_co, top, slots, plan)


def replays(query: str, way: str, count: int, repeats: int) -> list[Replayed]:
    """Estimate budgets of Figure 9, split as the way splits them, and replay each at 100 and at 150 %."""
    settings = QUERIES[query]
    plant = job(settings.job)
    feed = Feed.of(plant.graph.sources)
    budgets = [(slots, gb) for gb in GB for slots in settings.small]
    budgets = budgets if count >= len(budgets) else budgets[::5][:count]
    bed = SimulatedTestbed(plant, 1000)
    ours = way == paper.SEQUENTIAL
    optimizer = OnTestbed(bed, plant.spec(), feed, settings.phases, ESTIMATORS[way], split_by_curves=ours)
    done: list[Estimate] = []
    measured: list[Estimate] = []
    for slots, gb in budgets * repeats:
        ask = Ask(slots, round(1024 * gb), "")
        while True:
            done.append(optimizer.measure(ask, done))
            if not done[-1].why.startswith(HELPER):
                break
        measured.append(done[-1])
    return replay_all(query, budgets * repeats, measured)


def replay_all(query: str, budgets: Sequence[tuple[int, float]], measured: Sequence[Estimate]) -> list[Replayed]:
    """Replay the estimates of budgets at 100 and at 150 %."""
    trials = [
        (mst.allocation, share * mst.middle_per_s, 2000 + 2 * k + int(share > 1))
        for k, mst in enumerate(measured)
        if mst.usable
        for share in (1.0, 1.5)
    ]
    watched = iter(watch(query, trials, WARM_S, REPLAY_S, SAMPLE_S))
    replayed = []
    for (slots, gb), mst in zip(budgets, measured, strict=True):
        if not mst.usable:
            replayed.append(Replayed(slots, gb, mst.seconds / 60, None, None, 0.0, {}))
            continue
        rate = mst.middle_per_s
        whole, more = next(watched), next(watched)
        shares, shares_150 = processed_shares(whole, rate), processed_shares(more, 1.5 * rate)
        useful = {
            name: (count, tuple(window.operator(name).useful_share or 0.0 for window in whole))
            for name, count in mst.allocation.tasks.items()
        }
        share, share_150 = float(np.mean(shares)), float(np.mean(shares_150))
        replayed.append(Replayed(slots, gb, mst.seconds / 60, share, share_150, float(np.std(shares)), useful))
    return replayed


def processed_shares(windows: Sequence[Observation], rate_per_s: float) -> list[float]:
    """Return the processed share of a rate, sample by sample."""
    return [(window.throughput_per_s or 0.0) / rate_per_s for window in windows]


def watch(
    query: str, trials: Sequence[tuple[Allocation, float, int]], warm_up_s: int, seconds: float, sample_s: int
) -> list[list[Observation]]:
    """Run allocations at rates, with a seed each, side by side; return the samples after the warm-up."""
    if not trials:
        return []
    plant = job(QUERIES[query].job)
    feed = Feed.of(plant.graph.sources)
    shown = replace(
        plant.metrics, window_s=float(sample_s), min_window_s=1.0, settle_s=0.0, display_lag_s=0.0, stale=0.0
    )  # fmt: skip
    loads = [PhaseLoad((feed.phase(warm_up_s + seconds, rate),), plant.graph.sources) for _, rate, _ in trials]
    seeds = [trial_seed(seed, 1) for _, _, seed in trials]
    fleet = Fleet(replace(plant, metrics=shown), loads, seeds, start=[tasks for tasks, _, _ in trials])
    fleet.advance(warm_up_s)
    watched: list[list[Observation]] = [[] for _ in trials]
    for _ in range(round(seconds / sample_s)):
        fleet.advance(sample_s)
        for k, samples in enumerate(watched):
            samples.append(fleet.engine(k).observe())
    return watched


def median(values: list[float]) -> float:
    """Return the median; infinite values are larger than all others."""
    return float(np.median(values)) if values else math.nan
