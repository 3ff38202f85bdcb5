"""Taking a pipeline over, in both modes: wait for the lease, repair the checkpoint, start at the last size."""

from __future__ import annotations

import logging
from typing import Any

from rheostat.control.controller import Controller
from rheostat.control.cycle import State
from rheostat.control.memory import newest
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint, Repartition
from rheostat.engine.spark.lifecycle.restart import JOB, STARTED, Pipeline
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.pipeline import Staged
from rheostat.engine.spark.realtime import RealTimeEngine
from rheostat.errors import InvalidValue, redact
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Observation
from rheostat.job.record import IntentStep

log = logging.getLogger(__name__)


def begin(
    pipeline: Pipeline,
    engine: MicroBatchEngine,
    controller: Controller[Any],
    initial: Allocation | None,
    *,
    resize: bool,
    checkpoint: str | None = None,
) -> None:
    """Take the job over and start its query with the executors that it had last, else with the initial ones.

    `checkpoint` is the query's, where that is known before the query starts.
    """
    size = take_over(pipeline, controller, checkpoint) or initial
    cores, count = engine.executors.cores_per_executor, len(engine.executors.running())
    if resize:
        count = min(max(engine.least, -(-size.slots // cores) if size else 0), engine.most)
        engine.executors.request(count)
    # Where no executor has come yet the query waits for the first.
    pipeline.begin(Allocation({JOB: max(count, 1) * cores}))


def begin_realtime(
    engine: RealTimeEngine, controller: Controller[Any], initial: Allocation | None, *, rename_state: bool = False
) -> None:
    """Take the job over and start its query with the tasks that it had last."""
    engine.claim()
    last = take_over(engine.pipeline, controller, engine.staged.checkpoint)
    checkpoint = Checkpoint(engine.spark, engine.staged.checkpoint)
    if rename_state and checkpoint.done >= 0:
        checkpoint.rename(str(engine.spark.version))
    state = checkpoint.state()
    spare, most = engine.slots.available() - engine.partitions, engine.slots.most - engine.partitions
    engine.begin(beginning(engine.staged, last, initial, spare, None if state is None else state.partitions, most))


def beginning(
    staged: Staged, last: Allocation | None, initial: Allocation | None, spare: int, partitions: int | None, most: int
) -> Allocation:
    """Return the first allocation: what ran last within `most` slots, else the initial one, else equal shares.

    The state has as many partitions as its checkpoint says, whatever else was asked for. A stage that begins too small
    is seen only when its first batch ends, which can be late by any time: so all slots are used.
    """
    if last is not None and last.slots > most:
        log.warning("%s ran with %s, and there are at most %d slots now: not started so", staged.name, last, most)
        last = None
    names = staged.names[1:]
    tasks = dict.fromkeys(names, max(1, spare // len(names)))
    for known in (initial, last):
        tasks |= {name: count for name, count in (known.tasks.items() if known else ()) if name in tasks}
    if partitions is not None and staged.keyed:
        tasks[staged.keyed] = partitions
    return Allocation(tasks)


def take_over(pipeline: Pipeline, controller: Controller[Any], checkpoint: str | None) -> Allocation | None:
    """Take the job's lease, repair what a kill left behind, and return what ran last, where the journal says it.

    In that order: as long as another controller has the lease, its query may use the same checkpoint.
    """
    controller.start_when_free()
    journal, job = controller.journal, controller.mind.spec.name
    entry = newest(journal, job, "intent_step")
    step = entry.record if entry is not None and isinstance(entry.record, IntentStep) else None
    moved = repair(pipeline, step, checkpoint)
    entry = newest(journal, job, "observation")
    seen = entry.record.running if entry is not None and isinstance(entry.record, Observation) else None
    return last_allocation(controller.state, step, moved, seen)


def repair(pipeline: Pipeline, step: IntentStep | None, own: str | None) -> bool:
    """Finish or undo moving the state, where that is the last step that was journaled; return whether it is moved.

    A journal may be written by others: where the pipeline's `own` checkpoint is known, no other one is touched.
    """
    try:
        change = Repartition.read(step.name) if step is not None else None
    except InvalidValue as error:
        log.warning("a journaled repartition is left alone: %s", error)
        return False
    if change is None:
        return False
    checkpoint = Checkpoint(pipeline.spark, change.checkpoint)
    if own is not None and checkpoint.resolved != Checkpoint(pipeline.spark, own).resolved:
        log.warning(
            "the journal names the checkpoint %s, which is not that of this pipeline: it is left alone",
            redact(change.checkpoint),
        )
        return False
    pipeline.confirm_claim()
    if done := checkpoint.repair(change):
        log.warning("checkpoint %s repaired: %s", redact(change.checkpoint), done)
    state = checkpoint.state()
    return state is not None and state.partitions == change.new


def last_allocation(state: State, step: IntentStep | None, moved: bool, seen: Allocation | None) -> Allocation | None:
    """Return what the pipeline was built for or ran with last; None where the journal does not say.

    A change that was cut off is made again by the loop, from where it began, unless it got as far as the new query.
    """
    if state.open is None:
        return seen or state.applied
    if step is not None and step.intent == state.open.id:
        started = STARTED.match(step.name)
        if started:
            pairs = (pair.split("=") for pair in started[1].split())
            return Allocation({name: int(tasks) for name, tasks in pairs})
        if moved:
            return state.open.target
    return state.open.previous
