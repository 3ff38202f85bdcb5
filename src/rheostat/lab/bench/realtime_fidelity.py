"""Does the simulator's real-time job behave like Spark's? Fixed tasks, a load that is too much for a while, no fitting.

Rates and curves are what the stages are paced with; batches, gaps and stretching are SPARK.md's. Throughput is all
records over the time from the load's first second to the last result: how long a job that was overrun takes to finish.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np

from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.job.allocation import Allocation
from rheostat.job.slo import Slo
from rheostat.lab.bench.measure import Measure, Progress
from rheostat.lab.experiment.realtime_compare import REALTIME_JOBS
from rheostat.lab.experiment.realtime_trial import DRAIN_S, RealTimeRun, RealTimeTrial, paces_of, run_realtime_trials
from rheostat.lab.experiment.simulated import Scenario, compare
from rheostat.lab.jobs import realtime as jobs
from rheostat.policy.static import Static

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
    """Run pipelines in real-time mode on Spark and in the simulator, and print how far apart they are."""
    courses = COURSES[:2] if quick else COURSES
    expected_s = [simulated_s(course) for course in courses]
    runs = run_realtime_trials([_trial(course) for course in courses], progress)
    errors = [error(run, due_s) for run, due_s in zip(runs, expected_s, strict=True)]
    known = [one for one in errors if one is not None]
    told = ", ".join("never ended" if one is None else f"{one:.3f}" for one in errors)
    return [
        Measure(
            "fidelity",
            "realtime_throughput_error",
            median(known) if known else float("nan"),
            "share",
            "<= 0.05",
            "lower",
            f"{len(known)} of {len(runs)} runs: {told}",
        )
    ]


def _trial(course: Course) -> RealTimeTrial:
    plant = REALTIME_JOBS[course.job]()
    [unit] = plant.unit_per_s.values()
    return RealTimeTrial(
        course.job,
        Schedule(Steps(course.levels, HOLD_S), unit, _load_s(course)),
        "static",
        paces_of(plant),
        slots=jobs.SLOTS,
        partitions=jobs.PARTITIONS,
        start=_start(plant, course).tasks,
        interval_s=INTERVAL_S,
    )


def simulated_s(course: Course) -> float:
    """Return how many seconds after the load's first one everything is done, as the simulator has it."""
    plant, load_s = REALTIME_JOBS[course.job](), _load_s(course)
    silent = (0.0,) * int(DRAIN_S // HOLD_S)
    load = Steps((*course.levels, *silent), HOLD_S)
    start = _start(plant, course)
    scenario = Scenario(plant, load, load_s + DRAIN_S, INTERVAL_S, Slo(), start=start)
    trace = compare(scenario, {"static": lambda _scenario, _seed: Static()}, [0]).run("static", 0).trace
    waiting = np.flatnonzero(trace["backlog"] > 0.5)
    return float(max(load_s, waiting[-1] + 1)) if len(waiting) else float(load_s)


def error(run: RealTimeRun, due_s: float) -> float | None:
    """Return by how much the simulated throughput differs; None where the real run did not end."""
    return None if run.drained_s is None else abs(run.drained_s / due_s - 1.0)


def _load_s(course: Course) -> int:
    return len(course.levels) * HOLD_S


def _start(plant: Plant, course: Course) -> Allocation:
    return Allocation(dict(zip(plant.spec().tunable_names, course.tasks, strict=True)))
