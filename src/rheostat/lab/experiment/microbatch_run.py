"""One run on micro-batches: a pipeline on an embedded Spark cluster, under one load, sized in one way.

Every trial has a process and a cluster of its own, so that none finds a warm JVM that another one paid for. What is
measured does not come from the scaler: executors are counted beside it, and batches are Spark's own reports.
"""

from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.clock import WallClock
from rheostat.control.controller import Step
from rheostat.engine.spark.session.log4j import quiet
from rheostat.errors import PolicyError, RheostatError
from rheostat.lab.experiment.by_second import BatchRun
from rheostat.lab.experiment.failures import first_line, scaler_failure
from rheostat.lab.experiment.microbatch_job import DYNAMIC, STATIC_MAX, STATIC_MIN, MicroBatchJob
from rheostat.lab.experiment.processes import kill_an_executor
from rheostat.lab.experiment.query_checkpoint import Outside
from rheostat.lab.experiment.run import Run
from rheostat.lab.experiment.trial import LIVE_GUARDS, Trial
from rheostat.lab.workload.catalog import pipeline_named
from rheostat.lab.workload.pacing import SlotsFile
from rheostat.lab.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 0.5
"""Between two looks at the executors."""
RESIZE_S = 60.0
"""Seconds that a scripted resize may take."""
FIRST_BATCH_S = 120.0
"""How long a trial waits at its end for a first batch, so that there are rows to check."""


MICROBATCH = "spark"
"""The engine, as a row has it."""
BatchTrial = Trial[MicroBatchJob]


def run_microbatches(trial: BatchTrial) -> BatchRun:
    """Run one trial in this process, which must not hold a Spark yet."""
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
    # As a user configures it: switched on, with bounds, everything else as Spark has it.
    settings = session_settings("rheostat-trial", min_executors=least, max_executors=most, conf=conf)
    own = [key for key in settings if key.startswith(("spark.stage.", "spark.cores.max"))]
    kept = {key: value for key, value in settings.items() if key not in own}
    dynamic = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(least),
        "spark.dynamicAllocation.initialExecutors": str(least),
        "spark.dynamicAllocation.maxExecutors": str(most),
    }
    return start_session({**kept, **dynamic})


class _Running:
    """A trial while it runs."""

    def __init__(self, trial: BatchTrial, spark: SparkSession, folder: Path) -> None:
        from rheostat.engine.spark.executors.pool import Executors

        self.trial, self.job, self.spark, self.folder, self.clock = trial, trial.job, spark, folder, WallClock()
        self.pipeline = pipeline_named(trial.job.pipeline)
        self.watch = Executors.of(spark.sparkContext)
        self.lever = Executors.of(spark.sparkContext)
        self.seen: list[tuple[float, int]] = []
        self.slots = SlotsFile(folder / "slots")
        self.slots.write(trial.job.start_executors(trial.way))
        self.resize_s: list[float] = []
        self.over = threading.Event()
        self.outside = Outside(folder / "checkpoint")

    def measure(self) -> BatchRun:
        from rheostat.engine.batches.progress import parse_progress
        from rheostat.engine.spark.telemetry.feed import Feed

        feed = Feed()
        self.spark.streams.addListener(feed)
        query = self._start()
        looking = threading.Thread(target=self._look, daemon=True)
        looking.start()
        start_s = self._source_start_s(query)
        steps, policy_error = self._drive(query, start_s + self.trial.duration_s, start_s)
        end_s = self.clock.now()
        self.over.set()
        looking.join()
        self._await_a_batch(query, end_s)
        failed = query.exception()
        query.stop()
        batches = [batch for text in feed.drain() if (batch := parse_progress(text)) is not None]
        checked, lost, repeated = self._compare() if self.job.checked else (0, 0, 0)
        return Run(
            self.trial,
            MICROBATCH,
            end_s - start_s,
            start_s,
            steps,
            batches=tuple(batches),
            sizes=tuple((moment - start_s, size) for moment, size in self.seen),
            resize_s=tuple(self.resize_s),
            checked=checked,
            wrong=lost,
            repeated=repeated,
            failed="" if failed is None else first_line(failed),
            policy_error=policy_error,
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
            # A batch that is tried again writes the same place again.
            try:
                frame.write.mode("overwrite").parquet(f"{result}/batch={number}")
            except Exception:
                if self.over.is_set():
                    # Interrupted by the end of the trial. Spark searches a long message with a regular expression
                    # that overflows its stack.
                    raise RuntimeError("the trial is over") from None
                raise

        return writer.foreachBatch(write).start()

    def _source_start_s(self, query: StreamingQuery) -> float:
        """Wait until the source has begun; return when."""
        while (start_s := self.outside.start_s()) is None and query.isActive:
            self.clock.sleep_until(self.clock.now() + 0.05)
        if start_s is None:
            raise RheostatError(f"the query ended at once: {query.exception()}")
        return start_s

    # -- while it runs ------------------------------------------------------------------------------------------

    def _look(self) -> None:
        while not self.over.is_set():
            size = len(self.watch.running())
            if not self.seen or self.seen[-1][1] != size:
                self.seen.append((self.clock.now(), size))
                self.slots.write(size)
            self.over.wait(LOOK_S)

    def _drive(
        self, query: StreamingQuery, until_s: float, start_s: float
    ) -> tuple[tuple[Step, ...], PolicyError | None]:
        """Let the way size the job until a moment; return its steps, and the error that ended them early."""
        trial, policy = self.trial, self.job.policy(self.trial.way)
        if policy is None:
            self._wait(query, until_s, start_s)
            return (), None
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
            return scaler.steps, scaler_failure(scaler) if query.isActive else None

    def _wait(self, query: StreamingQuery, until_s: float, start_s: float) -> None:
        script, failures = list(self.job.resizes), list(self.trial.failures_s)
        while (now_s := self.clock.now()) < until_s and query.isActive:
            if script and now_s - start_s >= script[0][0]:
                self._resize(script.pop(0)[1])
            if failures and now_s - start_s >= failures[0] and kill_an_executor():
                failures.pop(0)
            self.clock.sleep_until(min(until_s, self.clock.now() + 0.1))

    def _resize(self, executors: int) -> None:
        asked_s = self.clock.now()
        self.lever.request_and_wait(executors, self.clock, RESIZE_S)
        self.resize_s.append(self.clock.now() - asked_s)

    # -- afterwards ---------------------------------------------------------------------------------------------

    def _await_a_batch(self, query: StreamingQuery, end_s: float) -> None:
        """Let a first batch with records end, where a slow machine has not even done that: else nothing is checked."""
        while self.job.checked and self.outside.read_until(self.outside.committed()) <= 0 and query.isActive:
            if self.clock.now() > end_s + FIRST_BATCH_S:
                return
            self.clock.sleep_until(self.clock.now() + 0.1)

    def _compare(self) -> tuple[int, int, int]:
        """Hold what was written against a batch computation: rows checked, lost and repeated (or wrong)."""
        from rheostat.engine.testbed.source import batch

        committed = self.outside.committed()
        if committed < 0 or not (self.folder / "result").exists():
            return 0, 0, 0
        end_s = self.outside.read_until(committed)
        due = self.pipeline.expected(batch(self.spark, self.trial.schedule, first_s=0, last_s=end_s))
        got = final(self.spark, self.pipeline, str(self.folder / "result"), committed)
        due = closed(due, got).select(got.columns)
        return due.count(), due.exceptAll(got).count(), got.exceptAll(due).count()


def final(spark: SparkSession, pipeline: Pipeline, folder: str, committed: int) -> DataFrame:
    """Read what a pipeline has written; of counts that were updated, the last word of the batches that count."""
    from pyspark.sql import functions as sql

    written = spark.read.parquet(folder)
    if pipeline.output_mode == "append":
        return written
    keys = [name for name in written.columns if name not in ("batch", "count")]
    return written.where(f"batch <= {committed}").groupBy(*keys).agg(sql.max("count").alias("count"))


def closed(due: DataFrame, written: DataFrame) -> DataFrame:
    """Leave out windows that were not closed yet when the query stopped: those after the last one written."""
    from pyspark.sql import functions as sql

    mark = next((name for name in ("window_start", "session_end") if name in due.columns), None)
    return due if mark is None else due.where(sql.col(mark) <= written.select(sql.max(mark)).first()[0])  # type: ignore[index]
