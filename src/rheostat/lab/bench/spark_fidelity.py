"""The simulator's micro-batch job against Spark's, under the same load and resizes.

Per pipeline one run fits a slot's pace, the fixed cost of a batch and the warm-up of executors; the other runs test it.
Both sides have the same executors at the same time. A simulated run begins at the end of a warm batch of the real run,
with its backlog, so that a cold driver does not count. The comparison is by load level (20 s): within a level, the
backlog jumps with every batch, and its phase says nothing about the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.scripted import ScriptedRun, simulated_run
from rheostat.engine.testbed.loads import Steps
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.by_second import (
    BatchRun,
    backlog,
    due_by_second,
    overlap,
    records_of,
    size_by_second,
    throughput,
)
from rheostat.lab.experiment.microbatch_job import STATIC_MIN, MicroBatchJob
from rheostat.lab.experiment.microbatch_run import BatchTrial, run_microbatches
from rheostat.lab.experiment.run import Floats, caught_up_s, run_apart
from rheostat.lab.experiment.trial import Progress, Trial

UNIT_PER_S = 100.0
"""Records/s at level 1."""
PARTITIONS, TRIGGER_S, SECONDS, HOLD_S = 12, 2.0, 100, 20
QUICK_S = 80
"""Seconds of a quick run: without the last level of the load."""
WARM_S = 20.0
"""Seconds of warm-up: the comparison begins with the first batch that ends after them."""
TOGETHER_S = 5.0
"""Seconds within which executors count as started together."""
COLD_S = tuple(0.5 * k for k in range(13))
"""Candidates for the warm-up time of new executors, in seconds."""
CAUGHT_UP_S = 5.0
"""Seconds of load below which the backlog counts as caught up: a batch and the gap before it."""


@dataclass(frozen=True)
class Course:
    """A load in levels of 20 s each, and a script of resizes."""

    levels: tuple[float, ...]
    start: int
    resizes: tuple[tuple[float, int], ...]


FIT = Course((2.0, 3.0, 6.0, 8.0, 3.0), 1, ((45.0, 3), (70.0, 4)))
TESTS = (
    Course((2.0, 2.0, 6.0, 3.0, 2.0), 1, ((50.0, 3),)),
    Course((3.0, 5.0, 10.0, 8.0, 3.0), 2, ((45.0, 5), (85.0, 2))),
)
MORE = (
    Course((2.0, 5.0, 5.0, 5.0, 5.0), 1, ((45.0, 2),)),
    Course((4.0, 9.0, 9.0, 6.0, 2.0), 4, ((30.0, 2), (60.0, 6))),
)


@dataclass(frozen=True)
class Fitted:
    """The fitted parameters of a pipeline on this machine."""

    slot_per_s: float
    discipline: MicroBatch


def fidelity_on_spark(quick: bool, progress: Progress) -> list[Measure]:
    """Run pipelines on Spark and in the simulator, and compare them."""
    plan = {"ysb": TESTS[:1]} if quick else {"ysb": (*TESTS, *MORE), "q5": TESTS}
    errors: dict[str, list[float]] = {"throughput": [], "backlog": [], "catch_up": []}
    notes = []
    for pipeline, courses in plan.items():
        trials = [_trial(pipeline, course, QUICK_S if quick else SECONDS) for course in (FIT, *courses)]
        runs = run_apart(run_microbatches, trials, progress)
        fitted = fit(runs[:1])
        parts = f"{fitted.discipline.fixed_s:.2f} s per batch, {fitted.discipline.task_s:.2f} s per task"
        notes.append(f"{pipeline}: {fitted.slot_per_s:.0f}/s per slot, {parts}")
        for run in runs[1:]:
            for what, error in compare(run, fitted).items():
                if error is not None:
                    errors[what].append(error)
    goals = {"throughput": "<= 0.05", "backlog": "<= 0.15", "catch_up": ""}
    return [
        Measure(
            "fidelity",
            f"spark_{what}_error",
            median(errors[what]) if errors[what] else float("nan"),
            "share",
            goals[what],
            "lower",
            f"{len(errors[what])} runs, the worst {max(errors[what], default=float('nan')):.3f}; {'; '.join(notes)}",
        )
        for what in errors
    ]


def _trial(pipeline: str, course: Course, seconds: int) -> BatchTrial:
    job = MicroBatchJob(
        pipeline,
        pipeline,
        (course.start, 6),
        partitions=PARTITIONS,
        trigger_s=TRIGGER_S,
        level_per_s=UNIT_PER_S,
        resizes=course.resizes,
    )
    return Trial(job, Steps(course.levels, HOLD_S), seconds, way=STATIC_MIN)


def fit(runs: Sequence[BatchRun]) -> Fitted:
    """Fit a slot's pace, the fixed cost of a batch and the warm-up time of new executors.

    A batch of n records on constant slots lasts fixed + waves * (task + n / partitions / pace).
    """
    rows, seconds = [], []
    for run in runs:
        sizes = size_by_second(run)
        for batch in run.batches[first_warm(run) :]:
            start, end = batch.start_s - run.start_s, batch.end_s - run.start_s
            held = set(sizes[int(start) : int(end) + 1])
            if len(held) == 1:
                waves = -(-PARTITIONS // int(held.pop()))
                rows.append((1.0, waves, records_of(run, batch) * waves / PARTITIONS))
                seconds.append(batch.seconds)
    # Relative errors, so that long batches do not outweigh the short ones of a calm job.
    scale = np.array(seconds)[:, None]
    fixed_s, task_s, per_record_s = non_negative(np.array(rows) / scale)
    discipline = MicroBatch(
        trigger_s=TRIGGER_S,
        fixed_s=max(float(fixed_s), 0.01),
        partitions=PARTITIONS,
        task_s=float(task_s),
        grow_s=0.0,
        grow_each_s=0.0,
        shrink_s=0.0,
        boundary_s=0.0,
    )
    candidates = [Fitted(1.0 / max(float(per_record_s), 1e-9), replace(discipline, cold_s=cold_s)) for cold_s in COLD_S]
    return min(candidates, key=lambda fitted: sum(_total_error(run, fitted) for run in runs))


def _total_error(run: BatchRun, fitted: Fitted) -> float:
    errors = compare(run, fitted)
    return (errors["throughput"] or 0.0) + (errors["backlog"] or 0.0)


def non_negative(rows: Floats) -> Floats:
    """Return the non-negative least-squares weights with which every row adds up to 1."""
    active = np.ones(rows.shape[1], dtype=bool)
    while True:
        weights = np.zeros(rows.shape[1])
        weights[active] = np.linalg.lstsq(rows[:, active], np.ones(len(rows)), rcond=None)[0]
        if (weights >= 0).all():
            return weights
        active &= weights > 0


def first_warm(run: BatchRun) -> int:
    """Return the index of the first batch that ends after the warm-up."""
    return next((k for k, batch in enumerate(run.batches) if batch.end_s - run.start_s >= WARM_S), 0)


def simulate(run: BatchRun, fitted: Fitted) -> tuple[int, ScriptedRun]:
    """Simulate a real run from the end of its first warm batch on; return the second of that end, and the run."""
    trial, first = run.trial, run.batches[first_warm(run)]
    begin = int(np.ceil(first.end_s - run.start_s))
    due = due_by_second(run)
    arrivals = np.diff(due[begin:])
    # The backlog at the end of that batch is there from the first second on.
    arrivals[0] += due[begin] - due[int(first.sources[0].end_offset)]
    # The start-up time of executors is not compared: both sides have the same ones at the same time.
    script = [
        (0.0, trial.job.start_executors(trial.way)),
        *((moment - begin, size) for moment, size in merge_starts(run.sizes)),
    ]
    phase_s = -(run.start_s + begin) % TRIGGER_S
    played = simulated_run(arrivals, script, fitted.slot_per_s, replace(fitted.discipline, trigger_phase_s=phase_s))
    return begin, played


def merge_starts(sizes: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Merge executors that start within a few seconds, at their mean time."""
    groups: list[list[tuple[float, int]]] = []
    for moment, size in sizes:
        if groups and moment - groups[-1][0][0] <= TOGETHER_S and size > groups[-1][-1][1]:
            groups[-1].append((moment, size))
        else:
            groups.append([(moment, size)])
    return [(float(np.mean([moment for moment, _ in group])), group[-1][1]) for group in groups]


def compare(run: BatchRun, fitted: Fitted) -> dict[str, float | None]:
    """Return the relative errors of one run."""
    begin, played = simulate(run, fitted)
    seconds = len(played.backlog)
    done = np.zeros(seconds)
    for batch in played.batches:
        done += batch.records * overlap(batch.start_s, batch.end_s, seconds)
    # Records of batches that have not ended are unknown.
    ended = int(run.batches[-1].end_s - run.start_s) - begin
    return {
        "throughput": apart(done[:ended], throughput(run)[begin:][:ended]),
        "backlog": apart(played.backlog[:ended], backlog(run)[begin:][:ended]),
        "catch_up": _catch_up_error(run, begin, played, ended),
    }


def apart(ours: Floats, real: Floats) -> float:
    """Return the difference of the levels' sums as a share of the real total."""
    mine, theirs = levels(ours), levels(real)
    return float(np.abs(mine - theirs).sum() / theirs.sum()) if theirs.any() else 0.0


def levels(series: Floats) -> Floats:
    """Return the sums over each `HOLD_S` seconds; the last span may be shorter."""
    sums: Floats = np.add.reduceat(series, np.arange(0, len(series), HOLD_S))
    return sums


def _catch_up_error(run: BatchRun, begin: int, played: ScriptedRun, ended: int) -> float | None:
    first_s = next((moment for moment, _ in run.trial.job.resizes), None)
    if first_s is None or (resized := int(first_s) - begin) < 0:
        return None
    limit = CAUGHT_UP_S * np.diff(due_by_second(run))[begin:][:ended]
    real = caught_up_s(backlog(run)[begin:][:ended], resized, limit, noticed_s=1)
    ours = caught_up_s(played.backlog[:ended], resized, limit, noticed_s=1)
    # No error if a job was not behind at the resize, or never caught up.
    return abs(ours - real) / max(real, 1.0) if all(0 < late_s < np.inf for late_s in (real, ours)) else None
