"""What Rheostat costs a query on real Spark, and what a live resize costs it.

Overhead: the same query with and without probes and a scaler, turn by turn in one warm application, each turn a fixed
number of equal batches back to back. Resize: a stateful query under load, 2 -> 6 -> 2 executors again and again, its
output held against a batch computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.bench.measure import Measure, Progress
from rheostat.bench.spark_trial import Trial, TrialRun, quiet, run_trials
from rheostat.workload.loads import Constant
from rheostat.workload.schedule import Schedule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = {"q1": 500_000, "q5": 80_000}
"""Pipeline -> rows of a batch: about a second of work."""
STEP_S = 1.0
"""Between two looks of the scaler: ten times as often as it looks by default."""
SMALL, LARGE = 2, 6
HOLD_S = 15
"""Between two resizes."""


@dataclass(frozen=True)
class Turn:
    """Some batches of a query, with or without Rheostat."""

    with_rheostat: bool
    batch_s: tuple[float, ...]
    """Seconds of each batch, without the first ones of the turn."""
    step_ms: tuple[float, ...] = ()


def overhead(quick: bool, progress: Progress) -> list[Measure]:
    """Compare throughput with and without probes and scaler, on Nexmark q1 and q5 at full load."""
    pairs, batches = (3, 8) if quick else (8, 12)
    found, steps_ms = [], []
    for pipeline, rows in ROWS.items():
        progress(f"{pipeline}: {pairs} pairs of turns, {batches} batches each")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            turns = pool.submit(run_turns, pipeline, rows, pairs, batches).result()
        ratios = sorted(
            median(bare.batch_s) / median(ours.batch_s)
            for bare, ours in zip(
                (t for t in turns if not t.with_rheostat), (t for t in turns if t.with_rheostat), strict=True
            )
        )
        steps_ms += [ms for turn in turns for ms in turn.step_ms]
        rate = rows / median(s for t in turns if not t.with_rheostat for s in t.batch_s)
        note = f"{pairs} pairs from {ratios[0]:.3f} to {ratios[-1]:.3f}; without: {rate:,.0f} records/s"
        found.append(Measure("overhead", f"throughput_ratio_{pipeline}", median(ratios), "", ">= 0.99", "higher", note))
    steps_ms.sort()
    note = f"{len(steps_ms)} steps at full load, the slowest {steps_ms[-1]:.0f} ms; collect, decide, journal (SQLite)"
    found.append(Measure("overhead", "step_ms_spark", median(steps_ms), "ms", "<= 50", "lower", note))
    return found


def run_turns(pipeline: str, rows: int, pairs: int, batches: int) -> list[Turn]:
    """Run the query turn by turn in one application, in this process."""
    from rheostat.engine.spark.session import session

    with TemporaryDirectory(prefix="rheostat-overhead-") as folder:
        conf = {**quiet(Path(folder)), "spark.sql.shuffle.partitions": "2"}
        spark = session("rheostat-overhead", executors=(2, 2), memory_mb=1024, conf=conf)
        try:
            # The first pair warms the application up. Who goes first changes, so that a drift hits both.
            order = [ours for pair in range(pairs + 1) for ours in ((False, True) if pair % 2 else (True, False))]
            turns = [
                _turn(spark, pipeline, rows, batches, ours, Path(folder) / str(number))
                for number, ours in enumerate(order)
            ]
            return turns[2:]
        finally:
            spark.stop()


def _turn(spark: SparkSession, pipeline: str, rows: int, batches: int, ours: bool, folder: Path) -> Turn:
    from rheostat.clock import WallClock
    from rheostat.engine.spark.attach import autoscale
    from rheostat.engine.spark.feed import Feed
    from rheostat.engine.spark.probe import operator
    from rheostat.engine.spark.progress import Batch, parse_progress
    from rheostat.workload.catalog import pipeline_named
    from rheostat.workload.pipeline import plain

    chosen, clock = pipeline_named(pipeline), WallClock()
    events = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", 2)
        .option("startTimestamp", 0)
        .option("advanceMillisPerBatch", 1000)
        .load()
    )
    feed = Feed()
    spark.streams.addListener(feed)
    query = (
        chosen.build(events.select("value", "timestamp"), operator if ours else plain)
        .writeStream.outputMode(chosen.output_mode)
        .format("noop")
        .queryName(f"turn{folder.name}")
        .option("checkpointLocation", str(folder))
        .start()
    )
    scaler = (
        autoscale(query, executors=(2, 2), journal=str(folder) + ".db", interval_s=STEP_S, window_s=5.0)
        if ours
        else None
    )
    seen: list[Batch] = []
    while len(seen) < batches and query.isActive:
        seen += [batch for text in feed.drain() if (batch := parse_progress(text)) is not None]
        clock.sleep_until(clock.now() + 0.02)
    steps = scaler.steps if scaler is not None else ()
    if scaler is not None:
        scaler.stop()
    query.stop()
    spark.streams.removeListener(feed)
    # The first two pay for planning and for the connection of the listeners.
    return Turn(ours, tuple(batch.seconds for batch in seen[2:batches]), tuple(step.step_ms for step in steps[1:]))


def resize(quick: bool, progress: Progress) -> list[Measure]:
    """Resize a stateful query under load, and count rows lost and repeated, and seconds until it is done."""
    count = 6 if quick else 22
    script = tuple((HOLD_S * (k + 1.0), LARGE if k % 2 == 0 else SMALL) for k in range(count))
    seconds = HOLD_S * (count + 2)
    # 2.5 slots' worth: too much for two executors, so that every shrink happens under overload, and little for six.
    schedule = Schedule(Constant(1.0), 1000.0, seconds)
    trial = Trial("ysb", schedule, seconds, executors=(SMALL, LARGE), resizes=script, trigger_s=1.0)
    [run] = run_trials([trial], progress)
    grows, shrinks = run.resize_s[::2], run.resize_s[1::2]
    apart, near = batch_pace(run, script)
    done = len(run.resize_s)
    note = f"{run.rows_checked} rows of output checked after {done} resizes{': ' + run.failed if run.failed else ''}"
    return [
        Measure("resize", "rows_lost", run.rows_lost, "rows", "<= 0", "lower", note),
        Measure("resize", "rows_repeated", run.rows_repeated, "rows", "<= 0", "lower", note),
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
            near / apart if apart else 0.0,
            "x",
            "",
            "lower",
            "slot-seconds per record of batches that a shrink hit, against all others",
        ),
    ]


def batch_pace(run: TrialRun, script: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return the middle slot-seconds per record of batches away from any shrink, and of those that one fell into."""
    from rheostat.bench.spark_score import size_by_second

    sizes, due = size_by_second(run), run.trial.schedule.due
    apart: list[float] = []
    near: list[float] = []
    for batch in run.batches:
        start, end = batch.start_s - run.start_s, batch.end_s - run.start_s
        source = batch.sources[0]
        records = due(int(source.end_offset)) - due(int(source.start_offset or 0))
        held = sizes[int(start) : int(end) + 1]
        if not records or not len(held):
            continue
        pace = batch.work_s * float(held.mean()) / records
        hit = any(size == SMALL and moment - 1 <= end and start <= moment + 5 for moment, size in script)
        (near if hit else apart).append(pace)
    return (median(apart) if apart else 0.0, median(near) if near else 0.0)
