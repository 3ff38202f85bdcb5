"""The micro-batches of all replicas of a plant, a second at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.microbatch.job import Ability, MicroBatchJob
from rheostat.engine.simulated.plant import Plant
from rheostat.errors import InvalidValue

Floats = NDArray[np.float64]


class Batches:
    """One job per replica; arrays are by replica, as the last second left them."""

    def __init__(self, plant: Plant, slots: Sequence[int]) -> None:
        if plant.discipline is None:
            raise InvalidValue(f"plant {plant.name!r} has no micro-batch discipline")
        self._plant, self._usable = plant, plant.discipline.usable
        self._nominal = cache(self._look_up)
        self.jobs = [MicroBatchJob(plant.discipline, count, self._ability(1.0)) for count in slots]
        count = len(self.jobs)
        self.done, self.lag_s, self.slots = np.zeros(count), np.zeros(count), np.zeros(count)
        """Records with results, in all; age of the oldest without; slots, as the mean over the second."""
        self.useful, self.latency_s, self.event_latency_s = np.zeros(count), np.zeros(count), np.zeros(count)
        """Share of the slots' time in which tasks worked; the longest batch, and the latest result, of the second."""

    def renew(self, factors: Floats) -> None:
        """Multiply every replica's ability by a factor of its own, from now on."""
        for job, factor in zip(self.jobs, factors.tolist(), strict=True):
            job.renew(self._ability(factor))

    def tick(self, second: int, arrivals: Floats) -> None:
        """Play one second of every replica."""
        for k, (job, records) in enumerate(zip(self.jobs, arrivals.tolist(), strict=True)):
            slot_s, busy_s = job.slot_s, job.busy_s
            job.arrive(records)
            job.run_until(second + 1.0)
            slot_s, busy_s = job.slot_s - slot_s, job.busy_s - busy_s
            # Where no batch ended, results are at least as late as the oldest record without one is old.
            latency_s, event_s = 0.0, job.lag_s
            for batch in reversed(job.finished):
                if batch.end_s <= second:
                    break
                latency_s = max(latency_s, batch.end_s - batch.start_s)
                event_s = max(event_s, batch.end_s - batch.oldest_s)
            self.done[k], self.lag_s[k], self.slots[k] = job.done, job.lag_s, slot_s
            self.useful[k] = busy_s / slot_s if slot_s else 0.0
            self.latency_s[k], self.event_latency_s[k] = latency_s, event_s

    def _ability(self, factor: float) -> Ability:
        """Return what slots can do, by their number, at this noise."""
        limit = self._plant.operators[0].limit_per_s or np.inf

        def ability(slots: int) -> float:
            nominal, share = self._nominal(slots)
            return float(min(nominal * factor, limit) * share)

        return ability

    def _look_up(self, slots: int) -> tuple[float, float]:
        plant = self._plant
        nominal = plant.nominal_per_s(plant.operators[0], self._usable(slots), None)
        return nominal, plant.interference.share(slots)
