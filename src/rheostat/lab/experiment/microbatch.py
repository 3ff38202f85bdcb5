"""The ground of micro-batches: the same load on a real Spark cluster, sized in several ways, one after the other.

The ways are policies, fixed sizes and Spark's own dynamic allocation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rheostat.engine.testbed.loads import Load, Steps
from rheostat.errors import InvalidValue
from rheostat.job.slo import DEFAULT_HEADROOM, SLO
from rheostat.lab.experiment.by_second import BatchRun, backlog, latencies, records_of, size_by_second
from rheostat.lab.experiment.comparison import Comparison
from rheostat.lab.experiment.microbatch_job import FIXED, MicroBatchJob, microbatch_job
from rheostat.lab.experiment.microbatch_run import MICROBATCH, BatchTrial, run_microbatches
from rheostat.lab.experiment.run import Series, run_apart
from rheostat.lab.experiment.score import Column, Score, score_batches
from rheostat.lab.experiment.trial import Progress, Trial, check_way
from rheostat.report import words

LEVELS = (2.0, 4.0, 6.0, 10.0, 6.0, 3.0, 2.0, 2.0)
"""Levels of the demo's load: it rises, spikes and falls."""
SECONDS = 160
"""Default length of a trial."""
CALIBRATION, CALIBRATION_STEP_S, CALIBRATION_PER_S, CALIBRATION_S = (0.01, 0.01, 0.01, 0.01, 1.0, 0.001), 5, 200_000, 60
"""Load that measures one executor: 20 s of warm-up, a burst of a million records in 5 s, and time to process it. Under
a constant overload each batch is a multiple of the one before, and only the first one ends."""
PEAK_SLOTS = 1.4
"""Executors that a CPU-bound job needs at the highest level: more than one, fewer than a 2-core machine has."""


@dataclass(frozen=True)
class MicroBatches:
    """Runs every trial on its own embedded cluster."""

    name: ClassVar[str] = MICROBATCH
    slo: ClassVar[SLO] = SLO(max_latency_s=15.0, headroom=DEFAULT_HEADROOM)
    lead: ClassVar[str] = (
        "The same load on a real Spark, sized in each of these ways, one after the other, each on its own cluster."
    )
    keys: ClassVar[tuple[str, ...]] = (
        "policy",
        "reconfigurations",
        "slot_seconds",
        "slot_seconds_over_oracle",
        "slot_seconds_over_maximum",
        "slo_seconds_over",
        "peak_slots",
        "cost",
        "changes_per_day",
        "latency_p95_s",
        "latency_p99_s",
        "backlog_max",
        "reaction_s",
        "decision_ms",
        "rows_checked",
        "rows_lost",
        "rows_repeated",
        "policy_failures",
        "failed",
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("slot_seconds", "executor\nseconds", ",.0f", "executor-seconds", words.number),
        Column("slot_seconds_over_maximum", "/ max", ".2f", "share of static maximum", lambda v: f"{v:.2f}"),
        Column("slo_seconds_over", "s over\nSLO", ",.0f", "seconds over the SLO", words.number),
        Column("latency_p95_s", "latency\np95 s", ",.1f", "latency, 95\u00a0%", words.seconds),
        Column("latency_p99_s", "latency\np99 s", ",.1f", "latency, 99\u00a0%", words.seconds),
        Column("backlog_max", "backlog\nmax", ",.0f", "largest backlog, records", words.number),
        Column("reaction_s", "enough\nafter s", ",.0f", "enough executors after the largest rise", words.seconds),
        Column("reconfigurations", "chan-\nges", ".0f", "changes of size", words.number),
        Column("rows_lost", "rows\nlost", ",.0f", "rows lost", words.number),
        Column("rows_repeated", "rows\ntwice", ",.0f", "rows repeated", words.number),
    )

    def ways(self, name: str) -> tuple[str, ...]:
        """Return the default ways."""
        return (*FIXED, f"trigger-interval:interval_s={microbatch_job(name).trigger_s:g}", "hpa", "ds2")

    def check(self, name: str, ways: Sequence[str]) -> None:
        """Refuse an unknown job or way before anything runs."""
        microbatch_job(name)
        for way in ways:
            check_way(way, FIXED)

    def trial(
        self, name: str, load: Load | None, seconds: int | None, slo: SLO, interval_s: float, progress: Progress
    ) -> BatchTrial:
        """Return the trial without its way; the pace of an unpaced job's slot is measured first."""
        job, length = microbatch_job(name), seconds or SECONDS
        if not job.unit_per_s:
            progress(f"{name}: measuring the capacity of one executor")
            capacity_per_s = slot_capacity_per_s(job, progress)
            job = replace(job, level_per_s=PEAK_SLOTS * capacity_per_s / max(LEVELS))
            progress(f"one executor: {capacity_per_s:,.0f} records/s; level 1 is {job.level_per_s:,.0f} records/s")
        return Trial(job, load or demo_load(length), length, interval_s, slo)

    def run(self, trials: Sequence[BatchTrial], progress: Progress) -> tuple[BatchRun, ...]:
        """Run the trials one after the other."""
        return run_apart(run_microbatches, trials, progress)

    def score(self, ways: Sequence[str], runs: Sequence[BatchRun]) -> tuple[Score, ...]:
        """Return a row per way."""
        return tuple(map(score_batches, runs))

    def subject(self, trial: BatchTrial) -> str:
        """Return the job's name and the ground."""
        return f"{trial.job.name} on Spark"

    def facts(self, trial: BatchTrial) -> Mapping[str, str]:
        """Return the pipeline and its cluster."""
        job = trial.job
        if job.curve is not None:
            pace = f"{job.curve}, noise {job.noise:g}"
        else:
            pace = "unpaced" if job.slot_per_s is None else f"{job.slot_per_s:g} records/s"
        return {
            "pipeline": job.pipeline,
            "pace of a slot": pace,
            "executors": f"{job.executors[0]} to {job.executors[1]}, one core each",
            "partitions": f"{job.partitions}, {job.shuffle_partitions} after the shuffle",
            "trigger every": words.seconds(job.trigger_s),
            "level 1 of the load": f"{words.number(trial.level_per_s)} records/s",
        }

    def notes(self, comparison: Comparison[MicroBatchJob]) -> Sequence[str]:
        """Return how to read the rows."""
        return (
            "The best of each column is marked; less is better in all of them.",
            "Latency is from a record's arrival at the source to the end of the batch with its result; the latency of "
            "a record without a result is its age at the end.",
        )

    def series(self, run: BatchRun) -> Sequence[Series]:
        """Return load, executors, backlog and latency."""
        at_s, late_s, records = latencies(run)
        latency = "Latency of the second's records, seconds (log scale)"
        return (
            Series("Load, records/s", at_s, records, "/s", 110, step=True),
            Series("Executors", at_s, size_by_second(run), " executors", 210, step=True),
            Series("Backlog, records without a result", at_s, backlog(run)),
            Series(latency, at_s, late_s, " s", 210, log=True, limit=run.trial.slo.max_latency_s),
        )


def demo_load(seconds: int) -> Steps:
    """Return the demo's load, spread over these seconds."""
    return Steps(LEVELS, max(5, seconds // len(LEVELS) // 5 * 5))


def slot_capacity_per_s(job: MicroBatchJob, progress: Progress) -> float:
    """Measure the capacity of one executor of an unpaced job: a warm-up, then a burst."""
    alone = replace(job, executors=(1, 1), trigger_s=0.0, level_per_s=CALIBRATION_PER_S, checked=False)
    trial = Trial(alone, Steps(CALIBRATION, CALIBRATION_STEP_S), CALIBRATION_S, way=FIXED[0])
    [run] = run_apart(run_microbatches, [trial], progress)
    sizes = [(records_of(run, batch), batch.seconds) for batch in run.batches]
    # Small batches measure the cost of a batch, not of a record.
    full = [(records, seconds) for records, seconds in sizes if records >= CALIBRATION_PER_S]
    if not full:
        raise InvalidValue(
            f"{job.pipeline}: one executor did not finish the calibration burst within {CALIBRATION_S} s: "
            "the machine is too slow or too busy"
        )
    return sum(records for records, _ in full) / sum(seconds for _, seconds in full)
