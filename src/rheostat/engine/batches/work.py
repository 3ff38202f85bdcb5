"""How far the running batch has come, by its tasks and by the batches before it. Pure.

Finished tasks say what its other tasks will take. A running task has done its share of the time since its launch, or
since its first record where it waited for one. Rows that were read are bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import fmean, median

from rheostat.engine.batches.present import RunningBatch, RunningStage, RunningTask

STALE_S = 0.3
"""Seconds by which Spark's status store may be behind: events are queued, and a stage is written every 0.1 s."""
SLOW = 0.5
"""Share of the usual pace below which the rows that running tasks report count more than it does."""
NEAR = 1.5
"""Ratio of sizes within which batches have the same time per record."""
SPREAD = 2.0
"""Ratio of large to small batches from which their times show what a task takes before its first record."""
MOST_FIXED = 0.6
"""Largest share of the shortest task before its first record: large batches may be slower for other reasons."""
LAUNCH_S = 0.1
"""Seconds of a task before its first record, where the batches before do not show it: it is sent, decoded, and opens
its source. Of a short task, half its time at most."""
SETTLED_S = 2.0
"""Seconds after a change from which what was done around it counts: two heartbeats of `rheostat.session`."""


@dataclass(frozen=True, slots=True)
class UsualBatch:
    """A finished batch, for comparison."""

    busy_s: tuple[float, ...]
    """Busy time of its stages, by number."""
    records: float = 0.0
    """Records that its first stage has read; 0 where its source reports none."""
    tasks: int = 1
    """Tasks of that stage."""

    @property
    def task_records(self) -> float:
        """Records per task of its first stage."""
        return self.records / self.tasks

    @property
    def task_s(self) -> float:
        """Busy time per task of its first stage."""
        return self.busy_s[0] / self.tasks


@dataclass(frozen=True, slots=True)
class Work:
    """How far the running batch has come."""

    done: float
    """Input records that the stages which read them have worked off; later stages of the batch may have them still."""
    left_busy_s: float
    """Expected busy time of its tasks until its end."""
    tasks: int
    """Most tasks of a stage."""
    start_s: float
    """When it began; or when the size changed, if that was later."""
    at_s: float
    """When it was read."""
    records: float
    """Input records whose work was done since then."""
    busy_s: float
    """Busy time since then; tasks that still run count from their launch."""
    settled: bool
    """Whether tasks have ended or reported rows since then, so that busy time and records are of the present size."""


def read_work(
    now: RunningBatch,
    records: float,
    usual: Sequence[UsualBatch],
    then: RunningBatch | None = None,
    changed_s: float = -math.inf,
) -> Work | None:
    """Return how far a batch with these input records has come; None where nothing of it shows that.

    `usual` are the batches before it: they show the stages to come, and, as long as the batch itself shows nothing, the
    time per record. `then` is the same batch at the last change of size, if it ran then; if it was read before the
    change, what was done since is divided by time.
    """
    if now.start_s is None or records <= 0 or not now.stages:
        return None
    stages_s = (_expected_s(stage, now, records) for stage in now.stages)
    # A stage that has just begun shows nothing yet: it counts as one of those to come.
    known_s = [seconds for seconds in takewhile(lambda seconds: seconds is not None, stages_s) if seconds is not None]
    # A batch without one before it may have read no more than the table of a broadcast join.
    begun = any(stage.finished < stage.tasks for stage in now.stages[: len(known_s)])
    measured = bool(known_s) and (begun or bool(usual))
    if not known_s:
        known_s = _extrapolated_s(now.stages[0], records, usual)
    if not known_s:
        return None
    spent_s = _spent_s(now)
    whole_s = max(spent_s, sum(known_s) * _with_later_stages(len(known_s), usual))
    if spent_s <= 0:
        return None
    fixed_s = _fixed_s(usual)
    paced_s = _paced(now, known_s, records, usual, fixed_s)
    input_tasks = [
        (_tasks_done(stage, seconds / stage.tasks, 0.0 if place else fixed_s, now.rows_age_s), stage.tasks)
        for place, (stage, seconds) in enumerate(zip(now.stages, paced_s, strict=False))
        if place == 0 or stage.reads_input
    ]
    tasks_done, input_task_count = (sum(column) for column in zip(*input_tasks, strict=True))
    since_s, start_s, moved = spent_s, now.start_s, True
    if then is not None:
        start_s = max(then.at_s, changed_s)
        share = (now.at_s - start_s) / (now.at_s - then.at_s) if now.at_s > then.at_s else 0.0
        since_s = share * (spent_s - _spent_s(then))
        moved = _has_moved(then, now) and (then.at_s >= changed_s or now.at_s - changed_s >= SETTLED_S)
    return Work(
        done=_bounded(now, records, records * tasks_done / input_task_count),
        left_busy_s=whole_s - spent_s,
        tasks=max(stage.tasks for stage in now.stages),
        start_s=start_s,
        at_s=now.at_s,
        records=records * since_s / whole_s,
        busy_s=since_s,
        settled=measured and since_s > 0 and moved,
    )


class WorkReader:
    """Reads the work of one query's batches, one reading after another, and remembers what the last change needs."""

    def __init__(self) -> None:
        self._changed_s = -math.inf
        self._then: RunningBatch | None = None
        self._last: RunningBatch | None = None
        self.settled: Work | None = None
        """The last work that was settled; its batch may have ended since then."""
        self._silent_s: dict[int, float] = {}
        """Running task -> the last moment at which it had read nothing, though it would have reported it."""
        self._first_s: dict[int, float] = {}
        """Running task that was silent -> about the moment of its first record."""

    def read(self, now: RunningBatch, records: float, usual: Sequence[UsualBatch], changed_s: float) -> Work | None:
        """Return how far a batch is: see `read_work`. The size last changed at `changed_s`."""
        now = replace(now, stages=tuple(self._since_first_record(stage, now) for stage in now.stages))
        running = {task.number for stage in now.stages for task in stage.running}
        for moments_s in (self._silent_s, self._first_s):
            for ended in moments_s.keys() - running:
                del moments_s[ended]
        work = read_work(now, records, usual, self._reading_at(changed_s, now), changed_s)
        if work is not None and work.settled:
            self.settled = work
        return work

    def _since_first_record(self, stage: RunningStage, batch: RunningBatch) -> RunningStage:
        """Return a stage whose tasks count from their first record, where they were silent before.

        That was between two readings, in the middle for all that is known.
        """
        running = []
        for task in stage.running:
            if _is_silent(task, batch.rows_age_s):
                self._silent_s[task.number] = batch.at_s
            elif task.number in self._silent_s:
                last_s = self._silent_s.pop(task.number) - batch.rows_age_s
                self._first_s[task.number] = max(batch.at_s - task.age_s, (last_s + batch.at_s) / 2)
            first_s = self._first_s.get(task.number)
            running.append(task if first_s is None else replace(task, age_s=batch.at_s - first_s))
        return replace(stage, running=tuple(running))

    def _reading_at(self, changed_s: float, now: RunningBatch) -> RunningBatch | None:
        """Return the batch at the last reading before the change, or at the first one after it; None if it is newer."""
        last, self._last = self._last, now
        if now.start_s is None or changed_s <= now.start_s:
            return None
        then = self._then
        if then is None or then.start_s != now.start_s or self._changed_s != changed_s or now.at_s <= changed_s:
            was_there = last is not None and last.start_s == now.start_s and last.at_s <= changed_s
            self._then, self._changed_s = last if was_there else now, changed_s
        return self._then


def _expected_s(stage: RunningStage, batch: RunningBatch, records: float) -> float | None:
    """Return the busy time of a whole stage: by its finished tasks, or by the rows that its running tasks have read."""
    if stage.finished:
        return stage.busy_s / stage.finished * stage.tasks
    read_input = stage is batch.stages[0] and batch.rows_done
    return stage.active_s * records / min(batch.rows_done, records) if read_input and batch.rows_done else None


def _extrapolated_s(first: RunningStage, records: float, usual: Sequence[UsualBatch]) -> list[float]:
    """Return the busy time of a first stage that shows no record yet, by a batch before it; [] without any.

    It is at least what makes the tasks that run now the only ones that can have records done: none has finished.
    """
    alike = _alike(records, usual)
    if alike is None or not first.active:
        return []
    return [max(records / alike.records * alike.busy_s[0], first.active_s * first.tasks / first.active)]


def _paced(
    now: RunningBatch, known_s: Sequence[float], records: float, usual: Sequence[UsualBatch], fixed_s: float
) -> Sequence[float]:
    """Return the busy time of every known stage; of a first one without a finished task, by the batches before it.

    Rows of running tasks come late: with heartbeats, and Python gives them back in large buffers. Only where they show
    less than half of what the batches before would have done do they count.
    """
    first, alike = now.stages[0], _alike(records, usual)
    if first.finished or alike is None or not first.active:
        return known_s
    task_s = fixed_s + max(0.0, alike.task_s - fixed_s) * records / first.tasks / alike.task_records
    expected = records / first.tasks * _tasks_done(first, task_s, fixed_s, now.rows_age_s)
    slow = now.rows_done and now.rows_done < SLOW * expected
    return known_s if slow else [task_s * first.tasks, *known_s[1:]]


def _fixed_s(usual: Sequence[UsualBatch]) -> float:
    """Return the time that a task takes before its first record, by small and large batches; 0 if all are alike."""
    ranked = sorted((batch for batch in usual if batch.records > 0 and batch.busy_s), key=lambda one: one.task_records)
    small, large = ranked[: (len(ranked) + 1) // 2], ranked[len(ranked) // 2 :]
    if not ranked or median(b.task_records for b in large) < SPREAD * median(b.task_records for b in small):
        return 0.0
    (few, short_s), (many, long_s) = (
        (median(b.task_records for b in half), median(b.task_s for b in half)) for half in (small, large)
    )
    most_s = MOST_FIXED * min(batch.task_s for batch in ranked)
    return min(most_s, max(0.0, short_s - few * max(0.0, long_s - short_s) / (many - few)))


def _tasks_done(stage: RunningStage, task_s: float, fixed_s: float, rows_age_s: float) -> float:
    """Return how many tasks the work done so far makes up, if each takes `task_s`, and `fixed_s` of it in advance.

    The finished tasks are as of `STALE_S` ago or later: a task that should have ended since then has made room for the
    next one, if there is one.
    """
    finished = stage.finished + stage.ended
    if not stage.active or task_s <= 0:
        return float(finished)
    fixed_s = min(max(fixed_s, min(LAUNCH_S, task_s / 2)), task_s)
    working_s = task_s - fixed_s

    def part(seconds: float) -> float:
        return min(1.0, max(0.0, seconds - fixed_s) / working_s) if working_s > 0 else float(seconds >= task_s)

    ages_s = _working_ages_s(stage, rows_age_s)
    alike = stage.active / len(ages_s)
    past = [part(min(age_s - task_s, STALE_S)) for age_s in ages_s if age_s > task_s]
    waiting = max(0, stage.tasks - finished - stage.active)
    following = fmean(past) * min(alike * len(past), waiting) if past else 0.0
    return min(float(stage.tasks), finished + alike * sum(map(part, ages_s)) + following)


def _working_ages_s(stage: RunningStage, rows_age_s: float) -> list[float]:
    """Return the ages of running tasks: 0 for one that should have reported a record by now, as others have.

    Such a task runs on an executor that starts its Python.
    """
    if not stage.running:
        return [stage.active_s / stage.active]
    reporting = stage.records_in > 0 or any(task.records for task in stage.running)
    return [0.0 if reporting and _is_silent(task, rows_age_s) else task.age_s for task in stage.running]


def _is_silent(task: RunningTask, rows_age_s: float) -> bool:
    """Whether a task has read nothing, and would have reported it."""
    return not task.records and task.age_s > rows_age_s + STALE_S


def _bounded(now: RunningBatch, records: float, done: float) -> float:
    """Return the input records that are worked off: what the tasks show, within the bounds that the rows give.

    Tasks can run without reading a row, on an executor that has just come.
    """
    first, rows_read = now.stages[0], now.rows_read
    running_s = 0.0 if first.start_s is None else now.at_s - first.start_s
    if rows_read is not None and running_s > 0:
        finished = float(first.records_in) or records * first.finished / first.tasks
        silent = first.active_s > first.active * (now.rows_age_s + STALE_S) and not first.ended
        stalled = silent and rows_read <= finished
        done = min(done, finished if stalled else rows_read * (1 + now.rows_age_s / running_s))
    return min(records, max(done, now.rows_done or 0.0))


def _alike(records: float, usual: Sequence[UsualBatch]) -> UsualBatch | None:
    """Return a batch that is near in size, and of several the one of middle pace: one of them may have been cold.

    Small batches take more time per record.
    """
    counted = [batch for batch in usual if batch.records > 0 and batch.busy_s]
    if not counted:
        return None
    nearest = min(counted, key=lambda batch: abs(math.log(batch.records / records)))
    near = [batch for batch in counted if 1 / NEAR <= batch.records / nearest.records <= NEAR]
    return sorted(near, key=lambda batch: batch.busy_s[0] / batch.records)[(len(near) - 1) // 2]


def _spent_s(batch: RunningBatch) -> float:
    return sum(_spent_in_s(stage) for stage in batch.stages)


def _spent_in_s(stage: RunningStage) -> float:
    return stage.busy_s + stage.active_s


def _has_moved(then: RunningBatch, now: RunningBatch) -> bool:
    """Whether tasks have ended since then, or running ones have reported rows."""
    finished = sum(stage.finished for stage in now.stages) > sum(stage.finished for stage in then.stages)
    return finished or (now.rows_done or 0.0) > (then.rows_done or 0.0)


def _with_later_stages(seen: int, usual: Sequence[UsualBatch]) -> float:
    """Return the busy time of a whole batch as a multiple of that of its first stages, by the batches before it."""
    stages_s = [batch.busy_s for batch in usual]
    ratios = [sum(busy_s) / sum(busy_s[:seen]) for busy_s in stages_s if len(busy_s) > seen and sum(busy_s[:seen]) > 0]
    return median(ratios) if ratios else 1.0
