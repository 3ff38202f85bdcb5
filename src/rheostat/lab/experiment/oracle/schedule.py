"""The oracle as a policy: it plays the schedule of the search, and shows how near a real course comes to the bound.

With one operator and one source the schedule is the search's own. Else the search runs over the job as a whole: its
sizes are the smallest allocations for each throughput, its capacity is that of the bottleneck, less a margin, because
several sources, buffers and batches add latency that it does not know. The simulator shows which margin is cheapest.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rheostat.control.limits import limits
from rheostat.engine.simulated import Fleet
from rheostat.engine.simulated.discipline import Flow
from rheostat.engine.simulated.draws import Floats
from rheostat.engine.simulated.plant import Plant
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.lab.experiment.oracle.cost import peak_size, read_cost
from rheostat.lab.experiment.oracle.course import Course, read_course
from rheostat.lab.experiment.oracle.search import Search
from rheostat.lab.experiment.oracle.server import Thresholds, make_servers
from rheostat.lab.experiment.oracle.sizes import MOST_TASKS
from rheostat.lab.experiment.trial import Trial
from rheostat.ports import Policy, Situation

MOST_SIZES = 120
"""Largest number of allocations in a search over a whole job."""
MARGINS, LIVE_MARGINS = (1.0, 0.95, 0.85), (0.95, 0.85, 0.7, 0.5)
"""Shares of the capacity that schedules for a whole job count on."""
LIVE_SLACK = 0.3
"""Share of the objectives that a schedule of live changes uses."""
Schedule = tuple[tuple[float, Allocation], ...]
"""(second, allocation) of the start and of every change."""


@dataclass(frozen=True)
class Oracle(Policy[None]):
    """Plays the cheapest schedule that a search over the known load, curves, noise and downtimes finds."""

    name: ClassVar[str] = "oracle"
    moments_s: tuple[float, ...] = ()
    allocations: tuple[Allocation, ...] = ()

    def options(self) -> Mapping[str, Any]:
        """Return no options: the schedule follows from the run's settings."""
        return {}

    def decide(self, situation: Situation[None]) -> Decision:
        """Request the allocation of this moment."""
        running, place = situation.running, bisect_right(self.moments_s, situation.window.at_s) - 1
        target = self.allocations[place] if place >= 0 else running
        if target == running:
            return Decision.hold(Reason.STEADY, f"the schedule holds {running}")
        sentence = f"{changes(running, target)}: the schedule for the known load"
        return Decision(target, direction(running, target), sentence)


def make_oracle(trial: Trial[Plant]) -> Oracle:
    """Return the oracle of this trial's plant, load and seed."""
    course, peak = read_course(trial), peak_size(trial)
    start = trial.start or trial.job.start()
    servers = make_servers(course)
    schedules: list[Schedule] = []
    stay: Schedule = ((0.0, start),)
    if len(servers) == 1 and isinstance(trial.job.discipline, Flow):
        [server] = servers
        name = server.operator.name
        found = Search(server, float(peak.slots), traced=True).run(server.tasks.index(start.tasks[name]))
        schedules.append(tuple((float(at), start.with_tasks({name: server.tasks[size]})) for at, size in found.sizes))
    if not schedules or len(trial.job.graph.sources) > 1:
        allocations = tuple(_allocations(course, start))
        for margin in MARGINS if isinstance(trial.job.discipline, Flow) else LIVE_MARGINS:
            found = Search(Whole(course, allocations, margin), float(peak.slots), traced=True).run(0)
            schedules.append(tuple((float(at), allocations[size]) for at, size in found.sizes))
    best = schedules[0] if len(schedules) == 1 else _cheapest(trial, [stay, *schedules], float(peak.slots))
    return Oracle(tuple(at for at, _ in best), tuple(allocation for _, allocation in best))


def _cheapest(trial: Trial[Plant], schedules: Sequence[Schedule], peak_slots: float) -> Schedule:
    """Play schedules in the simulator and return the cheapest."""
    fleet = Fleet(
        trial.job,
        [trial.seeded_load] * len(schedules),
        [trial.seed] * len(schedules),
        start=[schedule[0][1] for schedule in schedules],
        failures_s=trial.failures_s,
        trace=True,
    )
    for moment in sorted({at for schedule in schedules for at, _ in schedule if at}):
        fleet.advance(int(moment) - fleet.now)
        for replica, schedule in enumerate(schedules):
            if moment in dict(schedule):
                fleet.reconfigure(replica, dict(schedule)[moment])
    fleet.advance(math.ceil(trial.duration_s) - fleet.now)
    trace = fleet.trace()
    costs = [
        read_cost({name: rows[:, k] for name, rows in trace.items()}, trial.slo, peak_slots).total
        for k in range(len(schedules))
    ]
    return schedules[int(np.argmin(costs))]


@dataclass(frozen=True)
class Whole:
    """The whole job as one server with these allocations; the first one is the start."""

    course: Course
    allocations: tuple[Allocation, ...]
    margin: float
    """Share of the capacity that counts."""
    buffer_s: ClassVar[float] = 0.0

    @cached_property
    def work(self) -> Floats:
        """Records that arrive at all sources in every second."""
        total: Floats = np.sum([self.course.work[name] for name in self.course.trial.job.graph.sources], axis=0)
        return total

    @cached_property
    def rate(self) -> Floats:
        """The same, smoothed."""
        total: Floats = np.sum([self.course.rate[name] for name in self.course.trial.job.graph.sources], axis=0)
        return total

    @cached_property
    def slots(self) -> Floats:
        """Slots by allocation."""
        return np.array([allocation.slots for allocation in self.allocations], dtype=float)

    @cached_property
    def _plain(self) -> dict[str, Floats]:
        """Operator -> capacity without noise by allocation, as the job sustains it."""
        plant, share = self.course.trial.job, self.margin
        return {
            name: np.array([plant.capacity_per_s(name, each.tasks[name], each) * share for each in self.allocations])
            for name in self.allocations[0].tasks
        }

    def _served(self, start: int, end: int) -> dict[str, Floats]:
        """Return the capacity over the work of every operator: allocations x seconds."""
        course, served = self.course, {}
        for name, plain in self._plain.items():
            work = np.maximum(course.work[name][start:end], 1e-9)
            served[name] = plain[:, None] * (course.factor[name][start:end] / work)
        return served

    def capacity(self, start: int, end: int) -> Floats:
        """Return the throughput of the bottleneck."""
        served = np.minimum.reduce(list(self._served(start, end).values()))
        capacity: Floats = served * (self.work[start:end] * self.course.up[start:end])
        return capacity

    def thresholds(self, start: int, end: int) -> Thresholds:
        """Return the backlogs that the SLO allows beyond the latency of the allocation at this load."""
        trial, rate = self.course.trial, self.rate[start:end]
        plant, slo = trial.job, trial.slo
        flow = isinstance(plant.discipline, Flow)
        running = np.full((len(self.allocations), end - start), np.inf)
        stopped = np.full(end - start, np.inf)
        if slo.max_latency_s is not None:
            slack_s = (slo.max_latency_s - plant.latency.base_s) if flow else LIVE_SLACK * slo.max_latency_s
            usual_s = self._latency_s(start, end) if flow else np.zeros_like(running)
            running = np.where(usual_s > slack_s, -np.inf, rate * (slack_s - usual_s))
            stopped = rate * slack_s
        if slo.max_lag_s is not None:
            share = 1.0 if flow else LIVE_SLACK
            running = np.minimum(running, rate * slo.max_lag_s * share)
            stopped = np.minimum(stopped, rate * slo.max_lag_s * share)
        return Thresholds(running, stopped, stopped)

    def _latency_s(self, start: int, end: int) -> Floats:
        """Return the latency without a backlog, beyond the base: queueing and network buffers."""
        plant, course = self.course.trial.job, self.course
        law, total = plant.latency, np.zeros((len(self.allocations), end - start))
        for name, served in self._served(start, end).items():
            operator = plant.operator(name)
            if operator.queueing_records:
                use = np.minimum(1 / served, 0.999)
                tasks = np.array([each.tasks[name] for each in self.allocations])
                bare = np.array(
                    [plant.nominal_per_s(operator, each.tasks[name], each.memory_mb) for each in self.allocations]
                )
                per_use = (operator.queueing_records * tasks / bare)[:, None] / course.factor[name][start:end]
                total += np.minimum(per_use * (use / (1 - use)) ** law.exponent, law.cap_s)
        if law.buffer_records:
            for edge in plant.graph.edges:
                ends = [self._tasks(edge.upstream), self._tasks(edge.downstream)]
                records = np.maximum(course.work[edge.upstream][start:end] * edge.selectivity, 1e-9)
                filling = law.buffer_records * (ends[0] * ends[1])[:, None] / records
                total += np.minimum(filling, law.timeout_s) / 2
        return total

    def _tasks(self, name: str) -> Floats:
        pinned = self.course.trial.job.operator(name).pinned_tasks
        return np.array([pinned or each.tasks[name] for each in self.allocations], dtype=float)


def _allocations(course: Course, start: Allocation) -> list[Allocation]:
    """Return the start, and the smallest allocation for every throughput of the job."""
    trial = course.trial
    plant, allowed = trial.job, limits(trial.job.spec(), trial.slo).operators
    whole = np.sum([course.work[name] for name in plant.graph.sources], axis=0)
    curves = {}
    for name, bounds in allowed.items():
        counts = range(bounds.min, (bounds.max or MOST_TASKS) + 1, plant.discipline.quantum)
        curves[name] = (list(counts), np.array([plant.capacity_per_s(name, count, start) for count in counts]))
    found: dict[tuple[int, ...], Allocation] = {}
    profiles = [
        {name: max(float(measure(course.work[name][whole > 0] / whole[whole > 0])), 1e-12) for name in allowed}
        for measure in (np.mean, np.max)
    ]
    for profile in profiles:
        levels = np.unique(np.concatenate([np.maximum.accumulate(c) / profile[n] for n, (_, c) in curves.items()]))
        top = min(float(c.max()) / profile[n] for n, (_, c) in curves.items())
        levels = levels[levels <= top * (1 + 1e-9)]
        for level in levels[np.unique(np.linspace(0, len(levels) - 1, MOST_SIZES // 2).astype(int))]:
            tasks = {}
            for name, (sizes, capacity) in curves.items():
                enough = np.flatnonzero(capacity >= level * profile[name] * (1 - 1e-9))
                tasks[name] = sizes[int(enough[0]) if len(enough) else int(capacity.argmax())]
            found.setdefault(tuple(tasks.values()), start.with_tasks(tasks))
    return [start, *(each for each in found.values() if each != start)]
