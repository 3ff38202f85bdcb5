"""The comparison of Spark with the simulator, on runs that the simulator itself has played."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.scripted import simulated_run
from rheostat.errors import EngineError
from rheostat.lab.bench.spark_fidelity import (
    FIT,
    HOLD_S,
    LULL,
    PARTITIONS,
    TESTS,
    TRIGGER_S,
    UNIT_PER_S,
    WARM_UP,
    Course,
    Span,
    compare,
    compare_with_itself,
    fit,
    fits,
    least_absolute,
    repeated,
    shorten,
    trial_of,
)
from rheostat.lab.experiment.by_second import BatchRun
from rheostat.lab.experiment.run import Run

START_S = 1000.0
FIXED_S, COMMIT_S, TASK_S = 0.4, 0.6, 0.05


def played(pace_per_s: float, more: Sequence[Course] = (shorten(TESTS[0], 4),)) -> tuple[BatchRun, list[Span]]:
    """Return a run of these courses after the one to fit, as Spark would report it."""
    trial, spans = trial_of("ysb", (WARM_UP, FIT, *more))
    due = np.array([trial.schedule.due(second) for second in range(int(trial.duration_s) + 1)])
    script = [(0.0, WARM_UP.start), *trial.job.resizes]
    discipline = MicroBatch(
        trigger_s=TRIGGER_S,
        fixed_s=FIXED_S,
        commit_s=COMMIT_S,
        partitions=PARTITIONS,
        task_s=TASK_S,
        grow_s=0.0,
        grow_each_s=0.0,
        shrink_s=0.0,
        boundary_s=0.0,
    )
    run = simulated_run(np.diff(due), script, pace_per_s, discipline)

    def second(records: float) -> int:
        return int(np.searchsorted(due, records - 0.5))

    batches, tasks = [], []
    for number, one in enumerate(run.batches):
        held = {size for moment, size in script if one.start_s < moment < one.end_s}
        held.add([size for moment, size in script if moment <= one.start_s][-1])
        if len(held) == 1:
            task_s = TASK_S + one.records / PARTITIONS / pace_per_s
            waves = (place // next(iter(held)) for place in range(PARTITIONS))
            tasks += [
                (number, START_S + one.start_s + FIXED_S + wave * task_s, task_s, 1 / PARTITIONS) for wave in waves
            ]
        else:
            # What was worked off in every second, as a task of a second.
            parts = np.diff(np.clip(run.worked - one.before, 0.0, one.records), prepend=0.0) / one.records
            tasks += [(number, START_S + at_s, 1.0, float(parts[at_s])) for at_s in np.flatnonzero(parts)]
        ends = second(one.before), second(one.before + one.records)
        source = SourceProgress("rate", *ends, ends[1], round(one.records), {})
        seconds = one.end_s - one.start_s
        batches.append(
            Batch(
                "trial",
                "run",
                number,
                START_S + one.start_s,
                seconds,
                one.work_s,
                round(one.records),
                (source,),
                {},
                0,
                0,
            )
        )
    sizes = tuple(script)
    return Run(
        trial, "spark", trial.duration_s, START_S, (), batches=tuple(batches), tasks=tuple(tasks), sizes=sizes
    ), spans


def test_courses_follow_each_other_with_their_own_sizes() -> None:
    trial, spans = trial_of("ysb", (WARM_UP, FIT, *TESTS))
    warm_s = HOLD_S * len(WARM_UP.levels)
    assert spans[0] == (0, warm_s)
    assert [end - begin for begin, end in spans[1:]] == [120, 100, 100]
    # Before every course is a lull, with the course's first size from its start.
    assert all(later[0] == sooner[1] + HOLD_S for sooner, later in pairwise(spans))
    lull = trial.schedule.due(warm_s + HOLD_S) - trial.schedule.due(warm_s)
    assert lull == pytest.approx(HOLD_S * LULL * UNIT_PER_S, rel=0.02)
    assert trial.job.executors[0] == WARM_UP.start
    fitting = [(moment, size) for moment, size in trial.job.resizes if moment < spans[1][1]]
    assert fitting == [(warm_s, 1), (spans[1][0] + 45.0, 3), (spans[1][0] + 70.0, 4)]
    assert [size for moment, size in trial.job.resizes if moment == spans[1][1]] == [TESTS[0].start]
    assert trial.duration_s == spans[-1][1]


def test_a_run_of_the_simulator_is_fitted_and_predicted_by_itself() -> None:
    run, (_, fitting, testing) = played(300.0)
    fitted = fit(run, [fitting])
    assert fitted.slot_per_s == pytest.approx(300.0, rel=0.01)
    assert fitted.discipline.task_s == pytest.approx(TASK_S, abs=0.01)
    assert fitted.discipline.fixed_s == pytest.approx(FIXED_S, abs=0.05)
    assert fitted.discipline.commit_s == pytest.approx(COMMIT_S, abs=0.05)
    errors = compare(run, fitted, testing)
    assert errors["throughput"] is not None
    assert errors["backlog"] is not None
    assert errors["throughput"] < 0.02
    assert errors["backlog"] < 0.05


def test_few_disturbed_tasks_do_not_move_the_fit() -> None:
    records = np.linspace(10.0, 300.0, 60)
    seconds = 0.08 + records / 400.0
    seconds[::7] += 4.0
    task_s, record_s = least_absolute(records, seconds)
    assert task_s == pytest.approx(0.08, abs=0.01)
    assert record_s == pytest.approx(1 / 400.0, rel=0.02)
    # Seconds per task are not negative.
    assert least_absolute(records, records / 400.0 - 0.05)[0] == 0.0


def test_a_course_that_is_played_twice_differs_from_itself_by_what_has_changed() -> None:
    twice = (TESTS[0], TESTS[1], TESTS[0])
    assert repeated((WARM_UP, FIT, *twice)) == [(2, 4)]
    run, spans = played(300.0, twice)
    same = compare_with_itself(run, spans[2], spans[4])
    assert same["throughput"] < 0.05  # batches have another phase
    assert same["backlog"] < 0.05
    # Tasks of the second time that start five seconds later.
    begin_s = START_S + spans[4][0]
    late = tuple((n, at + 5.0 * (at >= begin_s), seconds, share) for n, at, seconds, share in run.tasks)
    other = compare_with_itself(replace(run, tasks=late), spans[2], spans[4])
    assert other["throughput"] > 0.05
    assert other["backlog"] > 0.15


def test_a_course_is_tested_by_a_fit_to_the_others() -> None:
    courses = (WARM_UP, FIT, TESTS[0], TESTS[1], TESTS[0])
    spans = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    # A course that is played twice is fitted in neither place.
    assert list(fits(courses, spans)) == [
        ((4, 5), [(2, 3), (6, 7)]),
        ((6, 7), [(2, 3), (4, 5), (8, 9)]),
        ((8, 9), [(2, 3), (6, 7)]),
    ]


def test_a_shorter_course_keeps_the_resizes_before_its_end() -> None:
    assert shorten(FIT, 4) == Course((2.0, 3.0, 6.0, 8.0), 1, ((45.0, 3), (70.0, 4)))
    assert shorten(FIT, 3).resizes == ((45.0, 3),)


def test_another_pace_shows_as_an_error() -> None:
    run, (_, fitting, _) = played(300.0)
    slower, (_, _, testing) = played(240.0)
    errors = compare(slower, fit(run, [fitting]), testing)
    assert errors["backlog"] is not None
    assert errors["backlog"] > 0.15


def test_a_run_whose_batches_are_too_long_is_refused() -> None:
    run, (_, fitting, testing) = played(300.0)
    stuck = replace(run, batches=tuple(batch for batch in run.batches if batch.end_s - START_S < testing[0]))
    with pytest.raises(EngineError, match=r"Spark ended 0 batches between second \d+ and \d+, too few to compare"):
        compare(stuck, fit(run, [fitting]), testing)
