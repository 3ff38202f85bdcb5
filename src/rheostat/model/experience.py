"""Latency and throughput of whole allocations at a rate, from the live job and from trials.

A fold over the journal, so it survives the end of a tuning and a restart. The samples are raw measurements: the score
of a latency depends on a target and on the fewest tasks, and both may change.
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
from rheostat.model.history import History, can_learn_from
from rheostat.model.history import fold as fold_history

MAX_SAMPLES = 192
"""Newest samples that are retained, so that the cost of a decision does not grow with the job's age."""
MAX_BASES = 16
"""Newest base allocations that are retained, for the same reason."""
AVERAGE_OVER = 8
"""Windows in the moving average of one sample."""
SAME_RATE = 0.05
"""Relative difference up to which two rates count as the same."""
KEEPS_UP = 0.99
"""Least share of the load that a job processes when it keeps up."""
CATCH_UP_SHARE, MAX_BACKLOG_S = 1.02, 30.0
"""Throughput as a share of the load, and backlog in seconds of load, above which a job that keeps up is working off its
backlog; its latency is then not that of the load."""
FULL, WAITING_S = 0.98, 2.0
"""Useful share of an operator, and backlog in seconds of load, that together show the same: what waits is then limited
by that operator, not by a trigger."""


@dataclass(frozen=True, slots=True)
class AllocationSample:
    """One allocation at one rate."""

    load_per_s: float
    tasks: Mapping[str, int]
    throughput_per_s: float
    latency_s: float | None
    """Median processing latency; None if it was not measured, or if the job did not run at its load."""
    count: int = 1
    """Windows in the mean latency, at most `AVERAGE_OVER`."""

    def __post_init__(self) -> None:
        put(self, tasks=FrozenMap(self.tasks))

    @property
    def keeps_up(self) -> bool:
        """Whether it processed its whole load."""
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
    """Samples of whole allocations, oldest first, π^t by rate, and the capacities of single operators."""

    samples: tuple[AllocationSample, ...] = ()
    bases: tuple[Base, ...] = ()
    capacities: History = field(default_factory=History)
    trial_problem: str = ""
    """Why the last trial could not run; no further trial is requested then."""

    def at(self, load_per_s: float) -> tuple[AllocationSample, ...]:
        """Return the samples at a rate."""
        return tuple(s for s in self.samples if same_rate(s.load_per_s, load_per_s))

    def base(self, load_per_s: float) -> Base | None:
        """Return the newest π^t at a rate."""
        return next((b for b in reversed(self.bases) if same_rate(b.load_per_s, load_per_s)), None)

    def nearest(self, load_per_s: float, least: int) -> Base | None:
        """Return π^t of the nearest other rate that has at least `least` samples with a latency."""
        others = [b for b in self.bases if not same_rate(b.load_per_s, load_per_s)]
        rich = [b for b in others if sum(s.latency_s is not None for s in self.at(b.load_per_s)) >= least]
        return min(rich, key=lambda b: abs(b.load_per_s - load_per_s), default=None)


def same_rate(a: float, b: float) -> bool:
    """Whether two rates count as the same."""
    return abs(a - b) <= SAME_RATE * max(a, b)


def task_rows(samples: Sequence[AllocationSample], names: Sequence[str]) -> Floats:
    """Return the tasks of the samples, one row per sample and one column per operator."""
    return np.array([[s.tasks[name] for name in names] for s in samples], dtype=float).reshape(len(samples), len(names))


def fold(experience: Experience, record: Record) -> Experience:
    """Return the experience after one more record."""
    match record:
        case Run():
            names = set(record.spec.tunable_names)
            return Experience(
                tuple(s for s in experience.samples if set(s.tasks) == names),
                tuple(b for b in experience.bases if set(b.tasks) == names),
                fold_history(experience.capacities, record),
            )
        case Observation() if can_learn_from(record):
            capacities = fold_history(experience.capacities, record)
            return _add_window(replace(experience, capacities=capacities), record)
        case Measurement() if record.observation is None or record.problem is not None:
            return replace(experience, trial_problem=record.problem or "it gave no measurement")
        case Measurement():
            assert record.observation is not None
            learned = _add_window(experience, record.observation)
            # A measurement without rates would be requested for ever.
            return replace(learned, trial_problem="it measured no rates" if learned is experience else "")
        case Decision() if "solved" in record.memo:
            solved = record.memo["solved"]
            base = Base(float(solved["load_per_s"]), {name: int(count) for name, count in solved["tasks"].items()})
            if base in experience.bases:
                return experience
            others = [b for b in experience.bases if not same_rate(b.load_per_s, base.load_per_s)]
            return replace(experience, bases=(*others, base)[-MAX_BASES:])
    return experience


def is_settled(window: Observation) -> bool:
    """Whether a window shows the job at its load: it keeps up, without the work of a backlog."""
    return keeps_up(window) and not is_catching_up(window)


def is_catching_up(window: Observation) -> bool:
    """Whether a job that keeps up works off a backlog; its processing latency is then that of its capacity."""
    load, done = window.load_per_s, window.throughput_per_s
    if load is None or done is None or not keeps_up(window):
        return False
    backlog = window.backlog or 0.0
    full = any((reading.useful_share or 0.0) >= FULL for reading in window.operators)
    return (
        window.catching_up
        or done > CATCH_UP_SHARE * load
        or backlog > MAX_BACKLOG_S * load
        or (full and backlog > WAITING_S * load)
    )


def keeps_up(window: Observation) -> bool:
    """Whether the job processed its whole load in a window; true where this was not measured."""
    load, done = window.load_per_s, window.throughput_per_s
    return load is None or done is None or done >= KEEPS_UP * load


def _add_window(experience: Experience, window: Observation) -> Experience:
    load, done = window.load_per_s, window.throughput_per_s
    if window.running is None or not load or done is None:
        return experience
    latency = window.latency.p50_s if window.latency is not None and is_settled(window) else None
    new = AllocationSample(load, window.running.tasks, done, latency)
    same = [s for s in experience.samples if s.tasks == new.tasks and same_rate(s.load_per_s, load)]
    others = [s for s in experience.samples if not (s.tasks == new.tasks and same_rate(s.load_per_s, load))]
    merged = _merge(same[-1], new) if same else new
    return replace(experience, samples=(*others, merged)[-MAX_SAMPLES:])


def _merge(old: AllocationSample, new: AllocationSample) -> AllocationSample:
    if new.latency_s is None:
        # The throughput of a catch-up is above the load: the lower one belongs to the allocation at this load.
        done = min(old.throughput_per_s, new.throughput_per_s)
        return replace(old, load_per_s=new.load_per_s, throughput_per_s=done)
    if old.latency_s is None:
        return new
    count = min(old.count + 1, AVERAGE_OVER)
    return replace(new, latency_s=old.latency_s + (new.latency_s - old.latency_s) / count, count=count)
