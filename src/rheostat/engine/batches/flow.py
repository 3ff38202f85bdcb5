"""The rows that pass the stages of a real-time batch, as Spark's plan counts them, during the batch and after it. Pure.

The plan of a chain is a path of nodes from the scan to the sink, with an exchange between two stages. Most nodes count
their output rows; the pipelined exchanges of real-time mode count nothing. So the rows that enter a stage are those of
the last counting node before its exchange.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

EXCHANGE = "Exchange"
STATEFUL = ("State", "Streaming")
"""Beginnings of the names of nodes with state."""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One node of a plan."""

    name: str
    counter: Any
    """What counts its output rows; None if nothing does."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Rows of one batch, so far."""

    entered: tuple[float, ...]
    """Rows that entered each stage, the source first."""
    left: float | None
    """Rows that left the last stage; None where its counter shows nothing before the end of the batch."""

    def __add__(self, other: Flow) -> Flow:
        """Return the rows of two batches."""
        entered = tuple(one + two for one, two in zip(self.entered, other.entered, strict=True))
        return Flow(entered, None if self.left is None or other.left is None else self.left + other.left)


def flow_counters(path: Sequence[PlanNode], stages: int) -> tuple[Any, ...]:
    """Return the counters of the rows that enter each stage, and of those that leave the last one.

    `path` runs from the scan to the sink. Before a keyed stage of one task, after another of one task, Spark needs no
    exchange: then the stage begins with its state. The result is () if the plan does not have these stages.
    """
    inner = path[1:-1]
    borders = [node for node in inner if node.name == EXCHANGE]
    if len(borders) == stages - 2:
        borders += [node for node in inner if node.name.startswith(STATEFUL)][:1]
    if not path or len(borders) != stages - 1 or path[0].counter is None:
        return ()
    last = path[0].counter
    counters = [last]
    for node in inner:
        if any(node is border for border in borders):
            counters.append(last)
        last = last if node.counter is None else node.counter
    return (*counters, last)


def read_flow(counts: Sequence[int | None]) -> Flow | None:
    """Return the rows by the values of `flow_counters`; None before the first report.

    A counter without a report counts as 0, but for rows that leave: some nodes report theirs only at the end.
    """
    if not counts or counts[0] is None:
        return None
    *entered, left = counts
    return Flow(tuple(float(rows or 0) for rows in entered), None if left is None else float(left))


def total_flow(flows: Iterable[Flow]) -> Flow | None:
    """Return the rows of all batches; None without a batch."""
    total: Flow | None = None
    for flow in flows:
        total = flow if total is None else total + flow
    return total


def queues(now: Flow, usual: Flow) -> tuple[float, ...]:
    """Return the rows that wait in front of each stage or inside it, in its own rows; 0 for the source.

    `usual` are the rows of finished batches: they show how many rows a stage writes per row that it reads. A stage
    whose output is unknown, or usually none, counts as done.
    """
    outputs, usual_outputs = (*now.entered[1:], now.left), (*usual.entered[1:], usual.left)
    waiting = [0.0]
    for place in range(1, len(now.entered)):
        output, per_row = outputs[place], (usual_outputs[place] or 0.0) / max(usual.entered[place], 1.0)
        done = now.entered[place] if output is None or per_row <= 0 else output / per_row
        waiting.append(max(0.0, now.entered[place] - done))
    return tuple(waiting)


def records_inside(now: Flow, usual: Flow) -> float:
    """Return the source's records that the batch has read and not finished."""
    inside = 0.0
    for place, waiting in enumerate(queues(now, usual)):
        per_record = usual.entered[place] / usual.entered[0] if usual.entered[0] else 0.0
        inside += waiting / per_record if per_record > 0 else 0.0
    return min(inside, now.entered[0])


def left_s(now: Flow, usual: Flow, rate_per_s: float, elapsed_s: float, batch_s: float) -> float:
    """Return the seconds until the end of a batch, by the pace at which it finishes records; it reads for `batch_s`."""
    reading_s = max(0.0, batch_s - elapsed_s)
    inside = records_inside(now, usual)
    to_do, done = inside + rate_per_s * reading_s, now.entered[0] - inside
    if to_do <= 0:
        return reading_s
    return max(reading_s, to_do * elapsed_s / done) if done > 0 else math.inf
