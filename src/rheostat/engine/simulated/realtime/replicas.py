"""The replicas of a real-time plant, a second at a time."""

from __future__ import annotations

from functools import cache

import numpy as np

from rheostat.engine.simulated.draws import BATCHES
from rheostat.engine.simulated.fleet import Fleet, Floats, make_replicas
from rheostat.engine.simulated.realtime.discipline import RealTime
from rheostat.engine.simulated.realtime.engine import SimulatedRealTime
from rheostat.engine.simulated.realtime.job import Capacities, Capacity, RealTimeJob
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation


@make_replicas.register(RealTime)
class RealTimeReplicas:
    """One job per replica, changed by restarts; records count when they leave the last stage."""

    detection_s = 0.0

    def __init__(self, discipline: RealTime, fleet: Fleet) -> None:
        self.fleet, self._plant, graph = fleet, fleet.plant, fleet.plant.graph
        self._order = [graph.operators.index(name) for name in graph.order]
        self._stages = [fleet.by_index[row] for row in self._order]
        self._nominal = cache(lambda place, tasks: self._plant.nominal_per_s(self._stages[place], tasks, None))
        selectivity = [1.0, *(graph.outputs[name][0].selectivity for name in graph.order[:-1])]
        stateful = [stage.name for stage in self._stages if stage.state_bytes_per_record]
        capacities = self._capacities(np.ones(len(self._order)))
        self.jobs: list[RealTimeJob] = []
        for replica, start in enumerate(fleet.running):
            if shortage := self._plant.shortage(start):
                raise InvalidValue(shortage)
            rng = fleet.rng(replica, BATCHES, 0)
            self.jobs.append(RealTimeJob(discipline, selectivity, stateful, start, capacities, rng))
        self.lag_s, self.slots = np.zeros(fleet.size), np.zeros(fleet.size)
        self.changing = np.zeros(fleet.size)

    def engine(self, replica: int) -> SimulatedRealTime:
        """Return one replica behind the Engine port."""
        return SimulatedRealTime(self.fleet, replica, self.jobs[replica])

    def set_noise(self, factors: Floats) -> None:
        """Multiply the nominal capacities of all operators by these factors from now on."""
        for replica, job in enumerate(self.jobs):
            job.set_capacities(self._capacities(factors[self._order, replica]))

    def set_outputs(self, factors: Floats) -> None:
        """Do nothing: a real-time plant with `output_drift` is refused."""

    def reconfigure(self, replica: int, target: Allocation) -> None:
        """Restart a query after its batch with the target."""
        self.jobs[replica].request(target)

    def fail(self, replica: int) -> None:
        """Kill an executor, which fails the query."""
        self.jobs[replica].kill()

    def tick(self, arrivals: Floats) -> tuple[Floats, Floats]:
        """Simulate one second of every replica."""
        fleet, taken, processed = self.fleet, self.fleet.taken.copy(), self.fleet.processed.copy()
        for k, (job, records) in enumerate(zip(self.jobs, arrivals[0].tolist(), strict=True)):
            slot_s, up_s, changing_s = job.slot_s, job.up_s, job.changing_s
            useful_s = [work.useful_s for work in job.work]
            job.reset_lateness()
            job.arrive(records)
            job.run_until(fleet.now + 1.0)
            tasks = self._tasks(job.running)
            for place, row in enumerate(self._order):
                work = job.work[place]
                fleet.processed[row, k] = work.records
                fleet.useful[row, k] += (work.useful_s - useful_s[place]) / tasks[place]
                fleet.queue[row, k] = job.queue[place]
            self.lag_s[k], self.slots[k] = job.lag_s, job.slot_s - slot_s
            self.changing[k] = job.changing_s - changing_s
            fleet.taken[0, k], fleet.up[k], fleet.running[k] = job.done, job.up_s - up_s, job.running
            own_s = job.discipline.latency_s
            fleet.latency[0, k], fleet.event_latency[0, k] = own_s + job.late_inside_s, own_s + job.late_s
        fleet.emitted[:] = fleet.processed
        return fleet.taken - taken, fleet.processed - processed

    def _tasks(self, allocation: Allocation) -> list[int]:
        return [stage.pinned_tasks or allocation.tasks[stage.name] for stage in self._stages]

    def _capacities(self, factors: Floats) -> Capacities:
        """Return the capacities of the stages as a function of the allocation, at this noise."""

        def capacities(allocation: Allocation) -> list[Capacity]:
            share = self._plant.interference.share(allocation.slots)
            stages = []
            for place, (stage, tasks) in enumerate(zip(self._stages, self._tasks(allocation), strict=True)):
                nominal, limit = self._nominal(place, tasks) * float(factors[place]), stage.limit_per_s or np.inf
                real = min(nominal * stage.evenness(tasks), limit) * share
                stages.append(Capacity(float(real), float(min(nominal, limit)), tasks))
            return stages

        return capacities
