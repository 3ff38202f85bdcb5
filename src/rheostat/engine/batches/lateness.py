"""Whether a batch of real-time mode is longer than what it found waiting explains, and which stage is to blame. Pure.

A batch that starts when nothing has been read for w seconds and reads for D seconds has (w + D) L records to do at load
L; at capacity c that takes (w + D) L / c. So it lasts longer than w + D exactly when the capacity is below the load,
however much had piled up before, and the part of its time beyond w + D is 1 - c / L of it. A job that catches up after
a change or a peak has long batches too, and this tells them apart. No batch has to be compared with another one, and
one that still runs is found out as soon as w + D is over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rheostat.job.observation import OperatorReading

LATE = 0.1
LATE_S = 0.5
"""A batch is late when it lasts longer than it should by this share, and by this many seconds."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What a window is read against: operators in the order of the records, their tasks, the length of a batch."""

    names: tuple[str, ...]
    """The source first."""
    tasks: Mapping[str, int]
    batch_s: float

    @property
    def late_s(self) -> float:
        """Seconds after its start from which on a batch is late."""
        return self.batch_s + max(LATE_S, LATE * self.batch_s)


@dataclass(frozen=True, slots=True)
class Span:
    """One batch: when it started, when its stages had finished (the source first), and since when nothing was read."""

    start_s: float
    ends_s: tuple[float, ...]
    """Of stages that are at work: now."""
    unread_s: float

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far."""
        return max(self.ends_s) - self.start_s

    def due_s(self, batch_s: float) -> float:
        """Return when it would end at a capacity that is just the load."""
        return self.start_s + batch_s + max(0.0, self.start_s - self.unread_s)


def late_stages(chain: Chain, span: Span) -> tuple[str, ...]:
    """Return the stages that go on for clearly longer than what waited explains, in the order of the records."""
    late_s = span.due_s(chain.batch_s) + chain.late_s - chain.batch_s
    return tuple(name for name, end_s in zip(chain.names, span.ends_s, strict=True) if end_s > late_s)


def needs(
    chain: Chain, readings: Sequence[OperatorReading], rate_per_s: float | None, tasks: Mapping[str, int]
) -> dict[str, float]:
    """Return the useful seconds that every stage needs per second and task at this load; above 1 it cannot keep up.

    The readings tell useful time per record, and records of every stage per record of the source. Where they are of
    another size, time per record is taken to stay as it was.
    """
    source = next((r.records_in_per_s for r in readings if r.name == chain.names[0]), None)
    if not source or rate_per_s is None:
        return {}
    return {
        r.name: rate_per_s / source * r.records_in_per_s / r.true_rate_per_s / tasks[r.name]
        for r in readings
        if r.records_in_per_s and r.true_rate_per_s
    }


def worth_waiting_s(elapsed_s: float, least_s: float, was: Mapping[str, int], target: Mapping[str, int]) -> float:
    """Return how long the end of a batch is worth waiting for before a change is made inside it.

    What is cut off is done again. Stopping after `a` seconds with `r` to go loses `a` at the old capacity and gains
    the difference to the new one over `r`: with a capacity that grows by the share g, that pays where g r > a. How long
    a batch still lasts is not known, and to wait for a / g costs at most as much as not to have waited. A change that
    makes nothing larger gains nothing by haste.
    """
    growth = max((tasks / was[name] for name, tasks in target.items() if was.get(name)), default=1.0) - 1.0
    return math.inf if growth <= 0 else max(least_s, elapsed_s / growth)


def held_up(chain: Chain, spans: Sequence[Span]) -> dict[str, float]:
    """Return for every stage the share of the time in which it alone kept the source from reading on.

    Dhalion's back pressure: tasks x 1 / (1 - share) is what the load needs, where capacities are linear.
    """
    found = dict.fromkeys(chain.names, 0.0)
    for span in spans:
        before_s = span.due_s(chain.batch_s)
        for name, end_s in zip(chain.names, span.ends_s, strict=True):
            found[name] += max(0.0, end_s - before_s)
            before_s = max(before_s, end_s)
    seconds = sum(span.seconds for span in spans)
    return {name: min(1.0, held_s / seconds) if seconds else 0.0 for name, held_s in found.items()}
