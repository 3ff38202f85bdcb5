"""Rows of a real-time batch by the nodes of its plan, with plans in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from py4j.protocol import Py4JError

from rheostat.engine.batches.flow import EXCHANGE
from rheostat.engine.spark.telemetry.flow import BatchFlows
from rheostat.engine.spark.telemetry.scans import REALTIME_SCAN, ROWS

IDS = count(1)


class Metric:
    def __init__(self) -> None:
        self.number = next(IDS)

    def id(self) -> int:
        return self.number


class Metrics(dict[str, Metric]):
    def apply(self, name: str) -> Metric:
        if name not in self:
            raise Py4JError(name)
        return self[name]

    def contains(self, name: str) -> bool:
        return name in self


class Nodes(list["Node"]):
    def size(self) -> int:
        return len(self)

    def apply(self, index: int) -> Node:
        return self[index]


class Node:
    """A node of a plan; counts the questions about its children."""

    walked = 0

    def __init__(self, name: str, *children: Node, counts: bool = True) -> None:
        self.name, self.below = name, Nodes(children)
        self.counted = Metrics({ROWS: Metric()} if counts else {})

    def children(self) -> Nodes:
        Node.walked += 1
        return self.below

    def nodeName(self) -> str:  # noqa: N802 - Spark's name
        return self.name

    def metrics(self) -> Metrics:
        return self.counted

    def p(self, number: int) -> Node | None:
        """Return a node by its number, in Spark's order."""
        numbered = list(self.all())
        return numbered[number] if number < len(numbered) else None

    def all(self) -> Sequence[Node]:
        return [self, *(node for child in self.below for node in child.all())]


def chain(*names: str) -> Node:
    """Return a plan from the sink to the scan: exchanges and the sink count nothing."""
    plan = Node(REALTIME_SCAN)
    for name in reversed(names):
        plan = Node(name, plan, counts=name not in (EXCHANGE, "Write"))
    return plan


def flows(stages: int) -> Any:
    batch_flows = object.__new__(BatchFlows)
    batch_flows._stages, batch_flows._places = stages, ()
    return batch_flows


def numbers(plan: Node, *names: str) -> list[int]:
    by_name = {node.name: node for node in plan.all()}
    return [by_name[name].counted[ROWS].number for name in names]


def test_the_counters_of_the_next_plan_are_found_without_a_walk() -> None:
    shape = ("Write", "Aggregate", EXCHANGE, "Generate", "Filter")
    batch_flows, first, second = flows(2), chain(*shape), chain(*shape)
    expected = (REALTIME_SCAN, "Generate", "Aggregate")
    assert [c.number for c in batch_flows._counters(first)] == numbers(first, *expected)
    Node.walked = 0
    assert [c.number for c in batch_flows._counters(second)] == numbers(second, *expected)
    assert Node.walked == 0


def test_a_plan_of_another_shape_is_walked_through() -> None:
    batch_flows = flows(2)
    batch_flows._counters(chain("Write", "Aggregate", EXCHANGE, "Generate", "Filter"))
    other = chain("Write", "Aggregate", EXCHANGE, "Generate")
    assert [c.number for c in batch_flows._counters(other)] == numbers(other, REALTIME_SCAN, "Generate", "Aggregate")


def test_a_stream_on_the_other_side_of_a_join_is_walked_through_every_time() -> None:
    batch_flows = flows(2)
    for _ in range(2):
        stream = Node(EXCHANGE, Node("Filter", Node(REALTIME_SCAN)), counts=False)
        plan = Node("Write", Node("Join", Node("Table", Node("Rows")), stream), counts=False)
        for leaf in plan.all():
            leaf.getStream = Absent  # type: ignore[attr-defined]
        assert [c.number for c in batch_flows._counters(plan)] == numbers(plan, REALTIME_SCAN, "Filter", "Join")


class Absent:
    def isDefined(self) -> bool:  # noqa: N802 - Scala's name
        return False
