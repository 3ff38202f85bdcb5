"""The job as a graph of named operators, and the engine's description of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rheostat.errors import InvalidValue, nearest
from rheostat.job.frozen import check_number
from rheostat.job.slo import Bounds


@dataclass(frozen=True, slots=True)
class Edge:
    """Records flow from one operator to the next; selectivity = records delivered per record in."""

    upstream: str
    """The sending operator."""
    downstream: str
    """The receiving operator."""
    selectivity: float = 1.0
    """Records delivered per record that the upstream operator reads."""

    def __post_init__(self) -> None:
        check_number(f"selectivity of {self.upstream}->{self.downstream}", self.selectivity)


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph. Sources are declared, sinks are the operators without a downstream."""

    operators: tuple[str, ...]
    edges: tuple[Edge, ...]
    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.operators:
            raise InvalidValue("a graph needs at least one operator")
        if twice := {name for name in self.operators if self.operators.count(name) > 1}:
            raise InvalidValue(f"operator names must be unique; twice: {', '.join(sorted(twice))}")
        named = [*self.sources, *(name for edge in self.edges for name in (edge.upstream, edge.downstream))]
        for name in named:
            if name not in self.operators:
                raise InvalidValue(f"unknown operator {name!r} in the graph, {nearest(name, self.operators)}")
        pairs = [(edge.upstream, edge.downstream) for edge in self.edges]
        if len(set(pairs)) < len(pairs):
            raise InvalidValue("two edges join the same operators: add their selectivities and keep one")
        if not self.sources:
            raise InvalidValue("a graph needs at least one source: the operators that read from outside")
        if fed := sorted({edge.downstream for edge in self.edges} & set(self.sources)):
            raise InvalidValue(f"a source cannot have an upstream: {', '.join(fed)}")
        self._check_reach()

    def _check_reach(self) -> None:
        ordered = set(self.order)
        if loop := [name for name in self.operators if name not in ordered]:
            raise InvalidValue(f"the graph has a cycle through or before: {', '.join(loop)}")
        reached = set(self.sources)
        for name in self.order:
            if any(edge.upstream in reached for edge in self.inputs[name]):
                reached.add(name)
        if lost := [name for name in self.operators if name not in reached]:
            raise InvalidValue(f"no source reaches: {', '.join(lost)}")

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Operators from the sources to the sinks; operators on a cycle are missing from it."""
        waiting = {name: len(self.inputs[name]) for name in self.operators}
        ready = [name for name in self.operators if waiting[name] == 0]
        for name in ready:  # grows during the iteration
            for edge in self.outputs[name]:
                waiting[edge.downstream] -= 1
                if waiting[edge.downstream] == 0:
                    ready.append(edge.downstream)
        return tuple(ready)

    @cached_property
    def inputs(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges into every operator."""
        return {name: tuple(e for e in self.edges if e.downstream == name) for name in self.operators}

    @cached_property
    def outputs(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges out of every operator."""
        return {name: tuple(e for e in self.edges if e.upstream == name) for name in self.operators}

    @property
    def sinks(self) -> tuple[str, ...]:
        """Operators whose records leave the job."""
        return tuple(name for name in self.operators if not self.outputs[name])

    def demand_per_s(
        self,
        source_rates_per_s: Mapping[str, float],
        selectivity: Mapping[tuple[str, str], float] | None = None,
    ) -> dict[str, float]:
        """Return the rate that every operator must serve, given the rates at the sources.

        `selectivity` replaces the graph's own values on the edges that it names, for example by measured ones.
        """
        measured = selectivity or {}
        demand: dict[str, float] = {}
        for name in self.order:
            if name in self.sources:
                demand[name] = source_rates_per_s[name]
            else:
                demand[name] = sum(
                    demand[e.upstream] * measured.get((e.upstream, e.downstream), e.selectivity)
                    for e in self.inputs[name]
                )
        return demand


@dataclass(frozen=True, slots=True)
class Tunable:
    """An operator whose tasks may be changed, within bounds, in steps of `quantum`."""

    operator: str
    bounds: Bounds = Bounds()
    quantum: int = 1

    def __post_init__(self) -> None:
        if self.quantum < 1:
            raise InvalidValue(f"quantum of {self.operator!r} must be at least 1, not {self.quantum}")


@dataclass(frozen=True, slots=True)
class Pinned:
    """An operator whose tasks cannot be changed, and why."""

    operator: str
    tasks: int
    why: str


@dataclass(frozen=True)
class JobSpec:
    """An engine's description of its job: the graph, the tunable operators, and the pinned ones with the reason."""

    name: str
    graph: Graph
    tunable: tuple[Tunable, ...]
    pinned: tuple[Pinned, ...] = ()
    checkpoint_interval_s: float | None = None
    slots_available: int | None = None
    memory_choices_mb: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.tunable:
            raise InvalidValue(f"job {self.name!r} has nothing to tune")
        names = [t.operator for t in self.tunable] + [p.operator for p in self.pinned]
        for name in names:
            if name not in self.graph.operators:
                raise InvalidValue(
                    f"unknown operator {name!r} in job {self.name!r}, {nearest(name, self.graph.operators)}"
                )
        if missing := sorted(set(self.graph.operators) - set(names)):
            raise InvalidValue(f"operators neither tunable nor pinned: {', '.join(missing)}")
        if len(set(names)) < len(names):
            raise InvalidValue(f"an operator of job {self.name!r} is named twice among tunable and pinned")
        check_number("checkpoint_interval_s", self.checkpoint_interval_s)
        check_number("slots_available", self.slots_available, least=1)

    @cached_property
    def tunable_names(self) -> tuple[str, ...]:
        """Names of the operators in every allocation of this job."""
        return tuple(t.operator for t in self.tunable)
