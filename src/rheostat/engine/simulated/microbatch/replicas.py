"""The replicas of a micro-batch plant, a second at a time."""

from __future__ import annotations

from functools import cache

import numpy as np

from rheostat.engine.simulated.fleet import Fleet, Floats, make_replicas
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.engine import SimulatedMicroBatch
from rheostat.engine.simulated.microbatch.job import Capacity, MicroBatchJob
from rheostat.job.allocation import Allocation


@make_replicas.register(MicroBatch)
class MicroBatchReplicas:
    """One job per replica, resized while it runs; records count when their batch ends."""

    detection_s = 0.0

    def __init__(self, discipline: MicroBatch, fleet: Fleet) -> None:
        self.fleet, self._plant, self._usable = fleet, fleet.plant, discipline.usable
        self._nominal = cache(self._nominal_capacity)
        self.jobs = [MicroBatchJob(discipline, running.slots, self._capacity(1.0)) for running in fleet.running]
        self.lag_s, self.slots = np.zeros(fleet.size), np.zeros(fleet.size)
        self.changing = np.zeros(fleet.size)

    def engine(self, replica: int) -> SimulatedMicroBatch:
        """Return one replica behind the Engine port."""
        return SimulatedMicroBatch(self.fleet, replica, self.jobs[replica])

    def set_noise(self, factors: Floats) -> None:
        """Multiply every replica's nominal capacity by its factor from now on."""
        for job, factor in zip(self.jobs, factors[0].tolist(), strict=True):
            job.set_capacity(self._capacity(factor))

    def set_outputs(self, factors: Floats) -> None:
        """Change nothing: the only operator has no downstream."""

    def reconfigure(self, replica: int, target: Allocation) -> None:
        """Request other executors while the job runs."""
        self.jobs[replica].request(target.slots)

    def fail(self, replica: int) -> None:
        """Kill an executor."""
        self.jobs[replica].kill()

    def tick(self, arrivals: Floats) -> tuple[Floats, Floats]:
        """Simulate one second of every replica."""
        fleet, second, before = self.fleet, self.fleet.now, self.fleet.taken.copy()
        for k, (job, records) in enumerate(zip(self.jobs, arrivals[0].tolist(), strict=True)):
            slot_s, busy_s = job.slot_s, job.busy_s
            job.arrive(records)
            job.run_until(second + 1.0)
            slot_s, busy_s = job.slot_s - slot_s, job.busy_s - busy_s
            # If no batch ended, the latency is at least the age of the oldest record without a result.
            latency_s, event_s = 0.0, job.lag_s
            for batch in reversed(job.finished):
                if batch.end_s <= second:
                    break
                latency_s = max(latency_s, batch.end_s - batch.start_s)
                event_s = max(event_s, batch.end_s - batch.oldest_s)
            self.lag_s[k], self.slots[k] = job.lag_s, slot_s
            fleet.taken[0, k] = job.done
            fleet.useful[0, k] += busy_s / slot_s if slot_s else 0.0
            fleet.latency[0, k], fleet.event_latency[0, k] = latency_s, event_s
            # A job without executors has no valid allocation: the last one stays.
            if job.slots and job.slots != fleet.running[k].slots:
                fleet.running[k] = Allocation({fleet.by_index[0].name: job.slots})
        fleet.processed[:] = fleet.emitted[:] = fleet.taken
        taken = fleet.taken - before
        return taken, taken

    def _capacity(self, factor: float) -> Capacity:
        """Return the capacity as a function of the slots, at this noise."""
        limit = self._plant.operators[0].limit_per_s or np.inf

        def capacity(slots: int) -> float:
            nominal, share = self._nominal(slots)
            return float(min(nominal * factor, limit) * share)

        return capacity

    def _nominal_capacity(self, slots: int) -> tuple[float, float]:
        plant = self._plant
        nominal = plant.nominal_per_s(plant.operators[0], self._usable(slots), None)
        return nominal, plant.interference.share(slots)
