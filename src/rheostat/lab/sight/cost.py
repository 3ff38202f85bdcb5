"""The CPU time of an application with something over that without it, in alternating stretches of one run."""

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
class Ratios:
    """The cost per record with over that without, one value per pair of stretches."""

    values: tuple[float, ...]
    without_us: float
    """CPU time per record without, in microseconds."""

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
        self._pids = [os.getpid(), *([jvm] if jvm else []), *executors_below(os.getpid())]

    def stretch(self) -> float:
        """Wait for the end of a batch, let the batches of a stretch pass, and return the CPU seconds per record."""
        records, spent_s = self._after(1)
        later, later_s = self._after(self._batches)
        return (later_s - spent_s) / (later - records)

    def _after(self, batches: int) -> tuple[int, float]:
        done, deadline_s = self._count()[0] + batches, time.monotonic() + PATIENCE_S
        while (count := self._count())[0] < done:
            if time.monotonic() > deadline_s:
                raise EngineError(f"{batches} batches did not end within {PATIENCE_S:g} s")
            time.sleep(POLL_S)
        return count[1], sum(map(cpu_s, self._pids))


def alternate(pairs: int, what: Callable[[], AbstractContextManager[object]], spending: Spending) -> Ratios:
    """Play pairs of stretches, with and without; every second pair begins with the other one."""
    costs: list[tuple[float, float]] = []
    for _ in range(2):  # warm: both ways run code for the first time
        with what():
            spending.stretch()
    for pair in range(pairs):
        cost = {}
        for on in (False, True) if pair % 2 else (True, False):
            with what() if on else nullcontext():
                cost[on] = spending.stretch()
        costs.append((cost[True], cost[False]))
        print(f"pair {pair + 1} of {pairs}: {cost[True] / cost[False]:.3f}", file=sys.stderr, flush=True)
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


def ratios_of(costs: Sequence[tuple[float, float]]) -> Ratios:
    """Return the ratios of pairs (with, without)."""
    return Ratios(tuple(one / other for one, other in costs), 1e6 * mean(other for _, other in costs))


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return sum(map(int, fields[STAT_TIMES])) / os.sysconf("SC_CLK_TCK")
