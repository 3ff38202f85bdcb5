"""The plant: the true parameters of a simulated job, most of which its engine never shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from rheostat.engine.simulated.curves import UNLIMITED, Curve
from rheostat.engine.simulated.discipline import Discipline, Flow
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.frozen import FrozenMap, check_number, put
from rheostat.job.graph import Graph, JobSpec, Pinned, Tunable

GB = 1e9


@dataclass(frozen=True, slots=True)
class PlantOperator:
    """The true parameters of one operator."""

    name: str
    curve: Curve = UNLIMITED
    noise: float = 0.0
    """Log standard deviation of the capacity, drawn every `Plant.noise_period_s`."""
    drift: tuple[tuple[float, float], ...] = ()
    """Factor on the capacity over time: (second, factor), linear between two points, read every `noise_period_s`."""
    output_drift: tuple[tuple[float, float], ...] = ()
    """Factor on the selectivities of its outputs over time, as `drift`."""
    skew: float = 0.0
    """Extra load of the hottest task, as a share of the mean (0.5 = half as much again)."""
    limit_per_s: float | None = None
    """Records/s that an outside system, such as a slow database, allows; waiting for it looks like useful time."""
    emits_every_s: float | None = None
    """Seconds of a window: its results leave in a burst at its end."""
    queueing_records: float = 0.0
    """b of the latency law: records of queueing per unit of rho / (1 - rho)."""
    state_bytes_per_record: float = 0.0
    """Bytes of state that a record adds."""
    state_retention_s: float = 60.0
    """Mean seconds for which state is retained."""
    max_tasks: int = 90
    """Largest number of tasks."""
    pinned_tasks: int | None = None
    """Tasks of an operator that is not tuned."""
    pinned_why: str = "a source is not tuned"
    """Reason why it is not tuned."""

    def __post_init__(self) -> None:
        for what in ("noise", "skew", "queueing_records", "state_bytes_per_record"):
            check_number(f"{what} of {self.name}", getattr(self, what))
        for what in ("drift", "output_drift"):
            points = getattr(self, what)
            moments = [moment for moment, _ in points]
            if moments != sorted(moments):
                raise InvalidValue(f"the seconds of {what} of {self.name} must rise, not {moments}")
            for moment, factor in points:
                check_number(f"seconds in {what} of {self.name}", moment)
                check_number(f"factor in {what} of {self.name}", factor, least=1e-3)
        check_number(f"max_tasks of {self.name}", self.max_tasks, least=1)
        check_number(f"pinned_tasks of {self.name}", self.pinned_tasks, least=1)
        check_number(f"limit_per_s of {self.name}", self.limit_per_s, least=1e-12)
        check_number(f"emits_every_s of {self.name}", self.emits_every_s, least=1.0)
        check_number(f"state_retention_s of {self.name}", self.state_retention_s, least=1.0)

    def evenness(self, tasks: int) -> float:
        """Return the share of the capacity that is usable before the hottest task is full."""
        return 1 / (1 + self.skew * (1 - 1 / tasks))


@dataclass(frozen=True, slots=True)
class Interference:
    """Job-level interference: every operator has the share eta(slots) of its capacity, and no metric shows it."""

    scale: float = 1.0
    """Share of the capacity at the reference size."""
    per_slot: float = 0.0
    """Loss of capacity per slot above the reference size."""
    exponent: float = 0.0
    """Power of slots / reference size; negative if a larger job is less efficient."""
    reference_slots: float = 9.0
    """Reference size in slots."""

    def __post_init__(self) -> None:
        check_number("interference.scale", self.scale, least=1e-3)
        check_number("interference.per_slot", self.per_slot)
        check_number("interference.exponent", self.exponent, least=-10.0, most=10.0)
        check_number("interference.reference_slots", self.reference_slots, least=1.0)

    def share(self, slots: float) -> float:
        """Return eta = scale (slots / ref) ** exponent / (1 + per_slot (slots - ref))."""
        ratio = math.pow(slots / self.reference_slots, self.exponent)
        return self.scale * ratio / max(1 + self.per_slot * (slots - self.reference_slots), 1e-3)


@dataclass(frozen=True, slots=True)
class Memory:
    """The effect of the memory profile on capacity: a gain per doubling, and a collapse below a minimum."""

    reference_mb: int
    """Memory in MB at which the curves hold."""
    choices_mb: tuple[int, ...]
    """Memory profiles to choose from, in MB."""
    gain_per_doubling: float = 0.0
    """Share by which capacity grows when memory doubles."""
    collapse: Mapping[int, float] = field(default_factory=FrozenMap)
    """Memory in MB -> factor on the capacity up to that size."""

    def __post_init__(self) -> None:
        for size in (self.reference_mb, *self.choices_mb, *self.collapse):
            check_number("memory in MB", size, least=1)
        check_number("memory.gain_per_doubling", self.gain_per_doubling, least=-0.99)
        for size, factor in self.collapse.items():
            check_number(f"memory.collapse at {size} MB", factor, least=1e-9, most=1.0)
        put(self, collapse=FrozenMap(self.collapse))

    def factor(self, memory_mb: int | None) -> float:
        """Return the factor of a memory profile on every capacity."""
        memory = memory_mb or self.reference_mb
        grown = math.pow(1 + self.gain_per_doubling, math.log2(memory / self.reference_mb))
        small = [size for size in self.collapse if memory <= size]
        return grown * (self.collapse[min(small)] if small else 1.0)


@dataclass(frozen=True, slots=True)
class LatencyLaw:
    """Latency that falls with the tasks and then rises again (after AuTraScale+'s Figure 5).

    base + sum over operators min(cap, b / rate_per_task * (rho / (1 - rho)) ** exponent)
         + sum over edges min(timeout, buffer * p_up * p_down / rate) / 2, plus the wait in buffers.
    """

    base_s: float = 0.05
    """Latency of an empty job, in seconds."""
    cap_s: float = 5.0
    """Largest queueing delay of one operator, in seconds."""
    buffer_records: float = 0.0
    """Records in a network buffer between two tasks."""
    timeout_s: float = 0.1
    """Seconds after which a network buffer is sent even if it is not full."""
    exponent: float = 1.0
    """Power of rho / (1 - rho): 1 is a queue with random arrivals, 2 a law outside the models' family."""

    def __post_init__(self) -> None:
        for what in ("base_s", "cap_s", "buffer_records", "timeout_s", "exponent"):
            check_number(f"latency.{what}", getattr(self, what))


@dataclass(frozen=True, slots=True)
class Restart:
    """A reconfiguration stops output for a random time that grows with the state."""

    mean_s: float = 20.0
    """Mean seconds of downtime without state."""
    sd_s: float = 2.0
    """Standard deviation of the downtime in seconds."""
    per_gb_s: float = 0.0
    """Extra seconds per GB of state."""

    def __post_init__(self) -> None:
        for what in ("mean_s", "sd_s", "per_gb_s"):
            check_number(f"restart.{what}", getattr(self, what))

    def draw_s(self, rng: np.random.Generator, state_bytes: float) -> float:
        """Draw a downtime of at least a second."""
        return max(1.0, self.mean_s + self.per_gb_s * state_bytes / GB + self.sd_s * float(rng.standard_normal()))


@dataclass(frozen=True, slots=True)
class Failure:
    """The loss of a worker: output continues until it is detected, stops, resumes, and records are read again."""

    detected_after_s: float = 20.0
    """Seconds from the failure until output stops."""
    resumed_after_s: float = 65.0
    """Mean seconds from the failure until output resumes."""
    resumed_sd_s: float = 8.0
    """Standard deviation of `resumed_after_s`."""
    replay_s: float | None = None
    """Seconds of records that are read again; None: all since the last checkpoint."""

    def __post_init__(self) -> None:
        for what in ("detected_after_s", "resumed_sd_s", "replay_s"):
            check_number(f"failure.{what}", getattr(self, what))
        check_number("failure.resumed_after_s", self.resumed_after_s, least=self.detected_after_s)

    def draw_downtime_s(self, rng: np.random.Generator) -> float:
        """Draw the seconds from the stop to the resumption, at least one."""
        mean = self.resumed_after_s - self.detected_after_s
        return max(1.0, mean + self.resumed_sd_s * float(rng.standard_normal()))


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics that the engine shows: the window, and the flaws of real metrics."""

    window_s: float = 60.0
    """Length of a window in seconds."""
    min_window_s: float = 20.0
    """Seconds below which a window that a change cuts short is not usable."""
    settle_s: float = 10.0
    """Seconds after a change that windows leave out."""
    display_lag_s: float = 0.0
    """Delay of the metrics in seconds; the sources' offsets have none."""
    noise: float = 0.0
    """Log standard deviation of a measured true rate."""
    missing: float = 0.0
    """Probability that an operator's metrics are missing from a window."""
    stale: float = 0.0
    """Probability that the engine shows the previous window again."""

    def __post_init__(self) -> None:
        check_number("metrics.window_s", self.window_s, least=1.0)
        check_number("metrics.min_window_s", self.min_window_s, least=1.0, most=self.window_s)
        for what in ("settle_s", "display_lag_s", "noise"):
            check_number(f"metrics.{what}", getattr(self, what))
        for what in ("missing", "stale"):
            check_number(f"metrics.{what}", getattr(self, what), most=1.0)


@dataclass(frozen=True)
class Plant:
    """A simulated job with its curves, its restarts, its failures and its metrics."""

    name: str
    graph: Graph
    operators: tuple[PlantOperator, ...]
    unit_per_s: Mapping[str, float]
    """Records/s at each source when the load's level is 1."""
    origin: str = ""
    """Source of the parameters."""
    interference: Interference = Interference()
    """Mutual slow-down of the operators."""
    memory: Memory | None = None
    """Effect of memory on capacity; None if memory cannot be chosen."""
    latency: LatencyLaw = LatencyLaw()
    """Latency of a record."""
    restart: Restart = Restart()
    """Downtime of a reconfiguration."""
    failure: Failure = Failure()
    """Downtime and replay of a failure."""
    metrics: Metrics = Metrics()
    """Metrics that the engine shows."""
    buffer_s: float = 2.0
    """Size of an operator's input buffers, in seconds of its own capacity."""
    cpu_gain: float = 1.0
    """CPU share at full useful time; recorded jobs show far less than 1."""
    noise_period_s: int = 60
    """Seconds between two draws of the capacities' noise."""
    checkpoint_interval_s: float = 10.0
    """Seconds between two checkpoints."""
    slots_available: int | None = None
    """Slots of the cluster; None: unlimited."""
    start_tasks: int = 1
    """Tasks of every tunable operator at the start of a run without `start`."""
    discipline: Discipline = Flow()
    """Execution model: fluid flow, micro-batches or real time."""

    def __post_init__(self) -> None:
        names = [operator.name for operator in self.operators]
        if sorted(names) != sorted(self.graph.operators):
            raise InvalidValue(f"plant {self.name!r}: operators {names} do not match the graph {self.graph.operators}")
        if set(self.unit_per_s) != set(self.graph.sources):
            raise InvalidValue(f"plant {self.name!r}: unit_per_s must name the sources {self.graph.sources}")
        for source, unit in self.unit_per_s.items():
            check_number(f"unit_per_s of {source}", unit, least=1e-12)
        check_number("buffer_s", self.buffer_s, least=1e-3)
        check_number("noise_period_s", self.noise_period_s, least=1)
        check_number("checkpoint_interval_s", self.checkpoint_interval_s, least=1.0)
        put(self, unit_per_s=FrozenMap(self.unit_per_s))
        if problem := self.discipline.problem(self.graph, self._pinned):
            raise InvalidValue(f"plant {self.name!r}: {problem}")
        self._check_unused(self, self.discipline.unused)
        for operator in self.operators:
            self._check_unused(operator, self.discipline.unused_in_operators)

    def _check_unused(self, part: Plant | PlantOperator, names: tuple[str, ...]) -> None:
        """Refuse settings without effect on the discipline, so that none is silently ignored."""
        for each in fields(part):
            if each.name in names and getattr(part, each.name) != each.default:
                title = self.discipline.title
                raise InvalidValue(f"plant {self.name!r}: {each.name} has no effect on {title}, leave it out")

    @property
    def _pinned(self) -> dict[str, int]:
        return {o.name: o.pinned_tasks for o in self.operators if o.pinned_tasks is not None}

    def operator(self, name: str) -> PlantOperator:
        """Return one operator."""
        return next(operator for operator in self.operators if operator.name == name)

    def spec(self) -> JobSpec:
        """Return the job's description as an engine would give it."""
        own = self.discipline
        return JobSpec(
            self.name,
            self.graph,
            tuple(
                Tunable(o.name, own.bounds(o.max_tasks), own.quantum) for o in self.operators if o.pinned_tasks is None
            ),
            tuple(Pinned(o.name, o.pinned_tasks, o.pinned_why) for o in self.operators if o.pinned_tasks is not None),
            own.checkpoint_interval_s(self.checkpoint_interval_s),
            own.slots_to_tune(self.slots_available, self._pinned),
            self.memory.choices_mb if self.memory else (),
        )

    def shortage(self, allocation: Allocation) -> str:
        """Return why the job cannot start with this allocation, or ""."""
        tasks = {o.name: o.pinned_tasks or allocation.tasks[o.name] for o in self.operators}
        why = self.discipline.shortage(tasks, self.slots_available)
        return why and f"{self.name} {why}"

    def start(self) -> Allocation:
        """Return the allocation at the start of a run."""
        memory = self.memory.reference_mb if self.memory else None
        quantum = self.discipline.quantum
        tasks = -(-self.start_tasks // quantum) * quantum
        return Allocation({o.name: tasks for o in self.operators if o.pinned_tasks is None}, memory)

    def nominal_per_s(self, operator: PlantOperator, tasks: int, memory_mb: int | None) -> float:
        """Return the capacity that metrics show: curve and memory, without interference, skew and limit."""
        return operator.curve.capacity_per_s(tasks) * (self.memory.factor(memory_mb) if self.memory else 1.0)

    def capacity_per_s(self, name: str, tasks: int, allocation: Allocation) -> float:
        """Return the true capacity of an operator at p tasks, without noise, while the job has this allocation."""
        operator, usable = self.operator(name), self.discipline.usable(tasks)
        even = self.nominal_per_s(operator, usable, allocation.memory_mb) * operator.evenness(usable)
        limited = even if operator.limit_per_s is None else min(even, operator.limit_per_s)
        return self.discipline.sustained_per_s(tasks, limited * self.interference.share(allocation.slots))
