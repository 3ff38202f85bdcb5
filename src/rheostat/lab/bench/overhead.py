"""The overhead of Rheostat for a query on real Spark, and the cost of a live resize.

Overhead: the same query with and without probes, in one warm application at full load. Their batches alternate, so that
other load on the machine hits both; the CPU times of their tasks are compared. (In separate turns, one-second batches
differ by 30 % from turn to turn.) The scaler controls one of the two; its steps take time from both, and each counts as
if it occupied one core.

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from rheostat.lab.workload.pipeline import Around

ROWS = {"q1": 500_000, "q5": 80_000}
"""Pipeline -> rows of a batch: about a second of work."""
INTERVAL_S = 2.0
"""Seconds between two steps of the scaler, for many steps in a short time."""
DEFAULT_INTERVAL_S = 10.0
"""Seconds between two steps by default; the overhead is computed for this interval."""
CORES = 2
SMALL, LARGE = 2, 6
WARM_UP = 8
"""First batches of either query, which are not counted."""
HOLD_S = 25
"""Seconds between two resizes."""


@dataclass(frozen=True)
class Pairs:
    """Alternating batches of the same query with and without probes."""

    ratios: tuple[float, ...]
    """CPU time of the tasks without probes over that with probes, of every pair."""
    rate_per_s: float
    """Records per second of one core, without probes."""
    step_ms: tuple[float, ...]


def overhead(quick: bool, progress: Progress) -> list[Measure]:
    """Compare throughput with and without probes and scaler, on Nexmark q1 and q5 at full load."""
    batches = 12 if quick else 60
    measures: list[Measure] = []
    steps_ms: list[float] = []
    for pipeline, rows in ROWS.items():
        progress(f"{pipeline}: {batches} batches with probes and {batches} without")
        pairs = in_own_process(run_pairs, pipeline, rows, batches)
        steps_ms += pairs.step_ms
        ratios, scaler = sorted(pairs.ratios), median(pairs.step_ms) / 1e3 / (DEFAULT_INTERVAL_S * CORES)
        quarter = len(ratios) // 4
        note = (
            f"probes {median(ratios):.3f} (half of {len(ratios)} pairs from {ratios[quarter]:.3f} to "
            f"{ratios[-quarter - 1]:.3f}), scaler {1 - scaler:.4f}; without: {pairs.rate_per_s:,.0f} records/s and core"
        )
        ratio = median(ratios) * (1 - scaler)
        measures.append(Measure("overhead", f"throughput_ratio_{pipeline}", ratio, "", ">= 0.99", "higher", note))
    steps_ms.sort()
    note = f"{len(steps_ms)} steps at full load, the slowest {steps_ms[-1]:.0f} ms; collect, decide, journal (SQLite)"
    measures.append(Measure("overhead", "step_ms_spark", median(steps_ms), "ms", "<= 50", "lower", note))
    return measures


def run_pairs(pipeline: str, rows: int, batches: int) -> Pairs:
    """Run the query with and without probes at the same time, in this process."""
    from rheostat.api.autoscale import autoscale
    from rheostat.api.options import Options
    from rheostat.clock import WallClock
    from rheostat.engine.spark.session.session import session
    from rheostat.engine.spark.telemetry.probe import operator
    from rheostat.engine.spark.telemetry.stages import Stages
    from rheostat.lab.workload.pipeline import plain

    with TemporaryDirectory(prefix="rheostat-overhead-") as folder:
        conf = {**quiet(Path(folder)), "spark.sql.shuffle.partitions": "2"}
        spark = session("rheostat-overhead", min_executors=CORES, max_executors=CORES, memory_mb=1024, conf=conf)
        try:
            clock, stages = WallClock(), Stages(spark.sparkContext)
            bare, ours = (
                _endless(spark, pipeline, rows, around, Path(folder) / name)
                for name, around in (("bare", plain), ("ours", operator))
            )
            spent: dict[str, dict[int, float]] = {str(bare.runId): {}, str(ours.runId): {}}
            with autoscale(
                ours,
                min_executors=CORES,
                max_executors=CORES,
                journal=f"{folder}/journal.db",
                options=Options(interval_s=INTERVAL_S, window_s=10.0),
            ) as scaler:
                while min(map(len, spent.values())) < batches + WARM_UP and bare.isActive and ours.isActive:
                    for stage in stages.read_finished():
                        done = spent[stage.run_id]
                        done[stage.batch] = done.get(stage.batch, 0.0) + stage.cpu_s
                    clock.sleep(1.0)
                raise_failure(scaler.steps)
                steps_ms = tuple(step.step_ms for step in scaler.steps[1:])
            for query in (bare, ours):
                query.stop()
        finally:
            spark.stop()
    without, probed = (list(done.values())[WARM_UP:-1] for done in spent.values())
    return Pairs(
        tuple(one / other for one, other in zip(without, probed, strict=False)), rows / median(without), steps_ms
    )


def _endless(spark: SparkSession, pipeline: str, rows: int, around: Around, folder: Path) -> StreamingQuery:
    """Start a query that never waits for data."""
    from rheostat.lab.workload.catalog import pipeline_named

    definition = pipeline_named(pipeline)
    events = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", CORES)
        .option("startTimestamp", 0)
        .option("advanceMillisPerBatch", 1000)
        .load()
    )
    return (
        definition.build(events.select("value", "timestamp"), around)
        .writeStream.outputMode(definition.output_mode)
        .format("noop")
        .queryName(folder.name)
        .option("checkpointLocation", str(folder))
        .start()
    )


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
