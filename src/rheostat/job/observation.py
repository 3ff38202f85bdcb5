"""What an engine saw during one window. None means not measured; it is never replaced by a guess."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from rheostat.job.allocation import Allocation
from rheostat.job.frozen import FrozenMap, put
from rheostat.job.graph import JobSpec


class Change(StrEnum):
    """How far the last wanted allocation has come."""

    NONE = "none"
    UNDER_WAY = "under way"
    PARTIAL = "partial"
    FAILED = "failed"


class Status(StrEnum):
    """Whether the job produces output."""

    RUNNING = "running"
    RECOVERING = "recovering"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class SourceReading:
    """One source: the rate at which records arrive outside, what waits there, and how old it is."""

    name: str
    rate_per_s: float | None
    backlog: float | None = None
    lag_s: float | None = None


@dataclass(frozen=True, slots=True)
class OperatorReading:
    """One operator. `true_rate_per_s` is records per useful second **of one task**."""

    name: str
    tasks: int
    records_in_per_s: float | None = None
    useful_share: float | None = None
    """Useful seconds per second of one task, 0 to 1."""
    true_rate_per_s: float | None = None
    cpu_share: float | None = None
    blocking_share: float | None = None
    """Share of the window in which it held up its upstreams: back pressure, seen at its root."""
    pending: float | None = None
    """Records waiting inside the job in front of it."""
    state_bytes: float | None = None
    memory_bytes: float | None = None
    spilled_bytes: float | None = None
    gc_share: float | None = None
    """Share of its run time that went into garbage collection."""

    @property
    def capacity_per_s(self) -> float | None:
        """Records/s of the whole operator at its present tasks (the papers' PA)."""
        return None if self.true_rate_per_s is None else self.true_rate_per_s * self.tasks


@dataclass(frozen=True, slots=True)
class EdgeReading:
    """Records that went along one edge, per second."""

    upstream: str
    downstream: str
    records_per_s: float | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Quantiles over the window: through the job (processing time), and since the event (event time)."""

    p50_s: float
    p95_s: float
    p99_s: float
    event_p50_s: float
    event_p95_s: float
    event_p99_s: float


@dataclass(frozen=True, slots=True)
class BatchTime:
    """How long a micro-batch takes, as recent batches show it: fixed_s + slot_s_per_record * records / slots."""

    fixed_s: float
    """What it takes whatever is in it: planning, commits, starting tasks."""
    slot_s_per_record: float
    error: float
    """Typical distance of a batch from this line, as a share of its time."""
    batches: int
    least_per_slot: float
    most_per_slot: float
    """Records per slot of the batches that it was fitted to: beyond them it is a guess."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One window of one job. When `problem` is set the window must not be learned from."""

    at_s: float
    """When it was looked at."""
    start_s: float
    end_s: float
    running: Allocation | None
    wanted: Allocation | None
    change: Change = Change.NONE
    status: Status = Status.RUNNING
    sources: tuple[SourceReading, ...] = ()
    operators: tuple[OperatorReading, ...] = ()
    edges: tuple[EdgeReading, ...] = ()
    overloaded: tuple[str, ...] = ()
    """Operators with the engine's symptom of overload."""
    overdue_s: float = 0.0
    """Seconds that a running batch is past its time."""
    catching_up: bool = False
    """Whether more waits than usual, since a change or a peak."""
    latency: Latency | None = None
    uptime_s: float = 0.0
    downtime_s: float | None = None
    """Seconds without output in the last change or failure, as far as the engine saw it."""
    bottlenecks: tuple[str, ...] = ()
    """What slows the job down and is not a matter of size: named, and no reason to grow."""
    batch_time: BatchTime | None = None
    """Where the job works in micro-batches that differ enough to tell."""
    change_costs_s: Mapping[str, float] = field(default_factory=FrozenMap)
    """Operator -> seconds without output to be expected when its tasks are changed, where a change costs any."""
    problem: str | None = None

    def __post_init__(self) -> None:
        put(self, change_costs_s=FrozenMap(self.change_costs_s))

    @property
    def usable(self) -> bool:
        """Whether the window may be learned from."""
        return self.problem is None

    @property
    def throughput_per_s(self) -> float | None:
        """Records per second taken from all sources."""
        return total(self.operator(s.name).records_in_per_s for s in self.sources)

    @property
    def load_per_s(self) -> float | None:
        """Records per second that arrived at all sources."""
        return total(s.rate_per_s for s in self.sources)

    @property
    def backlog(self) -> float | None:
        """Records waiting at all sources."""
        return total(s.backlog for s in self.sources)

    @property
    def lag_s(self) -> float | None:
        """Age of the oldest waiting record of any source."""
        lags = [s.lag_s for s in self.sources]
        return max((lag for lag in lags if lag is not None), default=None)

    def operator(self, name: str) -> OperatorReading:
        """Return one operator's reading; an operator that was not seen has an empty one."""
        for reading in self.operators:
            if reading.name == name:
                return reading
        return OperatorReading(name, 0)

    @staticmethod
    def blind(at_s: float, problem: str) -> Observation:
        """Return the observation of a window in which nothing could be seen."""
        return Observation(at_s, at_s, at_s, None, None, problem=problem)


_NUMBERS: dict[type, tuple[str, ...]] = {
    part: tuple(f.name for f in fields(part) if f.type not in ("str", str))
    for part in (SourceReading, OperatorReading, EdgeReading, Latency, BatchTime)
}
"""What must be a finite number of at least zero, where it is measured; looked up once, not in every window."""


def total(values: Iterator[float | None]) -> float | None:
    """Add up; None when there is nothing to add or a part is missing."""
    known = list(values)
    return sum(v for v in known if v is not None) if known and None not in known else None


def checked(observation: Observation, spec: JobSpec) -> Observation:
    """Return the observation with `problem` set when it is incomplete or absurd; else as it is.

    An engine can be late, partial or lying; a policy must never take such numbers for measurements.
    """
    if observation.problem is not None:
        return observation
    problem = absurdity(observation) or incompleteness(observation, spec)
    return observation if problem is None else replace(observation, problem=problem)


def absurdity(observation: Observation) -> str | None:
    """Say what cannot be true of this window: NaN, negative, more useful time than there is."""
    if not observation.start_s <= observation.end_s <= observation.at_s + 1e-6:
        return f"window from {observation.start_s:g} to {observation.end_s:g} s, seen at {observation.at_s:g} s"
    for name in ("overdue_s", "uptime_s", "downtime_s"):
        value = getattr(observation, name)
        if value is not None and not 0 <= value < math.inf:
            return f"{name} is {value}"
    readings = (*observation.sources, *observation.operators, *observation.edges)
    parts: tuple[object, ...] = (*readings, observation.latency, observation.batch_time)
    for part in parts:
        if part is None:
            continue
        for name in _NUMBERS[type(part)]:
            value = getattr(part, name)
            if value is not None and not (isinstance(value, float | int) and 0 <= value < math.inf):
                return f"{name} of {getattr(part, 'name', 'the job')} is {value}"
    for reading in observation.operators:
        # 5 % above one is rounding between two clocks; more is a lie.
        if reading.useful_share is not None and reading.useful_share > 1.05:
            return f"useful_share of {reading.name} is {reading.useful_share:g}, above 1"
        if reading.true_rate_per_s == 0:
            return f"true_rate_per_s of {reading.name} is 0"
    return None


def incompleteness(observation: Observation, spec: JobSpec) -> str | None:
    """Say what a decision needs and this window lacks."""
    if observation.running is None:
        return "the running allocation is not known"
    if missing := set(spec.tunable_names) ^ set(observation.running.tasks):
        return f"the running allocation does not match the job: {', '.join(sorted(missing))}"
    rates = {s.name: s.rate_per_s for s in observation.sources}
    for name in spec.graph.sources:
        if rates.get(name) is None:
            return f"no rate of source {name}"
    for name in spec.tunable_names:
        reading = observation.operator(name)
        if reading.records_in_per_s is None:
            return f"no records of operator {name}"
        if reading.true_rate_per_s is None and reading.records_in_per_s > 0:
            return f"no true rate of operator {name}"
    return None
