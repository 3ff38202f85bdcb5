"""DS2's linear model, from which other policies start: the demand of every operator, and the tasks that serve it.

The rates at the sources are propagated through the graph with the selectivities of the window, so the demand of an
operator is right even when back pressure holds back its records.
"""

from __future__ import annotations

import math
from typing import Any

from rheostat.errors import InvalidValue
from rheostat.job.graph import Graph
from rheostat.job.observation import Observation
from rheostat.ports import Situation


def measured_selectivity(graph: Graph, window: Observation) -> dict[tuple[str, str], float]:
    """Return the measured records on every edge per record into its upstream operator.

    The graph's own selectivity is used where the window has no measurement: the upstream processed no records, the edge
    was not measured, or it carried nothing although records went in. The last case is an operator that emits in bursts
    (a window, a batch) between two bursts; a selectivity of zero would starve everything downstream. An edge that
    really dries up therefore keeps its graph value: too many tasks for a while, never too few.
    """
    processed = {reading.name: reading.records_in_per_s for reading in window.operators}
    carried = {(reading.upstream, reading.downstream): reading.records_per_s for reading in window.edges}
    result: dict[tuple[str, str], float] = {}
    for edge in graph.edges:
        pair = (edge.upstream, edge.downstream)
        records_in, records_out = processed.get(edge.upstream), carried.get(pair)
        measured = records_out / records_in if records_in and records_out else math.inf
        result[pair] = measured if math.isfinite(measured) else edge.selectivity
    return result


def demand(situation: Situation[Any]) -> dict[str, float]:
    """Return the records/s that every operator must serve to keep up with all sources."""
    graph, window = situation.spec.graph, situation.window
    rates = {source.name: source.rate_per_s for source in window.sources}
    source_rates: dict[str, float] = {}
    for name in graph.sources:
        rate = rates.get(name)
        if rate is None:
            raise InvalidValue(f"the window has no rate of source {name!r}, so the demand is unknown")
        source_rates[name] = rate
    return graph.demand_per_s(source_rates, measured_selectivity(graph, window))


def linear_tasks(demand_per_s: float, true_rate_per_s: float) -> float:
    """Return the unrounded tasks that serve a demand at the present true rate per task."""
    if demand_per_s <= 0:
        return 0.0
    return demand_per_s / true_rate_per_s if true_rate_per_s > 0 else math.inf
