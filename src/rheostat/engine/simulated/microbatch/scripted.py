"""A micro-batch run by script: given arrivals and given sizes, with nobody deciding. What a fit and a bench play."""

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
    """What happened, second by second, and batch by batch."""

    backlog: Floats
    """Records without a result at the end of every second."""
    throughput_per_s: Floats
    """Records whose batch ended in every second."""
    slots: Floats
    """Slots in every second, on the mean."""
    batches: tuple[Batch, ...]


def simulated_run(
    arrivals: Sequence[float] | Floats,
    script: Sequence[tuple[float, int]],
    slot_per_s: float | Curve,
    discipline: MicroBatch,
    *,
    kills_s: Sequence[float] = (),
) -> ScriptedRun:
    """Play these arrivals per second, while a script of (moment, slots) asks for other sizes.

    `slot_per_s` is what one slot does, or the curve of what so many do together. The script says what is asked for;
    what was last asked for at 0 s or before is there from the start. Where it lists when slots really came and went,
    set the four waits of the discipline (`grow_s`, `grow_each_s`, `shrink_s`, `boundary_s`) to 0. `kills_s` are the
    moments in which an executor dies.
    """
    steps = sorted(script, key=lambda step: step[0])
    start = [slots for moment, slots in steps if moment <= 0]
    if not start:
        raise InvalidValue(
            f"the script {list(script)} does not say with how many slots the run starts: begin it at 0 s"
        )
    curve = slot_per_s if not isinstance(slot_per_s, float | int) else Linear(slot_per_s)
    job = MicroBatchJob(discipline, start[-1], lambda slots: curve.capacity_per_s(discipline.usable(slots)), kept=None)
    changes: list[tuple[float, int | None]] = [*steps[len(start) :], *((moment, None) for moment in kills_s)]
    changes.sort(key=lambda change: change[0])
    backlog, throughput, held = np.zeros((3, len(arrivals)))
    for second, records in enumerate(arrivals):
        done, slot_s = job.done, job.slot_s
        job.arrive(float(records))
        while changes and changes[0][0] < second + 1:
            moment, slots = changes.pop(0)
            job.run_until(moment)
            if slots is None:
                job.kill()
            else:
                job.want(slots)
        job.run_until(second + 1.0)
        backlog[second], throughput[second], held[second] = job.backlog, job.done - done, job.slot_s - slot_s
    return ScriptedRun(backlog, throughput, held, tuple(job.finished))
