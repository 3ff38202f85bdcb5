"""What is not a matter of size: causes of slow batches that more executors do not cure. Pure.

Each is named in the window, and growth is held back while one of them is why the job is behind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.stage import Stage
from rheostat.job.observation import BatchTime

BEHIND_S = 1.0
"""Batches shorter than this are not slow, whatever they are made of."""
MOST = 0.5
"""A cause that takes this share of a batch is what the batch is made of."""
IDLE = 0.5
"""Slots that work less than this share of the time are not what is missing."""
UNEVEN = 2.5
"""A stage that lasts this many times longer than its work, spread evenly, would take, waits for a few tasks."""
COLLECTING, COLLECTING_S = 0.3, 1.0
"""Garbage collection of this share of the run time, and of so many seconds, is more than a start brings along."""
FAILING = 0.1
"""A share of tasks that fails is no accident any more."""


def bottlenecks(
    batches: Sequence[Batch], stages: Sequence[Stage], slots: int, fitted: BatchTime | None = None
) -> tuple[str, ...]:
    """Name what slows these batches down and is not too few slots; stages are those of the batches.

    Batches whose stages were not seen are judged by the fitted line, where there is one.
    """
    if not batches or slots < 1:
        return ()
    seen = {(stage.run_id, stage.batch) for stage in stages}
    whole = [batch for batch in batches if (batch.run_id, batch.number) in seen]
    slow = [batch for batch in whole if batch.seconds >= BEHIND_S]
    causes = [_capped(whole, stages, slots), _collecting(stages), _failing(stages)]
    if 2 * len(slow) > len(whole):
        causes += [_on_the_driver(slow, stages), _skewed(slow, stages, slots)]
    if not whole:
        causes.append(_fixed(batches, fitted))
    return tuple(cause for cause in causes if cause)


def unused(useful: int, slots: int) -> str:
    """Say that slots outnumber the tasks that there can be at a time."""
    cure = "more partitions (repartition, spark.sql.shuffle.partitions, partitions of the topic) would use the rest"
    return f"only {useful} of {slots} slots can be used, there are never more than {useful} tasks at a time: {cure}"


def gc_share(stages: Sequence[Stage]) -> float | None:
    """Return garbage collection as a share of run time; None where nothing ran."""
    run_s = sum(stage.run_s for stage in stages)
    return min(1.0, sum(stage.gc_s for stage in stages) / run_s) if run_s > 0 else None


def _capped(batches: Sequence[Batch], stages: Sequence[Stage], slots: int) -> str:
    """Every batch left records at a source that it could have taken, and slots were idle."""
    left = all(any(source.took_all is False for source in batch.sources) for batch in batches)
    idle = sum(stage.busy_s for stage in stages) < IDLE * slots * sum(batch.seconds for batch in batches)
    cap = "maxOffsetsPerTrigger or maxFilesPerTrigger is reached"
    return f"the source holds records back although slots are idle: {cap}" if batches and left and idle else ""


def _collecting(stages: Sequence[Stage]) -> str:
    """Executors spend their time on garbage: each has too little memory, however many there are."""
    share, gc_s = gc_share(stages), sum(stage.gc_s for stage in stages)
    if share is None or share < COLLECTING or gc_s < COLLECTING_S:
        return ""
    return f"{share:.0%} of the run time is garbage collection: give executors more memory (spark.executor.memory)"


def _failing(stages: Sequence[Stage]) -> str:
    """Tasks fail and run again; those of lost executors are not here, their windows are not used."""
    tasks, failed = sum(stage.tasks for stage in stages), sum(stage.failed_tasks for stage in stages)
    if failed <= 1 or failed < FAILING * tasks:
        return ""
    return f"{failed} tasks failed and ran again, {tasks} were to do: see the logs of the executors"


def _on_the_driver(batches: Sequence[Batch], stages: Sequence[Stage]) -> str:
    """Most of the time passes outside of stages: before the batch's jobs, or between them."""
    walls: dict[tuple[str, int], float] = defaultdict(float)
    for stage in stages:
        walls[stage.run_id, stage.batch] += stage.queued_s + stage.wall_s
    # The middle of the batches, so that one of them, the first with its cold start, decides nothing.
    seconds = median(batch.seconds for batch in batches)
    around_s = median(batch.seconds - batch.work_s for batch in batches)
    between_s = median(batch.work_s - walls[batch.run_id, batch.number] for batch in batches)
    if around_s > MOST * seconds:
        return f"batches are driver-bound: planning and commits take {around_s:.1f} of {seconds:.1f} s"
    if between_s > MOST * seconds:
        return f"the sink or foreachBatch works on the driver: {between_s:.1f} of {seconds:.1f} s are outside of stages"
    return ""


def _fixed(batches: Sequence[Batch], fitted: BatchTime | None) -> str:
    """Most of a batch's time does not depend on what is in it."""
    seconds = median(batch.seconds for batch in batches)
    if fitted is None or seconds < BEHIND_S or fitted.fixed_s < MOST * seconds:
        return ""
    return f"batches are driver-bound: {fitted.fixed_s:.1f} of {seconds:.1f} s do not depend on their records"


def _skewed(batches: Sequence[Batch], stages: Sequence[Stage], slots: int) -> str:
    """The longest stage waits for a few tasks."""
    times = {(batch.run_id, batch.number): batch.seconds for batch in batches}
    inside = [stage for stage in stages if (stage.run_id, stage.batch) in times]
    longest = max(inside, key=lambda stage: stage.wall_s, default=None)
    if longest is None or longest.tasks < 2:
        return ""
    even_s = longest.busy_s / min(longest.tasks, slots)
    # Starting tasks takes time too, which is not in their run time: in short stages that is most of it.
    slow = longest.wall_s > MOST * times[longest.run_id, longest.batch] and longest.wall_s > even_s + BEHIND_S
    if not slow or longest.wall_s < UNEVEN * even_s:
        return ""
    lasts = f"stage {longest.number} lasts {longest.wall_s:.1f} s, its work spread evenly would take {even_s:.1f} s"
    return f"a few tasks have most of the records (skew): {lasts}"
