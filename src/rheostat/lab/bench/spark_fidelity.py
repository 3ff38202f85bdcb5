"""The simulator's micro-batch job against Spark's, under the same load and resizes.

A pipeline runs in one application: a warm-up, and courses. For each course, a slot's pace and the fixed costs of tasks
and batches are fitted to all the others. The code of a driver compiles for a minute, that of executors for
half of one; the simulator has warm ones, so Spark gets them, too: before each course is a lull, with the course's first
size. Both sides have the same executors at the same time. Executors that come inside a course are cold on both sides,
for as long as their first tasks show: the same three took 4 s in one run, and 8 s in another (two cores, 2026-11-18).
A simulated course begins at the end of a batch of the real run, with its backlog. What is compared is what the engines
see: records that tasks have worked off, those of the running batch included, and what waits for them. The comparison is
by load level (20 s): within a level, the source's whole seconds and the batches' phase say nothing about the job.
One course is played twice: Spark differs from itself, too, and no simulator comes closer than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import median

import numpy as np

from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.scripted import ScriptedRun, simulated_run
from rheostat.engine.testbed.loads import Steps
from rheostat.errors import EngineError
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.by_second import (
    BatchRun,
    due_by_second,
    records_of,
    size_by_second,
    tasks_by_batch,
    worked,
)
from rheostat.lab.experiment.microbatch_job import STATIC_MIN, MicroBatchJob
from rheostat.lab.experiment.microbatch_run import BatchTrial, run_microbatches
from rheostat.lab.experiment.run import Floats, caught_up_s, run_apart
from rheostat.lab.experiment.trial import Progress, Trial

UNIT_PER_S = 100.0
"""Records/s at level 1."""
PARTITIONS, TRIGGER_S, HOLD_S = 12, 2.0, 20
LULL = 1.0
"""Level of the load before a course, for as long as any other: its first size is requested at the start."""
TOGETHER_S = 5.0
"""Seconds within which executors count as started together."""
COLD_WITHIN_S = 10.0
"""Seconds after executors have come in which their first tasks start."""
ROUNDS, LEAST_S = 30, 1e-3
"""Rounds of a fit by least absolute deviations, and the smallest deviation in it, in seconds."""
FEWEST_BATCHES = 3
"""Batches of a course with which it is compared."""
CAUGHT_UP_S = 5.0
"""Seconds of load below which the backlog counts as caught up: a batch and the gap before it."""


@dataclass(frozen=True)
class Course:
    """A load in levels of 20 s each, and a script of resizes, from its own start."""

    levels: tuple[float, ...]
    start: int
    resizes: tuple[tuple[float, int], ...] = ()


WARM_UP = Course((2.0, 3.0), 2)
FIT = Course((2.0, 3.0, 6.0, 8.0, 3.0, 2.0), 1, ((45.0, 3), (70.0, 4)))
QUICK_LEVELS = 1, 5, 4
"""Load levels of the warm-up, of the course that is fitted and of the one that tests it, in a quick run."""
TESTS = (
    Course((2.0, 2.0, 6.0, 3.0, 2.0), 1, ((50.0, 3),)),
    Course((3.0, 5.0, 10.0, 8.0, 3.0), 2, ((45.0, 5), (85.0, 2))),
)
MORE = (
    Course((2.0, 5.0, 5.0, 5.0, 5.0), 1, ((45.0, 2),)),
    Course((4.0, 9.0, 9.0, 6.0, 2.0), 4, ((30.0, 2), (60.0, 6))),
)
Span = tuple[int, int]
"""First and last second of a course in a run."""


@dataclass(frozen=True)
class Fitted:
    """The fitted parameters of a pipeline on this machine."""

    slot_per_s: float
    discipline: MicroBatch


def fidelity_on_spark(quick: bool, progress: Progress) -> list[Measure]:
    """Run pipelines on Spark and in the simulator, and compare them."""
    if quick:
        parts = zip((WARM_UP, FIT, TESTS[0]), QUICK_LEVELS, strict=True)
        plan = {"ysb": [shorten(course, levels) for course, levels in parts]}
    else:
        plan = {"ysb": [WARM_UP, FIT, *TESTS, *MORE, TESTS[-1]], "q5": [WARM_UP, FIT, *TESTS]}
    errors: dict[str, list[float]] = {"throughput": [], "backlog": [], "catch_up": []}
    repeats: dict[str, list[float]] = {"throughput": [], "backlog": []}
    notes = []
    for pipeline, courses in plan.items():
        trial, spans = trial_of(pipeline, courses)
        [run] = run_apart(run_microbatches, [trial], progress)
        for span, fitting in fits(courses, spans):
            fitted = fit(run, fitting)
            for what, error in compare(run, fitted, span).items():
                if error is not None:
                    errors[what].append(error)
        own = fitted.discipline
        costs = f"{own.fixed_s:.2f} s before and {own.commit_s:.2f} s after the tasks, {own.task_s:.2f} s per task"
        notes.append(f"{pipeline}: {fitted.slot_per_s:.0f}/s per slot, {costs}")
        for one, other in repeated(courses):
            for what, error in compare_with_itself(run, spans[one], spans[other]).items():
                repeats[what].append(error)
    goals = {"throughput": "<= 0.05", "backlog": "<= 0.15", "catch_up": ""}
    measures = [
        _measure(f"spark_{what}_error", errors[what], goals[what], f"courses; {'; '.join(notes)}") for what in errors
    ]
    again = "between two runs of one course on Spark"
    return measures + [_measure(f"spark_{what}_repeat", repeats[what], "", again) for what in repeats if repeats[what]]


def _measure(name: str, errors: Sequence[float], goal: str, what: str) -> Measure:
    """Return the median, with every value in the note."""
    note = f"{', '.join(f'{error:.3f}' for error in errors) or 'none'}: {what}"
    return Measure("fidelity", name, median(errors) if errors else float("nan"), "share", goal, "lower", note)


def shorten(course: Course, levels: int) -> Course:
    """Return the first levels of a course, and its resizes before their end."""
    kept = tuple((moment, size) for moment, size in course.resizes if moment < HOLD_S * levels - TOGETHER_S)
    return replace(course, levels=course.levels[:levels], resizes=kept)


def trial_of(pipeline: str, courses: Sequence[Course]) -> tuple[BatchTrial, list[Span]]:
    """Return one trial of these courses, and their spans."""
    played: list[float] = []
    resizes: list[tuple[float, int]] = []
    spans: list[Span] = []
    for course in courses:
        if played:
            resizes.append((HOLD_S * len(played), course.start))
            played.append(LULL)
        begin = HOLD_S * len(played)
        resizes += [(begin + moment, size) for moment, size in course.resizes]
        played += course.levels
        spans.append((begin, begin + HOLD_S * len(course.levels)))
    job = MicroBatchJob(
        pipeline,
        pipeline,
        (courses[0].start, 6),
        partitions=PARTITIONS,
        trigger_s=TRIGGER_S,
        level_per_s=UNIT_PER_S,
        resizes=tuple(resizes),
    )
    return Trial(job, Steps(tuple(played), HOLD_S), spans[-1][1], way=STATIC_MIN), spans


def fits(courses: Sequence[Course], spans: Sequence[Span]) -> Iterator[tuple[Span, list[Span]]]:
    """Yield the span of every course that tests a fit, and those of all others, after the warm-up, that are fitted.

    Spark gets faster for minutes: a fit to the first course alone would be of a slower Spark than the last one has.
    """
    after = list(zip(courses, spans, strict=True))[1:]
    for course, span in after[1:]:
        yield span, [other for each, other in after if each != course]


def repeated(courses: Sequence[Course]) -> list[tuple[int, int]]:
    """Return the places of courses that are played twice."""
    return [pair for pair in combinations(range(len(courses)), 2) if courses[pair[0]] == courses[pair[1]]]


def fit(run: BatchRun, spans: Sequence[Span]) -> Fitted:
    """Fit a slot's pace, and the fixed costs of a task and of a batch.

    A task of n records lasts task + n / pace; a batch begins before its tasks, and ends after them. All of it comes
    from batches on constant slots. The first batch on new executors is left out: it compiles code.
    """
    tasks, sizes = tasks_by_batch(run), size_by_second(run)
    records: list[float] = []
    seconds: list[float] = []
    planned: list[float] = []
    committed: list[float] = []
    before: set[float] | None = None
    for batch in run.batches:
        start, end = batch.start_s - run.start_s, batch.end_s - run.start_s
        held = set(sizes[int(start) : int(end) + 1])
        warm, before = held == before, held
        inside = any(span[0] <= start and end <= span[1] for span in spans)
        if not (inside and len(held) == 1 and warm and batch.number in tasks):
            continue
        own = tasks[batch.number]
        records += [records_of(run, batch) * share for _, _, share in own]
        seconds += [task_s for _, task_s, _ in own]
        planned.append(min(at for at, _, _ in own) - batch.start_s)
        committed.append(batch.end_s - max(at + task_s for at, task_s, _ in own))
    if not planned:
        spent = ", ".join(f"{begin} to {end}" for begin, end in spans)
        raise EngineError(f"no batch in the seconds {spent} had constant slots: nothing to fit")
    task_s, record_s = least_absolute(np.array(records), np.array(seconds))
    discipline = MicroBatch(
        trigger_s=TRIGGER_S,
        fixed_s=max(median(planned), 0.01),
        commit_s=max(median(committed), 0.0),
        partitions=PARTITIONS,
        task_s=task_s,
        grow_s=0.0,
        grow_each_s=0.0,
        shrink_s=0.0,
        boundary_s=0.0,
    )
    return Fitted(1.0 / record_s, discipline)


def least_absolute(records: Floats, seconds: Floats) -> tuple[float, float]:
    """Return the seconds per task, at least 0, and per record, by least absolute deviations: some are disturbed."""
    both = np.column_stack([np.ones(len(records)), records])
    for terms in (both, both * [0.0, 1.0]):
        weights = np.ones(len(records))
        for _ in range(ROUNDS):
            found = np.linalg.lstsq(terms * weights[:, None], seconds * weights, rcond=None)[0]
            weights = 1.0 / np.sqrt(np.maximum(np.abs(seconds - terms @ found), LEAST_S))
        if found[0] >= 0:
            break
    return float(found[0]), max(float(found[1]), 1e-9)


def _cold_s(run: BatchRun, span: Span, fitted: Fitted) -> float:
    """Return by how much the first task of a new executor is longer in a course, per executor that starts with it."""
    extra_s = started = 0.0
    tasks, sizes = tasks_by_batch(run), merge_starts(run.sizes)
    for (_, size), (moment, grown) in pairwise(sizes):
        first_s = [
            seconds - fitted.discipline.task_s - records_of(run, batch) * share / fitted.slot_per_s
            for batch in run.batches
            for at_s, seconds, share in tasks.get(batch.number, ())
            if moment - 1.0 <= at_s - run.start_s <= moment + COLD_WITHIN_S
        ]
        if grown > size and span[0] <= moment <= span[1] and first_s:
            extra_s, started = extra_s + max(0.0, *first_s), started + grown - size
    return extra_s / started if started else 0.0


def simulate(run: BatchRun, fitted: Fitted, span: Span) -> tuple[int, ScriptedRun]:
    """Simulate a course from its second batch on; return the second before its start, and the run."""
    inside = [batch for batch in run.batches if span[0] <= batch.end_s - run.start_s <= span[1]]
    if len(inside) < FEWEST_BATCHES:
        raise EngineError(
            f"Spark ended {len(inside)} batches between second {span[0]} and {span[1]}, too few to compare: "
            "the machine is too slow or too busy"
        )
    first, second = inside[:2]
    begin = int(second.start_s - run.start_s)
    phase_s = second.start_s - run.start_s - begin + 1
    due = due_by_second(run)
    # What the first batch has left arrives in the second before: the source releases whole seconds.
    left = due[begin] - due[int(first.sources[0].end_offset)]
    arrivals = np.concatenate([[left], np.diff(due[begin : span[1] + 1])])
    begin -= 1
    # The start-up time of executors is not compared: both sides have the same ones at the same time.
    merged = merge_starts(run.sizes)
    script = [(0.0, [size for moment, size in merged if moment <= begin][-1])]
    script += [(moment - begin, size) for moment, size in merged if moment > begin]
    discipline = replace(fitted.discipline, trigger_phase_s=phase_s, cold_s=_cold_s(run, span, fitted))
    played = simulated_run(arrivals, script, fitted.slot_per_s, discipline)
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


def compare(run: BatchRun, fitted: Fitted, span: Span) -> dict[str, float | None]:
    """Return the relative errors of one course."""
    begin, played = simulate(run, fitted, span)
    # Tasks of batches that have not ended are unknown, on both sides.
    last_s = min(run.batches[-1].end_s - run.start_s - begin, played.batches[-1].end_s if played.batches else 0.0)
    ended = int(min(len(played.worked), last_s))
    done, due = worked(run), due_by_second(run)
    limit = CAUGHT_UP_S * np.diff(due)[begin:][:ended]
    before, real, ours = done[begin - 1] if begin else 0.0, done[begin:][:ended], played.worked[:ended]
    waiting = played.waiting[:ended], np.maximum(due[begin + 1 :][:ended] - real, 0.0)
    return {
        "throughput": apart(np.diff(ours, prepend=0.0), np.diff(real, prepend=before)),
        "backlog": apart(*waiting),
        "catch_up": _catch_up_error(run, begin, span, waiting, limit),
    }


def compare_with_itself(run: BatchRun, one: Span, other: Span) -> dict[str, float]:
    """Return the differences between two runs of one course, by the same measures."""
    done, due = worked(run), due_by_second(run)
    ended = min(len(done) - begin for begin, _ in (one, other))
    first, again = (np.arange(begin, begin + min(end - begin, ended)) for begin, end in (one, other))
    rates, waiting = np.diff(done, prepend=0.0), np.maximum(due[1 : len(done) + 1] - done, 0.0)
    return {
        "throughput": apart(rates[again], rates[first]),
        "backlog": apart(waiting[again], waiting[first]),
    }


def apart(ours: Floats, real: Floats) -> float:
    """Return the difference of the levels' sums as a share of the real total."""
    mine, theirs = levels(ours), levels(real)
    return float(np.abs(mine - theirs).sum() / theirs.sum()) if theirs.any() else 0.0


def levels(series: Floats) -> Floats:
    """Return the sums over each `HOLD_S` seconds; the last span may be shorter."""
    sums: Floats = np.add.reduceat(series, np.arange(0, len(series), HOLD_S))
    return sums


def _catch_up_error(
    run: BatchRun, begin: int, span: Span, waiting: tuple[Floats, Floats], limit: Floats
) -> float | None:
    """Return the relative error of the seconds until a course has caught up after its first resize.

    It is None where a job was not behind at the resize, or never caught up.
    """
    first_s = next((moment for moment, _ in run.trial.job.resizes if span[0] <= moment), None)
    if first_s is None or not begin <= first_s < span[1] - TOGETHER_S:
        return None
    ours, real = (caught_up_s(records, int(first_s) - begin, limit, noticed_s=1) for records in waiting)
    return abs(ours - real) / max(real, 1.0) if all(0 < late_s < np.inf for late_s in (real, ours)) else None
