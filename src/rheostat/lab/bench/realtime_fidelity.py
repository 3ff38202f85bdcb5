"""The simulator's real-time job against Spark's, with fixed tasks under a load that is too high for a while.

Rates and curves are the paces of the stages, corrected by how long their waits really were, which the probes of the
same run measure: a wait on a busy machine is a few percent too long. Nothing else is fitted: batches, gaps and
downtimes are the defaults of the simulated discipline. Throughput is all records over the time from the load's first
second to the last result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, median

import numpy as np

from rheostat.engine.simulated.curves import Curve
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.loads import Steps
from rheostat.job.allocation import Allocation
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.realtime_run import DRAIN_S, TWINS, run_realtime
from rheostat.lab.experiment.run import Floats, Run, run_apart
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
    runs = run_apart(run_realtime, [_trial(course, TWINS[course.job]()) for course in courses], progress)
    for run in runs:
        run.raise_failure()
    paces = [real_paces(run) for run in runs]
    twins = [simulate(course, pace) for course, pace in zip(courses, paces, strict=True)]
    shares = [share for pace in paces for share in pace.values()] or [1.0]
    note = f"stages at {min(shares):.1%} to {max(shares):.1%} of their pace"
    return [
        _measure("throughput", "<= 0.05", [throughput_error(*pair) for pair in zip(runs, twins, strict=True)], note),
        _measure("backlog", "<= 0.15", [backlog_error(*pair) for pair in zip(runs, twins, strict=True)], note),
    ]


def _measure(what: str, goal: str, errors: Sequence[float | None], note: str) -> Measure:
    """Return the median over the runs, with all of them in the note."""
    known = [one for one in errors if one is not None]
    texts = ", ".join("not finished" if one is None else f"{one:.3f}" for one in errors)
    value = median(known) if known else float("nan")
    text = f"{len(known)} of {len(errors)} runs: {texts}; {note}"
    return Measure("fidelity", f"realtime_{what}_error", value, "share", goal, "lower", text)


def _trial(course: Course, twin: Plant, silence_s: float = 0.0) -> Trial[Plant]:
    start = Allocation(dict(zip(twin.spec().tunable_names, course.tasks, strict=True)))
    silent = (0.0,) * int(silence_s // HOLD_S)
    load = Steps((*course.levels, *silent), HOLD_S)
    return Trial(twin, load, len(load.levels) * HOLD_S, INTERVAL_S, start=start, way="static")


def real_paces(run: Run[Plant]) -> dict[str, float]:
    """Return each stage's true rate as a share of its pace, in the median of the run's windows."""
    shares: dict[str, list[float]] = {}
    stages = {stage.name: stage for stage in run.trial.job.operators if stage.pinned_tasks is None}
    for step in run.steps:
        for reading in step.observation.operators if step.observation.usable else ():
            if reading.name in stages and reading.true_rate_per_s:
                paced_per_s = stages[reading.name].curve.capacity_per_s(reading.tasks) / reading.tasks
                shares.setdefault(reading.name, []).append(reading.true_rate_per_s / paced_per_s)
    return {name: median(values) for name, values in shares.items()}


def simulate(course: Course, paces: Mapping[str, float]) -> Floats:
    """Return the simulated backlog at the end of every second, at these shares of the paces."""
    plant = TWINS[course.job]()
    stages = (replace(stage, curve=Slowed(stage.curve, paces.get(stage.name, 1.0))) for stage in plant.operators)
    twin = replace(plant, operators=tuple(stages))
    run = Simulated(stop_at_failure=True).run([_trial(course, twin, DRAIN_S)], lambda _: None)[0]
    backlog: Floats = run.trace["backlog"]
    return backlog


@dataclass(frozen=True)
class Slowed:
    """A curve at a share of its capacities."""

    curve: Curve
    share: float

    def capacity_per_s(self, tasks: int) -> float:
        """Return the capacity of these tasks."""
        return self.share * self.curve.capacity_per_s(tasks)


def throughput_error(run: Run[Plant], backlog: Floats) -> float | None:
    """Return the relative error of the simulated throughput; None if the real run did not finish."""
    waiting = np.flatnonzero(backlog > 0.5)
    due_s = max(float(run.trial.schedule.seconds), float(waiting[-1] + 1) if len(waiting) else 0.0)
    return None if run.drained_s is None else abs(run.drained_s / due_s - 1.0)


def backlog_error(run: Run[Plant], backlog: Floats) -> float | None:
    """Return the difference of the mean backlogs per level of the load, as a share of the real ones; None without any.

    Within a level the backlog jumps with every batch, and its phase says nothing about the job.
    """
    real: dict[int, list[float]] = {}
    ours: dict[int, list[float]] = {}
    for step in run.steps:
        second, seen = step.observation.at_s - run.start_s, step.observation.backlog
        if seen is not None and 0 <= second < run.trial.schedule.seconds:
            level = int(second // HOLD_S)
            real.setdefault(level, []).append(seen)
            ours.setdefault(level, []).append(float(backlog[int(second)]))
    total = sum(mean(seen) for seen in real.values())
    return sum(abs(mean(ours[level]) - mean(seen)) for level, seen in real.items()) / total if total else None
