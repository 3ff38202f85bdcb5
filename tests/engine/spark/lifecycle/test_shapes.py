"""Starting and restarting a pipeline, as far as it needs no Spark: the stop, the first allocation, the lease."""

from typing import Any

import pytest
from file_engine import FileEngine, Seven
from step_clock import StepClock

from rheostat.api.takeover import resumed_allocation
from rheostat.control.controller import Controller, Pace
from rheostat.control.cycle import State
from rheostat.engine.spark.lifecycle.restart import stop_after_batch
from rheostat.errors import LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.record import Intent, IntentStep
from rheostat.journal.memory import MemoryJournal


class Scripted:
    """A query whose status goes through these messages, one per read."""

    def __init__(self, *messages: str) -> None:
        self.messages, self.reads, self.isActive = messages, 0, True

    @property
    def status(self) -> dict[str, str]:
        self.reads += 1
        return {"message": self.messages[min(self.reads, len(self.messages)) - 1]}

    def stop(self) -> None:
        self.isActive = False


@pytest.mark.parametrize(
    ("messages", "reads"),
    [
        (["Waiting for next trigger"], 1),
        (["Processing new data", "Processing new data", "Getting offsets from clicks"], 3),
        # The first status may belong to a batch that has begun: wait for the end of that batch.
        (["Writing offsets to log", "Processing new data", "Waiting for data to arrive"], 3),
        (["No new data but cleaning up state", "Writing offsets to log"], 2),
        (["Processing new data"], 101),  # a batch that does not end: 100 reads of 1 ms are 0.1 s
    ],
)
def test_a_query_is_stopped_between_two_batches(messages: list[str], reads: int) -> None:
    query: Any = Scripted(*messages)
    stop_after_batch(query, StepClock(), 0.1)
    assert not query.isActive
    assert abs(query.reads - reads) <= (1 if reads > 100 else 0)


@pytest.mark.parametrize(
    ("opened", "step", "partitions", "slots"),
    [
        (False, "start with job=8", 2, 6),
        (True, "request 4 executors", 2, 2),
        (True, "stop after a batch", 2, 2),
        (True, "repartition the state of batch 12 from 2 to 8 partitions", 2, 2),
        (True, "repartition the state of batch 12 from 2 to 8 partitions", 8, 8),
        (True, "start with job=8", 2, 8),
        (True, "start with job=2 as before: no memory", 2, 2),
    ],
)
def test_a_pipeline_starts_with_the_allocation_of_the_journal(
    opened: bool, step: str, partitions: int, slots: int
) -> None:
    small, large, observed = (Allocation({"job": count}) for count in (2, 8, 6))
    state = State(open=Intent("1", 1, 0.0, large, small) if opened else None)
    resumed = resumed_allocation(state, IntentStep("1", step, 0.0), observed, {"job": partitions})
    assert resumed == Allocation({"job": slots})


def test_a_new_job_has_no_allocation_and_older_steps_do_not_count() -> None:
    assert resumed_allocation(State(), None, None, {}) is None
    state = State(open=Intent("2", 1, 0.0, Allocation({"job": 8}), Allocation({"job": 4})))
    assert resumed_allocation(state, IntentStep("1", "start with job=6", 0.0), None, {}) == Allocation({"job": 4})


@pytest.mark.parametrize("alive", [False, True])
def test_a_controller_waits_for_a_dead_lease_but_not_for_a_renewed_one(tmp_path: Any, alive: bool) -> None:
    clock = StepClock()
    journal = MemoryJournal(wall=clock.now)
    engine, pace = FileEngine(tmp_path / "state.json", clock), Pace(lease_s=30.0)
    first = Controller(engine, Seven(), journal, clock, pace=pace)
    first.start()
    if alive:
        look = clock.sleep

        def sleep(seconds: float) -> None:
            look(seconds)
            first.step()

        clock.sleep = sleep  # type: ignore[method-assign]
    second = Controller(engine, Seven(), journal, clock, pace=pace)
    if alive:
        with pytest.raises(LeaseRefused):
            second.start_when_free()
    else:
        second.start_when_free()
        second.stop()
