"""Table VI: the CPU time of one decision, by algorithm and number of operators."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import EdgeReading, Latency, Observation, OperatorReading, SourceReading
from rheostat.job.slo import SLO, Bounds, Limits
from rheostat.lab.papers.autrascale import paper
from rheostat.model.capacity import Sample
from rheostat.model.experience import AllocationSample, Base, Experience
from rheostat.model.history import History
from rheostat.policy.autrascale.policy import AuTraScale
from rheostat.policy.autrascale.stage import Profile, Search, Stage
from rheostat.ports import Situation

RATE = 1000.0
"""Records/s of one task."""


def measure(repeats: int) -> dict[str, dict[int, list[float]]]:
    """Return milliseconds per decision: algorithm -> number of operators -> repetition."""
    spent: dict[str, dict[int, list[float]]] = {}
    for operators in sorted({*paper.OPERATORS, *paper.TRANSFER_OPERATORS.values()}):
        for name, (policy, situation) in cases(operators).items():
            policy.decide(situation)
            times = spent.setdefault(name, {}).setdefault(operators, [])
            for step in range(repeats):
                at = replace(situation, step=step)
                started = time.process_time()
                policy.decide(at)
                times.append(1e3 * (time.process_time() - started))
    return spent


def cases(operators: int) -> Mapping[str, tuple[AuTraScale, Situation[Experience]]]:
    """Return, for each algorithm, a policy and a situation in which it proposes an allocation."""
    load = 10 * RATE
    spec, window = _job(operators, load)
    names = spec.tunable_names
    base = dict.fromkeys(names, 11)
    here = _samples(names, load, 16)
    there = _samples(names, 0.7 * load, 16)
    profile = [
        replace(s, load_per_s=10 * load, throughput_per_s=(1.02 + 0.004 * min(s.tasks.values())) * load, latency_s=None)
        for s in here
    ]
    solved = {"load_per_s": load, "tasks": base}
    demand = dict.fromkeys(("events", *names), load)
    capacities = History({n: tuple(Sample(p, 0.9 * RATE * p, p) for p in range(5, 15)) for n in names})
    # The bootstrapping set has been measured.
    asked = (tuple(here[0].tasks.values()),)
    stage = Stage(demand, phase="latency", solved=solved, search=Search(asked=asked, recalled=True))
    steady = replace(stage, phase="steady", profile=Profile(asked=asked))
    slo = SLO(max_latency_s=0.2)
    limits = Limits({name: Bounds(1, paper.MOST) for name in names}, Bounds())

    def at(knowledge: Experience, memo: Stage, observed: Observation) -> Situation[Experience]:
        return Situation(spec, slo, limits, observed, knowledge, 0, 7, memo.memo())

    alone = Experience(tuple(here), (Base(load, base),), capacities)
    both = Experience((*there, *here[:3]), (Base(0.7 * load, dict.fromkeys(names, 8)), Base(load, base)), capacities)
    waiting = replace(
        window,
        sources=(SourceReading("events", load, backlog=300 * load, lag_s=300.0),),
        latency=Latency(0.1, 0.1, 0.1, 300.0, 300.0, 300.0),
    )
    profiled = Experience((*here, *profile), (Base(load, base),), capacities)
    plain = AuTraScale(transfer="none")
    return {
        "Algorithm 1": (plain, at(alone, stage, window)),
        "Algorithm 3": (plain, at(profiled, steady, waiting)),
        "Traditional": (AuTraScale(transfer="traditional"), at(both, stage, window)),
        "Algorithm 2": (AuTraScale(transfer="light"), at(both, stage, window)),
        "decomposed (ours)": (AuTraScale(model="decomposed"), at(alone, stage, window)),
    }


def _samples(names: tuple[str, ...], load: float, count: int) -> list[AllocationSample]:
    """Return as many samples as 6 + 10 bootstrapping runs, with latencies that fall and rise."""
    rng = np.random.default_rng(3)
    samples = []
    for tasks in rng.integers(11, paper.MOST + 1, (count, len(names))):
        latency = (0.21 + 3.0 / float(np.mean(tasks)) + 1e-4 * float(tasks.sum())) * rng.uniform(0.9, 1.1)
        samples.append(AllocationSample(load, {n: int(t) for n, t in zip(names, tasks, strict=True)}, load, latency))
    return samples


def _job(operators: int, load: float) -> tuple[JobSpec, Observation]:
    names = tuple(f"op{k}" for k in range(operators))
    chain = ("events", *names)
    edges = tuple(Edge(a, b) for a, b in zip(chain, names, strict=False))
    bounds = Bounds(1, paper.MOST)
    pinned = (Pinned("events", 1, "a source is not tuned"),)
    spec = JobSpec("chain", Graph(chain, edges, ("events",)), tuple(Tunable(n, bounds) for n in names), pinned)
    running = Allocation(dict.fromkeys(names, 11))
    readings = tuple(OperatorReading(n, 11, load, load / (11 * RATE), RATE) for n in names)
    source, latency = SourceReading("events", load, 0.0, 0.0), Latency(0.4, 0.4, 0.4, 0.4, 0.4, 0.4)
    every = (OperatorReading("events", 1, load), *readings)
    rates = tuple(EdgeReading(e.upstream, e.downstream, load) for e in edges)
    return spec, Observation(
        60.0, 0.0, 60.0, running, running, sources=(source,), operators=every, edges=rates, latency=latency
    )
