"""Trials on real Spark: a query that is fed at the trial's rates, on a cluster of the trial's size.

The session stays between trials, so that only the first one pays for its start; executors come and go as a trial asks,
and another memory profile is another session. Sources are open-loop: they do not heed back pressure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.clock import WallClock
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.spark.lifecycle.restart import JOB
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
MEMORIES_MB = (512, 1024, 2048, 4096, 8192)
"""Memory of an executor that can be asked for."""
PATIENCE_S = 120.0
LOOK_S = 2.0


Injected = Callable[["SparkSession", tuple[Phase, ...], int, Path], "tuple[StreamingQuery, OffsetCounter | None]"]
"""Starts the query of a trial: it reads as the phases say, on so many slots, with its checkpoint in this folder."""


def described(name: str, largest: int) -> JobSpec:
    """Return a job as it is measured here: micro-batches are one operator, whose tasks are the slots."""
    return JobSpec(name, Graph((JOB,), (), (JOB,)), (Tunable(JOB, Bounds(1, largest)),), memory_choices_mb=MEMORIES_MB)


class SparkTestbed:
    """Measures a pipeline on an embedded cluster, or on any master that can be resized."""

    def __init__(
        self,
        name: str,
        inject: Injected,
        largest: int,
        *,
        master: str = "local-cluster",
        conf: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name, self._inject, self.largest = name, inject, largest
        self._master, self._conf, self._clock, self._tell = master, dict(conf or {}), clock or WallClock(), tell
        self._spark: SparkSession | None = None
        self._memory_mb = 0
        self._files = ExitStack()
        self._folder = Path()

    def measure(self, trial: Trial) -> Measurement:
        """Run the phases one after another and look at the observed ones."""
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
        """Stop the cluster; a trial after that starts another one."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = None
        self._files.close()

    def _problem(self, trial: Trial) -> str | None:
        """Say why a trial cannot be run here."""
        if set(trial.allocation.tasks) != {JOB}:
            return f"the trial names {sorted(trial.allocation.tasks)}, a micro-batch job has {JOB!r} only"
        if not 1 <= trial.allocation.slots <= self.largest:
            return f"{trial.allocation.slots} slots: this testbed has 1 to {self.largest}"
        if any(set(phase.rates_per_s) != {JOB} for phase in trial.phases):
            return f"the only source is {JOB!r}"
        observed = [phase.observed for phase in trial.phases]
        if sorted(observed) != observed:
            return "the observed phases must come last"
        return None

    def _run(self, trial: Trial) -> Observation:
        spark = self._session(trial.allocation.memory_mb or MEMORY_MB)
        observed_s = sum(phase.seconds for phase in trial.phases if phase.observed)
        # Executors may still write a moment after their query has stopped: what they leave goes with the testbed.
        with TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder:
            self._resize(spark, trial.allocation)
            query, counter = self._inject(spark, trial.phases, trial.allocation.slots, Path(folder))
            counters = {} if counter is None or query.name is None else {query.name: counter}
            bounds = (1, self.largest)
            engine = MicroBatchEngine(spark, [query], bounds, self._clock, window_s=observed_s, counters=counters)
            try:
                until_s = self._clock.now() + trial.seconds
                while self._clock.now() < until_s and query.isActive:
                    self._clock.sleep_until(min(until_s, self._clock.now() + LOOK_S))
                    found = engine.observe()
                return found
            finally:
                engine.close()
                query.stop()

    def _session(self, memory_mb: int) -> SparkSession:
        if self._spark is not None and self._memory_mb != memory_mb:
            self.close()
        if self._spark is None:
            self._tell(f"starting Spark for up to {self.largest} executors of {memory_mb} MB")
            made = TemporaryDirectory(prefix="rheostat-testbed-", ignore_cleanup_errors=True)
            self._folder = Path(self._files.enter_context(made))
            conf = {**quiet(self._folder), **self._conf}
            self._spark = session(
                self.name, master=self._master, max_executors=self.largest, memory_mb=memory_mb, conf=conf
            )
            self._memory_mb = memory_mb
        return self._spark

    def _resize(self, spark: SparkSession, allocation: Allocation) -> None:
        from rheostat.engine.spark.executors.pool import Executors

        lever = Executors.of(spark.sparkContext)
        wanted = allocation.slots // lever.cores_per_executor
        if lever.bring(wanted, self._clock, PATIENCE_S) is not Change.NONE:
            raise EngineError(f"the cluster did not give {wanted} executors within {PATIENCE_S:g} s")
