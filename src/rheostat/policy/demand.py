"""The linear view that DS2 began and others start from: what every operator must serve, and with how many tasks.

The rates at the sources are pushed through the graph with the selectivities of the window, so that the demand of
an operator is right even when back pressure keeps its records away from it.
"""

from __future__ import annotations

import math
from typing import Any

from rheostat.errors import InvalidValue
from rheostat.job.graph import Graph
from rheostat.job.observation import Observation
from rheostat.ports import Situation


def measured_selectivity(graph: Graph, window: Observation) -> dict[tuple[str, str], float]:
    """Return records on every edge per record into its upstream operator, as this window saw them.

    The graph's own value stands in where the window says nothing: the upstream processed no records, the edge was
    not measured, or it carried nothing although records went in. The last is what an operator that emits in bursts
    (a window, a batch) looks like between two bursts; zero would starve everything behind it. An edge that has
    really dried up is therefore seen by its graph value only: too many tasks for a while, never too few.
    """
    taken = {reading.name: reading.records_in_per_s for reading in window.operators}
    carried = {(reading.upstream, reading.downstream): reading.records_per_s for reading in window.edges}
    result: dict[tuple[str, str], float] = {}
    for edge in graph.edges:
        pair = (edge.upstream, edge.downstream)
        records_in, records_out = taken.get(edge.upstream), carried.get(pair)
        measured = records_out / records_in if records_in and records_out else math.inf
        result[pair] = measured if math.isfinite(measured) else edge.selectivity
    return result


def demand(situation: Situation[Any]) -> dict[str, float]:
    """Return the records/s that every operator must serve so that all sources are kept up with."""
    graph, window = situation.spec.graph, situation.window
    rates = {source.name: source.rate_per_s for source in window.sources}
    known: dict[str, float] = {}
    for name in graph.sources:
        rate = rates.get(name)
        if rate is None:
            raise InvalidValue(f"the window has no rate of source {name!r}: it cannot be decided from")
        known[name] = rate
    return graph.demand_per_s(known, measured_selectivity(graph, window))


def linear_tasks(demand_per_s: float, true_rate_per_s: float) -> float:
    """Return the unrounded tasks that serve a demand when every task keeps its present true rate."""
    if demand_per_s <= 0:
        return 0.0
    return demand_per_s / true_rate_per_s if true_rate_per_s > 0 else math.inf
