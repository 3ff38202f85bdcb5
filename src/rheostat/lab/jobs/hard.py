"""Jobs that break a policy's assumptions, one each; a level of the load is 100K records/s.

Ours, not a paper's: none of them was fitted to anything. All but the last three have the same two operators, so that
their rows can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from rheostat.engine.simulated.curves import Curve, Table, Usl
from rheostat.engine.simulated.plant import LatencyLaw, Plant, PlantOperator, Restart
from rheostat.job.graph import Edge, Graph
from rheostat.lab.jobs.conttune import source

ORIGIN = "ours: a hard case, fitted to nothing"
UNIT_PER_S = 100e3
CHANGED_S = 7200.0
"""Second at which a capacity steps or begins to ramp."""
HOUR_S = 3600.0
ALTERNATE_S = 1200.0
"""Seconds for which a selectivity stays before it changes."""
LENGTH_S = 14_400.0
"""Seconds of a run on such a job."""
MOST_TASKS = 40

Points = tuple[tuple[float, float], ...]


def pair(name: str, parse: PlantOperator, count: PlantOperator) -> Plant:
    """Return a job that parses lines and counts two words of each."""
    graph = Graph(("lines", "parse", "count"), (Edge("lines", "parse"), Edge("parse", "count", 2.0)), ("lines",))
    return Plant(name, graph, (source("lines"), parse, count), {"lines": UNIT_PER_S}, ORIGIN)


def operator(
    name: str, curve: Curve, drift: Points = (), output_drift: Points = (), skew: float = 0.0
) -> PlantOperator:
    """Return an operator with 3 % noise."""
    return PlantOperator(
        name, curve, noise=0.03, max_tasks=MOST_TASKS, drift=drift, output_drift=output_drift, skew=skew
    )


PARSE, COUNT = Usl(110e3, 0.01), Usl(160e3, 0.02)


def drifting(name: str, drift: Points) -> Plant:
    """Return the pair with a capacity of `count` that changes over time."""
    return pair(name, operator("parse", PARSE), operator("count", COUNT, drift))


def rough(name: str, sd: float = 0.08) -> Plant:
    """Return the pair with capacities that scatter from size to size, as partitions and hardware make them."""
    rng = np.random.default_rng(20)
    tables = []
    for curve in (PARSE, COUNT):
        factors = np.exp(sd * rng.standard_normal(MOST_TASKS))
        tables.append(
            Table(tuple((p, curve.capacity_per_s(p) * float(factors[p - 1])) for p in range(1, MOST_TASKS + 1)))
        )
    return pair(name, operator("parse", tables[0]), operator("count", tables[1]))


def alternating(name: str, low: float = 0.6, high: float = 1.4) -> Plant:
    """Return the pair with a selectivity that alternates between two values."""
    points: list[tuple[float, float]] = []
    for k in range(int(LENGTH_S / ALTERNATE_S) + 1):
        value = low if k % 2 else high
        points += [(k * ALTERNATE_S, value), ((k + 1) * ALTERNATE_S - 1.0, value)]
    return pair(name, operator("parse", PARSE, output_drift=tuple(points)), operator("count", COUNT))


def skewed(name: str, skew: float = 0.6) -> Plant:
    """Return the pair with a hot key: the busiest task of `count` gets 60 % more than its share."""
    return pair(name, operator("parse", PARSE), operator("count", COUNT, skew=skew))


def steep(name: str) -> Plant:
    """Return the pair with a queueing delay that grows with the square of rho / (1 - rho)."""
    plain = pair(name, operator("parse", PARSE), operator("count", COUNT))
    waiting = tuple(replace(o, queueing_records=0.0 if o.name == "lines" else 4e3) for o in plain.operators)
    return replace(plain, operators=waiting, latency=LatencyLaw(base_s=0.05, cap_s=5.0, exponent=2.0))


def stateful(name: str) -> Plant:
    """Return the pair with state that a change must move: its downtime grows to about a minute."""
    plain = pair(name, operator("parse", PARSE), operator("count", COUNT))
    kept = tuple(
        replace(o, state_bytes_per_record=50.0, state_retention_s=3600.0) if o.name == "count" else o
        for o in plain.operators
    )
    return replace(plain, operators=kept, restart=Restart(10.0, 2.0, per_gb_s=0.3))


def diamond(name: str) -> Plant:
    """Return a job whose lines go two ways and meet again."""
    edges = (
        Edge("lines", "parse"),
        Edge("parse", "enrich", 0.7),
        Edge("parse", "count", 1.5),
        Edge("enrich", "merge"),
        Edge("count", "merge", 0.2),
    )
    return Plant(
        name,
        Graph(("lines", "parse", "enrich", "count", "merge"), edges, ("lines",)),
        (
            source("lines"),
            operator("parse", PARSE),
            operator("enrich", Usl(90e3, 0.015)),
            operator("count", COUNT),
            operator("merge", Usl(200e3, 0.01)),
        ),
        {"lines": UNIT_PER_S},
        ORIGIN,
    )


def two_sources(name: str) -> Plant:
    """Return a join of two sources, one of which is cleaned first."""
    edges = (Edge("clicks", "clean"), Edge("clean", "join", 0.8), Edge("orders", "join"), Edge("join", "store", 0.5))
    return Plant(
        name,
        Graph(("clicks", "orders", "clean", "join", "store"), edges, ("clicks", "orders")),
        (
            source("clicks"),
            source("orders"),
            operator("clean", PARSE),
            operator("join", Usl(95e3, 0.02)),
            operator("store", Usl(120e3, 0.01)),
        ),
        {"clicks": UNIT_PER_S, "orders": 0.3 * UNIT_PER_S},
        ORIGIN,
    )


def _step(factor: float) -> Points:
    return ((CHANGED_S - 1.0, 1.0), (CHANGED_S, factor))


JOBS: Mapping[str, Callable[[], Plant]] = {
    "drift-down": partial(drifting, "drift-down", _step(0.85)),
    "drift-up": partial(drifting, "drift-up", _step(1.2)),
    "drift-ramp": partial(drifting, "drift-ramp", ((CHANGED_S, 1.0), (CHANGED_S + HOUR_S, 0.75))),
    "rough": partial(rough, "rough"),
    "alternating": partial(alternating, "alternating"),
    "skewed": partial(skewed, "skewed"),
    "steep-latency": partial(steep, "steep-latency"),
    "growing-state": partial(stateful, "growing-state"),
    "diamond": partial(diamond, "diamond"),
    "two-sources": partial(two_sources, "two-sources"),
}
