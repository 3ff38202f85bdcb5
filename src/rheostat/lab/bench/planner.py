"""The error of plans on simulated jobs (slots, measurements, intervals), and both estimators of the capacity.

A planning draws a true job (StreamBed's fitted queries with other exponents and interference, see
`papers/streambed/truth.py`), measures it with the noise and the failed runs of StreamBed's recorded estimates, and
plans for the rate that Table IV's size sustains. The plan is compared with that size, without headroom. The paper's
rule gets the same budget of sizes from its own explorer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.jobs import job
from rheostat.lab.papers.parallel import Task, run_tasks
from rheostat.lab.papers.streambed.paper import QUERIES, SIMPLE_QUERIES
from rheostat.lab.papers.streambed.production import brackets
from rheostat.lab.papers.streambed.recordings import recorded
from rheostat.lab.papers.streambed.truth import Drawn, Truth, varied
from rheostat.planner.campaign import explore
from rheostat.planner.capacity_estimator import dichotomic, estimate
from rheostat.planner.extrapolation import Points, select_fit
from rheostat.planner.failures import drop_doubtful
from rheostat.planner.plan import next_measurement, slots_for_rate
from rheostat.planner.resource_explorer import Geometric, Paper, Space
from rheostat.planner.rig import UNLIMITED_PER_S, Feed
from rheostat.planner.scaling import Scaling
from rheostat.planner.sequential_estimator import sequential

MEMORY_MB = 4096
NOISES = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Noises at which the estimators are compared."""
NOISE_PERIOD_S = 5
TESTBED_SLOTS = 48
ESTIMATED: Mapping[str, Mapping[str, int]] = {
    "streambed-q1": {"calc": 12, "sink": 4},
    "q11": {"calc": 4, "session_group": 30, "calc3": 1, "sink": 1},
}


@dataclass(frozen=True)
class Planned:
    """The errors of one plan."""

    slots_error: float
    rate_error: float
    covered: bool
    width: float
    """Upper over lower end of the 90 % interval of the rate at the true size."""
    narrower: float
    """Width now over the expected width after the next measurement."""
    measurements: int
    sizes: int
    rule_error: float
    """Slots error of the paper's explorer and rule."""
    rule_same_error: float
    """Slots error of the paper's rule on our measurements."""


def planning(query: str, seed: int, wide: bool = False) -> Planned:
    """Plan once; `wide` measures up to 48 slots and plans for ten times that."""
    settings = QUERIES[query]
    truth = Truth(varied(job(settings.job), np.random.default_rng([seed, 1])), MEMORY_MB)
    most = TESTBED_SLOTS if wide else settings.most
    needed = max(10 * most, settings.slots[4.0]) if wide else settings.slots[4.0]
    rate = truth.capacity_per_s(needed)
    needed_slots = min(truth.slots_for(rate), float(needed))
    drawn = Drawn(truth, settings.rate_noise, np.random.default_rng([seed, 2]))
    space = Space(settings.least, most, (MEMORY_MB,))
    done, _ = explore(Geometric(space), drawn)
    good = drop_doubtful(done)
    scaling = Scaling.fit(good, seed)
    slots = slots_for_rate(scaling, rate, MEMORY_MB, settings.least)
    at = scaling.rate_per_s(needed_slots, MEMORY_MB)
    worth = next_measurement(scaling, needed_slots, MEMORY_MB, most)
    theirs = Drawn(truth, settings.rate_noise, np.random.default_rng([seed, 3]))
    memories = tuple(round(1024 * gb) for gb in settings.gb)
    explored, _ = explore(Paper(Space(settings.least, most, memories), seed), theirs)
    rule, same = (select_fit(Points.of(points)).slots_for(rate, MEMORY_MB, 1.0) for points in (explored, good))
    return Planned(
        abs(slots.middle / needed_slots - 1),
        abs(at.middle / rate - 1),
        at.holds(rate),
        at.high / at.low,
        worth.width_now / worth.width_then if worth else 1.0,
        len(done),
        len({e.slots for e in done}),
        abs((rule or math.inf) / needed_slots - 1),
        abs((same or math.inf) / needed_slots - 1),
    )


def plannings(query: str, seeds: range, wide: bool = False) -> list[Planned]:
    """Plan several times."""
    return [planning(query, seed, wide) for seed in seeds]


def noisy(name: str, noise: float) -> Plant:
    """Return a job with this noise at every noisy operator, drawn every 5 s."""
    plant = job(name)
    operators = tuple(replace(o, noise=noise if o.noise else 0.0) for o in plant.operators)
    return replace(plant, noise_period_s=NOISE_PERIOD_S, operators=operators)


def estimates(noise: float, seeds: int) -> dict[str, tuple[float, float]]:
    """Return mean error and simulated minutes of both estimators, over two jobs."""
    rows_by_way: dict[str, list[tuple[float, float]]] = {"paper": [], "ours": []}
    for name, tasks in ESTIMATED.items():
        plant, size = noisy(name, noise), Allocation(dict(tasks), MEMORY_MB)
        feed = Feed.of(plant.graph.sources)
        rig = SimulatedTestbed(plant, 999).start(size)
        rig.play([feed.phase(120.0, UNLIMITED_PER_S, True)])
        windows = [rig.play([feed.phase(3000.0, UNLIMITED_PER_S, True)]).observation for _ in range(2)]
        truth = float(np.mean([w.throughput_per_s or 0.0 for w in windows if w is not None]))
        for way, search in (("paper", dichotomic), ("ours", sequential)):
            for seed in range(seeds):
                one = estimate(SimulatedTestbed(plant, seed), size, feed, search=search)
                error = abs(one.middle_per_s / truth - 1) if one.usable else 1.0
                rows_by_way[way].append((error, one.seconds / 60))
    return {way: tuple(np.mean(rows, axis=0).tolist()) for way, rows in rows_by_way.items()}


def planner(quick: bool, progress: Progress) -> list[Measure]:
    """Measure the errors of many plans and of many estimates."""
    block = 6 if quick else 25
    tasks: list[Task] = []
    for query in QUERIES:
        count = 12 if quick else 50 if query in SIMPLE_QUERIES else 100
        tasks += [(f"{query} {k}", plannings, (query, range(k, k + block))) for k in range(0, count, block)]
    tasks += [(f"wide {query}", plannings, (query, range(block), True)) for query in SIMPLE_QUERIES]
    tasks += [(f"estimates at noise {noise:g}", estimates, (noise, 2 if quick else 12)) for noise in NOISES]
    results = run_tasks(tasks, lambda name, share: progress(f"{share:.0%}, {name}"))
    plans = {
        query: [one for name, part in results.items() if name.startswith(f"{query} ") for one in part]
        for query in QUERIES
    }
    measures = []
    for query, runs in plans.items():
        measures += _of_query(query, runs)
    for query in SIMPLE_QUERIES:
        error = float(np.median([run.slots_error for run in results[f"wide {query}"]]))
        note = f"from {TESTBED_SLOTS} slots to ten times that"
        measures.append(Measure("planner", f"slots_error_{query}_48", error, "share", "<= 0.08", "lower", note))
    covered = [run.covered for runs in plans.values() for run in runs]
    note = f"of {len(covered)} plans, 90 % intervals of the rate at the true size"
    measures.append(
        Measure("planner", "interval_coverage", float(np.mean(covered)), "share", ">= 0.85", "higher", note)
    )
    measures += _of_production()
    for noise in NOISES:
        measures += _of_estimates(noise, results[f"estimates at noise {noise:g}"])
    return measures


def _of_production() -> list[Measure]:
    """Return how often our intervals from the recorded small runs meet the paper's production runs."""
    try:
        runs = {query: list(brackets(query, recorded(query))) for query in QUERIES}
    except InvalidValue:
        return []
    every = [run for each in runs.values() for run in each]
    covered = float(np.mean([run.covered for run in every]))
    note = f"of {len(every)} production runs (Table IV's sizes), from the recorded small runs alone"
    measures = [Measure("planner", "real_coverage", covered, "share", ">= 0.85", "higher", note)]
    for query, each in runs.items():
        width = float(np.median([run.predicted.high / run.predicted.low for run in each]))
        goal = "<= 1.5" if query in SIMPLE_QUERIES else ""
        measures.append(
            Measure("planner", f"real_width_{query}", width, "times", goal, "lower", "upper over lower end")
        )
    return measures


def _of_query(query: str, runs: list[Planned]) -> list[Measure]:
    def middle(name: str) -> float:
        return float(np.median([getattr(run, name) for run in runs]))

    simple = query in SIMPLE_QUERIES
    rule = middle("rule_error")
    goal = f"<= {min(0.08, rule / 2):.4g}" if simple else ""
    note = f"median of {len(runs)}; the paper's rule {rule:.3g}, on our measurements {middle('rule_same_error'):.3g}"
    sizes = max(run.sizes for run in runs)
    covered = float(np.mean([run.covered for run in runs]))
    width, then = middle("width"), middle("width") / middle("narrower")
    return [
        Measure("planner", f"slots_error_{query}", min(middle("slots_error"), 1e6), "share", goal, "lower", note),
        Measure("planner", f"rate_error_{query}", middle("rate_error"), "share", "", "lower", "at the true size"),
        Measure(
            "planner", f"measurements_{query}", middle("measurements"), "", "", "lower",
            f"at most {sizes} different sizes; failed runs are repeated",
        ),
        Measure("planner", f"interval_coverage_{query}", covered, "share", ">= 0.85", "higher", "goal 0.85 to 0.95"),
        Measure(
            "planner", f"interval_width_{query}", width, "times", "", "lower",
            f"upper over lower end; about {then:.3g} with the next measurement",
        ),
    ]  # fmt: skip


def _of_estimates(noise: float, by_way: Mapping[str, tuple[float, float]]) -> list[Measure]:
    (their_error, their_minutes), (error, minutes) = by_way["paper"], by_way["ours"]
    name = f"{round(100 * noise)}"
    note = f"mean over q1 and q11 at {noise:.0%} noise; the paper's procedure {their_error:.4f}"
    saved = 1 - minutes / their_minutes
    took = f"{minutes:.1f} simulated minutes against {their_minutes:.1f}"
    goal = f"<= {max(their_error, 0.001):.4g}"
    return [
        Measure("planner", f"estimate_error_{name}", error, "share", goal, "lower", note),
        Measure("planner", f"estimate_time_saved_{name}", saved, "share", ">= 0.3", "higher", took),
    ]
