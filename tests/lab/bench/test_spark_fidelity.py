"""The comparison of Spark with the simulator, on runs that the simulator itself has played."""

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
    LEAD_S,
    PARTITIONS,
    TESTS,
    TRIGGER_S,
    WARM_UP,
    Span,
    compare,
    fit,
    trial_of,
)
from rheostat.lab.experiment.by_second import BatchRun
from rheostat.lab.experiment.run import Run

START_S = 1000.0


def played(pace_per_s: float) -> tuple[BatchRun, list[Span]]:
    """Return a run of the quick courses, as Spark would report it."""
    trial, spans = trial_of("ysb", (WARM_UP, FIT, *TESTS[:1]), 4)
    due = np.array([trial.schedule.due(second) for second in range(int(trial.duration_s) + 1)])
    script = [(0.0, WARM_UP.start), *trial.job.resizes]
    discipline = MicroBatch(
        trigger_s=TRIGGER_S,
        fixed_s=1.0,
        partitions=PARTITIONS,
        task_s=0.05,
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
    trial, spans = trial_of("ysb", (WARM_UP, FIT, *TESTS), 5)
    warm_s = HOLD_S * len(WARM_UP.levels)
    begins = [0, warm_s, warm_s + 120, warm_s + 220, warm_s + 320]
    assert spans == list(pairwise(begins))
    assert trial.job.executors[0] == WARM_UP.start
    fitting = [(moment, size) for moment, size in trial.job.resizes if moment < spans[1][1] - LEAD_S]
    assert fitting == [(warm_s - LEAD_S, 1), (warm_s + 45.0, 3), (warm_s + 70.0, 4)]
    assert [size for moment, size in trial.job.resizes if moment == spans[2][0] - LEAD_S] == [TESTS[0].start]
    assert trial.duration_s == spans[-1][1]


def test_a_run_of_the_simulator_is_fitted_and_predicted_by_itself() -> None:
    run, (_, fitting, testing) = played(300.0)
    fitted = fit(run, fitting)
    assert fitted.slot_per_s == pytest.approx(300.0, rel=0.01)
    errors = compare(run, fitted, testing)
    assert errors["throughput"] is not None
    assert errors["backlog"] is not None
    assert errors["throughput"] < 0.02
    assert errors["backlog"] < 0.05


def test_another_pace_shows_as_an_error() -> None:
    run, (_, fitting, _) = played(300.0)
    slower, (_, _, testing) = played(240.0)
    errors = compare(slower, fit(run, fitting), testing)
    assert errors["backlog"] is not None
    assert errors["backlog"] > 0.15


def test_a_run_whose_batches_are_too_long_is_refused() -> None:
    run, (_, fitting, testing) = played(300.0)
    stuck = replace(run, batches=tuple(batch for batch in run.batches if batch.end_s - START_S < testing[0]))
    with pytest.raises(EngineError, match=r"Spark ended 0 batches between second \d+ and \d+, too few to compare"):
        compare(stuck, fit(run, fitting), testing)
