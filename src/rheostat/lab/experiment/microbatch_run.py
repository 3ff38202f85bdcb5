"""One run on micro-batches: a pipeline on an embedded Spark cluster, under one load, sized in one way.

Every trial has its own process and cluster, so that none profits from a warm JVM. Measurements do not come from the
scaler: executors are counted beside it, and batches are Spark's own progress reports.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rheostat.clock import WallClock
from rheostat.control.controller import Step
from rheostat.engine.batches.stage import batch_of, moment_s
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.spark.telemetry.rows import Rows
from rheostat.engine.spark.telemetry.stages import API
from rheostat.errors import PolicyError, RheostatError, first_line
from rheostat.lab.experiment.by_second import BatchRun
from rheostat.lab.experiment.failures import scaler_failure
from rheostat.lab.experiment.microbatch_job import DYNAMIC, STATIC_MAX, STATIC_MIN, MicroBatchJob
from rheostat.lab.experiment.processes import kill_an_executor
from rheostat.lab.experiment.run import Run, TaskWork
from rheostat.lab.experiment.trial import LIVE_GUARDS, Trial
from rheostat.lab.query_checkpoint import CheckpointReader
from rheostat.lab.workload.catalog import pipeline_named
from rheostat.lab.workload.pacing import SlotsFile
from rheostat.lab.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.5
"""Seconds between two counts of the executors."""
RESIZE_S = 60.0
"""Seconds for a scripted resize."""
FIRST_BATCH_S = 120.0
"""Seconds that a trial waits at its end for a first batch, so that there are rows to check."""
MOST_STAGES, MOST_TASKS = 4096, 1024
"""Stages of an application, and tasks of a stage, to read at the end."""
STAGE_FIELDS = frozenset(["stageId", "attemptId", "status", "description", "inputRecords", "executorRunTime"])
TASK_FIELDS = {
    "TaskData": frozenset(["launchTime", "duration", "status", "taskMetrics"]),
    "TaskMetrics": frozenset(["inputMetrics"]),
    "InputMetrics": frozenset(["recordsRead"]),
}

MICROBATCH = "spark"
"""Name of the engine in a row."""
BatchTrial = Trial[MicroBatchJob]


def run_microbatches(trial: BatchTrial) -> BatchRun:
    """Run one trial in this process, which must not have a SparkSession yet."""
    with TemporaryDirectory(prefix="rheostat-trial-") as folder:
        spark = _session(trial, Path(folder))
        try:
            return _Running(trial, spark, Path(folder)).measure()
        except PolicyError as error:  # the policy failed before the first step: nothing was measured
            start = trial.job.start_executors(trial.way)
            return Run(trial, MICROBATCH, 0.0, sizes=((0.0, start),), policy_error=error)
        finally:
            spark.stop()


def _session(trial: BatchTrial, folder: Path) -> SparkSession:
    from rheostat.engine.spark.session.session import session, session_settings, start_session

    conf = {
        **quiet(folder),
        "spark.sql.shuffle.partitions": str(trial.job.shuffle_partitions),
        "spark.sql.session.timeZone": "UTC",
    }
    least, most = trial.job.executors
    if trial.way != DYNAMIC:
        start = trial.job.start_executors(trial.way)
        fixed = trial.way in (STATIC_MIN, STATIC_MAX) and not trial.job.resizes
        return session("rheostat-trial", min_executors=start, max_executors=start if fixed else most, conf=conf)
    # As a user configures it: enabled, with bounds, and Spark's defaults otherwise.
    settings = session_settings("rheostat-trial", min_executors=least, max_executors=most, conf=conf)
    own = [key for key in settings if key.startswith(("spark.stage.", "spark.cores.max"))]
    standard = {key: value for key, value in settings.items() if key not in own}
    dynamic = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(least),
        "spark.dynamicAllocation.initialExecutors": str(least),
        "spark.dynamicAllocation.maxExecutors": str(most),
    }
    return start_session({**standard, **dynamic})


class _Running:
    """A trial while it runs."""

    def __init__(self, trial: BatchTrial, spark: SparkSession, folder: Path) -> None:
        from rheostat.engine.spark.executors.pool import Executors

        self.trial, self.job, self.spark, self.folder, self.clock = trial, trial.job, spark, folder, WallClock()
        self.pipeline = pipeline_named(trial.job.pipeline)
        self.counter = Executors.of(spark.sparkContext)
        self.resizer = Executors.of(spark.sparkContext)
        self.sizes: list[tuple[float, int]] = []
        self.slots = SlotsFile(folder / "slots")
        self.slots.write(trial.job.start_executors(trial.way))
        self.resize_s: list[float] = []
        self.over = threading.Event()
        self.checkpoint = CheckpointReader(folder / "checkpoint")

    def measure(self) -> BatchRun:
        from rheostat.engine.batches.progress import parse_progress
        from rheostat.engine.spark.telemetry.feed import Feed

        feed = Feed()
        self.spark.streams.addListener(feed)
        query = self._start()
        counting = threading.Thread(target=self._count_executors, daemon=True)
        counting.start()
        try:
            start_s = self._source_start_s(query)
            steps, scaler_failed = self._drive(query, start_s + self.trial.duration_s, start_s)
            end_s = self.clock.now()
        finally:
            self.over.set()
            counting.join()
        self._await_a_batch(query, end_s)
        failed = query.exception()
        query.stop()
        tasks = tuple(input_tasks(self.spark.sparkContext, str(query.runId)))
        batches = [batch for text in feed.drain() if (batch := parse_progress(text)) is not None]
        checked, lost, repeated = self._compare() if self.job.checked else (0, 0, 0)
        return Run(
            self.trial,
            MICROBATCH,
            end_s - start_s,
            start_s,
            steps,
            batches=tuple(batches),
            tasks=tasks,
            sizes=tuple((moment - start_s, size) for moment, size in self.sizes),
            resize_s=tuple(self.resize_s),
            checked=checked,
            wrong=lost,
            repeated=repeated,
            failed=scaler_failed if failed is None else first_line(failed),
        )

    # -- the query ----------------------------------------------------------------------------------------------

    def _start(self) -> StreamingQuery:
        from rheostat.engine.testbed.source import stream
        from rheostat.lab.workload.pacing import live_paced, paced

        job, tasks = self.job, self.job.partitions
        events = stream(self.spark, self.trial.schedule, partitions=tasks)
        if job.curve is not None:
            most = job.executors[1]
            events = live_paced(events, job.curve, self.slots, most_slots=most, tasks=tasks, noise=job.noise)
        elif job.slot_per_s is not None:
            events = paced(events, job.slot_per_s, tasks=tasks, noise=job.noise)
        writer = (
            self.pipeline.build(events)
            .writeStream.queryName("trial")
            .outputMode(self.pipeline.output_mode)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(processingTime=f"{job.trigger_s:g} seconds")
        )
        if not job.checked:
            return writer.format("noop").start()
        if self.pipeline.output_mode == "append":
            return writer.format("parquet").option("path", str(self.folder / "result")).start()
        result = str(self.folder / "result")

        def write(frame: DataFrame, number: int) -> None:
            # A retried batch overwrites its first try.
            try:
                frame.write.mode("overwrite").parquet(f"{result}/batch={number}")
            except Exception:
                if self.over.is_set():
                    # The end of the trial interrupted it. Spark matches a long message with a regular expression that
                    # overflows its stack.
                    raise RuntimeError("the trial is over") from None
                raise

        return writer.foreachBatch(write).start()

    def _source_start_s(self, query: StreamingQuery) -> float:
        """Wait for the source's first second; return its epoch time."""
        while (start_s := self.checkpoint.start_s()) is None and query.isActive:
            self.clock.sleep(0.05)
        if start_s is None:
            raise RheostatError(f"the query ended before its first batch: {query.exception()}")
        return start_s

    # -- while it runs ------------------------------------------------------------------------------------------

    def _count_executors(self) -> None:
        while not self.over.is_set():
            size = len(self.counter.running())
            if not self.sizes or self.sizes[-1][1] != size:
                self.sizes.append((self.clock.now(), size))
                self.slots.write(size)
            self.over.wait(POLL_S)

    def _drive(self, query: StreamingQuery, until_s: float, start_s: float) -> tuple[tuple[Step, ...], str]:
        """Let the way size the job until a moment; return its steps, and the error that ended them early."""
        trial, policy = self.trial, self.job.policy(self.trial.way)
        if policy is None:
            self._wait(query, until_s, start_s)
            return (), ""
        from rheostat.api.autoscale import autoscale
        from rheostat.api.options import Options
        from rheostat.engine.testbed.source import ScheduleCounter

        options = Options(
            interval_s=trial.interval_s,
            window_s=trial.window_s or 3 * trial.interval_s,
            counters={"trial": ScheduleCounter(trial.schedule)},
            guards=LIVE_GUARDS,
        )
        least, most = self.job.executors
        journal = str(self.folder / "journal.db")
        with autoscale(
            query,
            min_executors=least,
            max_executors=most,
            slo=trial.slo,
            policy=policy,
            journal=journal,
            options=options,
        ) as scaler:
            self._wait(query, until_s, start_s)
            return scaler.steps, scaler_failure(scaler)

    def _wait(self, query: StreamingQuery, until_s: float, start_s: float) -> None:
        script, failures = list(self.job.resizes), list(self.trial.failures_s)
        while (now_s := self.clock.now()) < until_s and query.isActive:
            if script and now_s - start_s >= script[0][0]:
                self._resize(script.pop(0)[1])
            if failures and now_s - start_s >= failures[0] and kill_an_executor():
                failures.pop(0)
            self.clock.sleep(min(until_s - self.clock.now(), 0.1))

    def _resize(self, executors: int) -> None:
        begun_s = self.clock.now()
        self.resizer.request_and_wait(executors, self.clock, RESIZE_S)
        self.resize_s.append(self.clock.now() - begun_s)

    # -- afterwards ---------------------------------------------------------------------------------------------

    def _await_a_batch(self, query: StreamingQuery, end_s: float) -> None:
        """Wait for a first batch with records, which a slow machine may not have finished: else nothing is checked."""
        while self.job.checked and self.checkpoint.read_until(self.checkpoint.committed()) <= 0 and query.isActive:
            if self.clock.now() > end_s + FIRST_BATCH_S:
                return
            self.clock.sleep(0.1)

    def _compare(self) -> tuple[int, int, int]:
        """Compare the output with a batch computation: return the rows checked, lost, and repeated or wrong."""
        from rheostat.engine.testbed.source import batch

        committed = self.checkpoint.committed()
        if committed < 0 or not (self.folder / "result").exists():
            return 0, 0, 0
        end_s = self.checkpoint.read_until(committed)
        due = self.pipeline.expected(batch(self.spark, self.trial.schedule, first_s=0, last_s=end_s))
        got = final_rows(self.spark, self.pipeline, str(self.folder / "result"), committed)
        due = closed_windows(due, got).select(got.columns)
        return due.count(), due.exceptAll(got).count(), got.exceptAll(due).count()


def final_rows(spark: SparkSession, pipeline: Pipeline, folder: str, committed: int) -> DataFrame:
    """Read the output of a pipeline; of updated counts, the last of the committed batches."""
    from pyspark.sql import functions as sql

    written = spark.read.parquet(folder)
    if pipeline.output_mode == "append":
        return written
    keys = [name for name in written.columns if name not in ("batch", "count")]
    return written.where(f"batch <= {committed}").groupBy(*keys).agg(sql.max("count").alias("count"))


def closed_windows(due: DataFrame, written: DataFrame) -> DataFrame:
    """Drop windows that were still open when the query stopped: those after the last one written."""
    from pyspark.sql import functions as sql

    mark = next((name for name in ("window_start", "session_end") if name in due.columns), None)
    return due if mark is None else due.where(sql.col(mark) <= written.select(sql.max(mark)).first()[0])  # type: ignore[index]


def input_tasks(context: Any, run_id: str) -> Iterator[TaskWork]:
    """Yield the tasks of every batch's stage that read its input; batches that Spark has forgotten are left out.

    Of several stages with input it is the one with the most work: the table of a join takes little.
    """
    gateway, store = context._gateway, context._jsc.sc().statusStore()
    no_states = gateway.jvm.java.util.ArrayList()
    by_launch = gateway.jvm.org.apache.spark.status.api.v1.TaskSorting.ID
    listed = store.stageList(None, False, False, gateway.new_array(gateway.jvm.double, 0), no_states)
    stages: dict[int, dict[str, Any]] = {}
    for row in Rows(gateway, API, {"StageData": STAGE_FIELDS}).read(listed, MOST_STAGES):
        owner = batch_of(row)
        if owner is None or owner[0] != run_id or row["status"] != "COMPLETE" or not row["inputRecords"]:
            continue
        if row["executorRunTime"] >= stages.get(owner[1], row)["executorRunTime"]:
            stages[owner[1]] = row
    task_rows = Rows(gateway, API, TASK_FIELDS)
    for number, stage in sorted(stages.items()):
        tasks = store.taskList(stage["stageId"], stage["attemptId"], 0, MOST_TASKS, by_launch, no_states)
        for row in task_rows.read(tasks, MOST_TASKS):
            records = (row.get("taskMetrics") or {}).get("inputMetrics", {}).get("recordsRead", 0)
            start_s = moment_s(row.get("launchTime"))
            if row["status"] == "SUCCESS" and start_s is not None:
                yield number, start_s, row.get("duration", 0) / 1e3, records / stage["inputRecords"]
