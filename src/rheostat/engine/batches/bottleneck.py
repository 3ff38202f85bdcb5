"""Names causes of slow batches that more executors do not cure. Pure.

The window lists them. While one of them is the reason why the job is behind, Rheostat does not grow it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.stage import Stage
from rheostat.job.observation import BatchTime

BEHIND_S = 1.0
"""Seconds below which a batch is not slow, whatever its parts."""
MOST = 0.5
"""Share of a batch's time from which a cause dominates it."""
IDLE = 0.5
"""Busy share of the slots below which more slots would not help."""
UNEVEN = 2.5
"""Ratio of a stage's duration to that of the same work spread evenly, from which on the stage is skewed."""
COLLECTING, COLLECTING_S = 0.3, 1.0
"""Share of the run time and seconds of garbage collection from which it counts: a start alone causes less."""
FAILING = 0.1
"""Share of failed tasks from which failures count: a single lost task is normal."""


def bottlenecks(
    batches: Sequence[Batch], stages: Sequence[Stage], slots: int, fitted: BatchTime | None = None
) -> tuple[str, ...]:
    """Return why these batches are slow, other than for lack of slots. `stages` are those of the batches.

    Batches without stages are judged by the fitted line, if there is one.
    """
    if not batches or slots < 1:
        return ()
    with_stages = {(stage.run_id, stage.batch) for stage in stages}
    whole = [batch for batch in batches if (batch.run_id, batch.number) in with_stages]
    slow = [batch for batch in whole if batch.seconds >= BEHIND_S]
    causes = [_source_limit(whole, stages, slots), _garbage_collection(stages), _failed_tasks(stages)]
    if 2 * len(slow) > len(whole):
        causes += [_driver_time(slow, stages), _skew(slow, stages, slots)]
    if not whole:
        causes.append(_fixed_cost(batches, fitted))
    return tuple(cause for cause in causes if cause)


def describe_unused_slots(useful: int, slots: int) -> str:
    """Return the message for more slots than concurrent tasks."""
    cure = "more partitions (repartition, spark.sql.shuffle.partitions, partitions of the topic) would use the rest"
    return f"only {useful} of {slots} slots can be used, there are never more than {useful} tasks at a time: {cure}"


def gc_share(stages: Sequence[Stage]) -> float | None:
    """Return garbage collection as a share of run time; None without run time."""
    run_s = sum(stage.run_s for stage in stages)
    return min(1.0, sum(stage.gc_s for stage in stages) / run_s) if run_s > 0 else None


def _source_limit(batches: Sequence[Batch], stages: Sequence[Stage], slots: int) -> str:
    """Every batch leaves records at a source although slots are idle."""
    left = all(any(source.took_all is False for source in batch.sources) for batch in batches)
    idle = sum(stage.busy_s for stage in stages) < IDLE * slots * sum(batch.seconds for batch in batches)
    limit = "batches reach maxOffsetsPerTrigger or maxFilesPerTrigger"
    return f"records wait at the source although slots are idle: {limit}" if batches and left and idle else ""


def _garbage_collection(stages: Sequence[Stage]) -> str:
    """Executors spend their time on garbage collection: each has too little memory, however many there are."""
    share, gc_s = gc_share(stages), sum(stage.gc_s for stage in stages)
    if share is None or share < COLLECTING or gc_s < COLLECTING_S:
        return ""
    return f"{share:.0%} of the run time is garbage collection: give executors more memory (spark.executor.memory)"


def _failed_tasks(stages: Sequence[Stage]) -> str:
    """Tasks fail and are retried. Tasks of a lost executor do not count: windows with a loss are not used."""
    tasks, failed = sum(stage.tasks for stage in stages), sum(stage.failed_tasks for stage in stages)
    if failed <= 1 or failed < FAILING * tasks:
        return ""
    return f"{failed} tasks failed and were retried (of {tasks}): see the logs of the executors"


def _driver_time(batches: Sequence[Batch], stages: Sequence[Stage]) -> str:
    """Most of the time is spent outside of stages: before the batch's jobs, or between them."""
    walls: dict[tuple[str, int], float] = defaultdict(float)
    for stage in stages:
        walls[stage.run_id, stage.batch] += stage.queued_s + stage.wall_s
    # The median, so that the cold start of the first batch does not decide.
    seconds = median(batch.seconds for batch in batches)
    around_s = median(batch.seconds - batch.work_s for batch in batches)
    between_s = median(batch.work_s - walls[batch.run_id, batch.number] for batch in batches)
    if around_s > MOST * seconds:
        return f"batches are driver-bound: planning and commits take {around_s:.1f} of {seconds:.1f} s"
    if between_s > MOST * seconds:
        return f"the sink or foreachBatch works on the driver: {between_s:.1f} of {seconds:.1f} s are outside of stages"
    return ""


def _fixed_cost(batches: Sequence[Batch], fitted: BatchTime | None) -> str:
    """Most of a batch's time does not depend on its records."""
    seconds = median(batch.seconds for batch in batches)
    if fitted is None or seconds < BEHIND_S or fitted.fixed_s < MOST * seconds:
        return ""
    return f"batches are driver-bound: {fitted.fixed_s:.1f} of {seconds:.1f} s do not depend on their records"


def _skew(batches: Sequence[Batch], stages: Sequence[Stage], slots: int) -> str:
    """The longest stage waits for a few long tasks."""
    times = {(batch.run_id, batch.number): batch.seconds for batch in batches}
    inside = [stage for stage in stages if (stage.run_id, stage.batch) in times]
    longest = max(inside, key=lambda stage: stage.wall_s, default=None)
    if longest is None or longest.tasks < 2:
        return ""
    even_s = longest.busy_s / min(longest.tasks, slots)
    # Launching tasks takes time that is not in their run time: in short stages it dominates.
    slow = longest.wall_s > MOST * times[longest.run_id, longest.batch] and longest.wall_s > even_s + BEHIND_S
    if not slow or longest.wall_s < UNEVEN * even_s:
        return ""
    if longest.longest_task_s is not None and longest.longest_task_s < MOST * longest.wall_s:
        return ""  # no task is long: they have waited for their turn
    lasts = f"stage {longest.number} lasts {longest.wall_s:.1f} s, its work spread evenly would take {even_s:.1f} s"
    return f"a few tasks have most of the records (skew): {lasts}"
