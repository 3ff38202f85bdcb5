"""How a pipeline begins in real-time mode: with its checkpoint repaired, at the tasks that the journal says."""

from __future__ import annotations

from typing import Any

from rheostat.api.start import take_over
from rheostat.control.controller import Controller
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint
from rheostat.engine.spark.pipeline import Staged
from rheostat.engine.spark.realtime import RealTimeEngine
from rheostat.job.allocation import Allocation


def begin_realtime(
    engine: RealTimeEngine, controller: Controller[Any], start: Allocation | None, *, rename_state: bool = False
) -> None:
    """Take the job over and start its query with the tasks that it had last."""
    engine.claim()
    last = take_over(engine.pipeline, controller, engine.clock)
    checkpoint = Checkpoint(engine.spark, engine.staged.checkpoint)
    if rename_state and checkpoint.done >= 0:
        checkpoint.rename(str(engine.spark.version))
    state = checkpoint.state()
    spare = engine.slots.available() - engine.partitions
    engine.begin(beginning(engine.staged, last, start, spare, None if state is None else state.partitions))


def beginning(
    staged: Staged, last: Allocation | None, start: Allocation | None, spare: int, partitions: int | None
) -> Allocation:
    """Return what to begin with: what ran last, else what was asked for, else an equal share of the slots.

    The state has as many partitions as its checkpoint says, whatever else was asked for. A stage that begins too small
    is seen only when its first batch ends, which can be late by any time: so all slots are used.
    """
    names = staged.names[1:]
    tasks = dict.fromkeys(names, max(1, spare // len(names)))
    for known in (start, last):
        tasks |= {name: count for name, count in (known.tasks.items() if known else ()) if name in tasks}
    if partitions is not None and staged.keyed:
        tasks[staged.keyed] = partitions
    return Allocation(tasks)
