"""What is not a matter of size: causes of slow batches that more executors do not cure. Pure.

Each is named in the window, and growth is held back while one of them is why the job is behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from rheostat.engine.spark.progress import Batch
from rheostat.engine.spark.stages import Stage

BEHIND_S = 1.0
"""Batches shorter than this are not slow, whatever they are made of."""
MOST = 0.5
"""A cause that takes this share of a batch is what the batch is made of."""
IDLE = 0.5
"""Slots that work less than this share of the time are not what is missing."""
UNEVEN = 2.5
"""A stage that lasts this many times longer than its work, spread evenly, would take, waits for a few tasks."""


def hindrances(batches: Sequence[Batch], stages: Sequence[Stage], slots: int) -> tuple[str, ...]:
    """Name what slows these batches down and is not too few slots; stages are those of the batches."""
    if not batches or slots < 1:
        return ()
    causes = [_capped(batches, stages, slots)]
    if sum(batch.seconds for batch in batches) >= BEHIND_S * len(batches):
        causes += [_on_the_driver(batches, stages), _skewed(batches, stages, slots)]
    return tuple(cause for cause in causes if cause)


def _capped(batches: Sequence[Batch], stages: Sequence[Stage], slots: int) -> str:
    """Every batch left records at a source that it could have taken, and slots were idle."""
    left = all(any(s.latest_offset not in (None, s.end_offset) for s in batch.sources) for batch in batches)
    idle = sum(stage.busy_s for stage in stages) < IDLE * slots * sum(batch.seconds for batch in batches)
    cap = "maxOffsetsPerTrigger or maxFilesPerTrigger is reached"
    return f"the source holds records back although slots are idle: {cap}" if left and idle else ""


def _on_the_driver(batches: Sequence[Batch], stages: Sequence[Stage]) -> str:
    """Most of the time passes outside of stages: before the batch's jobs, or between them."""
    seconds, work_s = sum(batch.seconds for batch in batches), sum(batch.work_s for batch in batches)
    around_s, between_s = seconds - work_s, work_s - sum(stage.wall_s for stage in stages)
    if around_s > MOST * seconds:
        return f"batches are driver-bound: planning and commits take {around_s:.1f} of {seconds:.1f} s"
    if between_s > MOST * seconds:
        return f"the sink or foreachBatch works on the driver: {between_s:.1f} of {seconds:.1f} s are outside of stages"
    return ""


def _skewed(batches: Sequence[Batch], stages: Sequence[Stage], slots: int) -> str:
    """The longest stage waits for a few tasks."""
    longest = max(stages, key=lambda stage: stage.wall_s, default=None)
    if longest is None or longest.tasks < 2:
        return ""
    batch_s = next((b.seconds for b in batches if (b.run_id, b.number) == (longest.run_id, longest.batch)), 0.0)
    even_s = longest.busy_s / min(longest.tasks, slots)
    if longest.wall_s < MOST * batch_s or longest.wall_s < UNEVEN * even_s:
        return ""
    lasts = f"stage {longest.number} lasts {longest.wall_s:.1f} s, its work spread evenly would take {even_s:.1f} s"
    return f"a few tasks have most of the records (skew): {lasts}"
