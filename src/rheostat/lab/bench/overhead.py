"""The cost of Rheostat for a query on real Spark, and of a live resize.

Sight: a query at full load; its scaler has its defaults, and is paused in every second stretch of batches. The CPU time
per record is compared (`lab/sight/cost.py`). A paused scaler does not listen to progress events, either. Steps:
what one takes, for one query at full load and for sixteen.

Resize: a stateful query under load, repeatedly 2 -> 6 -> 2 executors, with its output compared with a batch
computation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.clock import WallClock
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Constant
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.by_second import BatchRun, records_of, size_by_second
from rheostat.lab.experiment.failures import raise_failure
from rheostat.lab.experiment.microbatch_job import STATIC_MIN, MicroBatchJob
from rheostat.lab.experiment.microbatch_run import run_microbatches
from rheostat.lab.experiment.processes import in_own_process
from rheostat.lab.experiment.run import run_apart
from rheostat.lab.experiment.trial import Progress, Trial
from rheostat.lab.sight.cost import PAIRS, QUICK_PAIRS, Ratios, Spending, alternate, last_batch, unpaused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

ROWS = {"q1": 1_200_000, "q5": 120_000}
"""Pipeline -> rows of a batch: about a second of work."""
BATCHES, QUICK_BATCHES = 10, 7
"""Batches of a stretch: about four steps of the scaler."""
QUERIES = 16
"""Queries whose steps are measured together."""
STEPS = 12
TRIGGER = "5 seconds"
CORES = 2
SMALL, LARGE = 2, 6
HOLD_S = 25
"""Seconds between two resizes."""


@dataclass(frozen=True)
class Cost:
    """The cost of default sight for one query."""

    ratios: Ratios
    step_ms: tuple[float, ...]


def overhead(quick: bool, progress: Progress) -> list[Measure]:
    """Compare CPU times with and without a scaler, on Nexmark q1 and q5 at full load, and measure its steps."""
    pairs = QUICK_PAIRS if quick else PAIRS
    measures: list[Measure] = []
    steps_ms: list[float] = []
    batches = QUICK_BATCHES if quick else BATCHES
    for pipeline, rows in ROWS.items():
        progress(f"{pipeline}: {pairs} pairs of {batches} batches with a scaler and {batches} without")
        cost = in_own_process(run_pairs, pipeline, rows, batches, pairs)
        steps_ms += cost.step_ms
        note = f"upper end; {cost.ratios.text}; without: {cost.ratios.without_us:.2f} us of CPU per record"
        measures.append(
            Measure("overhead", f"cpu_ratio_{pipeline}", cost.ratios.interval[1], "", "<= 1.02", "lower", note)
        )
    progress(f"{QUERIES} queries")
    many_ms = in_own_process(run_many)
    measures += [
        _steps("step_ms_spark", steps_ms, "<= 40", "one query at full load"),
        _steps("step_ms_16_queries", many_ms, "<= 80", f"{QUERIES} queries, a trigger every {TRIGGER}"),
    ]
    return measures


def _steps(name: str, steps_ms: Sequence[float], goal: str, what: str) -> Measure:
    note = f"{what}: {len(steps_ms)} steps, the slowest {max(steps_ms):.0f} ms; collect, decide, journal (SQLite)"
    return Measure("overhead", name, median(steps_ms), "ms", goal, "lower", note)


def run_pairs(pipeline: str, rows: int, batches: int, pairs: int) -> Cost:
    """Run a query without end, with and without a scaler, in this process."""
    from rheostat.api.autoscale import autoscale

    with TemporaryDirectory(prefix="rheostat-overhead-") as folder:
        spark = _session(Path(folder))
        try:
            query = _endless(spark, pipeline, rows, Path(folder) / "checkpoint")

            def count() -> tuple[int, int]:
                batch = last_batch(query)
                return (0, 0) if batch is None else (batch.number, batch.number * rows)

            with autoscale(query, min_executors=CORES, max_executors=CORES, journal=f"{folder}/journal.db") as scaler:
                ratios = alternate(pairs, lambda: unpaused(scaler, spark), Spending(count, batches))
                steps_ms = tuple(step.step_ms for step in scaler.steps[1:])
            query.stop()
        finally:
            spark.stop()
    return Cost(ratios, steps_ms)


def run_many() -> tuple[float, ...]:
    """Return the milliseconds of steps with many queries, in this process."""
    from rheostat.api.autoscale import autoscale

    with TemporaryDirectory(prefix="rheostat-overhead-") as folder:
        spark = _session(Path(folder))
        try:
            queries = [
                _write(spark.readStream.format("rate").option("rowsPerSecond", 10).load(), Path(folder) / f"q{number}")
                .trigger(processingTime=TRIGGER)
                .start()
                for number in range(QUERIES)
            ]
            with autoscale(queries, min_executors=CORES, max_executors=CORES, journal=f"{folder}/journal.db") as scaler:
                while len(scaler.steps) <= STEPS and all(query.isActive for query in queries):
                    WallClock().sleep(1.0)
                raise_failure(scaler.steps)
                return tuple(step.step_ms for step in scaler.steps[1:])
        finally:
            spark.stop()


def _session(folder: Path) -> SparkSession:
    from rheostat.engine.spark.session.session import session

    conf = {**quiet(folder), "spark.sql.shuffle.partitions": "2"}
    return session("rheostat-overhead", min_executors=CORES, max_executors=CORES, memory_mb=1024, conf=conf)


def _endless(spark: SparkSession, pipeline: str, rows: int, folder: Path) -> StreamingQuery:
    """Start a query that never waits for data."""
    from rheostat.lab.workload.catalog import pipeline_named
    from rheostat.lab.workload.pipeline import plain

    definition = pipeline_named(pipeline)
    events = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", CORES)
        .option("startTimestamp", 0)
        .option("advanceMillisPerBatch", 1000)
        .load()
    )
    frame = definition.build(events.select("value", "timestamp"), plain)
    return _write(frame, folder).outputMode(definition.output_mode).start()


def _write(frame: DataFrame, folder: Path) -> DataStreamWriter:
    return frame.writeStream.format("noop").queryName(folder.name).option("checkpointLocation", str(folder))


def resize(quick: bool, progress: Progress) -> list[Measure]:
    """Resize a stateful query under load; count lost and repeated rows, and the seconds of a resize."""
    count = 4 if quick else 22
    script = tuple((HOLD_S * (k + 1.0), LARGE if k % 2 == 0 else SMALL) for k in range(count))
    seconds = HOLD_S * (count + 2)
    # The load of 2.5 slots: too much for two executors, so that every shrink ends in overload, and little for six.
    job = MicroBatchJob("ysb", "ysb", (SMALL, LARGE), trigger_s=1.0, level_per_s=1000.0, resizes=script)
    [run] = run_apart(run_microbatches, [Trial(job, Constant(1.0), seconds, way=STATIC_MIN)], progress)
    grows, shrinks = run.resize_s[::2], run.resize_s[1::2]
    apart, near = batch_pace(run, script)
    done = len(run.resize_s)
    note = f"{run.checked} rows of output checked after {done} resizes{': ' + run.failed if run.failed else ''}"
    return [
        Measure("resize", "rows_lost", run.wrong, "rows", "<= 0", "lower", note),
        Measure("resize", "rows_repeated", run.repeated, "rows", "<= 0", "lower", note),
        Measure("resize", "resizes", done, "", f">= {count}", "higher", f"{SMALL} <-> {LARGE} executors under load"),
        Measure(
            "resize", "grow_s", median(grows), "s", "", "lower", f"until all {LARGE} run; slowest {max(grows):.1f}"
        ),
        Measure(
            "resize", "shrink_s", median(shrinks), "s", "", "lower", f"until {SMALL} run; slowest {max(shrinks):.1f}"
        ),
        Measure(
            "resize",
            "shrink_batch_slowdown",
            near / apart,
            "x",
            "",
            "lower",
            "slot-seconds per record of batches during a shrink, relative to all others",
        ),
    ]


def batch_pace(run: BatchRun, script: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return the median slot-seconds per record of batches apart from any shrink, and of those during one."""
    sizes = size_by_second(run)
    apart: list[float] = []
    near: list[float] = []
    for batch in run.batches:
        start, end = batch.start_s - run.start_s, batch.end_s - run.start_s
        records = records_of(run, batch)
        held = sizes[int(start) : int(end) + 1]
        if not records or not len(held):
            continue
        pace = batch.work_s * float(held.mean()) / records
        hit = any(size == SMALL and moment - 1 <= end and start <= moment + 5 for moment, size in script)
        (near if hit else apart).append(pace)
    return (median(apart) if apart else math.nan, median(near) if near else math.nan)
