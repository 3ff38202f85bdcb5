"""Spark in one process (`local[n]`): the driver is the only executor. It can be looked at, not resized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rheostat.engine.spark.executors.scheduler import Executor, SparkScheduler

if TYPE_CHECKING:
    from pyspark import SparkContext

DRIVER = "driver"


def in_one_process(context: SparkContext) -> bool:
    """Whether everything runs in the driver."""
    return str(context.master).startswith("local") and not str(context.master).startswith("local-cluster")


class LocalScheduler(SparkScheduler):
    """Shows the driver as the one executor."""

    def registered(self) -> tuple[str, ...]:
        """Return the driver."""
        self._check_alive()
        return (DRIVER,)

    def describe(self, executor_id: str) -> Executor | None:
        """Return its slots."""
        return Executor(executor_id, "localhost", self.cores_setting(), 0.0)

    def running_tasks(self) -> Mapping[str, int]:
        """Say nothing: nobody chooses among one."""
        return {}

    def request_total(self, executors: int) -> bool:
        """Refuse."""
        return False

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove none."""
        return ()

    def cores_setting(self) -> int:
        """Ask how many tasks run at once."""
        return int(self._backend.totalCores())
