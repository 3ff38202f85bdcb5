"""Throughput functions learned while the job runs: rows of (inputs, output) per edge, and the form that fits them.

Dragster (section 4.1) lets a function be known beforehand or be learned by regression in an online manner. The rows are
a fold over the windows, bounded, so that learning costs the same at any age; the fit is made when a decision needs it.
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

KEPT_ROWS = 32
"""Newest windows of an edge that are kept."""
ENOUGH_ROWS = 6
"""Rows from which on a curved form is tried: it can bend to fit a few by chance."""
STRAIGHT = 0.02
"""A linear fit with a residual of at most this needs no other form: it is measurement noise."""
BETTER = 0.5
"""A curved form must leave at most this share of the linear residual."""
MISFIT = 0.2
"""Beyond this residual nothing fits: the newest window's own ratio is used."""
RIDGE = 1e-3
"""Pulls the weights of inputs that always move together towards each other."""


@dataclass(frozen=True)
class FlowRows:
    """What was seen on every edge, by `upstream->downstream`: inputs (by name of their upstream), then the output."""

    edges: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        put(self, edges=FrozenMap(self.edges))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A function, and how far the rows are from it: root mean square over the mean output."""

    function: EdgeFunction
    residual: float
    fits: bool = True


def fold_flows(rows: FlowRows, record: Record) -> FlowRows:
    """Fold one record in: a window adds a row per edge, another graph takes away what it no longer has."""
    match record:
        case Run():
            names = {f"{e.upstream}->{e.downstream}": e.upstream for e in record.spec.graph.edges}
            width = {name: max(1, len(record.spec.graph.inputs[upstream])) + 1 for name, upstream in names.items()}
            return FlowRows({n: kept for n, kept in rows.edges.items() if n in names and len(kept[-1]) == width[n]})
        case Observation() if can_learn_from(record) and record.edges:
            return FlowRows({**rows.edges, **_rows(rows, record)})
    return rows


def _rows(known: FlowRows, window: Observation) -> dict[str, tuple[tuple[float, ...], ...]]:
    carried = {(e.upstream, e.downstream): e.records_per_s for e in window.edges}
    into: dict[str, list[tuple[str, float | None]]] = {}
    for (upstream, downstream), rate in carried.items():
        into.setdefault(downstream, []).append((upstream, rate))
    found = {}
    for (upstream, downstream), out in carried.items():
        taken = window.operator(upstream).records_in_per_s
        # An operator that emits in bursts puts out nothing between two of them: that says nothing about its function.
        if not taken or not out:
            continue
        rates = [rate or 0.0 for _, rate in sorted(into.get(upstream, []))] or [taken]
        if sum(rates) <= 0:
            continue
        # What it received, as far as it was processed: buffers fill and empty.
        row = (*(rate * taken / sum(rates) for rate in rates), out)
        name = f"{upstream}->{downstream}"
        alike = tuple(kept for kept in known.edges.get(name, ()) if len(kept) == len(row))
        found[name] = (*alike, row)[-KEPT_ROWS:]
    return found


def fit_graph(graph: Graph, rows: FlowRows) -> dict[Pair, Fitted]:
    """Fit every edge that was seen; its weights are in the graph's order."""
    found = {}
    for edge in graph.edges:
        seen = rows.edges.get(f"{edge.upstream}->{edge.downstream}", ())
        upstreams = [e.upstream for e in graph.inputs[edge.upstream]] or [edge.upstream]
        if not seen or len(seen[-1]) != len(upstreams) + 1:
            continue
        table = np.array(seen)
        by_name = sorted(upstreams)
        found[edge.upstream, edge.downstream] = fit(table[:, [by_name.index(u) for u in upstreams]], table[:, -1])
    return found


def fit(inputs: Floats, output: Floats) -> Fitted:
    """Return the form that fits these rows best; linear unless another one is clearly better, or none is good."""
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
    """Return non-negative least squares weights: inputs x outputs. Without other evidence all inputs weigh alike."""
    inner = x.T @ x
    ridge = RIDGE * float(np.trace(inner)) if x.shape[1] > 1 else 0.0
    alike = np.broadcast_to(y.sum(axis=0) / x.sum(), (x.shape[1], y.shape[1]))
    solved: Floats = np.maximum(np.linalg.solve(inner + ridge * np.eye(x.shape[1]), x.T @ y + ridge * alike), 0.0)
    return solved


def _tanh(x: Floats, y: Floats, unit: float) -> EdgeFunction:
    """Try a few heights of Eq 2c; for each of them its inverse is linear in the weights."""
    heights = float(y.max()) * np.concatenate((1.0 + 0.01 * 4.0 ** np.arange(4.0), 2.0 ** np.arange(1.0, 4.0)))
    weights = _weights(x, np.arctanh(y[:, None] / heights))
    off = ((heights * np.tanh(x @ weights) - y[:, None]) ** 2).sum(axis=0)
    best = int(np.argmin(off))
    return EdgeFunction(_tuple(weights[:, best] / unit), "tanh", float(heights[best]))


def _minimum(x: Floats, y: Floats, unit: float) -> EdgeFunction:
    """Alternate between which input limits a row (Eq 2b) and the ratio of the rows that it limits."""
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
