"""Starting and restarting a pipeline, as far as it needs no Spark: the stop, the first allocation, the lease."""

from typing import Any

import pytest
from file_engine import FileEngine, Seven, StepClock

from rheostat.api.takeover import last_allocation
from rheostat.control.controller import Controller, Pace
from rheostat.control.cycle import State
from rheostat.engine.spark.lifecycle.checkpoint import Repartition
from rheostat.engine.spark.lifecycle.restart import stop_after_batch
from rheostat.errors import LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.record import Intent, IntentStep
from rheostat.journal.memory import MemoryJournal

REPARTITION = str(Repartition("file:/checkpoint", 12, 4, 16))


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
    ("opened", "step", "moved", "slots"),
    [
        (False, "start with job=8", False, 6),
        (True, "request 4 executors", False, 2),
        (True, "stop after a batch", False, 2),
        (True, REPARTITION, False, 2),
        (True, REPARTITION, True, 8),
        (True, "start with job=8", False, 8),
        (True, "start with job=2 as before: no memory", False, 2),
    ],
)
def test_a_pipeline_starts_with_the_allocation_of_the_journal(opened: bool, step: str, moved: bool, slots: int) -> None:
    small, large, observed = (Allocation({"job": count}) for count in (2, 8, 6))
    state = State(open=Intent("1", 1, 0.0, large, small) if opened else None)
    assert last_allocation(state, IntentStep("1", step, 0.0), moved, observed) == Allocation({"job": slots})


def test_a_new_job_has_no_allocation_and_older_steps_do_not_count() -> None:
    assert last_allocation(State(), None, False, None) is None
    state = State(open=Intent("2", 1, 0.0, Allocation({"job": 8}), Allocation({"job": 4})))
    assert last_allocation(state, IntentStep("1", "start with job=6", 0.0), False, None) == Allocation({"job": 4})


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
