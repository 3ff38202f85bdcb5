"""What whole allocations were seen to do at a rate: latency and throughput, from the live job and from trials.

A fold over the journal, so that it outlives a tuning and a restart. Samples are kept raw: what a latency is worth
depends on a target and on the fewest tasks, and both may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rheostat.job.decision import Decision, Measurement
from rheostat.job.frozen import FrozenMap, put
from rheostat.job.observation import Observation
from rheostat.job.record import Record, Run
from rheostat.model.capacity import Floats
from rheostat.model.history import History, teaches
from rheostat.model.history import fold as fold_history

KEPT = 192
"""Samples that are kept, those seen last: a decision's cost must not grow with the job's age."""
KEPT_BASES = 16
AVERAGED = 8
"""A sample seen more often than this is a moving average."""
ALIKE = 0.05
"""Share by which two rates may differ and still be one."""
KEEPS_UP = 0.99
"""Share of the load that is processed when a job keeps up with it."""
CATCHES_UP, WAITING_S = 1.02, 30.0
"""Beyond this share of the load, or with so many seconds of it waiting, a job that keeps up works off what waits, and
its latency is not that of the load."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One allocation at one rate."""

    load_per_s: float
    tasks: Mapping[str, int]
    throughput_per_s: float
    latency_s: float | None
    """Through the job, the median; None where it was not measured or is not that of this load."""
    count: int = 1

    def __post_init__(self) -> None:
        put(self, tasks=FrozenMap(self.tasks))

    @property
    def keeps_up(self) -> bool:
        """Whether it processed all that arrived."""
        return self.throughput_per_s >= KEEPS_UP * self.load_per_s


@dataclass(frozen=True, slots=True)
class Base:
    """π^t, the fewest tasks that keep up with a rate."""

    load_per_s: float
    tasks: Mapping[str, int]

    def __post_init__(self) -> None:
        put(self, tasks=FrozenMap(self.tasks))


@dataclass(frozen=True)
class Experience:
    """Samples, oldest first, the fewest tasks by rate, and what single operators can do."""

    seen: tuple[Seen, ...] = ()
    bases: tuple[Base, ...] = ()
    capacities: History = field(default_factory=History)
    untested: str = ""
    """Why the last trial could not be run; nothing is tried again then."""

    def at(self, load_per_s: float) -> tuple[Seen, ...]:
        """Return the samples at a rate."""
        return tuple(s for s in self.seen if alike(s.load_per_s, load_per_s))

    def base(self, load_per_s: float) -> Base | None:
        """Return the newest π^t at a rate."""
        return next((b for b in reversed(self.bases) if alike(b.load_per_s, load_per_s)), None)

    def nearest(self, load_per_s: float, least: int) -> Base | None:
        """Return π^t of the nearest other rate that has at least so many samples with a latency."""
        others = [b for b in self.bases if not alike(b.load_per_s, load_per_s)]
        rich = [b for b in others if sum(s.latency_s is not None for s in self.at(b.load_per_s)) >= least]
        return min(rich, key=lambda b: abs(b.load_per_s - load_per_s), default=None)


def alike(a: float, b: float) -> bool:
    """Whether two rates are one."""
    return abs(a - b) <= ALIKE * max(a, b)


def rows(samples: Sequence[Seen], names: Sequence[str]) -> Floats:
    """Return the tasks of the samples: one row each."""
    return np.array([[s.tasks[name] for name in names] for s in samples], dtype=float).reshape(len(samples), len(names))


def fold(known: Experience, record: Record) -> Experience:
    """Fold one record in."""
    match record:
        case Run():
            names = set(record.spec.tunable_names)
            return Experience(
                tuple(s for s in known.seen if set(s.tasks) == names),
                tuple(b for b in known.bases if set(b.tasks) == names),
                fold_history(known.capacities, record),
            )
        case Observation() if teaches(record):
            return _added(replace(known, capacities=fold_history(known.capacities, record)), record)
        case Measurement() if record.observation is None or record.problem is not None:
            return replace(known, untested=record.problem or "it gave no measurement")
        case Measurement():
            assert record.observation is not None
            return _added(replace(known, untested=""), record.observation)
        case Decision() if "solved" in record.memo:
            solved = record.memo["solved"]
            base = Base(float(solved["load_per_s"]), {name: int(count) for name, count in solved["tasks"].items()})
            if base in known.bases:
                return known
            others = [b for b in known.bases if not alike(b.load_per_s, base.load_per_s)]
            return replace(known, bases=(*others, base)[-KEPT_BASES:])
    return known


def settled(window: Observation) -> bool:
    """Whether a window shows the job at its load, not working off what waited."""
    load, done = window.load_per_s, window.throughput_per_s
    if load is None or done is None or not keeps_up(window):
        return True
    return done <= CATCHES_UP * load and (window.backlog or 0.0) <= WAITING_S * load


def keeps_up(window: Observation) -> bool:
    """Whether a window shows that all that arrived was processed; what is not measured is not held against it."""
    load, done = window.load_per_s, window.throughput_per_s
    return load is None or done is None or done >= KEEPS_UP * load


def _added(known: Experience, window: Observation) -> Experience:
    load, done = window.load_per_s, window.throughput_per_s
    if window.running is None or not load or done is None:
        return known
    latency = window.latency.p50_s if window.latency is not None and settled(window) else None
    new = Seen(load, window.running.tasks, done, latency)
    same = [s for s in known.seen if s.tasks == new.tasks and alike(s.load_per_s, load)]
    others = [s for s in known.seen if not (s.tasks == new.tasks and alike(s.load_per_s, load))]
    merged = _merged(same[-1], new) if same else new
    return replace(known, seen=(*others, merged)[-KEPT:])


def _merged(old: Seen, new: Seen) -> Seen:
    count = min(old.count + 1, AVERAGED)
    latency = old.latency_s if new.latency_s is None else new.latency_s
    if old.latency_s is not None and new.latency_s is not None:
        latency = old.latency_s + (new.latency_s - old.latency_s) / count
    # Catching up is no property of an allocation at this load: of the two the one nearer to it counts.
    done = min(old.throughput_per_s, new.throughput_per_s) if new.latency_s is None else new.throughput_per_s
    return Seen(new.load_per_s, new.tasks, done, latency, count)
