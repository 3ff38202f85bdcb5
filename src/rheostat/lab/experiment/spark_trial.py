"""One run on real Spark: a pipeline on an embedded cluster, under one load, sized in one way.

Every trial has a process and a cluster of its own, so that none finds a warm JVM that another one paid for. What is
measured does not come from the scaler: executors are counted beside it, and batches are Spark's own reports.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.clock import WallClock
from rheostat.control.controller import Step
from rheostat.engine.batches.progress import Batch
from rheostat.engine.simulated.curves import Curve
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import InvalidValue, RheostatError
from rheostat.job.frozen import check_number
from rheostat.job.slo import Slo
from rheostat.lab.experiment.outside import Outside
from rheostat.lab.experiment.processes import in_own_process, kill_an_executor
from rheostat.lab.workload.catalog import pipeline_named
from rheostat.lab.workload.pacing import SlotsFile
from rheostat.lab.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATIC_MIN, STATIC_MAX, DYNAMIC = "static-minimum", "static-maximum", "dynamic-allocation"
"""Ways to size a job without a policy of ours."""
LOOK_S = 0.5
"""Between two looks at the executors."""
RESIZE_S = 60.0
"""How long a scripted resize may take."""
FIRST_BATCH_S = 120.0
"""How long a trial waits at its end for a first batch, so that there are rows to check."""


@dataclass(frozen=True)
class Trial:
    """Everything that decides a run."""

    pipeline: str
    schedule: Schedule
    seconds: int
    """How long it runs, from the source's first second."""
    way: str = STATIC_MIN
    """`static-minimum`, `static-maximum`, `dynamic-allocation`, or a policy with its options."""
    executors: tuple[int, int] = (1, 6)
    slot_per_s: float | None = 400.0
    """Records/s of one slot; None: as fast as the machine can."""
    curve: Curve | None = None
    """What so many slots do together, in place of a fixed pace."""
    noise: float = 0.0
    """Share by which every wait of a pace scatters evenly."""
    partitions: int = 12
    shuffle_partitions: int = 6
    trigger_s: float = 2.0
    slo: Slo = Slo()
    interval_s: float = 5.0
    window_s: float = 15.0
    resizes: tuple[tuple[float, int], ...] = ()
    """(seconds, executors): a fixed script; then `way` only says the size at the start."""
    kill_s: float | None = None
    """When one executor is killed."""
    probes: bool = False
    """Whether every narrow step has probes."""
    checked: bool = True
    """Whether the output is written and held against a batch computation; else it goes nowhere."""

    def __post_init__(self) -> None:
        pipeline_named(self.pipeline)
        check_number("seconds", self.seconds, least=1)
        check_number("slot_per_s", self.slot_per_s, least=1e-6)
        check_number("trigger_s", self.trigger_s)
        if not 1 <= self.executors[0] <= self.executors[1]:
            raise InvalidValue(f"executors of a trial are {self.executors}: smallest first, at least 1")

    @property
    def start_executors(self) -> int:
        """Executors at the start."""
        return self.executors[1] if self.way == STATIC_MAX else self.executors[0]

    @property
    def policy(self) -> str | None:
        """The policy that sizes it; None where Spark, a script or nobody does."""
        return None if self.way in (STATIC_MIN, STATIC_MAX, DYNAMIC) or self.resizes else self.way


@dataclass(frozen=True)
class TrialRun:
    """What a trial came to. Moments are seconds since the source's first second."""

    trial: Trial
    start_s: float
    """The source's first second, since the epoch."""
    end_s: float
    """When measuring ended."""
    batches: tuple[Batch, ...]
    sizes: tuple[tuple[float, int], ...]
    """(moment, executors), whenever the number changed."""
    steps: tuple[Step, ...] = ()
    killed_s: float | None = None
    rows_checked: int = 0
    rows_lost: int = 0
    rows_repeated: int = 0
    resize_s: tuple[float, ...] = ()
    """Of each scripted resize: seconds until the executors were there, or gone."""
    failed: str = ""
    """With what the query ended, "" when it ran to the end."""


Tell = Callable[[str], None]
"""Told what is going on."""


def run_trials(trials: Sequence[Trial], tell: Tell) -> list[TrialRun]:
    """Run trials one after the other, each in a process of its own."""
    done = []
    for number, trial in enumerate(trials, start=1):
        tell(f"{number} of {len(trials)}: {trial.pipeline}, {trial.way}, {trial.seconds} s")
        done.append(in_own_process(run_trial, trial))
    return done


def run_trial(trial: Trial) -> TrialRun:
    """Run one trial in this process, which must not hold a Spark yet."""
    with TemporaryDirectory(prefix="rheostat-trial-") as folder:
        spark = _session(trial, Path(folder))
        try:
            return _Running(trial, spark, Path(folder)).measure()
        finally:
            spark.stop()


def _session(trial: Trial, folder: Path) -> SparkSession:
    from rheostat.engine.spark.session.session import session, session_settings, started

    conf = {
        **quiet(folder),
        "spark.sql.shuffle.partitions": str(trial.shuffle_partitions),
        "spark.sql.session.timeZone": "UTC",
    }
    least, most = trial.executors
    if trial.way != DYNAMIC:
        bounds = (trial.start_executors, trial.start_executors if trial.way in (STATIC_MIN, STATIC_MAX) else most)
        return session("rheostat-trial", executors=(bounds[0], most) if trial.resizes else bounds, conf=conf)
    # As a user configures it: switched on, with bounds, everything else as Spark has it.
    settings = session_settings("rheostat-trial", "local-cluster", trial.executors, 1, 512, conf)
    own = [key for key in settings if key.startswith(("spark.stage.", "spark.cores.max"))]
    kept = {key: value for key, value in settings.items() if key not in own}
    dynamic = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(least),
        "spark.dynamicAllocation.initialExecutors": str(least),
        "spark.dynamicAllocation.maxExecutors": str(most),
    }
    return started({**kept, **dynamic}, embedded=True)


class _Running:
    """A trial while it runs."""

    def __init__(self, trial: Trial, spark: SparkSession, folder: Path) -> None:
        from rheostat.engine.spark.executors.pool import Executors

        self.trial, self.spark, self.folder, self.clock = trial, spark, folder, WallClock()
        self.pipeline = pipeline_named(trial.pipeline)
        self.watch = Executors.of(spark.sparkContext)
        self.lever = Executors.of(spark.sparkContext)
        self.seen: list[tuple[float, int]] = []
        self.slots = SlotsFile(folder / "slots")
        self.slots.write(trial.start_executors)
        self.resize_s: list[float] = []
        self.killed_s: float | None = None
        self.over = threading.Event()
        self.outside = Outside(folder / "checkpoint")

    def measure(self) -> TrialRun:
        from rheostat.engine.batches.progress import parse_progress
        from rheostat.engine.spark.telemetry.feed import Feed

        feed = Feed()
        self.spark.streams.addListener(feed)
        query = self._start()
        looking = threading.Thread(target=self._look, daemon=True)
        looking.start()
        start_s = self._source_start_s(query)
        steps = self._drive(query, start_s + self.trial.seconds, start_s)
        end_s = self.clock.now()
        self.over.set()
        looking.join()
        self._await_a_batch(query, end_s)
        failed = query.exception()
        query.stop()
        batches = [batch for text in feed.drain() if (batch := parse_progress(text)) is not None]
        checked, lost, repeated = self._compare() if self.trial.checked else (0, 0, 0)
        return TrialRun(
            trial=self.trial,
            start_s=start_s,
            end_s=end_s - start_s,
            batches=tuple(batches),
            sizes=tuple((moment - start_s, size) for moment, size in self.seen),
            steps=steps,
            killed_s=None if self.killed_s is None else self.killed_s - start_s,
            rows_checked=checked,
            rows_lost=lost,
            rows_repeated=repeated,
            resize_s=tuple(self.resize_s),
            failed="" if failed is None else str(failed).splitlines()[0],
        )

    # -- the query ----------------------------------------------------------------------------------------------

    def _start(self) -> StreamingQuery:
        from rheostat.engine.spark.telemetry.probe import operator
        from rheostat.engine.testbed.source import stream
        from rheostat.lab.workload.pacing import live_paced, paced
        from rheostat.lab.workload.pipeline import plain

        trial = self.trial
        events = stream(self.spark, trial.schedule, partitions=trial.partitions)
        if trial.curve is not None:
            events = live_paced(
                events,
                trial.curve,
                self.slots,
                most_slots=trial.executors[1],
                tasks=trial.partitions,
                noise=trial.noise,
            )
        elif trial.slot_per_s is not None:
            events = paced(events, trial.slot_per_s, tasks=trial.partitions, noise=trial.noise)
        built = self.pipeline.build(events, operator if trial.probes else plain)
        writer = (
            built.writeStream.queryName("trial")
            .outputMode(self.pipeline.output_mode)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(processingTime=f"{trial.trigger_s:g} seconds")
        )
        if not trial.checked:
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

    def _drive(self, query: StreamingQuery, until_s: float, start_s: float) -> tuple[Step, ...]:
        trial = self.trial
        if trial.policy is None:
            self._wait(query, until_s, start_s)
            return ()
        from rheostat.api.autoscale import autoscale
        from rheostat.config.named import parse_named
        from rheostat.engine.testbed.source import ScheduleCounter
        from rheostat.policy.registry import make_policy

        with autoscale(
            query,
            slo=trial.slo,
            executors=trial.executors,
            policy=make_policy(*parse_named(trial.policy)),
            journal=str(self.folder / "journal.db"),
            interval_s=trial.interval_s,
            window_s=trial.window_s,
            counters={"trial": ScheduleCounter(trial.schedule)},
        ) as scaler:
            self._wait(query, until_s, start_s)
            return scaler.steps

    def _wait(self, query: StreamingQuery, until_s: float, start_s: float) -> None:
        script = list(self.trial.resizes)
        while (now_s := self.clock.now()) < until_s and query.isActive:
            if script and now_s - start_s >= script[0][0]:
                self._resize(script.pop(0)[1])
            if self.trial.kill_s is not None and self.killed_s is None and now_s - start_s >= self.trial.kill_s:
                self.killed_s = now_s if kill_an_executor() else None
            self.clock.sleep_until(min(until_s, self.clock.now() + 0.1))

    def _resize(self, executors: int) -> None:
        asked_s = self.clock.now()
        self.lever.bring(executors, self.clock, RESIZE_S)
        self.resize_s.append(self.clock.now() - asked_s)

    # -- afterwards ---------------------------------------------------------------------------------------------

    def _await_a_batch(self, query: StreamingQuery, end_s: float) -> None:
        """Let a first batch with records end, where a slow machine has not even done that: else nothing is checked."""
        while self.trial.checked and self.outside.read_until(self.outside.committed()) <= 0 and query.isActive:
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
