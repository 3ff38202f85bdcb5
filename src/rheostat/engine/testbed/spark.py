"""Trials on real Spark: a query with the trial's input rates, on a cluster of the trial's size.

All trials share one session, so that only the first one pays for its start. Each trial requests its executors; another
memory profile needs another session. Sources are open-loop: back pressure does not reach them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.clock import WallClock
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.spark.lifecycle.shape import JOB
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.spark.session.session import session
from rheostat.errors import EngineError, RheostatError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.observation import Change, Observation
from rheostat.job.slo import Bounds
from rheostat.ports import Clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MEMORY_MB = 512
"""Default memory of an executor in MB."""
MEMORIES_MB = (512, 1024, 2048, 4096, 8192)
"""Memory profiles of an executor in MB."""
GRANT_S = 120.0
"""Seconds that the cluster has to grant the executors of a trial."""
POLL_S = 2.0
"""Seconds between two observations of a trial."""


StartQuery = Callable[["SparkSession", tuple[Phase, ...], int, Path], "tuple[StreamingQuery, OffsetCounter | None]"]
"""(session, phases, slots, folder) -> the running query of a trial with its checkpoint in this folder, its counter."""


def describe_job(name: str, largest: int) -> JobSpec:
    """Return the description of a micro-batch job: one operator, whose tasks are the slots."""
    return JobSpec(name, Graph((JOB,), (), (JOB,)), (Tunable(JOB, Bounds(1, largest)),), memory_choices_mb=MEMORIES_MB)


class SparkTestbed:
    """Measures a pipeline on an embedded cluster, or on any master that can be resized."""

    def __init__(
        self,
        name: str,
        start_query: StartQuery,
        largest: int,
        *,
        master: str = "local-cluster",
        conf: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name, self._start_query, self.largest = name, start_query, largest
        self._master, self._conf, self._clock, self._notify = master, dict(conf or {}), clock or WallClock(), notify
        self._spark: SparkSession | None = None
        self._memory_mb = 0
        self._files = ExitStack()
        self._folder = Path()

    def measure(self, trial: Trial) -> Measurement:
        """Run the phases one after another and return the window of the observed ones."""
        if problem := self._problem(trial):
            return Measurement(trial, None, 0.0, 0.0, problem)
        begun_s, slots = self._clock.now(), trial.allocation.slots
        try:
            observation = self._run(trial)
            problem = observation.problem
        except RheostatError as error:
            observation, problem = None, str(error)
        seconds = self._clock.now() - begun_s
        return Measurement(trial, observation, seconds, slots * seconds, problem)

    def close(self) -> None:
        """Stop the cluster; the next trial starts another one."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = None
        self._files.close()

    def _problem(self, trial: Trial) -> str | None:
        """Return why a trial cannot run here."""
        if set(trial.allocation.tasks) != {JOB}:
            return f"the trial names {sorted(trial.allocation.tasks)}, a micro-batch job has {JOB!r} only"
        if not 1 <= trial.allocation.slots <= self.largest:
            return f"the trial needs {trial.allocation.slots} slots, this testbed has 1 to {self.largest}"
        if any(set(phase.rates_per_s) != {JOB} for phase in trial.phases):
            return f"the only source is {JOB!r}"
        observed = [phase.observed for phase in trial.phases]
        if sorted(observed) != observed:
            return "the observed phases must come last"
        return None

    def _run(self, trial: Trial) -> Observation:
        spark = self._session(trial.allocation.memory_mb or MEMORY_MB)
        observed_s = sum(phase.seconds for phase in trial.phases if phase.observed)
        # Executors may still write for a moment after their query has stopped: `close` removes these files.
        with TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder:
            self._resize(spark, trial.allocation)
            query, counter = self._start_query(spark, trial.phases, trial.allocation.slots, Path(folder))
            counters = {} if counter is None or query.name is None else {query.name: counter}
            bounds = (1, self.largest)
            engine = MicroBatchEngine(spark, [query], bounds, self._clock, window_s=observed_s, counters=counters)
            try:
                until_s = self._clock.monotonic() + trial.seconds
                while (left_s := until_s - self._clock.monotonic()) > 0 and query.isActive:
                    self._clock.sleep(min(left_s, POLL_S))
                    observation = engine.observe()
                return observation
            finally:
                engine.close()
                query.stop()

    def _session(self, memory_mb: int) -> SparkSession:
        if self._spark is not None and self._memory_mb != memory_mb:
            self.close()
        if self._spark is None:
            self._notify(f"starting Spark for up to {self.largest} executors of {memory_mb} MB")
            folder = TemporaryDirectory(prefix="rheostat-testbed-", ignore_cleanup_errors=True)
            self._folder = Path(self._files.enter_context(folder))
            conf = {**quiet(self._folder), **self._conf}
            self._spark = session(
                self.name, master=self._master, max_executors=self.largest, memory_mb=memory_mb, conf=conf
            )
            self._memory_mb = memory_mb
        return self._spark

    def _resize(self, spark: SparkSession, allocation: Allocation) -> None:
        from rheostat.engine.spark.executors.pool import Executors

        executors = Executors.of(spark.sparkContext)
        count = allocation.slots // executors.cores_per_executor
        if executors.request_and_wait(count, self._clock, GRANT_S) is not Change.NONE:
            raise EngineError(f"the cluster did not grant {count} executors within {GRANT_S:g} s")
