"""Operators with a fixed capacity on a machine with few cores: they wait instead of working.

A task passes `chunk` records and then waits for their time, once per chunk. The record that waits is drawn at random: a
fixed position would lose its wait to a filter that drops exactly those records (such as every 50th of Nexmark's
events), and `value % chunk` would hit only some partitions, because `rate` deals out `value` round-robin. `parkNanos`
is more precise than `Thread.sleep`, and does not turn the stop of a query into a failed task. A wait is 0.1 to 0.3 ms
too long; that is measured once per application, and taken off.

Paced steps without a shuffle between them run in the same tasks, so their times add up. The real work of a record comes
on top: keep it small against the pace. Measured on 2 busy cores (load 3 to 7) at 100 to 20,000 records/s per task: 2 to
5 % too slow in the median of six runs, up to 19 % in single runs. An idle machine was not measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING
from zlib import crc32

from rheostat.engine.simulated.curves import Curve
from rheostat.engine.spark.telemetry.probe import NOW_NS
from rheostat.job.frozen import check_number
from rheostat.lab.workload.pipeline import Around, Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLOTS = "__rheostat_slots"
"""Column with the present number of slots."""
PAUSE_S = 0.02
"""Seconds of a wait: short against a batch, long against the error of the timer (0.1 ms)."""
SAMPLES, SAMPLE_NS = 60, 10e6
"""Waits that show by how much they are too long, and their length."""
_oversleeps_ns: dict[str, float] = {}
"""Application -> by how much its waits are too long."""


def waits(tasks: int, chunk: int, seed: int = 0) -> str:
    """Return SQL for whether a record waits: one of every `chunk` records of a task does."""
    turn = f"pmod(xxhash64(value div {tasks * chunk}, pmod(value, {tasks}), {seed}), {chunk})"
    return f"pmod(value div {tasks}, {chunk}) = {turn}"


def paced(
    df: DataFrame,
    rate_per_task_per_s: float,
    *,
    tasks: int,
    noise: float = 0.0,
    seed: int = 0,
    pause_s: float = PAUSE_S,
) -> DataFrame:
    """Limit every task to `rate_per_task_per_s` records; the table has the record's number in `value`.

    `tasks` is the number of partitions; `noise` 0.1 varies each wait uniformly by +-10 %.
    """
    check_number("rate_per_task_per_s", rate_per_task_per_s, least=1e-6)
    check_number("pause_s", pause_s, least=0.01)
    chunk = max(round(rate_per_task_per_s * pause_s), 1)
    pause_ns = chunk / rate_per_task_per_s * 1e9 - oversleep_ns(df.sparkSession)
    return _with_waits(df, chunk, f"{pause_ns!r}D", tasks, noise, seed)


def live_paced(
    df: DataFrame,
    curve: Curve,
    slots: SlotsFile,
    *,
    most_slots: int,
    tasks: int,
    noise: float = 0.0,
    seed: int = 0,
) -> DataFrame:
    """Pace a running query by a curve over its present slots, which each batch reads from the file."""
    from pyspark.sql.functions import broadcast

    rates = [curve.capacity_per_s(count) / count for count in range(1, most_slots + 1)]
    chunk = max(round(max(rates) * PAUSE_S), 1)
    extra_ns = oversleep_ns(df.sparkSession)
    pauses = ", ".join(f"{chunk / rate * 1e9 - extra_ns!r}D" for rate in rates)
    pause = f"element_at(array({pauses}), least(greatest({SLOTS}, 1), {most_slots}))"
    now = df.sparkSession.read.text(str(slots.path)).selectExpr(f"cast(value as int) as {SLOTS}")
    return _with_waits(df.crossJoin(broadcast(now)), chunk, pause, tasks, noise, seed).drop(SLOTS)


@dataclass(frozen=True)
class SlotsFile:
    """The file with the number of slots of a paced query.

    Every batch reads a static table again, but Spark remembers the length of its file: the text has a fixed length, and
    the file is replaced as a whole.
    """

    path: Path

    def write(self, slots: int) -> None:
        """Write the number of slots for the next batches."""
        draft = self.path.with_name(f".{self.path.name}.new")
        draft.write_text(f"{slots:06d}\n")
        draft.replace(self.path)


def oversleep_ns(spark: SparkSession) -> float:
    """Return by how much a wait in a task of this application is too long, in nanoseconds; the longest are left out."""
    application = spark.sparkContext.applicationId
    if application not in _oversleeps_ns:
        # A struct is built from its first field to its last.
        timed = f"named_struct('begin', {NOW_NS}, 'wait', {_park(f'{SAMPLE_NS!r}D + 0 * id')}, 'end', {NOW_NS})"
        waits_ns = spark.range(0, SAMPLES, 1, 1).selectExpr(f"{timed} as one").selectExpr("one.end - one.begin as ns")
        longest = sorted(row["ns"] - SAMPLE_NS for row in waits_ns.collect())
        _oversleeps_ns[application] = max(0.0, fmean(longest[: SAMPLES * 9 // 10]))
    return _oversleeps_ns[application]


def _park(pause_ns: str) -> str:
    return f"java_method('java.util.concurrent.locks.LockSupport', 'parkNanos', cast({pause_ns} as bigint))"


def _with_waits(df: DataFrame, chunk: int, pause_ns: str, tasks: int, noise: float, seed: int) -> DataFrame:
    check_number("tasks", tasks, least=1)
    check_number("noise", noise, most=1.0)
    scatter = f"(pmod(xxhash64(value, {seed}, 'noise'), 1000001) / 500000D - 1)"
    wait = _park(f"{pause_ns} * (1 + {float(noise)!r}D * {scatter})")
    # Always true, but the optimizer cannot know that: it neither drops nor moves a call of Java.
    return df.where(f"case when {waits(tasks, chunk, seed)} then {wait} else '' end is not null")


@dataclass(frozen=True)
class Pace:
    """A capacity curve, and the operator's number of tasks."""

    curve: Curve
    tasks: int
    noise: float = 0.0

    @property
    def rate_per_task_per_s(self) -> float:
        """Records/s of one task."""
        return self.curve.capacity_per_s(self.tasks) / self.tasks


def pacing(paces: Mapping[str, Pace], *, seed: int = 0) -> Around:
    """Return the wrapper for `Pipeline.build` that paces the named steps by their curves."""

    def around(name: str, apply: Transform) -> Transform:
        if name not in paces:
            return apply
        pace = paces[name]
        # Each step has its own seed; with a common one the same records would wait in every step.
        own = crc32(name.encode()) + seed

        def slowed(df: DataFrame) -> DataFrame:
            return apply(paced(df, pace.rate_per_task_per_s, tasks=pace.tasks, noise=pace.noise, seed=own))

        return slowed

    return around
