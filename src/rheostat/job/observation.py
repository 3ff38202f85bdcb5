"""An engine's measurements of one window. None means not measured; it is never replaced by a guess."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from rheostat.job.allocation import Allocation
from rheostat.job.fit import MOST_TASKS
from rheostat.job.frozen import FrozenMap, put
from rheostat.job.graph import JobSpec


class Change(StrEnum):
    """Progress of the last requested change."""

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
    """One source: its input rate, its backlog in records, and the age of the oldest waiting record."""

    name: str
    rate_per_s: float | None
    backlog: float | None = None
    lag_s: float | None = None
    measured_s: float | None = None
    """When rate and backlog were measured; None for the moment of the observation."""
    files_waiting: float | None = None
    """Files that no batch has taken; None for a source without files."""
    bytes_waiting: float | None = None
    """Size of these files."""
    versions_waiting: float | None = None
    """Versions of a Delta or Iceberg table that the source has not come to; None for other sources."""


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
    """Share of the window in which this operator blocked its upstreams: back pressure, attributed to its origin."""
    pending: float | None = None
    """Records queued inside the job in front of this operator."""
    state_bytes: float | None = None
    memory_bytes: float | None = None
    spilled_bytes: float | None = None
    gc_share: float | None = None
    """Share of the operator's run time spent in garbage collection."""

    @property
    def capacity_per_s(self) -> float | None:
        """Records/s of the whole operator with its current tasks (the papers' PA)."""
        return None if self.true_rate_per_s is None else self.true_rate_per_s * self.tasks


@dataclass(frozen=True, slots=True)
class EdgeReading:
    """Records per second that passed along one edge."""

    upstream: str
    downstream: str
    records_per_s: float | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Quantiles over the window: processing time (through the job) and event time (since the event)."""

    p50_s: float
    p95_s: float
    p99_s: float
    event_p50_s: float
    event_p95_s: float
    event_p99_s: float


@dataclass(frozen=True, slots=True)
class BatchTime:
    """Duration of a micro-batch, fitted to recent batches: fixed_s + slot_s_per_record * records / slots."""

    fixed_s: float
    """Time that does not depend on the records: planning, commits, task start."""
    slot_s_per_record: float
    error: float
    """Typical deviation of a batch from this line, as a share of its duration."""
    batches: int
    least_per_slot: float
    most_per_slot: float
    """Range of records per slot in the fitted batches; outside of it the line is extrapolated."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One window of one job. A window with a `problem`, or of a `former` size, is not used for learning."""

    at_s: float
    """Moment of the observation."""
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
    """Operators that show the engine's symptom of overload."""
    overdue_s: float = 0.0
    """Seconds by which a running batch exceeds its expected duration."""
    catching_up: bool = False
    """Whether the backlog is above its usual level after a change or a peak."""
    latency: Latency | None = None
    uptime_s: float = 0.0
    downtime_s: float | None = None
    """Seconds without output in the last change or failure, as far as the engine measured it."""
    bottlenecks: tuple[str, ...] = ()
    """Causes of slowness that more executors do not cure; they are reported and never a reason to grow."""
    batch_time: BatchTime | None = None
    """Set for micro-batch jobs whose recent batches differ enough in size to fit the line."""
    change_costs_s: Mapping[str, float] = field(default_factory=FrozenMap)
    """Operator -> expected seconds without output when its tasks change; operators that change for free are absent."""
    former: Allocation | None = None
    """Size that the operators were measured at, as long as nothing is measured of the running one; None otherwise."""
    settles_in_s: float = 0.0
    """Seconds until a load that has just jumped has been seen for long enough; 0 if it is steady. Where it is more, the
    rate is a mixture, nothing is decided, and the next window comes that soon."""
    problem: str | None = None

    def __post_init__(self) -> None:
        put(self, change_costs_s=FrozenMap(self.change_costs_s))

    @property
    def usable(self) -> bool:
        """Whether the window may be used for learning."""
        return self.problem is None and self.former is None

    @property
    def present_operators(self) -> tuple[OperatorReading, ...]:
        """The readings of the running size: what may be shown as of now."""
        return self.operators if self.former is None else ()

    @property
    def throughput_per_s(self) -> float | None:
        """Records per second read from all sources; None while only the former size was measured."""
        return total(self.operator(s.name).records_in_per_s for s in self.sources) if self.former is None else None

    @property
    def load_per_s(self) -> float | None:
        """Records per second that arrived at all sources."""
        return total(s.rate_per_s for s in self.sources)

    @property
    def backlog(self) -> float | None:
        """Records waiting at all sources."""
        return total(s.backlog for s in self.sources)

    @property
    def waiting(self) -> dict[str, float]:
        """Files, bytes and versions that no batch has taken, of the sources that have such."""
        sums: dict[str, float] = {}
        for name in ("files", "bytes", "versions"):
            known = [getattr(s, f"{name}_waiting") for s in self.sources]
            if any(count is not None for count in known):
                sums[name] = sum(count for count in known if count is not None)
        return sums

    @property
    def lag_s(self) -> float | None:
        """Age of the oldest waiting record of any source."""
        lags = [s.lag_s for s in self.sources]
        return max((lag for lag in lags if lag is not None), default=None)

    def operator(self, name: str) -> OperatorReading:
        """Return one operator's reading; an operator without a reading gets an empty one."""
        for reading in self.operators:
            if reading.name == name:
                return reading
        return OperatorReading(name, 0)

    @staticmethod
    def blind(at_s: float, problem: str) -> Observation:
        """Return the observation of a window without any measurement."""
        return Observation(at_s, at_s, at_s, None, None, problem=problem)


_NUMBERS: dict[type, tuple[str, ...]] = {
    part: tuple(f.name for f in fields(part) if f.type not in ("str", str))
    for part in (SourceReading, OperatorReading, EdgeReading, Latency, BatchTime)
}
"""Fields that must be at least zero and below `MOST` where measured; collected once, not in every window."""
MOST = 1e18
"""Records, bytes or seconds that no job has: one such number would spoil what is learned for a long time."""


def total(values: Iterator[float | None]) -> float | None:
    """Return the sum; None if there are no values or one of them is missing."""
    parts = list(values)
    return sum(v for v in parts if v is not None) if parts and None not in parts else None


def mark_problem(observation: Observation, spec: JobSpec) -> Observation:
    """Return the observation with `problem` set if it is incomplete or absurd, else unchanged.

    An engine's readings can be late, partial or wrong; a policy must never treat such numbers as measurements.
    """
    if observation.problem is not None:
        return observation
    problem = absurdity(observation) or incompleteness(observation, spec)
    return observation if problem is None else replace(observation, problem=problem)


def absurdity(observation: Observation) -> str | None:
    """Return what is impossible in this window: NaN, negative values, more useful time than there is."""
    if not observation.start_s <= observation.end_s <= observation.at_s + 1e-6:
        return f"window from {observation.start_s:g} to {observation.end_s:g} s, observed at {observation.at_s:g} s"
    for name in ("overdue_s", "uptime_s", "downtime_s", "settles_in_s"):
        value = getattr(observation, name)
        if value is not None and not 0 <= value < MOST:
            return f"{name} is {value}"
    for name, tasks in (observation.running.tasks if observation.running else {}).items():
        if tasks > MOST_TASKS:
            return f"more than {MOST_TASKS:,} tasks of {name} run"
    readings = (*observation.sources, *observation.operators, *observation.edges)
    parts: tuple[object, ...] = (*readings, observation.latency, observation.batch_time)
    for part in parts:
        if part is None:
            continue
        for name in _NUMBERS[type(part)]:
            value = getattr(part, name)
            if value is not None and not (isinstance(value, float | int) and 0 <= value < MOST):
                return f"{name} of {getattr(part, 'name', 'the job')} is {value}"
    for reading in observation.operators:
        # Up to 5 % above one is rounding between two clocks; more is impossible.
        if reading.useful_share is not None and reading.useful_share > 1.05:
            return f"useful_share of {reading.name} is {reading.useful_share:g}, above 1"
        if reading.true_rate_per_s == 0:
            return f"true_rate_per_s of {reading.name} is 0"
    return None


def incompleteness(observation: Observation, spec: JobSpec) -> str | None:
    """Return what a decision needs and this window lacks."""
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
