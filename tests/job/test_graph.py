"""The graph refuses impossible jobs and propagates demand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.job.frozen import from_json, to_json
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.slo import Bounds


@pytest.mark.parametrize(
    ("operators", "edges", "sources", "message"),
    [
        ((), (), (), "at least one operator"),
        (("a", "a"), (), ("a",), "twice: a"),
        (("src", "map"), (Edge("src", "mpa"),), ("src",), "did you mean 'map'"),
        (("src", "map"), (Edge("src", "map"),), ("scr",), "did you mean 'src'"),
        (("a", "b"), (Edge("a", "b"), Edge("a", "b", 2)), ("a",), "two edges"),
        (("a",), (), (), "at least one source"),
        (("a", "b"), (Edge("a", "b"),), ("a", "b"), "a source cannot have an upstream: b"),
        (("s", "a", "b"), (Edge("s", "a"), Edge("a", "b"), Edge("b", "a")), ("s",), "cycle through or before: a, b"),
        (("a",), (Edge("a", "a"),), ("a",), "upstream"),
        (("s", "lost", "b"), (Edge("s", "b"), Edge("lost", "b")), ("s",), "no source reaches: lost"),
    ],
)
def test_refuses_impossible_graphs(
    operators: tuple[str, ...], edges: tuple[Edge, ...], sources: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        Graph(operators, edges, sources)


@pytest.mark.parametrize("selectivity", [-0.1, float("nan"), float("inf")])
def test_refuses_impossible_selectivities(selectivity: float) -> None:
    with pytest.raises(InvalidValue, match="a->b"):
        Edge("a", "b", selectivity)


def test_demand_follows_selectivities_through_forks_and_joins() -> None:
    graph = Graph(
        ("s1", "s2", "clean", "count", "join"),
        (
            Edge("s1", "clean", 0.5),
            Edge("clean", "count", 3),
            Edge("clean", "join"),
            Edge("count", "join", 2),
            Edge("s2", "join"),
        ),
        ("s1", "s2"),
    )
    demand = graph.demand_per_s({"s1": 100.0, "s2": 7.0})
    assert demand == {"s1": 100.0, "s2": 7.0, "clean": 50.0, "count": 150.0, "join": 50.0 + 300.0 + 7.0}
    assert graph.demand_per_s({"s1": 100.0, "s2": 7.0}, {("clean", "count"): 0.0})["join"] == 57.0
    assert graph.sinks == ("join",)
    assert graph.order.index("count") < graph.order.index("join")


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=6), st.floats(0, 1e6))
def test_a_chains_demand_is_the_product_of_its_selectivities(selectivities: list[float], rate: float) -> None:
    names = tuple(f"op{k}" for k in range(len(selectivities) + 1))
    edges = tuple(Edge(names[k], names[k + 1], s) for k, s in enumerate(selectivities))
    expected = rate
    for s in selectivities:
        expected *= s
    assert Graph(names, edges, ("op0",)).demand_per_s({"op0": rate})[names[-1]] == expected


def two(tunable: tuple[Tunable, ...], pinned: tuple[Pinned, ...] = ()) -> JobSpec:
    return JobSpec("two", Graph(("s", "map"), (Edge("s", "map"),), ("s",)), tunable, pinned)


@pytest.mark.parametrize(
    ("tunable", "pinned", "message"),
    [
        ((), (Pinned("s", 1, ""), Pinned("map", 1, "")), "nothing to tune"),
        ((Tunable("mapp"), Tunable("s")), (), "did you mean 'map'"),
        ((Tunable("map"),), (), "neither tunable nor pinned: s"),
        ((Tunable("map"), Tunable("s")), (Pinned("s", 1, "x"),), "named twice"),
    ],
)
def test_a_spec_accounts_for_every_operator_once(
    tunable: tuple[Tunable, ...], pinned: tuple[Pinned, ...], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        two(tunable, pinned)


def test_spec_round_trip() -> None:
    spec = two((Tunable("map", Bounds(2, 8), 2),), (Pinned("s", 3, "partitions"),))
    again = from_json(JobSpec, to_json(spec))
    assert again == spec
    assert again.tunable_names == ("map",)
