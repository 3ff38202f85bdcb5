"""Small, consistent situations for tests of policies: a graph, a load, and the window of it.

`window` is a job in equilibrium: back pressure slows the sources down to the pace of the bottleneck, and all other
readings follow from the rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import EdgeReading, Observation, OperatorReading, SourceReading
from rheostat.job.slo import SLO, Bounds, Limits
from rheostat.ports import Situation

K = TypeVar("K")

WINDOW_S = 60.0
HUNDRED = Bounds(1, 100)
ANY = Bounds()
DEFAULT_SLO = SLO()


def word_count(bounds: Bounds = HUNDRED, quantum: int = 1) -> JobSpec:
    """Return lines -> split -> count: a pinned source, five words per line."""
    graph = Graph(("lines", "split", "count"), (Edge("lines", "split"), Edge("split", "count", 5.0)), ("lines",))
    tunable = (Tunable("split", bounds, quantum), Tunable("count", bounds, quantum))
    return JobSpec("word-count", graph, tunable, (Pinned("lines", 1, "one partition"),))


def diamond(bounds: Bounds = HUNDRED, quantum: int = 1) -> JobSpec:
    """Return six operators with two tunable sources, a fork and a join."""
    names = ("clicks", "views", "clean", "count", "enrich", "join")
    edges = (
        Edge("clicks", "clean"),
        Edge("views", "clean", 0.5),
        Edge("clean", "count", 0.25),
        Edge("clean", "enrich"),
        Edge("count", "join"),
        Edge("enrich", "join", 2.0),
    )
    graph = Graph(names, edges, ("clicks", "views"))
    return JobSpec("diamond", graph, tuple(Tunable(name, bounds, quantum) for name in names))


def limits_of(spec: JobSpec, slots: Bounds = ANY) -> Limits:
    """Return the limits of the engine, without those of an SLO."""
    return Limits({t.operator: t.bounds for t in spec.tunable}, slots, {t.operator: t.quantum for t in spec.tunable})


def window(
    spec: JobSpec,
    load_per_s: float | Mapping[str, float],
    tasks: int | Mapping[str, int],
    true_rate_per_s: float | Mapping[str, float],
    at_s: float = WINDOW_S,
) -> Observation:
    """Return the window of a job in equilibrium; a single number applies to every source or operator."""
    graph = spec.graph
    loads = dict(load_per_s) if isinstance(load_per_s, Mapping) else dict.fromkeys(graph.sources, load_per_s)
    counts = dict(tasks) if isinstance(tasks, Mapping) else dict.fromkeys(spec.tunable_names, tasks)
    rates = (
        dict(true_rate_per_s)
        if isinstance(true_rate_per_s, Mapping)
        else dict.fromkeys(graph.operators, true_rate_per_s)
    )
    running = Allocation({name: counts[name] for name in spec.tunable_names})
    all_tasks = {**running.tasks, **{p.operator: p.tasks for p in spec.pinned}}
    demand = graph.demand_per_s(loads)
    coverage = {name: all_tasks[name] * rates[name] / demand[name] for name in running.tasks if demand[name] > 0}
    bottleneck = min(coverage, key=lambda name: coverage[name], default="")
    share = min(1.0, coverage.get(bottleneck, 1.0))
    operators = []
    for name in graph.order:
        served = demand[name] * share
        useful = min(1.0, served / (all_tasks[name] * rates[name])) if name in running.tasks else None
        blocking = 1 - share if name == bottleneck else 0.0
        reading = OperatorReading(
            name,
            all_tasks[name],
            records_in_per_s=served,
            useful_share=useful,
            true_rate_per_s=rates[name] if served > 0 and name in running.tasks else None,
            cpu_share=useful,
            blocking_share=blocking,
            pending=served * 2.0 if blocking else 0.0,
        )
        operators.append(reading)
    return Observation(
        at_s,
        at_s - WINDOW_S,
        at_s,
        running,
        running,
        sources=tuple(SourceReading(n, r, backlog=(1 - share) * r * WINDOW_S, lag_s=0.0) for n, r in loads.items()),
        operators=tuple(operators),
        edges=tuple(
            EdgeReading(e.upstream, e.downstream, demand[e.upstream] * share * e.selectivity) for e in graph.edges
        ),
        overloaded=(bottleneck,) if share < 1 else (),
        uptime_s=at_s,
    )


def read(observation: Observation, operator: str, **values: Any) -> Observation:
    """Return the window with other readings of one operator; None marks a missing one."""
    assert any(reading.name == operator for reading in observation.operators)
    operators = tuple(replace(r, **values) if r.name == operator else r for r in observation.operators)
    return replace(observation, operators=operators)


def situation(
    spec: JobSpec,
    observation: Observation,
    knowledge: K,
    *,
    slo: SLO = DEFAULT_SLO,
    limits: Limits | None = None,
    memo: Mapping[str, Any] | None = None,
    step: int = 1,
    changed_at_s: float | None = None,
) -> Situation[K]:
    """Return the situation of a policy with this window."""
    return Situation(
        spec,
        slo,
        limits or limits_of(spec),
        observation,
        knowledge,
        step,
        seed=7,
        memo=memo or {},
        changed_at_s=changed_at_s,
    )
