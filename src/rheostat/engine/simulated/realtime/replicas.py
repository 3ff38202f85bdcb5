"""The real-time jobs of all replicas of a plant, a second at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.plant import Plant
from rheostat.engine.simulated.realtime.job import Abilities, Ability, RealTimeJob
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation

Floats = NDArray[np.float64]


class Chains:
    """One job per replica; arrays are by replica, or operators x replicas, as the last second left them."""

    def __init__(self, plant: Plant, starts: Sequence[Allocation], rngs: Sequence[np.random.Generator]) -> None:
        if plant.realtime is None:
            raise InvalidValue(f"plant {plant.name!r} has no real-time discipline")
        graph, self._plant = plant.graph, plant
        self._order = [graph.operators.index(name) for name in graph.order]
        self._stages = [plant.operator(name) for name in graph.order]
        self._nominal = cache(lambda place, tasks: plant.nominal_per_s(self._stages[place], tasks, None))
        selectivity = [1.0, *(graph.outputs[name][0].selectivity for name in graph.order[:-1])]
        stateful = [stage.name for stage in self._stages if stage.state_bytes_per_record]
        ones = np.ones(len(self._order))
        self.jobs: list[RealTimeJob] = []
        for start, rng in zip(starts, rngs, strict=True):
            if why := plant.shortage(start):
                raise InvalidValue(why)
            self.jobs.append(RealTimeJob(plant.realtime, selectivity, stateful, start, self._abilities(ones), rng))
        shape = (len(self._order), len(self.jobs))
        self.processed, self.useful, self.queue = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        """Records and useful seconds of one task since the beginning; what waits in front of each."""
        self.done, self.lag_s, self.slots, self.up = (np.zeros(shape[1]) for _ in range(4))
        """Records with results, in all; age of the oldest without; slots and being up, as means over the second."""
        self.latency_s, self.event_latency_s = np.zeros(shape[1]), np.zeros(shape[1])
        """How late results were at most in the second: since they could be read, and since they came."""

    def renew(self, factors: Floats) -> None:
        """Multiply the abilities of every replica's operators by factors of their own, from now on."""
        for replica, job in enumerate(self.jobs):
            job.renew(self._abilities(factors[self._order, replica]))

    def tick(self, second: int, arrivals: Floats) -> None:
        """Play one second of every replica."""
        for k, (job, records) in enumerate(zip(self.jobs, arrivals.tolist(), strict=True)):
            slot_s, up_s = job.slot_s, job.up_s
            useful_s = [work.useful_s for work in job.work]
            job.calm()
            job.arrive(records)
            job.run_until(second + 1.0)
            tasks = self._tasks(job.running)
            for place, row in enumerate(self._order):
                work = job.work[place]
                self.processed[row, k] = work.records
                self.useful[row, k] += (work.useful_s - useful_s[place]) / tasks[place]
                self.queue[row, k] = job.queue[place]
            self.done[k], self.lag_s[k] = job.done, job.lag_s
            self.slots[k], self.up[k] = job.slot_s - slot_s, job.up_s - up_s
            own_s = job.discipline.latency_s
            self.latency_s[k], self.event_latency_s[k] = own_s + job.late_inside_s, own_s + job.late_s

    def _tasks(self, allocation: Allocation) -> list[int]:
        return [stage.pinned_tasks or allocation.tasks[stage.name] for stage in self._stages]

    def _abilities(self, factors: Floats) -> Abilities:
        """Return what the stages of an allocation can do, at this noise."""

        def abilities(allocation: Allocation) -> list[Ability]:
            share = self._plant.interference.share(allocation.slots)
            found = []
            for place, (stage, tasks) in enumerate(zip(self._stages, self._tasks(allocation), strict=True)):
                nominal, limit = self._nominal(place, tasks) * float(factors[place]), stage.limit_per_s or np.inf
                real = min(nominal * stage.evenness(tasks), limit) * share
                found.append(Ability(float(real), float(min(nominal, limit)), tasks))
            return found

        return abilities
