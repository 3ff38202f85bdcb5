"""A micro-batch run with scripted arrivals and sizes, without a controller, for fits and benches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.curves import Curve, Linear
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.job import Batch, MicroBatchJob
from rheostat.errors import InvalidValue

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ScriptedRun:
    """The course of a run, by second and by batch."""

    backlog: Floats
    """Records without a result at the end of every second."""
    worked: Floats
    """Records that tasks had worked off by the end of every second."""
    waiting: Floats
    """Records that had arrived and not been worked off at the end of every second."""
    throughput_per_s: Floats
    """Records whose batch ended in every second."""
    slots: Floats
    """Mean slots in every second."""
    batches: tuple[Batch, ...]


def simulated_run(
    arrivals: Sequence[float] | Floats,
    script: Sequence[tuple[float, int]],
    slot_per_s: float | Curve,
    discipline: MicroBatch,
    *,
    kills_s: Sequence[float] = (),
) -> ScriptedRun:
    """Simulate these arrivals per second, with a script of (moment, slots) that requests sizes.

    `slot_per_s` is the rate of one slot, or the capacity curve of all slots. The last request at 0 s or before is the
    size at the start. If the script lists when slots really appeared and vanished, set the four delays of the
    discipline (`grow_s`, `grow_each_s`, `shrink_s`, `boundary_s`) to 0. `kills_s` are the moments at which an executor
    dies.
    """
    steps = sorted(script, key=lambda step: step[0])
    start = [slots for moment, slots in steps if moment <= 0]
    if not start:
        raise InvalidValue(f"the script {list(script)} has no size for the start of the run: begin it at 0 s")
    curve = slot_per_s if not isinstance(slot_per_s, float | int) else Linear(slot_per_s)

    def capacity(slots: int) -> float:
        return curve.capacity_per_s(discipline.usable(slots))

    job = MicroBatchJob(discipline, start[-1], capacity, history=None)
    changes: list[tuple[float, int | None]] = [*steps[len(start) :], *((moment, None) for moment in kills_s)]
    changes.sort(key=lambda change: change[0])
    backlog, worked, throughput, mean_slots = np.zeros((4, len(arrivals)))
    for second, records in enumerate(arrivals):
        done, slot_s = job.done, job.slot_s
        job.arrive(float(records))
        while changes and changes[0][0] < second + 1:
            moment, slots = changes.pop(0)
            job.run_until(moment)
            if slots is None:
                job.kill()
            else:
                job.request(slots)
        job.run_until(second + 1.0)
        backlog[second], worked[second] = job.backlog, job.worked
        throughput[second], mean_slots[second] = job.done - done, job.slot_s - slot_s
    return ScriptedRun(backlog, worked, np.cumsum(arrivals) - worked, throughput, mean_slots, tuple(job.finished))
