"""Finds real-time batches that last longer than their backlog explains, and the stage that causes it. Pure.

A batch starts w seconds after the source was last read, and reads for D seconds. At load L it holds (w + D) L records,
which take (w + D) L / c seconds at capacity c. So it lasts longer than w + D exactly when the capacity is below the
load, whatever the backlog before it, and a share 1 - c / L of its time lies beyond w + D. A job that catches up after a
change or a peak has long batches, too, but not late ones. The test needs no other batch for comparison, and detects a
running batch as soon as w + D is over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rheostat.job.observation import OperatorReading

LATE = 0.1
LATE_S = 0.5
"""Share of the batch length and seconds by which a batch must exceed its due time to be late."""


def late_after_s(batch_s: float) -> float:
    """Return the seconds after its start at which a batch of this length is late."""
    return batch_s + max(LATE_S, LATE * batch_s)


@dataclass(frozen=True, slots=True)
class Chain:
    """The operators in the order of the records, their tasks, and the length of a batch."""

    names: tuple[str, ...]
    """The source first."""
    tasks: Mapping[str, int]
    batch_s: float

    @property
    def late_s(self) -> float:
        """Seconds after its start at which a batch is late."""
        return late_after_s(self.batch_s)


@dataclass(frozen=True, slots=True)
class Span:
    """One batch: its start, the ends of its stages (the source first), and the last read of the source before it."""

    start_s: float
    ends_s: tuple[float, ...]
    """Now, for a stage that still runs."""
    last_read_s: float

    @property
    def seconds(self) -> float:
        """Its duration, up to now if it still runs."""
        return max(self.ends_s) - self.start_s

    def due_s(self, batch_s: float) -> float:
        """Return when it would end if the capacity just equalled the load."""
        return self.start_s + batch_s + max(0.0, self.start_s - self.last_read_s)


def late_stages(chain: Chain, span: Span) -> tuple[str, ...]:
    """Return the stages that run clearly longer than the backlog explains, in the order of the records."""
    late_s = span.due_s(chain.batch_s) + chain.late_s - chain.batch_s
    return tuple(name for name, end_s in zip(chain.names, span.ends_s, strict=True) if end_s > late_s)


def required_busy_shares(
    chain: Chain, readings: Sequence[OperatorReading], rate_per_s: float | None, tasks: Mapping[str, int]
) -> dict[str, float]:
    """Return the busy share that each stage's tasks need at this load; above 1 the stage cannot keep up.

    The readings give the useful time per record, and the records of every stage per record of the source. If they were
    taken at another size, the time per record is assumed to be the same.
    """
    source = next((r.records_in_per_s for r in readings if r.name == chain.names[0]), None)
    if not source or rate_per_s is None:
        return {}
    return {
        r.name: rate_per_s / source * r.records_in_per_s / r.true_rate_per_s / tasks[r.name]
        for r in readings
        if r.records_in_per_s and r.true_rate_per_s
    }


def worth_waiting_s(
    elapsed_s: float, least_s: float, was: Mapping[str, int], target: Mapping[str, int], left_s: float | None = None
) -> float:
    """Return the seconds to wait for the end of a batch before a restart interrupts it.

    An interrupted batch runs again from its start. Interrupting it after `a` seconds, with `r` seconds to go, loses `a`
    at the old capacity and gains the extra capacity over `r`: if capacity grows by the share g, that pays when
    g r > a. If `left_s`, the rest of a batch that takes too long, is known and it pays, the batch is interrupted at
    once. If the rest is unknown, waiting a / g costs at most as much as not waiting. A change that grows nothing can
    wait for ever.
    """
    growth = max((tasks / was[name] for name, tasks in target.items() if was.get(name)), default=1.0) - 1.0
    if growth <= 0:
        return math.inf
    if left_s is not None and growth * left_s > elapsed_s:
        return 0.0
    return max(least_s, elapsed_s / growth)


def blocking_shares(chain: Chain, spans: Sequence[Span]) -> dict[str, float]:
    """Return the share of the time in which each stage alone kept the source from reading.

    This is Dhalion's back pressure: with linear capacities the load needs tasks x 1 / (1 - share).
    """
    blocking_s = dict.fromkeys(chain.names, 0.0)
    for span in spans:
        before_s = span.due_s(chain.batch_s)
        for name, end_s in zip(chain.names, span.ends_s, strict=True):
            blocking_s[name] += max(0.0, end_s - before_s)
            before_s = max(before_s, end_s)
    seconds = sum(span.seconds for span in spans)
    return {name: min(1.0, blocked_s / seconds) if seconds else 0.0 for name, blocked_s in blocking_s.items()}
