"""Calls into Spark's scheduler: list the executors, request a total number, remove some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rheostat.errors import EngineError

if TYPE_CHECKING:
    from pyspark import SparkContext

DECOMMISSION = "spark.decommission.enabled"
SHRINKS = "Rheostat shrinks the application"
"""Spark's reason for an executor that is decommissioned here."""


def is_true(value: str) -> bool:
    """Read a boolean as Spark does."""
    return value.strip().lower() == "true"


@dataclass(frozen=True, slots=True)
class Executor:
    """One executor process."""

    id: str
    host: str
    cores: int
    since_s: float
    """Its registration, seconds since the epoch."""


class Scheduler(Protocol):
    """The part of Spark's scheduler that Rheostat uses."""

    decommissions: bool
    """Whether executors that leave are decommissioned, and not killed."""

    def registered(self) -> tuple[str, ...]:
        """Return the ids of all registered executors, also of those being removed."""

    def describe(self, executor_id: str) -> Executor | None:
        """Return an executor; None until the status store has it."""

    def removal_reason(self, executor_id: str) -> str:
        """Return Spark's reason for the loss of an executor; "" until the status store has it."""

    def running_tasks(self) -> Mapping[str, int]:
        """Return the number of running tasks by executor."""

    def no_job_runs(self) -> bool:
        """Whether no job runs in the whole application."""

    def request_total(self, executors: int) -> bool:
        """Request a total number of executors from the cluster manager; return whether it acknowledged."""

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove executors without changing the total; return the ids that Spark really removes."""

    def decommissioned(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Return those of the executors that finish their tasks, get no others, and leave."""

    def withdraw(self, ids: Sequence[str]) -> None:
        """Cancel executors that were launched and are not registered yet."""

    def cores_setting(self) -> int | None:
        """Return `spark.executor.cores`."""


class SparkScheduler:
    """The scheduler of a SparkContext. It makes all untyped calls into the JVM, on the caller's thread."""

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
        # The scheduler's own set: one round trip and no delay. The status tracker scans all jobs it retains.
        self._jobs: Any = self._spark.dagScheduler().activeJobs()
        # Constant for the application. `getConf` makes one round trip per setting: 300 of them.
        cores = context._conf.get("spark.executor.cores")
        self._cores = int(cores) if cores is not None else None
        self.decommissions = is_true(context._conf.get(DECOMMISSION) or "")

    def registered(self) -> tuple[str, ...]:
        """Ask the scheduler backend, which is ahead of the status store."""
        self._check_alive()
        # One string instead of a round trip per id.
        ids = str(self._backend.getExecutorIds().mkString(","))
        return tuple(ids.split(",")) if ids else ()

    def describe(self, executor_id: str) -> Executor | None:
        """Read the status store's entry."""
        from py4j.protocol import Py4JJavaError

        try:
            entry: Any = self._store.executorSummary(executor_id)
        except Py4JJavaError:
            return None
        # Until its block manager has registered, the address of an executor is its host without a port.
        address = str(entry.hostPort())
        host = address.rpartition(":")[0] or address
        return Executor(executor_id, host, int(entry.totalCores()), int(entry.addTime().getTime()) / 1000.0)

    def removal_reason(self, executor_id: str) -> str:
        """Read the status store's entry, which retains the newest 100 dead executors."""
        from py4j.protocol import Py4JJavaError

        try:
            reason: Any = self._store.executorSummary(executor_id).removeReason()
        except Py4JJavaError:
            return ""
        return str(reason.get()).strip() if reason.isDefined() else ""

    def running_tasks(self) -> Mapping[str, int]:
        """Ask the task scheduler, which is up to date, unlike the status store."""
        pairs = str(self._tasks.runningTasksByExecutors().mkString(","))
        return {name: int(count) for name, _, count in (pair.partition(" -> ") for pair in pairs.split(",") if pair)}

    def no_job_runs(self) -> bool:
        """Check the scheduler's set of active jobs."""
        return bool(self._jobs.isEmpty())

    def request_total(self, executors: int) -> bool:
        """Call Spark's developer API."""
        return bool(self._spark.requestTotalExecutors(executors, 0, self._scala.toScalaMap({})))

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Call the scheduler backend: `SparkContext.killExecutors` would also lower the total.

        With `spark.decommission.enabled` executors move their shuffle and cached blocks first. Spark kills those that
        are still there after `spark.executor.decommission.forceKillTimeout`.
        """
        if self.decommissions:
            jvm: Any = self._context._jvm
            info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(SHRINKS, jvm.scala.Option.empty())
            return tuple(one for one in ids if self._backend.decommissionExecutor(one, info, False, False))
        # adjustTargetNumExecutors=False, or the total would fall below the request and a crashed executor would not be
        # replaced; countFailures=False, a removal is not a failure; force=True, or busy executors are skipped.
        removed = str(self._backend.killExecutors(self._scala.toSeq(list(ids)), False, False, True).mkString(","))
        return tuple(removed.split(",")) if removed else ()

    def decommissioned(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Ask the task scheduler, which gives them no more tasks: also those that a spot notice takes away."""
        return tuple(one for one in ids if bool(self._tasks.getExecutorDecommissionState(one).isDefined()))

    def withdraw(self, ids: Sequence[str]) -> None:
        """Cancel executors that a standalone master has launched and that are not registered here yet.

        The backend removes only registered executors. The master ignores unknown ids. Other cluster managers start no
        more executors than requested, so the call does nothing for them.
        """
        if not ids or not str(self._backend.getClass().getSimpleName()).startswith("Standalone"):
            return
        self._backend.client().killExecutors(self._scala.toSeq(list(ids)))

    def cores_setting(self) -> int | None:
        """Return the setting of the application."""
        return self._cores

    def _check_alive(self) -> None:
        # A stopped context returns wrong values instead of an error.
        if bool(self._spark.isStopped()):
            raise EngineError("the SparkContext is stopped: start a new session")
