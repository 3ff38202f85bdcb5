"""The CPU time of an application with a scaler over that without it, in alternating stretches of one run.

A scaler lives in the driver, and executors do nothing for it. Their CPU time is most of the application's, and scatters
by several percent from one stretch to the next, with garbage collection and with other machines on the same host. So
the ratio is 1 plus what the driver (Python and JVM) has spent more, as a share of the whole. The ratio of the whole
application, executors included, stands beside it.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import combinations_with_replacement, zip_longest
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.errors import EngineError
from rheostat.lab.experiment.failures import raise_failure
from rheostat.lab.experiment.processes import driver_jvm, executors_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from rheostat.api.scaler import Scaler
    from rheostat.engine.spark.telemetry.feed import Feed

PAIRS, QUICK_PAIRS = 12, 6
"""Pairs of stretches of a bench; fewer than six have no interval."""
OUTSIDE = 0.05
"""Share of the cases outside an interval."""
POLL_S = 0.2
PATIENCE_S = 240.0
"""Seconds that a stretch may take."""
STAT_TIMES = slice(11, 13)
"""User and system time among the fields of /proc/PID/stat after the command's name."""


@dataclass(frozen=True)
class Spent:
    """CPU seconds, all of them or per record."""

    driver_s: float
    executors_s: float = 0.0

    @property
    def total_s(self) -> float:
        """CPU seconds of the application."""
        return self.driver_s + self.executors_s


@dataclass(frozen=True)
class Ratios:
    """The cost per record with over that without, one value per pair of stretches."""

    values: tuple[float, ...]
    without_us: float
    """CPU time per record without, in microseconds."""
    whole: Ratios | None = None
    """The same with the executors' differences; None where they are in it."""

    @property
    def mean(self) -> float:
        """The mean ratio."""
        return mean(self.values)

    @property
    def middle(self) -> float:
        """The median of all means of two ratios (Hodges and Lehmann)."""
        return median(self._means)

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the 95 % interval of the middle, by Wilcoxon's signed ranks; infinite below six pairs.

        One stretch in ten is disturbed from outside, by up to a quarter (seen on 2026-11-18): an interval of the mean
        would show little else.
        """
        rank = largest_rank(len(self.values))
        return (-math.inf, math.inf) if rank is None else (self._means[rank], self._means[-1 - rank])

    @property
    def text(self) -> str:
        """The middle and its interval."""
        low, high = self.interval
        return (
            f"{self.middle:.3f}, 95 % from {low:.3f} to {high:.3f} (Wilcoxon), mean {self.mean:.3f}, "
            f"{len(self.values)} pairs"
            + ("" if self.whole is None else f"; with the executors' differences {self.whole.text}")
        )

    @property
    def _means(self) -> list[float]:
        return sorted((one + other) / 2 for one, other in combinations_with_replacement(self.values, 2))


def largest_rank(pairs: int) -> int | None:
    """Return the largest sum of signed ranks that comes by chance in 2.5 % of the cases at most; None without one."""
    ways = [1]
    for rank in range(1, pairs + 1):
        ways = [a + b for a, b in zip_longest(ways, [0] * rank + ways, fillvalue=0)]
    rare = [rank for rank in range(len(ways)) if sum(ways[: rank + 1]) <= OUTSIDE / 2 * 2**pairs]
    return max(rare, default=None)


class Spending:
    """The CPU time of this process, its JVM and its executors per record of a query."""

    def __init__(self, count: Callable[[], tuple[int, int]], batches: int) -> None:
        """`count` returns the finished batches and their records; a stretch has this number of batches."""
        self._count, self._batches = count, batches
        jvm = driver_jvm(os.getpid())
        self._driver = [os.getpid(), *([jvm] if jvm else [])]
        self._executors = executors_below(os.getpid())

    def stretch(self) -> Spent:
        """Wait for the end of a batch, let the batches of a stretch pass, and return the CPU seconds per record."""
        records, before = self._after(1)
        later, after = self._after(self._batches)
        count = later - records
        return Spent((after.driver_s - before.driver_s) / count, (after.executors_s - before.executors_s) / count)

    def _after(self, batches: int) -> tuple[int, Spent]:
        done, deadline_s = self._count()[0] + batches, time.monotonic() + PATIENCE_S
        while (count := self._count())[0] < done:
            if time.monotonic() > deadline_s:
                raise EngineError(f"{batches} batches did not end within {PATIENCE_S:g} s")
            time.sleep(POLL_S)
        return count[1], Spent(sum(map(cpu_s, self._driver)), sum(map(cpu_s, self._executors)))


def alternate(pairs: int, what: Callable[[], AbstractContextManager[object]], spending: Spending) -> Ratios:
    """Play pairs of stretches, with and without; every second pair begins with the other one."""
    costs: list[tuple[Spent, Spent]] = []
    for _ in range(2):  # warm: both ways run code for the first time
        with what():
            spending.stretch()
    for pair in range(pairs):
        cost = {}
        for on in (False, True) if pair % 2 else (True, False):
            with what() if on else nullcontext():
                cost[on] = spending.stretch()
        costs.append((cost[True], cost[False]))
        print(f"pair {pair + 1} of {pairs}: {ratios_of(costs[-1:]).values[0]:.3f}", file=sys.stderr, flush=True)
    return ratios_of(costs)


@contextmanager
def unpaused(scaler: Scaler, spark: SparkSession) -> Iterator[None]:
    """Let a scaler listen and work for a stretch; between two of them it does neither."""
    feed: Feed = scaler._engine.telemetry.feed  # type: ignore[attr-defined]
    spark.streams.removeListener(feed)  # it listens before the first stretch
    spark.streams.addListener(feed)
    scaler.resume()
    try:
        yield
    finally:
        scaler.pause()
        spark.streams.removeListener(feed)
    raise_failure(scaler.steps)


def last_batch(query: StreamingQuery) -> Batch | None:
    """Return the last finished batch, by two calls: `lastProgress` of PySpark takes about 900."""
    progress = query._jsq.lastProgress()
    return None if progress is None else parse_progress(str(progress.json()))


def ratios_of(costs: Sequence[tuple[Spent, Spent]]) -> Ratios:
    """Return the ratios of pairs (with, without)."""
    without_us = 1e6 * mean(other.total_s for _, other in costs)
    values = tuple(1 + (one.driver_s - other.driver_s) / other.total_s for one, other in costs)
    if not any(spent.executors_s for pair in costs for spent in pair):
        return Ratios(values, without_us)
    whole = Ratios(tuple(one.total_s / other.total_s for one, other in costs), without_us)
    return Ratios(values, without_us, whole)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return sum(map(int, fields[STAT_TIMES])) / os.sysconf("SC_CLK_TCK")
