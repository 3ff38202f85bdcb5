"""The same load on real Spark, sized in several ways: fixed sizes, Spark's own dynamic allocation, and policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rheostat.config.named import parse_named
from rheostat.engine.simulated.curves import Curve, Usl
from rheostat.engine.testbed.loads import Load, Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import InvalidValue, nearest
from rheostat.job.slo import Slo
from rheostat.lab.experiment.spark_score import Score, score
from rheostat.lab.experiment.spark_trial import DYNAMIC, STATIC_MAX, STATIC_MIN, Tell, Trial, TrialRun, run_trials
from rheostat.policy.registry import POLICIES, make_policy

LEVELS = (2.0, 4.0, 6.0, 10.0, 6.0, 3.0, 2.0, 2.0)
"""The demo's load: it rises, spikes and falls."""
SLO = Slo(max_latency_s=15.0, headroom=0.3)
SECONDS = 160
CALIBRATION, CALIBRATION_STEP_S, CALIBRATION_PER_S, CALIBRATION_S = (0.01, 0.01, 0.01, 0.01, 1.0, 0.001), 5, 200_000, 60
"""How one executor is measured: 20 s of little to warm up, a burst of a million records in 5 s, and time for it. Under
a load that stays every batch would be a multiple of the one before, and none but the first would end."""
PEAK_SLOTS = 1.4
"""Executors that a CPU-bound job needs at the load's highest level: more than one, less than a 2-core machine has."""

CONTENDED = Usl(400.0, 0.06, 0.005)
"""Six slots do four times what one does."""


@dataclass(frozen=True)
class SparkJob:
    """A pipeline as it is compared."""

    pipeline: str
    slot_per_s: float | None
    """Records/s of one slot; None: CPU-bound, as fast as the machine can."""
    executors: tuple[int, int]
    curve: Curve | None = None
    """What so many slots do together, in place of a fixed pace."""
    noise: float = 0.0
    """Share by which every wait of a pace scatters evenly."""
    partitions: int = 12
    shuffle_partitions: int = 6
    trigger_s: float = 2.0
    why: str = ""

    @property
    def unit_per_s(self) -> float | None:
        """Records/s at level 1; None where it must be measured first."""
        one = self.slot_per_s if self.curve is None else self.curve.ability_per_s(1)
        return None if one is None else one / 4


SPARK_JOBS: Mapping[str, SparkJob] = {
    "ysb": SparkJob("ysb", 400.0, (1, 6), why="the demo's job, paced: a slot does 400 records/s"),
    "ysb-cpu": SparkJob(
        "ysb",
        None,
        (1, 2),
        partitions=4,
        shuffle_partitions=4,
        why="unpaced and CPU-bound; the load is set by what a slot can do",
    ),
    "wordcount": SparkJob(
        "wordcount",
        None,
        (1, 6),
        CONTENDED,
        0.1,
        why="paced, the more slots the less each does; keeps its counts for ever",
    ),
    "q5": SparkJob("q5", None, (1, 6), CONTENDED, 0.1, why="paced as wordcount; sliding windows"),
}
"""Name -> job of `rheostat compare --engine spark`."""


def ways(job: SparkJob) -> tuple[str, ...]:
    """Return what is compared unless told otherwise."""
    return (STATIC_MIN, STATIC_MAX, DYNAMIC, f"trigger-interval:interval_s={job.trigger_s:g}", "hpa", "ds2")


def check_way(text: str) -> None:
    """Refuse a way to size a job that does not exist, before anything runs."""
    if text in (STATIC_MIN, STATIC_MAX, DYNAMIC):
        return
    name, options = parse_named(text)
    known = [STATIC_MIN, STATIC_MAX, DYNAMIC, *POLICIES]
    if name not in POLICIES and not name.endswith(".py"):
        raise InvalidValue(f"unknown policy {name!r}, {nearest(name, known)}")
    make_policy(name, options)


def spark_job(name: str) -> SparkJob:
    """Return a job by its name."""
    if name not in SPARK_JOBS:
        raise InvalidValue(f"unknown Spark job {name!r}, {nearest(name, SPARK_JOBS)}")
    return SPARK_JOBS[name]


def demo_load(seconds: int) -> Steps:
    """Return the demo's load, spread over so many seconds."""
    return Steps(LEVELS, max(5, seconds // len(LEVELS) // 5 * 5))


@dataclass(frozen=True)
class SparkComparison:
    """All trials of a comparison, and a row for each."""

    job: str
    unit_per_s: float
    runs: tuple[TrialRun, ...]
    rows: tuple[Score, ...]
    notes: tuple[str, ...] = ()


def compare_on_spark(
    name: str,
    asked: Sequence[str],
    tell: Tell,
    *,
    load: Load | None = None,
    seconds: int = SECONDS,
    slo: Slo = SLO,
    interval_s: float = 5.0,
) -> SparkComparison:
    """Run one job under one load in each of the ways, one after the other."""
    job = spark_job(name)
    for text in asked:
        check_way(text)
    notes = []
    unit = job.unit_per_s
    if unit is None:
        tell(f"{name}: measuring what one executor can do")
        ability = slot_ability(job, tell)
        unit = PEAK_SLOTS * ability / max(LEVELS)
        notes.append(f"one executor did {ability:,.0f} records/s; level 1 is {unit:,.0f} records/s")
    shape = load or demo_load(seconds)
    length = -(-seconds // 5) * 5
    base = Trial(
        job.pipeline,
        Schedule(shape, unit, length),
        seconds,
        executors=job.executors,
        slot_per_s=job.slot_per_s,
        curve=job.curve,
        noise=job.noise,
        partitions=job.partitions,
        shuffle_partitions=job.shuffle_partitions,
        trigger_s=job.trigger_s,
        slo=slo,
        interval_s=interval_s,
        window_s=3 * interval_s,
    )
    runs = run_trials([replace(base, way=text) for text in asked], tell)
    return SparkComparison(name, unit, tuple(runs), tuple(score(run) for run in runs), tuple(notes))


def slot_ability(job: SparkJob, tell: Tell) -> float:
    """Measure what one executor of an unpaced job does per second: it is warmed up, and then gets a burst."""
    schedule = Schedule(Steps(CALIBRATION, CALIBRATION_STEP_S), CALIBRATION_PER_S, CALIBRATION_S)
    trial = Trial(
        job.pipeline,
        schedule,
        CALIBRATION_S,
        executors=(1, 1),
        slot_per_s=None,
        partitions=job.partitions,
        shuffle_partitions=job.shuffle_partitions,
        trigger_s=0.0,
        checked=False,
    )
    [run] = run_trials([trial], tell)
    sizes = [
        (schedule.due(int(b.sources[0].end_offset)) - schedule.due(int(b.sources[0].start_offset or 0)), b.seconds)
        for b in run.batches
    ]
    # Small batches say what a batch costs, not what a record does.
    full = [(records, seconds) for records, seconds in sizes if records >= CALIBRATION_PER_S]
    if not full:
        raise InvalidValue(f"{job.pipeline}: one executor did not finish the burst within {CALIBRATION_S} s")
    return sum(records for records, _ in full) / sum(seconds for _, seconds in full)
