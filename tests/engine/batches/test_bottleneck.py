"""Causes that more executors do not cure are named, and nothing else is. No Spark needed."""

from dataclasses import replace

import pytest

from rheostat.engine.batches.bottleneck import bottlenecks, describe_unused_slots, gc_share
from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.batches.stage import Stage
from rheostat.engine.spark.executors.pool import Loss, describe_losses
from rheostat.engine.spark.executors.scheduler import Executor
from rheostat.job.observation import BatchTime


def batch(number: int, start_s: float, seconds: float, start: int, end: int, latest: int | None = None) -> Batch:
    source = SourceProgress("rows", start, end, end if latest is None else latest, end - start, {})
    return Batch("q", "run", number, start_s, seconds, seconds, end - start, (source,), {}, 0, 0)


def stage(number: int, busy_s: float, tasks: int = 4, wall_s: float = 1.9) -> Stage:
    return Stage(number, "run", number, tasks, wall_s, busy_s, busy_s / 2, 0.0, 0, 0, run_s=busy_s)


SLOW = replace(batch(0, 0.0, 10.0, 0, 1000), work_s=9.5)


@pytest.mark.parametrize(
    ("batches", "stages", "message"),
    [
        ([SLOW], [stage(0, 36.0, wall_s=9.4)], None),
        ([replace(SLOW, work_s=2.0)], [stage(0, 7.0, wall_s=1.8)], "driver-bound"),
        ([SLOW], [stage(0, 8.0, wall_s=2.1)], "the sink or foreachBatch"),
        ([SLOW], [stage(0, 12.0, wall_s=9.3)], "skew"),
        ([SLOW], [replace(stage(0, 12.0, wall_s=9.3), longest_task_s=9.0)], "skew"),
        # No task is long: they have waited for their preferred executor.
        ([SLOW], [replace(stage(0, 12.0, wall_s=9.3), longest_task_s=3.0)], None),
        ([SLOW], [stage(0, 9.3, tasks=1, wall_s=9.3)], None),
        ([batch(k, 10.0 * k, 0.5, k, k + 1, 99) for k in range(3)], [stage(0, 0.1)], "maxOffsetsPerTrigger"),
        (
            [batch(k, 10.0 * k, 9.0, k, k + 1, 99) for k in range(3)],
            [stage(k, 35.0, wall_s=8.9) for k in range(3)],
            None,
        ),
        ([replace(SLOW, seconds=0.5, work_s=0.1)], [stage(0, 0.1, wall_s=0.1)], None),
        # Launching tasks takes most of a short stage, and is not in their run time.
        ([replace(SLOW, seconds=1.4, work_s=1.2)], [stage(0, 0.4, wall_s=0.9)], None),
        # The first batch runs cold: planning takes seconds, once.
        (
            [replace(SLOW, work_s=2.0), *(replace(SLOW, number=k, seconds=1.2, work_s=1.0) for k in (1, 2))],
            [stage(0, 7.0, wall_s=1.8), stage(1, 3.0, wall_s=0.9), stage(2, 3.0, wall_s=0.9)],
            None,
        ),
        # The stage waited for occupied slots: more executors cure that.
        ([SLOW], [replace(stage(0, 8.0, wall_s=2.1), queued_s=7.0)], None),
        ([SLOW], [replace(stage(0, 36.0, wall_s=9.4), gc_s=15.0)], "42% of the run time is garbage collection"),
        ([SLOW], [replace(stage(0, 36.0, wall_s=9.4), gc_s=5.0)], None),
        ([replace(SLOW, seconds=0.9)], [replace(stage(0, 0.5, wall_s=0.5), gc_s=0.4)], None),
        ([SLOW], [replace(stage(0, 36.0, wall_s=9.4), failed_tasks=2)], "2 tasks failed and were retried (of 4)"),
        ([SLOW], [replace(stage(0, 36.0, wall_s=9.4), failed_tasks=1)], None),
        # Batches without stages have no bottleneck, and their slots do not count as idle.
        ([SLOW], [], None),
        ([batch(k, 10.0 * k, 9.0, k, k + 1, 99) for k in range(3)], [], None),
        ([], [], None),
    ],
)
def test_bottlenecks_are_named(batches: list[Batch], stages: list[Stage], message: str | None) -> None:
    causes = bottlenecks(batches, stages, slots=4)
    if message is None:
        assert causes == ()
    else:
        assert len(causes) == 1
        assert message in causes[0]


def test_without_stages_a_large_fixed_cost_is_named() -> None:
    line = BatchTime(6.0, 1e-3, 0.05, 20, 10.0, 900.0)
    (cause,) = bottlenecks([SLOW], [], 4, line)
    assert cause == "batches are driver-bound: 6.0 of 10.0 s do not depend on their records"
    assert bottlenecks([SLOW], [], 4, replace(line, fixed_s=4.0)) == ()
    assert bottlenecks([replace(SLOW, seconds=0.9)], [], 4, replace(line, fixed_s=0.8)) == ()
    assert bottlenecks([SLOW], [stage(0, 36.0, wall_s=9.4)], 4, line) == ()


def test_the_share_of_garbage_collection() -> None:
    assert gc_share([]) is None
    assert gc_share([replace(stage(0, 3.0), gc_s=1.0), stage(1, 1.0)]) == 0.25


def test_slots_without_tasks_are_named() -> None:
    assert describe_unused_slots(3, 8).startswith("only 3 of 8 slots can be used")


def test_lost_executors_are_named_with_their_reason() -> None:
    def loss(name: str, reason: str) -> Loss:
        return Loss(Executor(name, "host", 1, 0.0), 1.0, reason)

    assert describe_losses([loss("3", "Command exited with code 137"), loss("4", "")]) == (
        "lost executor 3: Command exited with code 137; lost executor 4: Spark gives no reason"
    )
    message = describe_losses([loss(str(k), "Command exited with code 52") for k in range(3)])
    assert message == "lost executors 0, 1, 2: Command exited with code 52: give executors more memory"
