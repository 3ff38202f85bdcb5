"""The calls that Spark's scheduler takes: what runs, how many are wanted, which are to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rheostat.errors import EngineError

if TYPE_CHECKING:
    from pyspark import SparkContext


@dataclass(frozen=True, slots=True)
class Executor:
    """One executor process."""

    id: str
    host: str
    cores: int
    since_s: float
    """When it was registered, in seconds since the epoch."""


class Scheduler(Protocol):
    """The few things that Spark's scheduler is asked."""

    def registered(self) -> tuple[str, ...]:
        """Return the ids of all executors that are there, also of those about to leave."""

    def describe(self, executor_id: str) -> Executor | None:
        """Return an executor, or None while Spark's books do not have it yet."""

    def reason_gone(self, executor_id: str) -> str:
        """Return why an executor went away, as Spark says it; empty while its books do not have it yet."""

    def running_tasks(self) -> Mapping[str, int]:
        """Return how many tasks run on each executor."""

    def no_job_runs(self) -> bool:
        """Whether no job runs in the whole application."""

    def request_total(self, executors: int) -> bool:
        """Make this the number that the cluster manager keeps up; False when it was not acknowledged."""

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove executors without touching the total; return those that were really told to go."""

    def withdraw(self, ids: Sequence[str]) -> None:
        """Take back executors that were launched and are not registered yet."""

    def cores_setting(self) -> int | None:
        """Return `spark.executor.cores`."""


class SparkScheduler:
    """The scheduler of a SparkContext. Every untyped call into the JVM is in this class, on the caller's thread."""

    def __init__(self, context: SparkContext) -> None:
        if context._jsc is None:
            raise EngineError("the SparkContext is stopped: start a new session")
        jvm: Any = context._jvm
        self._context = context
        self._scala: Any = jvm.org.apache.spark.api.python.PythonUtils
        self._spark: Any = context._jsc.sc()
        self._backend: Any = self._spark.schedulerBackend()
        self._tasks: Any = self._spark.taskScheduler()
        self._store: Any = self._spark.statusStore()
        # The scheduler's own set: one round trip and no lag. The status tracker goes through all jobs it remembers.
        self._jobs: Any = self._spark.dagScheduler().activeJobs()
        # Fixed for the life of the application. `getConf` makes a round trip per setting: 300 of them.
        cores = context._conf.get("spark.executor.cores")
        self._cores = int(cores) if cores is not None else None

    def registered(self) -> tuple[str, ...]:
        """Ask the scheduler, which knows before the status store does."""
        self._check_alive()
        # One string instead of one round trip per id.
        ids = str(self._backend.getExecutorIds().mkString(","))
        return tuple(ids.split(",")) if ids else ()

    def describe(self, executor_id: str) -> Executor | None:
        """Read the status store's entry."""
        from py4j.protocol import Py4JJavaError

        try:
            entry: Any = self._store.executorSummary(executor_id)
        except Py4JJavaError:
            return None
        # Until its block manager has registered too, an executor is known by its host alone.
        address = str(entry.hostPort())
        host = address.rpartition(":")[0] or address
        return Executor(executor_id, host, int(entry.totalCores()), int(entry.addTime().getTime()) / 1000.0)

    def reason_gone(self, executor_id: str) -> str:
        """Read the status store's entry; the newest 100 dead executors are kept there."""
        from py4j.protocol import Py4JJavaError

        try:
            reason: Any = self._store.executorSummary(executor_id).removeReason()
        except Py4JJavaError:
            return ""
        return str(reason.get()).strip() if reason.isDefined() else ""

    def running_tasks(self) -> Mapping[str, int]:
        """Ask the task scheduler: exact at this moment, unlike the status store."""
        pairs = str(self._tasks.runningTasksByExecutors().mkString(","))
        return {name: int(count) for name, _, count in (pair.partition(" -> ") for pair in pairs.split(",") if pair)}

    def no_job_runs(self) -> bool:
        """Look into the scheduler's set of active jobs."""
        return bool(self._jobs.isEmpty())

    def request_total(self, executors: int) -> bool:
        """Call what Spark offers to developers."""
        return bool(self._spark.requestTotalExecutors(executors, 0, self._scala.toScalaMap({})))

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Go to the scheduler's backend: `SparkContext.killExecutors` also takes each executor off the total."""
        # adjustTargetNumExecutors=False, or the total would fall below what is wanted and a crashed executor would
        # not be replaced; countFailures=False, a removal is no failure; force=True, or busy executors are skipped.
        gone = str(self._backend.killExecutors(self._scala.toSeq(list(ids)), False, False, True).mkString(","))
        return tuple(gone.split(",")) if gone else ()

    def withdraw(self, ids: Sequence[str]) -> None:
        """Take back executors that a standalone master has launched and that are not registered here yet.

        The backend only removes executors that it knows. Ids that the master does not know are ignored, and so is
        the call where the cluster manager is another one: it starts no more executors than it was asked for.
        """
        if not ids or not str(self._backend.getClass().getSimpleName()).startswith("Standalone"):
            return
        self._backend.client().killExecutors(self._scala.toSeq(list(ids)))

    def cores_setting(self) -> int | None:
        """Return what the application was started with."""
        return self._cores

    def _check_alive(self) -> None:
        # A stopped context answers with nonsense instead of an error.
        if bool(self._spark.isStopped()):
            raise EngineError("the SparkContext is stopped: start a new session")
