"""Spark in one process (`local[n]`): the driver is the only executor. It can be observed, not resized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rheostat.engine.spark.executors.scheduler import Executor, SparkScheduler

if TYPE_CHECKING:
    from pyspark import SparkContext

DRIVER = "driver"


def in_one_process(context: SparkContext) -> bool:
    """Whether all tasks run in the driver."""
    return str(context.master).startswith("local") and not str(context.master).startswith("local-cluster")


class LocalScheduler(SparkScheduler):
    """Presents the driver as the only executor."""

    def registered(self) -> tuple[str, ...]:
        """Return the driver."""
        self._check_alive()
        return (DRIVER,)

    def describe(self, executor_id: str) -> Executor | None:
        """Return the driver with its slots."""
        return Executor(executor_id, "localhost", int(self._backend.totalCores()), 0.0)

    def running_tasks(self) -> Mapping[str, int]:
        """Return {}: the driver is never removed, so its tasks do not matter."""
        return {}

    def request_total(self, executors: int) -> bool:
        """Return False: there is no cluster manager."""
        return False

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove nothing."""
        return ()

    def cores_setting(self) -> int:
        """Return `spark.executor.cores`, 1 if it is not set: executors would have that many on a cluster."""
        return super().cores_setting() or 1
