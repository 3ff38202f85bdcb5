"""How a pipeline begins in real-time mode: with its checkpoint repaired, at the tasks that the journal says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rheostat.engine.spark.begin import last_allocation, repair, take
from rheostat.engine.spark.checkpoint import Checkpoint
from rheostat.engine.spark.checks import check_application
from rheostat.engine.spark.executors import Executors
from rheostat.engine.spark.realtime import ExecutorSlots, FixedSlots, RealTimeEngine, Slots
from rheostat.engine.spark.settings import checked_executors
from rheostat.engine.spark.staged import Staged
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Observation
from rheostat.job.record import IntentStep
from rheostat.loop import Controller

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?")


def slots_of(spark: SparkSession, executors: tuple[int, int] | None) -> Slots:
    """Return the slots of an application: fixed in one process, else those of executors that come and go."""
    context, master = spark.sparkContext, str(spark.sparkContext.master)
    if LOCAL.fullmatch(master):
        if executors is not None:
            raise InvalidValue(f"master {master!r} has no executors: leave executors=... out, its slots are fixed")
        return FixedSlots(int(context.defaultParallelism))
    if executors is None:
        raise InvalidValue("executors is missing: the smallest and the largest number of them, as in executors=(2, 8)")
    least, most = checked_executors(executors)
    check_application(master, dict(context.getConf().getAll()))
    return ExecutorSlots(Executors.of(context), least, most)


def begin_realtime(
    engine: RealTimeEngine, controller: Controller[Any], start: Allocation | None, *, rename_state: bool = False
) -> None:
    """Take the job's lease, repair what a kill left behind, and start the query.

    In that order: as long as another controller has the lease, its query may use the same checkpoint.
    """
    take(controller, engine.clock)
    journal, job = controller.journal, engine.name
    entry = journal.latest(job, "intent_step")
    step = entry.record if entry is not None and isinstance(entry.record, IntentStep) else None
    moved = repair(engine.pipeline, step)
    checkpoint = Checkpoint(engine.spark, engine.staged.checkpoint)
    if rename_state and checkpoint.done >= 0:
        checkpoint.rename(str(engine.spark.version))
    seen = journal.latest(job, "observation")
    ran = seen.record.running if seen is not None and isinstance(seen.record, Observation) else None
    state = checkpoint.state()
    last = last_allocation(controller.state, step, moved, ran)
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
