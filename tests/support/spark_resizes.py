"""A real embedded cluster, resized while a stateful query runs. Run as a script it prints one JSON object per line.

    python spark_resizes.py FOLDER PART...

PART is `back-to-back` (batches without a gap), `overload` (batches of seconds: no boundary in time), `crash` (SIGKILL
of an executor) or `partial` (more executors than the cluster has). The first two take the first size and the sizes
after it: `overload:5,2,4`.
The source sends the numbers 0, 1, 2, ... so that the exact result is known.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, expr, window
from pyspark.sql.functions import sum as total
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engine.spark.executors.pool import Executors, Loss
from rheostat.engine.spark.executors.scheduler import SparkScheduler
from rheostat.engine.spark.session.session import session
from rheostat.job.observation import Change

LARGEST = 5
KEYS = 7
WINDOW_BATCHES = 2
SETTLE_S = 60.0
PARTITIONS = 4


@dataclass(frozen=True)
class Load:
    """The size of a batch, and the sleep of its slots in the stages before and after the first shuffle."""

    rows_per_batch: int
    sleep_ms: int
    """Sleep at every hundredth row of a partition, in each of two stages."""
    boundary_s: float
    phase_s: float
    """Longest time between the start of a batch's job and a resize."""


LOADS = {
    # On a busy machine even small batches take seconds, so the wait for the boundary is long.
    "back-to-back": Load(800, 0, 20.0, 0.5),
    # 80 sleeps of 40 ms in each of two stages: 1.6 s on 4 slots, 6.4 s on one.
    "overload": Load(8_000, 40, 0.2, 0.8),
}


def losses(executors: Executors) -> tuple[Loss, ...]:
    return executors.survey(SETTLE_S, time.time()).losses


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def paced(rows: DataFrame, name: str, sleep_ms: int) -> DataFrame:
    """Add sleeps without Python workers."""
    pause = f"case when (value div {PARTITIONS}) % 100 = 0 then java_method('java.lang.Thread','sleep',{sleep_ms}L) end"
    return rows.withColumn(name, expr(pause if sleep_ms else "cast(null as string)"))


def start(spark: SparkSession, load: Load, folder: Path) -> StreamingQuery:
    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", load.rows_per_batch)
        .option("numPartitions", PARTITIONS)
        .option("startTimestamp", 0)
        .option("advanceMillisPerBatch", 1000)
        .load()
    )
    first = paced(numbers, "pause_1", load.sleep_ms)
    second = paced(first.repartition(PARTITIONS), "pause_2", load.sleep_ms)
    counted = (
        second.withWatermark("timestamp", "0 seconds")
        .groupBy(window("timestamp", f"{WINDOW_BATCHES} seconds"), (col("value") % KEYS).alias("key"))
        .agg(
            count("*").alias("rows"),
            total("value").alias("total"),
            count("pause_1").alias("p1"),
            count("pause_2").alias("p2"),
        )
        # Spark prunes an unused column, with its pauses.
        .select(col("window.start").cast("long").alias("start_s"), "key", "rows", "total", "p1", "p2")
    )
    return (
        counted.writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "result"))
        .start()
    )


def compare(spark: SparkSession, load: Load, folder: Path) -> dict[str, Any]:
    """Compare the sink's rows with the sums of the same numbers, for every window up to the last one written."""
    written = spark.read.parquet(str(folder / "result")).collect()
    got: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in written:
        got.setdefault((row.start_s, row.key), []).append((row["rows"], row.total))
    windows = max(start_s for start_s, _ in got) // WINDOW_BATCHES + 1
    width = load.rows_per_batch * WINDOW_BATCHES
    lost = repeated = wrong = 0
    for k in range(windows):
        numbers = range(k * width, (k + 1) * width)
        rows = Counter(n % KEYS for n in numbers)
        for key in range(KEYS):
            entries = got.pop((k * WINDOW_BATCHES, key), [])
            found = sum(n for n, _ in entries)
            lost += max(rows[key] - found, 0)
            repeated += max(found - rows[key], 0)
            wrong += sum(t for _, t in entries) != sum(n for n in numbers if n % KEYS == key) or len(entries) != 1
    return {
        "windows": windows,
        "rows": windows * width,
        "rows_lost": lost,
        "rows_repeated": repeated,
        "wrong": wrong + len(got),
    }


def settle(executors: Executors, patience_s: float = SETTLE_S) -> tuple[Change, float]:
    """Repeat the request until its number runs, or for `patience_s`; this removes executors that register late."""
    started = time.monotonic()
    while (state := executors.state(patience_s, time.time())) is Change.UNDER_WAY:
        if executors.wanted is not None:
            executors.request(executors.wanted)
        time.sleep(0.02)
    return state, time.monotonic() - started


def batches(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def wait_for_batches(query: StreamingQuery, more: int, seconds: float = 60.0) -> None:
    goal, deadline = batches(query) + more, time.monotonic() + seconds
    while batches(query) < goal and query.isActive and time.monotonic() < deadline:
        time.sleep(0.02)


def into_a_batch(scheduler: SparkScheduler, query: StreamingQuery, after_s: float) -> None:
    """Return while a job runs, some time after its start: the worst moment for a resize."""
    for runs in (False, True):
        while scheduler.no_job_runs() is runs and query.isActive:
            time.sleep(0.002)
    time.sleep(after_s)


def resizes(spark: SparkSession, folder: Path, part: str, sizes: list[int]) -> None:
    load = LOADS[part]
    scheduler, rng = SparkScheduler(spark.sparkContext), random.Random(1)
    executors = Executors(scheduler, boundary_s=load.boundary_s)
    executors.request(sizes[0])
    settle(executors)
    query = start(spark, load, folder / part)
    try:
        wait_for_batches(query, 2)
        for size in sizes[1:]:
            into_a_batch(scheduler, query, rng.uniform(0.0, load.phase_s))
            before, notes = len(executors.running()), list[str]()
            started = time.monotonic()
            done = executors.request(size, notes.append)
            state, _ = settle(executors)
            seconds = time.monotonic() - started
            say(
                part=part,
                event="resize",
                before=before,
                wanted=size,
                running=len(executors.running()),
                state=state,
                seconds=round(seconds, 2),
                removed=len(done.removed),
                at_boundary=done.at_boundary,
                waited_s=round(done.waited_s, 3),
                notes=notes,
                again=again(executors, size),
            )
            wait_for_batches(query, 1)
        wait_for_batches(query, 2 * WINDOW_BATCHES)
    finally:
        error = query.exception()
        last = batches(query)
        query.stop()
    say(
        part=part,
        event="result",
        error=str(error) if error else None,
        batches=last + 1,
        losses=len(losses(executors)),
        **compare(spark, load, folder / part),
    )


def again(executors: Executors, size: int) -> dict[str, object]:
    """Repeat a fulfilled request."""
    notes: list[str] = []
    done = executors.request(size, notes.append)
    return {"notes": notes, "removed": len(done.removed)}


def process_of(executor_id: str, application: str) -> int:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if application.encode() in words and words[words.index(b"--executor-id") + 1] == executor_id.encode():
            return int(folder.name)
    raise LookupError(f"no process of executor {executor_id}")


def crash(spark: SparkSession, folder: Path, part: str, sizes: list[int]) -> None:
    """Kill one executor of two under a running query."""
    executors, load = Executors.of(spark.sparkContext), LOADS["back-to-back"]
    executors.request(2)
    settle(executors)
    query = start(spark, load, folder / part)
    try:
        wait_for_batches(query, 2)
        victim = executors.running()[0]
        os.kill(process_of(victim.id, spark.sparkContext.applicationId), signal.SIGKILL)
        started = time.monotonic()
        while not losses(executors) and time.monotonic() - started < SETTLE_S:
            time.sleep(0.02)
        noticed_s, state = time.monotonic() - started, executors.state(SETTLE_S, time.time())
        after, _ = settle(executors)
        seconds = time.monotonic() - started
        wait_for_batches(query, 2 * WINDOW_BATCHES)
    finally:
        error = query.exception()
        query.stop()
    say(
        part=part,
        event="result",
        error=str(error) if error else None,
        victim=victim.id,
        losses=[(loss.executor.id, loss.reason) for loss in losses(executors)],
        noticed_s=round(noticed_s, 2),
        state=state,
        after=after,
        seconds=round(seconds, 2),
        running=len(executors.running()),
        **compare(spark, load, folder / part),
    )


def partial(spark: SparkSession, folder: Path, part: str, sizes: list[int]) -> None:
    """Request more executors than the cluster has."""
    executors = Executors.of(spark.sparkContext)
    executors.request(LARGEST)
    settle(executors)
    executors.request(LARGEST + 3)
    first = executors.state(3.0, time.time())
    state, _ = settle(executors, patience_s=3.0)
    say(
        part=part,
        event="result",
        first=first,
        state=state,
        wanted=executors.wanted,
        running=len(executors.running()),
        cores=executors.cores_per_executor,
    )


PARTS = {"back-to-back": resizes, "overload": resizes, "crash": crash, "partial": partial}


def main(folder: str, *parts: str) -> None:
    started = time.monotonic()
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "UTC",
        **json.loads(os.environ.get("SPARK_RESIZES_CONF", "{}")),
    }
    spark = session("resizes", min_executors=2, max_executors=LARGEST, conf=conf)
    spark.sparkContext.setLogLevel(os.environ.get("SPARK_RESIZES_LOG", "OFF"))
    running = Executors.of(spark.sparkContext).running()
    say(
        part="session",
        event="result",
        seconds=round(time.monotonic() - started, 1),
        running=len(running),
        hosts=sorted({e.host for e in running}),
    )
    for word in parts:
        part, _, sizes = word.partition(":")
        try:
            PARTS[part](spark, Path(folder), part, [int(size) for size in sizes.split(",") if size])
        except Exception:  # noqa: BLE001 - one part that fails must not hide the others
            say(part=part, event="error", error=traceback.format_exc())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
