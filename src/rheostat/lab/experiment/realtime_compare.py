"""The same load on a real-time pipeline under several policies: on real Spark, and as the simulator predicts it.

The simulated job is the one source of rates and curves: the stages of the real pipeline are paced along them. The
prediction is made before the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import median
from typing import Any

import numpy as np

from rheostat.config.named import parse_named
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.loads import Load, Permutation
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import InvalidValue, nearest
from rheostat.job.allocation import Allocation
from rheostat.job.slo import Slo
from rheostat.lab.experiment.realtime_trial import RealTimeRun, RealTimeTrial, Tell, paces_of, run_realtime_trials
from rheostat.lab.experiment.simulated import Scenario, compare
from rheostat.lab.experiment.spark_compare import check_way
from rheostat.lab.jobs import realtime as jobs
from rheostat.policy.registry import make_policy

REALTIME_JOBS = {"wordcount": jobs.word_count, "ysb": jobs.ysb}
WAYS = ("conttune", "ds2", "dhalion")
SLO = Slo(headroom=0.1)
HOLD_S, INTERVAL_S = 40.0, 5.0


@dataclass(frozen=True)
class RealTimeScore:
    """One policy's line, on Spark or in the simulator."""

    policy: str
    engine: str
    reconfigurations: int
    tunings: int
    """How often the load changed, the first level included."""
    reconfigurations_per_tuning: float
    slot_seconds: float
    downtime_s: float
    """Of a change, the middle one: on Spark, the longest silence of the output around it."""
    latency_p50_s: float
    latency_p99_s: float
    backlog_max: float
    throughput_per_s: float
    """Records per second from the load's first second until it ended."""
    records: int = 0
    keys_wrong: int = 0
    repeated: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a JSON file."""
        return asdict(self)


@dataclass(frozen=True)
class RealTimeComparison:
    """A comparison: predictions, runs, and a row for each."""

    job: str
    runs: tuple[RealTimeRun, ...]
    rows: tuple[RealTimeScore, ...]


def side_by_side(rows: Sequence[RealTimeScore]) -> list[RealTimeScore]:
    """Return every policy's measured row, and the predicted one behind it."""
    names = list(dict.fromkeys(row.policy for row in rows))
    return sorted(rows, key=lambda row: (names.index(row.policy), row.engine == "simulated"))


def realtime_job(name: str) -> Plant:
    """Return the simulated twin of a real-time pipeline."""
    if name not in REALTIME_JOBS:
        raise InvalidValue(f"unknown real-time job {name!r}, {nearest(name, REALTIME_JOBS)}")
    return REALTIME_JOBS[name]()


def compare_realtime(
    name: str,
    asked: Sequence[str],
    tell: Tell,
    *,
    load: Load | None = None,
    seconds: int | None = None,
    slo: Slo = SLO,
    interval_s: float = INTERVAL_S,
) -> RealTimeComparison:
    """Predict, then run one job under one load with each of the policies."""
    plant = realtime_job(name)
    for text in asked:
        check_way(text)
    shape = load or Permutation(repeats=1, hold_s=HOLD_S)
    length = seconds or int(getattr(shape, "top", 10) * getattr(shape, "repeats", 1) * getattr(shape, "hold_s", HOLD_S))
    length = -(-length // 5) * 5
    [unit] = plant.unit_per_s.values()
    start = equal_shares(plant)
    rows = []
    for text in asked:
        tell(f"{name}: predicting {text}")
        rows.append(predicted(plant, text, shape, length, slo, interval_s, start))
    trial = RealTimeTrial(
        name,
        Schedule(shape, unit, length),
        "",
        paces_of(plant),
        slots=jobs.SLOTS,
        partitions=jobs.PARTITIONS,
        start=start.tasks,
        slo=slo,
        interval_s=interval_s,
        window_s=plant.metrics.window_s,
    )
    runs = run_realtime_trials([replace(trial, way=text) for text in asked], tell)
    return RealTimeComparison(name, tuple(runs), (*rows, *(score(run) for run in runs)))


def equal_shares(plant: Plant) -> Allocation:
    """Return the same number of tasks for every stage, as many as there are slots for."""
    names = plant.spec().tunable_names
    return Allocation(dict.fromkeys(names, (jobs.SLOTS - jobs.PARTITIONS) // len(names)))


def predicted(
    plant: Plant, text: str, load: Load, seconds: int, slo: Slo, interval_s: float, start: Allocation
) -> RealTimeScore:
    """Run the same in the simulator."""
    scenario = Scenario(plant, load, float(seconds), interval_s, slo, start=start)
    name, options = parse_named(text)
    found = compare(scenario, {text: lambda _scenario, _seed: make_policy(name, options)}, [0])
    run = found.run(text, 0)
    downtimes = [s.observation.downtime_s for s in run.steps if s.observation.downtime_s]
    tunings = levels(Schedule(load, 1000.0, seconds))
    return RealTimeScore(
        text,
        "simulated",
        run.reconfigurations,
        tunings,
        run.reconfigurations / tunings,
        run.slot_seconds,
        median(downtimes) if downtimes else 0.0,
        float(np.quantile(run.trace["latency_s"], 0.5)),
        float(np.quantile(run.trace["latency_s"], 0.99)),
        float(run.trace["backlog"].max()),
        float(run.trace["throughput_per_s"].mean()) if "throughput_per_s" in run.trace else 0.0,
    )


def score(run: RealTimeRun) -> RealTimeScore:
    """Add a run on Spark up."""
    changes = sum(step.intent is not None for step in run.steps)
    tunings = levels(run.trial.schedule)
    seen = [step.observation for step in run.steps]
    held = 0.0
    for number, window in enumerate(seen):
        until_s = seen[number + 1].at_s if number + 1 < len(seen) else run.start_s + run.end_s
        since_s = run.start_s if number == 0 else window.at_s
        held += (window.running.slots if window.running else 0) * max(0.0, until_s - since_s)
    latency = run.latency
    return RealTimeScore(
        run.trial.way,
        "spark-realtime",
        changes,
        tunings,
        changes / tunings,
        held,
        median(run.silences_s) if run.silences_s else 0.0,
        latency.p50_ms / 1e3 if latency else 0.0,
        latency.p99_ms / 1e3 if latency else 0.0,
        max((window.backlog for window in seen if window.backlog is not None), default=0.0),
        run.records / (run.drained_s or run.end_s),
        run.records,
        run.keys_wrong,
        run.repeated,
    )


def levels(schedule: Schedule) -> int:
    """Count the levels of a load, one after the other; noise within a level is no new one."""
    rate = schedule.load.level(np.arange(schedule.seconds, dtype=float))
    return sum(1 for _ in groupby(np.round(rate, 6)))
