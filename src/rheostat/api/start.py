"""How a pipeline begins: with its checkpoint repaired, at the size at which the journal says that it stopped."""

from __future__ import annotations

from typing import Any

import structlog

from rheostat.control.controller import Controller
from rheostat.control.cycle import State
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint, Repartition
from rheostat.engine.spark.lifecycle.restart import JOB, STARTED, Pipeline
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.errors import LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Observation
from rheostat.job.record import IntentStep
from rheostat.ports import Clock

log = structlog.get_logger("rheostat.spark")


def begin(pipeline: Pipeline, engine: MicroBatchEngine, controller: Controller[Any], *, resize: bool) -> None:
    """Take the job over and start its query with the executors that it had last."""
    last = take_over(pipeline, controller, engine.clock)
    cores, count = engine.executors.cores_per_executor, len(engine.executors.running())
    if resize:
        count = min(max(engine.least, (last.slots if last else 0) // cores), engine.most)
        engine.executors.want(count)
    # Where no executor has come yet the query waits for the first.
    pipeline.begin(Allocation({JOB: max(count, 1) * cores}))


def take_over(pipeline: Pipeline, controller: Controller[Any], clock: Clock) -> Allocation | None:
    """Take the job's lease, repair what a kill left behind, and return what ran last, where the journal says it.

    In that order: as long as another controller has the lease, its query may use the same checkpoint.
    """
    take(controller, clock)
    journal, job = controller.journal, controller.mind.spec.name
    entry = journal.latest(job, "intent_step")
    step = entry.record if entry is not None and isinstance(entry.record, IntentStep) else None
    moved = repair(pipeline, step)
    entry = journal.latest(job, "observation")
    seen = entry.record.running if entry is not None and isinstance(entry.record, Observation) else None
    return last_allocation(controller.state, step, moved, seen)


def take(controller: Controller[Any], clock: Clock) -> None:
    """Start the controller; the lease of one that was killed is waited for, since the job waits for this one."""
    deadline_s, told = clock.now() + controller.pace.lease_s + 1.0, False
    while True:
        try:
            return controller.start()
        except LeaseRefused as refusal:
            if clock.now() > deadline_s:
                raise  # a dead controller's lease would have expired: this one lives
            if not told:
                log.warning("waiting for the lease", error=str(refusal))
                told = True
            clock.sleep_until(clock.now() + 1.0)


def repair(pipeline: Pipeline, step: IntentStep | None) -> bool:
    """Finish or undo moving the state, where that is the last step that was journaled; return whether it is moved."""
    change = Repartition.read(step.name) if step is not None else None
    if change is None:
        return False
    checkpoint = Checkpoint(pipeline.spark, change.checkpoint)
    if done := checkpoint.repair(change):
        log.warning("checkpoint repaired", checkpoint=change.checkpoint, done=done)
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
