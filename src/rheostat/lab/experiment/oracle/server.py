"""A server: one operator, or the whole job, as sizes with slots, capacities, and the backlog that the SLO allows.

The backlog of an operator is the work that has arrived for it and that it has not done. Every rounding here is in the
oracle's favour: capacities are at least, and thresholds at least, what the simulator has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from rheostat.control.limits import limits
from rheostat.engine.simulated.curves import UNLIMITED
from rheostat.engine.simulated.discipline import Flow
from rheostat.engine.simulated.draws import Floats
from rheostat.engine.simulated.plant import Plant, PlantOperator
from rheostat.lab.experiment.oracle.course import Course
from rheostat.lab.experiment.oracle.sizes import MOST_TASKS

SLACK = 1 + 1e-6
"""Factor on thresholds: traces have single precision."""


@dataclass(frozen=True)
class Thresholds:
    """Backlogs above which a second is over the SLO, by size and second; -inf where it is over in any case."""

    running: Floats
    """While the job runs."""
    stopped: Floats
    """While a change stops it, whatever its size was: seconds."""
    arrived: Floats
    """Records that may arrive from the stop on before the source alone is too late: seconds."""


class Served(Protocol):
    """The interface that a search needs."""

    @property
    def course(self) -> Course:
        """Return the trial's course."""

    @property
    def work(self) -> Floats:
        """Return the records that arrive in every second."""

    @property
    def rate(self) -> Floats:
        """Return the same, smoothed."""

    @property
    def slots(self) -> Floats:
        """Return the slots of every size."""

    @property
    def buffer_s(self) -> float:
        """Return the seconds of capacity that a buffer holds besides the source, 0 if there is none."""

    def capacity(self, start: int, end: int) -> Floats:
        """Return the capacity in these seconds: sizes x seconds."""

    def thresholds(self, start: int, end: int) -> Thresholds:
        """Return the largest backlogs within the SLO in these seconds."""


@dataclass(frozen=True)
class Server:
    """One operator: its sizes, and what each of them does in every second."""

    course: Course
    operator: PlantOperator
    tasks: tuple[int, ...]
    """Sizes; slots are tasks."""
    nominal: Floats
    """Capacity of each size before the factor of a second and the outside limit: curve, memory and skew."""
    share: Floats
    """Share of the capacity that interference leaves, by size."""
    alone: bool
    """Whether it is the only operator that is tuned, so that its own queueing delay is known."""
    upstream: tuple[tuple[str, float], ...] = ()
    """Operators before it whose buffers may hold its work, with the largest capacity of each in its own records."""

    @property
    def work(self) -> Floats:
        """Records that arrive in every second."""
        return self.course.work[self.operator.name]

    @property
    def rate(self) -> Floats:
        """The same, smoothed."""
        return self.course.rate[self.operator.name]

    @property
    def buffer_s(self) -> float:
        """Seconds of its capacity that its buffer holds."""
        return buffer_s(self.course.trial.job, self.operator.name)

    @cached_property
    def slots(self) -> Floats:
        """Slots by size."""
        return np.array(self.tasks, dtype=float)

    def capacity(self, start: int, end: int) -> Floats:
        """Return the capacity in these seconds: sizes x seconds."""
        factor = self.course.factor[self.operator.name][start:end]
        limit = np.inf if self.operator.limit_per_s is None else self.operator.limit_per_s
        capacity: Floats = np.minimum(self.nominal[:, None] * factor, limit) * self.share[:, None]
        return capacity * self.course.up[start:end]

    def thresholds(self, start: int, end: int) -> Thresholds:
        """Return the largest backlogs within the SLO in these seconds.

        A second of latency holds `rate` records at the source, or `capacity` records in a buffer, which is no longer
        than `buffer_s`. So a buffer that drains faster than records come in holds more of them per second of latency.
        """
        plant, slo = self.course.trial.job, self.course.trial.slo
        rate = self.rate[start:end]
        factor = self.course.factor[self.operator.name][start:end]
        limit = np.inf if self.operator.limit_per_s is None else self.operator.limit_per_s
        real = np.minimum(self.nominal[:, None] * factor, limit) * self.share[:, None]
        room_s = self.buffer_s * self.course.fullest[self.operator.name][start:end]
        own = real * room_s
        gained = np.maximum(own - rate * room_s, 0.0)
        least_gained = (real - rate) * plant.buffer_s
        others, others_gained = self._others(start, end, rate)
        running = np.full(real.shape, np.inf)
        stopped, arrived = np.full(len(rate), np.inf), np.full(len(rate), np.inf)
        if slo.max_latency_s is not None:
            slack_s = slo.max_latency_s - plant.latency.base_s
            full_s, least_s = self._queueing_s(start, end, real)
            # A backlog means full use, and its queueing delay; without one the use is the load's.
            over = least_s > slack_s
            single = len(plant.graph.inputs[self.operator.name]) == 1
            if self.alone and single and slack_s >= plant.buffer_s:
                # Nothing else holds records back, so its buffer is full before the source waits, also to its harm.
                gained = np.where(least_gained < 0, least_gained, gained)
            behind = rate * (slack_s - full_s) + gained + others_gained
            behind = np.where(full_s > slack_s, 0.0, np.maximum(behind, 0.0))
            running = np.where(over, -np.inf, behind)
            arrived = np.where(slack_s < 0, -np.inf, rate * slack_s)
            most = np.maximum(gained.max(axis=0), 0.0)
            stopped = np.where(slack_s < 0, -np.inf, rate * slack_s + most + others_gained)
        if slo.max_lag_s is not None:
            running = np.minimum(running, rate * slo.max_lag_s + own + others)
            arrived = np.minimum(arrived, rate * slo.max_lag_s)
            stopped = np.minimum(stopped, rate * slo.max_lag_s + own.max(axis=0) + others)
        tiny = (SLACK - 1) * (rate + 1e-3)
        return Thresholds(running * SLACK + tiny, stopped * SLACK + tiny, arrived * SLACK + tiny)

    def _queueing_s(self, start: int, end: int, real: Floats) -> tuple[Floats, Floats]:
        """Return the queueing delay at full use, and the least one at the present load; 0 for one of many."""
        plant, records = self.course.trial.job, self.operator.queueing_records
        if not records or not self.alone:
            return np.zeros_like(real), np.zeros_like(real)
        law = plant.latency
        even = np.array([self.operator.evenness(tasks) for tasks in self.tasks])
        nominal = self.nominal[:, None] / even[:, None] * self.course.factor[self.operator.name][start:end]
        per_use = records * self.slots[:, None] / nominal
        use = np.minimum(self.work[start:end] / real, 0.999) * self.course.up[start:end]
        full_s = np.minimum(per_use * 999.0**law.exponent, law.cap_s)
        least_s = np.minimum(per_use * (use / (1 - use)) ** law.exponent, law.cap_s)
        return full_s, least_s / SLACK

    def _others(self, start: int, end: int, rate: Floats) -> tuple[Floats, Floats]:
        """Return the work that buffers before it hold at most, and what they hold beyond as much time at the source."""
        held, gained = np.zeros(end - start), np.zeros(end - start)
        plant = self.course.trial.job
        for name, most_per_s in self.upstream:
            factor = self.course.factor[name]
            room_s = buffer_s(plant, name) * self.course.fullest[name][start:end]
            own = most_per_s * factor[start:end] * room_s
            held += own
            gained += np.maximum(own - rate * room_s, 0.0)
        return held, gained


def buffer_s(plant: Plant, name: str) -> float:
    """Return the seconds of its capacity that an operator's buffer holds: each further upstream may fill it by one.

    A source has none.
    """
    return plant.buffer_s + len(plant.graph.inputs[name]) - 1 if plant.graph.inputs[name] else 0.0


def nominal_per_s(plant: Plant, operator: PlantOperator, tasks: int) -> float:
    """Return the largest capacity of an operator before noise, limit and interference, over all memory profiles."""
    profiles = [None, *(plant.memory.choices_mb if plant.memory else ())]
    usable = plant.discipline.usable(tasks)
    return max(plant.nominal_per_s(operator, usable, memory) for memory in profiles) * operator.evenness(usable)


def sizes(course: Course, operator: PlantOperator) -> tuple[list[int], list[float]]:
    """Return the allowed tasks of an operator, and the best share that interference may leave it with each."""
    plant, slo = course.trial.job, course.trial.slo
    running = (course.trial.start or plant.start()).tasks
    allowed = limits(plant.spec(), slo).operators
    others = [name for name in allowed if name != operator.name]
    least = sum(min(allowed[name].min, running[name]) for name in others)
    most = sum(max(allowed[name].max or MOST_TASKS, running[name]) for name in others)
    if operator.pinned_tasks is not None:
        counts, mine = [operator.pinned_tasks], [0]
    else:
        bounds, quantum = allowed[operator.name], plant.discipline.quantum
        counts = sorted({running[operator.name], *range(bounds.min, (bounds.max or MOST_TASKS) + 1, quantum)})
        mine = counts
    shares = np.array([plant.interference.share(max(total, 1)) for total in range(least, most + max(mine) + 1)])
    return counts, [float(shares[count : count + most - least + 1].max()) for count in mine]


def make_servers(course: Course) -> list[Server]:
    """Return a server for every operator that is tuned."""
    plant = course.trial.job
    tunable = [operator for operator in plant.operators if operator.pinned_tasks is None]
    pinned = [operator for operator in plant.operators if operator.pinned_tasks is not None]
    free = all(operator.curve == UNLIMITED and operator.emits_every_s is None for operator in pinned)
    servers = []
    for operator in tunable:
        counts, shares = sizes(course, operator)
        nominal = [nominal_per_s(plant, operator, tasks) for tasks in counts]
        running = (course.trial.start or plant.start()).tasks[operator.name]
        kept, best = [], -1.0
        for k, tasks in enumerate(counts):
            # A size without more capacity than a smaller one never pays; the one at the start may be such a size.
            if nominal[k] * shares[k] > best or tasks == running:
                kept.append(k)
            best = max(best, nominal[k] * shares[k])
        servers.append(
            Server(
                course,
                operator,
                tuple(counts[k] for k in kept),
                np.array([nominal[k] for k in kept]),
                np.array([shares[k] for k in kept]),
                len(tunable) == 1 and free,
                _upstream(course, operator.name) if isinstance(plant.discipline, Flow) else (),
            )
        )
    return servers


def _upstream(course: Course, name: str) -> tuple[tuple[str, float], ...]:
    """Return the operators with a buffer before this one, with the largest capacity of each in records of this one."""
    plant, graph, gains = course.trial.job, course.trial.job.graph, {name: 1.0}
    for each in reversed(graph.order):
        drift = max((factor for _, factor in plant.operator(each).output_drift), default=1.0)
        through = sum(gains.get(edge.downstream, 0.0) * edge.selectivity * drift for edge in graph.outputs[each])
        if each != name and through:
            gains[each] = through
    found = []
    for each, gain in gains.items():
        if each != name and each not in graph.sources:
            operator = plant.operator(each)
            capacities = [
                nominal_per_s(plant, operator, tasks) * share
                for tasks, share in zip(*sizes(course, operator), strict=True)
            ]
            found.append((each, gain * max(capacities)))
    return tuple(found)
