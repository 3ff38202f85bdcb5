"""Throughput functions learned from the running job: rows of (inputs, output) per edge, and the best-fitting form.

In Dragster (section 4.1) a function is known beforehand or learned online by regression. The rows are a bounded fold
over the windows, so learning takes constant time; the fit is made when a decision needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rheostat.job.frozen import FrozenMap, put
from rheostat.job.graph import Graph
from rheostat.job.observation import Observation
from rheostat.job.record import Record, Run
from rheostat.model.capacity import Floats
from rheostat.model.history import can_learn_from
from rheostat.policy.dragster.throughput import EdgeFunction, Pair

MAX_ROWS = 32
"""Newest windows of an edge that are retained."""
ENOUGH_ROWS = 6
"""Rows from which on a curved form is tried: it fits a few rows by chance."""
STRAIGHT = 0.02
"""Residual up to which a linear fit is accepted at once: it is measurement noise."""
BETTER = 0.5
"""Largest residual of a curved form, as a share of the linear residual."""
MISFIT = 0.2
"""Residual above which no form is used; the newest window's own ratio replaces it."""
RIDGE = 1e-3
"""Ridge that equalises the weights of inputs that always move together."""


@dataclass(frozen=True)
class FlowRows:
    """Rows of every edge, by `upstream->downstream`: the inputs (sorted by upstream name), then the output."""

    edges: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        put(self, edges=FrozenMap(self.edges))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A function and its residual: root mean square over the mean output."""

    function: EdgeFunction
    residual: float
    fits: bool = True


def fold_flows(rows: FlowRows, record: Record) -> FlowRows:
    """Return the rows after one more record: a window adds a row per edge, a new graph removes edges that left it."""
    match record:
        case Run():
            names = {f"{e.upstream}->{e.downstream}": e.upstream for e in record.spec.graph.edges}
            width = {name: max(1, len(record.spec.graph.inputs[upstream])) + 1 for name, upstream in names.items()}
            return FlowRows({n: old for n, old in rows.edges.items() if n in names and len(old[-1]) == width[n]})
        case Observation() if can_learn_from(record) and record.edges:
            return FlowRows({**rows.edges, **_add_rows(rows, record)})
    return rows


def _add_rows(rows: FlowRows, window: Observation) -> dict[str, tuple[tuple[float, ...], ...]]:
    carried = {(e.upstream, e.downstream): e.records_per_s for e in window.edges}
    into: dict[str, list[tuple[str, float | None]]] = {}
    for (upstream, downstream), rate in carried.items():
        into.setdefault(downstream, []).append((upstream, rate))
    result = {}
    for (upstream, downstream), out in carried.items():
        processed = window.operator(upstream).records_in_per_s
        # An operator that emits in bursts has no output between two bursts: such a window does not show its function.
        if not processed or not out:
            continue
        rates = [rate or 0.0 for _, rate in sorted(into.get(upstream, []))] or [processed]
        if sum(rates) <= 0:
            continue
        # The input as far as it was processed: buffers fill and empty.
        row = (*(rate * processed / sum(rates) for rate in rates), out)
        name = f"{upstream}->{downstream}"
        same_width = tuple(old for old in rows.edges.get(name, ()) if len(old) == len(row))
        result[name] = (*same_width, row)[-MAX_ROWS:]
    return result


def fit_graph(graph: Graph, rows: FlowRows) -> dict[Pair, Fitted]:
    """Fit every edge with rows; its weights are in the graph's order."""
    result = {}
    for edge in graph.edges:
        edge_rows = rows.edges.get(f"{edge.upstream}->{edge.downstream}", ())
        upstreams = [e.upstream for e in graph.inputs[edge.upstream]] or [edge.upstream]
        if not edge_rows or len(edge_rows[-1]) != len(upstreams) + 1:
            continue
        table = np.array(edge_rows)
        by_name = sorted(upstreams)
        inputs = table[:, [by_name.index(u) for u in upstreams]]
        result[edge.upstream, edge.downstream] = fit_function(inputs, table[:, -1])
    return result


def fit_function(inputs: Floats, output: Floats) -> Fitted:
    """Return the best form for these rows: linear unless another is clearly better, the newest ratio if none is."""
    unit = float(inputs.max())
    x, mean = inputs / unit, float(output.mean())

    def residual(guess: Floats) -> float:
        return float(np.sqrt(np.mean((guess - output) ** 2))) / mean

    weights = _weights(x, output[:, None])[:, 0]
    best = Fitted(EdgeFunction(_tuple(weights / unit)), residual(x @ weights))
    if len(output) >= ENOUGH_ROWS and best.residual > STRAIGHT:
        others = [_tanh(x, output, unit)] + ([_minimum(x, output, unit)] if x.shape[1] > 1 else [])
        tried = [Fitted(function, residual(_values(function, inputs))) for function in others]
        curved = min(tried, key=lambda each: each.residual)
        if curved.residual <= BETTER * best.residual:
            best = curved
    if best.residual > MISFIT:
        newest = float(output[-1] / inputs[-1].sum())
        return Fitted(EdgeFunction((newest,) * inputs.shape[1]), best.residual, fits=False)
    return best


def _weights(x: Floats, y: Floats) -> Floats:
    """Return non-negative least-squares weights: inputs x outputs. Without other evidence all inputs weigh the same."""
    inner = x.T @ x
    ridge = RIDGE * float(np.trace(inner)) if x.shape[1] > 1 else 0.0
    equal = np.broadcast_to(y.sum(axis=0) / x.sum(), (x.shape[1], y.shape[1]))
    solved: Floats = np.maximum(np.linalg.solve(inner + ridge * np.eye(x.shape[1]), x.T @ y + ridge * equal), 0.0)
    return solved


def _tanh(x: Floats, y: Floats, unit: float) -> EdgeFunction:
    """Fit Eq 2c for a few heights; for each of them the inverse is linear in the weights."""
    heights = float(y.max()) * np.concatenate((1.0 + 0.01 * 4.0 ** np.arange(4.0), 2.0 ** np.arange(1.0, 4.0)))
    weights = _weights(x, np.arctanh(y[:, None] / heights))
    off = ((heights * np.tanh(x @ weights) - y[:, None]) ** 2).sum(axis=0)
    best = int(np.argmin(off))
    return EdgeFunction(_tuple(weights[:, best] / unit), "tanh", float(heights[best]))


def _minimum(x: Floats, y: Floats, unit: float) -> EdgeFunction:
    """Alternate between the input that limits a row (Eq 2b) and the ratio of the rows that it limits."""
    ratio = y[:, None] / np.maximum(x, 1e-9)
    weights: list[float] = ratio.max(axis=0).tolist()
    for _ in range(5):
        limits = np.argmin(x * np.array(weights), axis=1)
        weights = [float(np.median(ratio[limits == k, k])) if (limits == k).any() else w for k, w in enumerate(weights)]
    return EdgeFunction(tuple(weight / unit for weight in weights), "min")


def _values(function: EdgeFunction, inputs: Floats) -> Floats:
    return np.array([function.rate_per_s(row) for row in inputs.tolist()])


def _tuple(values: Sequence[float] | Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
