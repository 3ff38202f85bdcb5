"""Throughput functions: the input and output of every edge, and the flow under limited capacities.

Liu, Xu, Lau: "Online Resource Optimization for Elastic Stream Processing with Regret Guarantee", ICPP 2022 (Dragster).

| paper | here |
|---|---|
| e_i, throughput vector that i receives | rates in the order of `Graph.inputs`; a source has one, its own |
| h_ij(e_i), Eq 2a to 2c | `EdgeFunction`: linear, min, tanh |
| α_ij, capacity splitting weight | `EdgeFunction.share`, or each edge's share of the unlimited output |
| e_ij = min(α_ij y_i, h_ij(e_i)), Eq 4 | `Dataflow.flow` |
| f_t(y), application throughput | `Flow.throughput_per_s`: the output of the sinks |
| l_i(y_i) = sum of h_ij - y_i, Eq 11 | `Dataflow.lacking` |
| argmax f (Eq 14 with zero multipliers) | `Dataflow.sufficient`: the smallest y that limits nothing |
| dL / dy_i of Eq 16 | `Dataflow.slopes`, one pass backwards through the graph |

f is piecewise smooth. Where α y = h the operator does not count as limiting (growing it alone has no effect), and
several inputs that limit a minimum equally count with equal shares. Both are supergradients of a concave function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from rheostat.errors import InvalidValue, nearest
from rheostat.job.frozen import FrozenMap, check_number, put
from rheostat.job.graph import Graph

Pair = tuple[str, str]
OUT = ""
"""Downstream of a sink: the paper's virtual sink, which accepts everything."""


@dataclass(frozen=True, slots=True)
class EdgeFunction:
    """The output of an operator along one edge as a function of its inputs (Eq 2a to 2c)."""

    weights: tuple[float, ...] = (1.0,)
    """k: one per upstream, in the graph's order; a single one applies to all of them."""
    form: Literal["linear", "min", "tanh"] = "linear"
    """k.e (Eq 2a), the least of k e (Eq 2b), or scale_per_s x tanh(k.e) (Eq 2c)."""
    scale_per_s: float = 1.0
    """Records/s that tanh approaches."""
    share: float | None = None
    """Share of the operator's capacity that this edge gets; default: its share of the output."""

    def __post_init__(self) -> None:
        if not self.weights:
            raise InvalidValue("a throughput function needs at least one weight")
        for weight in self.weights:
            check_number("a weight of a throughput function", weight)
        check_number("scale_per_s of a throughput function", self.scale_per_s)
        check_number("share of a throughput function", self.share, least=1e-9, most=1.0)
        put(self, weights=tuple(self.weights))

    def over(self, received: Sequence[float]) -> tuple[float, ...]:
        """Return one weight per input."""
        if len(self.weights) == len(received):
            return self.weights
        if len(self.weights) > 1:
            raise InvalidValue(f"a throughput function has {len(self.weights)} weights for {len(received)} inputs")
        return self.weights * len(received)

    def rate_per_s(self, received: Sequence[float]) -> float:
        """Return h(e)."""
        parts = [k * e for k, e in zip(self.over(received), received, strict=True)]
        if self.form == "min":
            return min(parts)
        return sum(parts) if self.form == "linear" else self.scale_per_s * math.tanh(sum(parts))

    def slopes(self, received: Sequence[float]) -> tuple[float, ...]:
        """Return dh / de for every input."""
        weights = self.over(received)
        if self.form == "linear":
            return weights
        parts = [k * e for k, e in zip(weights, received, strict=True)]
        if self.form == "min":
            least = min(parts)
            tied = sum(part == least for part in parts)
            return tuple(k / tied if part == least else 0.0 for k, part in zip(weights, parts, strict=True))
        bend = self.scale_per_s * (1.0 - math.tanh(sum(parts)) ** 2)
        return tuple(k * bend for k in weights)


@dataclass(frozen=True, slots=True)
class Flow:
    """The rates in a graph whose operators have certain capacities."""

    received: Mapping[str, tuple[float, ...]]
    wanted: Mapping[Pair, float]
    """h of every edge: its rate if its operator is not limited."""
    carried: Mapping[Pair, float]
    """e of every edge (Eq 4)."""

    @property
    def throughput_per_s(self) -> float:
        """Output of the sinks in records/s: f(y)."""
        return sum(rate for (_, downstream), rate in self.carried.items() if downstream == OUT)


@dataclass(frozen=True)
class Dataflow:
    """A graph with a function on every edge, at given source rates. Capacities count **output** records."""

    graph: Graph
    rates_per_s: Mapping[str, float]
    functions: Mapping[Pair, EdgeFunction] = field(default_factory=FrozenMap)
    """Edges without one are linear, with the graph's selectivity."""

    def __post_init__(self) -> None:
        edges = {f"{e.upstream}->{e.downstream}" for e in self.graph.edges}
        for upstream, downstream in self.functions:
            if (name := f"{upstream}->{downstream}") not in edges:
                raise InvalidValue(f"there is no edge {name!r} for a throughput function, {nearest(name, edges)}")

    @cached_property
    def outputs(self) -> Mapping[str, tuple[tuple[Pair, EdgeFunction], ...]]:
        """The edges out of every operator with their functions; a sink forwards its input."""
        return {
            name: tuple(
                ((name, e.downstream), self.functions.get((name, e.downstream)) or EdgeFunction((e.selectivity,)))
                for e in self.graph.outputs[name]
            )
            or (((name, OUT), EdgeFunction()),)
            for name in self.graph.order
        }

    @cached_property
    def full(self) -> Flow:
        """The flow without any limit."""
        return self._pass({}, {})

    @cached_property
    def shares(self) -> Mapping[Pair, float]:
        """α of every edge; those of an operator add up to one."""
        shares: dict[Pair, float] = {}
        for name, edges in self.outputs.items():
            configured = [function.share for _, function in edges]
            if None in configured:
                wanted = [self.full.wanted[pair] for pair, _ in edges]
                total = sum(wanted)
                configured = [rate / total if total > 0 else 1.0 / len(edges) for rate in wanted]
            whole = sum(share or 0.0 for share in configured)
            shares |= {pair: (share or 0.0) / whole for (pair, _), share in zip(edges, configured, strict=True)}
            if not all(math.isfinite(shares[pair]) for pair, _ in edges):
                raise InvalidValue(f"the rates behind {name!r} are not finite: its output cannot be split")
        return shares

    def flow(self, output_capacity_per_s: Mapping[str, float]) -> Flow:
        """Return the flow under these capacities; an operator that is not named is not limited (Eq 4)."""
        return self._pass(output_capacity_per_s, self.shares)

    def _pass(self, output_capacity_per_s: Mapping[str, float], shares: Mapping[Pair, float]) -> Flow:
        received: dict[str, tuple[float, ...]] = {}
        wanted: dict[Pair, float] = {}
        carried: dict[Pair, float] = {}
        for name in self.graph.order:
            inputs = self.graph.inputs[name]
            received[name] = (
                tuple(carried[e.upstream, name] for e in inputs) if inputs else (self.rates_per_s.get(name, 0.0),)
            )
            capacity = output_capacity_per_s.get(name, math.inf)
            for pair, function in self.outputs[name]:
                wanted[pair] = carried[pair] = function.rate_per_s(received[name])
                if capacity < math.inf:
                    carried[pair] = min(shares[pair] * capacity, wanted[pair])  # Eq 4
        return Flow(received, wanted, carried)

    def full_output(self, name: str) -> float:
        """Return the output of an operator without any limit."""
        return sum(self.full.wanted[pair] for pair, _ in self.outputs[name])

    @cached_property
    def sufficient(self) -> Mapping[str, float]:
        """The smallest capacities that limit nothing: y_i = max over j of h_ij / α_ij (Eq 14, no multipliers)."""
        capacities = {}
        for name, edges in self.outputs.items():
            capacities[name] = max(
                (self.full.wanted[pair] / self.shares[pair] for pair, _ in edges if self.shares[pair] > 0), default=0.0
            )
        return capacities

    @cached_property
    def per_record_in(self) -> Mapping[str, float]:
        """Output per input record without any limit (input to output capacity); 1 where nothing flows."""
        ratios = {}
        for name in self.outputs:
            into, out = sum(self.full.received[name]), self.full_output(name)
            ratios[name] = out / into if into > 0 and out > 0 else 1.0
        return ratios

    def lacking(self, output_capacity_per_s: Mapping[str, float]) -> dict[str, float]:
        """Return l_i of every operator with a capacity: its wanted output minus its capacity (Eq 11)."""
        flow = self.flow(output_capacity_per_s)
        return {
            name: sum(flow.wanted[pair] for pair, _ in self.outputs[name]) - capacity
            for name, capacity in output_capacity_per_s.items()
        }

    def slopes(
        self, output_capacity_per_s: Mapping[str, float], multipliers: Mapping[str, float], weight: float = 1.0
    ) -> dict[str, float]:
        """Return d/dy_i of weight x f - sum of λ_k l_k (Eq 13) at these capacities, for every operator that has one."""
        flow, slopes = self.flow(output_capacity_per_s), dict.fromkeys(output_capacity_per_s, 0.0)
        into: dict[Pair, float] = {}
        """d/de of every edge."""
        for name in reversed(self.graph.order):
            capacity, multiplier = output_capacity_per_s.get(name, math.inf), multipliers.get(name, 0.0)
            back = [0.0] * len(flow.received[name])
            for pair, function in self.outputs[name]:
                carried, wanted = weight if pair[1] == OUT else into[pair], -multiplier
                if self.shares[pair] * capacity < flow.wanted[pair]:
                    slopes[name] += self.shares[pair] * carried
                else:
                    wanted += carried
                if wanted:
                    for k, slope in enumerate(function.slopes(flow.received[name])):
                        back[k] += wanted * slope
            if name in slopes:
                slopes[name] += multiplier
            into |= {(e.upstream, name): back[k] for k, e in enumerate(self.graph.inputs[name])}
        return slopes
