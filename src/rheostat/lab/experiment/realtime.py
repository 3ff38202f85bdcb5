"""The ground of real-time mode: tasks per stage on a real Spark and a real broker, each run predicted first.

A trial's job is the pipeline's simulated twin: the stages of the real pipeline are paced by its curves, and the
simulator predicts each run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.loads import Load, Permutation
from rheostat.errors import InvalidValue, nearest
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Observation
from rheostat.job.slo import DEFAULT_HEADROOM, SLO
from rheostat.lab.experiment.comparison import Comparison
from rheostat.lab.experiment.realtime_run import REALTIME, TWINS, paces_of, pipeline_of, run_realtime
from rheostat.lab.experiment.run import Floats, Run, Series, run_apart
from rheostat.lab.experiment.score import Column, Score, score_realtime
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Progress, Trial, check_way
from rheostat.lab.jobs.realtime import PARTITIONS, SLOTS
from rheostat.report import words

HOLD_S = 40.0
"""Seconds of a level of the default load."""


@dataclass(frozen=True)
class RealTime:
    """Predicts every trial, then runs it with its own Spark and broker."""

    name: ClassVar[str] = REALTIME
    slo: ClassVar[SLO] = SLO(headroom=DEFAULT_HEADROOM)
    lead: ClassVar[str] = (
        "The same load on a real Spark in real-time mode under each policy, each with its own broker; in grey the "
        "simulator's prediction before the run."
    )
    keys: ClassVar[tuple[str, ...]] = (
        "policy",
        "engine",
        "reconfigurations",
        "tunings",
        "reconfigurations_per_tuning",
        "slot_seconds",
        "downtime_s",
        "latency_p50_s",
        "latency_p99_s",
        "backlog_max",
        "throughput_per_s",
        "records",
        "keys_wrong",
        "repeated",
        "policy_failures",
        "failed",
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("reconfigurations", "chan-\nges", ".0f", "changes", words.number),
        Column("reconfigurations_per_tuning", "per\nlevel", ".2f", "changes per level of the load", "{:.2f}".format),
        Column("slot_seconds", "slot-\ns", ",.0f", "slot-seconds", words.number),
        Column("downtime_s", "down\ns", ".1f", "downtime of a change", words.seconds),
        Column("latency_p50_s", "p50\ns", ",.2f", "latency, 50\u00a0%", words.seconds),
        Column("latency_p99_s", "p99\ns", ",.1f", "latency, 99\u00a0%", words.seconds),
        Column("backlog_max", "backlog\nmax", ",.0f", "largest backlog, records", words.number),
        Column("keys_wrong", "keys\nwrong", ",.0f", "keys wrong", words.number),
        Column("repeated", "results\ntwice", ",.0f", "results twice", words.number),
    )

    def ways(self, name: str) -> tuple[str, ...]:
        """Return the default policies."""
        return "conttune", "ds2", "dhalion"

    def check(self, name: str, ways: Sequence[str]) -> None:
        """Refuse an unknown job or policy before anything runs."""
        realtime_twin(name)
        for way in ways:
            check_way(way)

    def trial(
        self, name: str, load: Load | None, seconds: int | None, slo: SLO, interval_s: float, progress: Progress
    ) -> Trial[Plant]:
        """Return the trial without its policy; its default length is that of the load's levels."""
        twin, shape = realtime_twin(name), load or Permutation(repeats=1, hold_s=HOLD_S)
        natural_s = getattr(shape, "top", 10) * getattr(shape, "repeats", 1) * getattr(shape, "hold_s", HOLD_S)
        length = -(-(seconds or int(natural_s)) // 5) * 5
        return Trial(twin, shape, length, interval_s, slo, start=equal_shares(twin))

    def run(self, trials: Sequence[Trial[Plant]], progress: Progress) -> tuple[Run[Plant], ...]:
        """Predict all trials, then run them one after the other."""
        progress(f"{trials[0].job.name}: predicting {', '.join(trial.way for trial in trials)}")
        return (*Simulated().run(trials, progress), *run_apart(run_realtime, trials, progress))

    def score(self, ways: Sequence[str], runs: Sequence[Run[Plant]]) -> tuple[Score, ...]:
        """Return every policy's predicted row, then the measured ones."""
        predicted = Simulated().score(ways, [run for run in runs if run.engine == Simulated.name])
        rows = (*predicted, *(score_realtime(run) for run in runs if run.engine == self.name))
        tunings = levels(runs[0].trial)
        return tuple(
            replace(row, tunings=tunings, reconfigurations_per_tuning=row.reconfigurations / tunings) for row in rows
        )

    def subject(self, trial: Trial[Plant]) -> str:
        """Return the pipeline's name and its mode."""
        return f"{pipeline_of(trial.job)} in real-time mode"

    def facts(self, trial: Trial[Plant]) -> Mapping[str, str]:
        """Return the pipeline, its stages and its slots."""
        return {
            "pipeline": pipeline_of(trial.job),
            **{f"pace of {name}": f"{pace.curve}" for name, pace in paces_of(trial.job).items()},
            "slots": f"{SLOTS}, {PARTITIONS} of them for the source",
            "start": words.value(trial.start),
        }

    def notes(self, comparison: Comparison[Plant]) -> Sequence[str]:
        """Return how to read the rows."""
        return (
            "Latency is from a record's timestamp to the arrival of its result at the broker; downtime is the longest "
            "silence of the output topic after a change. A Kafka sink gets the results of an interrupted batch twice. "
            "The best of each column is marked; less is better in all of them.",
        )

    def series(self, run: Run[Plant]) -> Sequence[Series]:
        """Return load, tasks of every stage, backlog and latency of the windows."""
        windows = [step.observation for step in run.steps]
        at_s = np.array([window.at_s - run.start_s for window in windows])

        def by_window(value: Callable[[Observation], float | None]) -> Floats:
            return np.array([np.nan if (one := value(window)) is None else one for window in windows], dtype=float)

        def tasks(stage: str) -> Floats:
            return by_window(lambda window: None if window.running is None else window.running.tasks.get(stage))

        schedule = run.trial.schedule
        load = np.diff([schedule.due(second) for second in range(schedule.seconds + 1)]).astype(float)
        late_s = by_window(lambda window: None if window.latency is None else window.latency.event_p99_s)
        latency = "Latency as the job reports it, 99 %, seconds (log scale)"
        return (
            Series("Load, records/s", np.arange(schedule.seconds, dtype=float), load, "/s", 110, step=True),
            *(
                Series(f"Tasks of {stage}", at_s, tasks(stage), " tasks", 130, step=True)
                for stage in paces_of(run.trial.job)
            ),
            Series("Backlog, records", at_s, by_window(lambda window: window.backlog)),
            Series(latency, at_s, late_s, " s", 180, log=True, limit=run.trial.slo.max_latency_s),
        )


def realtime_twin(name: str) -> Plant:
    """Return the simulated twin of a real-time pipeline."""
    if name not in TWINS:
        raise InvalidValue(f"unknown real-time job {name!r}, {nearest(name, TWINS)}")
    return TWINS[name]()


def equal_shares(plant: Plant) -> Allocation:
    """Return an equal share of the slots as tasks of every stage."""
    names = plant.spec().tunable_names
    return Allocation(dict.fromkeys(names, (SLOTS - PARTITIONS) // len(names)))


def levels(trial: Trial[Plant]) -> int:
    """Count the levels of a load; noise within a level is not a new level."""
    level = trial.seeded_load.level(np.arange(trial.schedule.seconds, dtype=float))
    return 1 + int(np.count_nonzero(np.diff(np.round(level, 6))))
