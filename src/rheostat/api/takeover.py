"""Taking a pipeline over, in both modes: wait for the lease, claim the checkpoint, start at the last size."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rheostat.control.controller import Controller
from rheostat.control.cycle import State
from rheostat.control.memory import newest
from rheostat.engine.spark.lifecycle.restart import STARTED, Pipeline
from rheostat.engine.spark.lifecycle.shape import JOB
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.pipeline import Staged
from rheostat.engine.spark.realtime import RealTimeEngine
from rheostat.errors import JournalError, describe, redact
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Observation
from rheostat.job.record import IntentStep, Run

CHECKPOINT = "checkpoint"
"""Name of the setting in a run record that holds the checkpoint of a query that the user's function starts."""

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

    `checkpoint` is the query's, where that is known before the query starts; else it is claimed as the query starts.
    """
    last = checkpoint or last_checkpoint(controller)
    take_over(pipeline, controller, last, claim=checkpoint is not None)
    size = last_allocation(controller, None) or initial
    cores, count = engine.executors.cores_per_executor, len(engine.executors.running())
    if resize:
        count = min(max(engine.least, -(-size.slots // cores) if size else 0), engine.most)
        engine.executors.request(count)
    # Where no executor has come yet the query waits for the first.
    pipeline.begin(Allocation({JOB: max(count, 1) * cores}))
    if checkpoint is None and pipeline.location is not None:
        try:
            controller.add_setting(CHECKPOINT, pipeline.location)
        except JournalError as error:
            log.warning("the next driver will not know the checkpoint before it starts: %s", error)


def begin_realtime(
    engine: RealTimeEngine, controller: Controller[Any], initial: Allocation | None, *, rename_state: bool = False
) -> None:
    """Take the job over and start its query with the tasks that it had last."""
    checkpoint = engine.checkpoint
    take_over(engine.pipeline, controller, checkpoint.location, claim=True)
    if rename_state and checkpoint.done >= 0:
        checkpoint.rename(str(engine.spark.version))
    state, keyed = checkpoint.state(), engine.staged.keyed
    pinned = {keyed: state.partitions} if state is not None and keyed is not None else {}
    spare, most = engine.slots.available() - engine.partitions, engine.slots.most - engine.partitions
    engine.begin(beginning(engine.staged, last_allocation(controller, pinned), initial, spare, pinned, most))


def beginning(
    staged: Staged,
    last: Allocation | None,
    initial: Allocation | None,
    spare: int,
    pinned: Mapping[str, int],
    most: int,
) -> Allocation:
    """Return the first allocation: what ran last within `most` slots, else the initial one, else equal shares.

    `pinned` is the keyed stage with the partitions of its state, whatever else was asked for. A stage that begins too
    small is seen only when its first batch ends, which can be late by any time: so all slots are used.
    """
    names = staged.names[1:]
    first = {} if initial is None else dict(initial.tasks)
    for wanted in ([{**first, **last.tasks}] if last is not None else []) + [first]:
        asked = {name: count for name, count in wanted.items() if name in names}
        tasks = Allocation({**dict.fromkeys(names, max(1, spare // len(names))), **asked, **pinned})
        if tasks.slots <= most:
            return tasks
        log.warning("%s cannot start with %s: there are at most %d slots", staged.name, tasks, most)
    others = [name for name in names if name not in pinned]
    left = most - sum(pinned.values())
    return Allocation({**dict.fromkeys(others, max(1, left // max(1, len(others)))), **pinned})


def take_over(pipeline: Pipeline, controller: Controller[Any], checkpoint: str | None, *, claim: bool) -> None:
    """Take the job's lease and then, with `claim`, the checkpoint; else that is claimed as the query starts.

    In that order: a driver that has stalled for less than its lease keeps both. Its claim is looked at while the lease
    is waited for, so that both waits are one.
    """
    if claim and checkpoint is not None:
        owner = pipeline.watch_owner(checkpoint)
        controller.start_when_free(lambda _: owner.look())
        pipeline.claim(checkpoint)
        return

    def look(_: object) -> None:
        # The journal names the checkpoint, and others may have written it: it is only looked at.
        try:
            if checkpoint is not None:
                pipeline.watch_owner(checkpoint)
        except Exception as error:  # noqa: BLE001 - the claim is looked at again as the query starts
            log.debug("the checkpoint %s cannot be looked at: %s", redact(str(checkpoint)), describe(error))

    controller.start_when_free(look)


def last_checkpoint(controller: Controller[Any]) -> str | None:
    """Return the checkpoint of the last driver's query, as the journal has it; None where it does not say."""
    try:
        entry = newest(controller.journal, controller.mind.spec.name, "run")
    except JournalError:
        return None  # it may be restarting
    run = None if entry is None else entry.record
    last = run.settings.get(CHECKPOINT) if isinstance(run, Run) else None
    if not isinstance(last, str):
        return None
    controller.add_setting(CHECKPOINT, last)
    return last


def last_allocation(controller: Controller[Any], pinned: Mapping[str, int] | None) -> Allocation | None:
    """Return what the pipeline was built for or ran with last; None where the journal does not say."""
    journal, job = controller.journal, controller.mind.spec.name
    entry = newest(journal, job, "intent_step")
    step = entry.record if entry is not None and isinstance(entry.record, IntentStep) else None
    entry = newest(journal, job, "observation")
    seen = entry.record.running if entry is not None and isinstance(entry.record, Observation) else None
    return resumed_allocation(controller.state, step, seen, pinned or {})


def resumed_allocation(
    state: State, step: IntentStep | None, seen: Allocation | None, pinned: Mapping[str, int]
) -> Allocation | None:
    """Return what ran last: of a change that was cut off, its target where it got as far, else what ran before.

    It got as far when its last step is the new start, or when the state has the partitions of the target (`pinned`).
    The loop makes it again otherwise.
    """
    if state.open is None:
        return seen or state.applied
    target, previous = state.open.target, state.open.previous
    if step is not None and step.intent == state.open.id and (started := STARTED.match(step.name)):
        pairs = (pair.split("=") for pair in started[1].split())
        return Allocation({name: int(tasks) for name, tasks in pairs})
    before = {} if previous is None else previous.tasks
    moved = any(target.tasks.get(name) == count != before.get(name) for name, count in pinned.items())
    return target if moved else previous
