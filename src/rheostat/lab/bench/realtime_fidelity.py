"""The simulator's real-time job against Spark's, with fixed tasks under a load that is too high for a while.

Nothing is fitted: rates and curves are the paces of the stages, and batches, gaps and downtimes are the defaults of the
simulated discipline. Throughput is all records over the time from the load's first second to the last result.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np

from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.loads import Steps
from rheostat.job.allocation import Allocation
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.realtime_run import DRAIN_S, TWINS, run_realtime
from rheostat.lab.experiment.run import Run, run_apart
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Progress, Trial

HOLD_S, INTERVAL_S = 15, 5.0


@dataclass(frozen=True)
class Course:
    """A pipeline with fixed tasks, and a load in levels of 15 s each."""

    job: str
    tasks: tuple[int, ...]
    levels: tuple[float, ...]


COURSES = (
    Course("wordcount", (2, 3), (3.0, 8.0, 6.0, 4.0)),
    Course("ysb", (3, 2, 2), (4.0, 8.0, 6.0, 4.0)),
    Course("wordcount", (4, 3), (5.0, 8.0, 6.0, 2.0)),
    Course("ysb", (4, 3, 1), (2.0, 5.0, 3.0, 2.0)),
    Course("wordcount", (1, 6), (1.0, 4.0, 2.0, 1.0)),
    Course("ysb", (2, 5, 5), (2.0, 6.0, 4.0, 1.0)),
)


def fidelity_of_realtime(quick: bool, progress: Progress) -> list[Measure]:
    """Run pipelines in real-time mode on Spark and in the simulator, and compare them."""
    courses = COURSES[:1] if quick else COURSES
    expected_s = [simulated_s(course) for course in courses]
    runs = run_apart(run_realtime, [_trial(course) for course in courses], progress)
    for run in runs:
        run.raise_failure()
    errors = [error(run, due_s) for run, due_s in zip(runs, expected_s, strict=True)]
    finished = [one for one in errors if one is not None]
    texts = ", ".join("not finished" if one is None else f"{one:.3f}" for one in errors)
    return [
        Measure(
            "fidelity",
            "realtime_throughput_error",
            median(finished) if finished else float("nan"),
            "share",
            "<= 0.05",
            "lower",
            f"{len(finished)} of {len(runs)} runs: {texts}",
        )
    ]


def _trial(course: Course, silence_s: float = 0.0) -> Trial[Plant]:
    twin = TWINS[course.job]()
    start = Allocation(dict(zip(twin.spec().tunable_names, course.tasks, strict=True)))
    silent = (0.0,) * int(silence_s // HOLD_S)
    load = Steps((*course.levels, *silent), HOLD_S)
    return Trial(twin, load, len(load.levels) * HOLD_S, INTERVAL_S, start=start, way="static")


def simulated_s(course: Course) -> float:
    """Return the seconds from the load's first one until the simulated job has finished."""
    run = Simulated(stop_at_failure=True).run([_trial(course, DRAIN_S)], lambda _: None)[0]
    waiting = np.flatnonzero(run.trace["backlog"] > 0.5)
    load_s = float(len(course.levels) * HOLD_S)
    return max(load_s, float(waiting[-1] + 1)) if len(waiting) else load_s


def error(run: Run[Plant], due_s: float) -> float | None:
    """Return the relative error of the simulated throughput; None if the real run did not finish."""
    return None if run.drained_s is None else abs(run.drained_s / due_s - 1.0)
