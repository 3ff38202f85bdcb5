"""Operators with a known capacity on a machine with few cores: they wait, instead of working, for the time it takes.

A task lets `chunk` records pass and then waits as long as they would have taken, once per chunk. One record of each
chunk waits, and which one is drawn: a fixed place in the chunk would lose its wait to a filter that drops exactly
those records (of Nexmark's events, say, every 50th), and `value % chunk` would hit only some partitions, because `rate`
deals `value` out to its partitions like cards. `parkNanos` waits more exactly than `Thread.sleep` and, unlike it,
does not turn the stop of a query into a failed task.

Paced steps without a shuffle between them run in the same tasks, so their times add up. The work that a record really
is comes on top: keep it small against the pace. Measured on 2 cores that others kept busy (load 3 to 7), 100 to 20,000
records/s per task: 2 to 5 % too slow in the median of six runs, single runs up to 19 %. An idle machine was not tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from rheostat.engine.simulated.curves import Curve
from rheostat.job.frozen import check_number
from rheostat.lab.workload.pipeline import Around, Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SLOTS = "__rheostat_slots"
PAUSE_S = 0.02
"""A wait is about this long: short against a batch, long against the error of the clock (0.1 ms)."""


def waits(tasks: int, chunk: int, seed: int = 0) -> str:
    """Return, as SQL, whether this record waits: one of every `chunk` records that a task gets does."""
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
    """Let every task pass `rate_per_task_per_s` records of a table that has `value`, the number of the record.

    `tasks` is the number of partitions; `noise` 0.1 scatters each wait evenly by +-10 %.
    """
    check_number("rate_per_task_per_s", rate_per_task_per_s, least=1e-6)
    check_number("pause_s", pause_s, least=0.01)
    chunk = max(round(rate_per_task_per_s * pause_s), 1)
    return _waiting(df, chunk, f"{chunk / rate_per_task_per_s * 1e9!r}D", tasks, noise, seed)


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
    """Let a running query follow a curve over the slots that it has at the moment: each batch looks them up anew."""
    from pyspark.sql.functions import broadcast

    rates = [curve.capacity_per_s(count) / count for count in range(1, most_slots + 1)]
    chunk = max(round(max(rates) * PAUSE_S), 1)
    pauses = ", ".join(f"{chunk / rate * 1e9!r}D" for rate in rates)
    found = f"element_at(array({pauses}), least(greatest({SLOTS}, 1), {most_slots}))"
    now = df.sparkSession.read.text(str(slots.path)).selectExpr(f"cast(value as int) as {SLOTS}")
    return _waiting(df.crossJoin(broadcast(now)), chunk, found, tasks, noise, seed).drop(SLOTS)


@dataclass(frozen=True)
class SlotsFile:
    """Tells a paced query how many slots it has.

    A static table is read anew by every batch, but Spark remembers how long its file was: the text keeps its length,
    and is replaced as a whole.
    """

    path: Path

    def write(self, slots: int) -> None:
        """Tell the batches to come."""
        fresh = self.path.with_name(f".{self.path.name}.new")
        fresh.write_text(f"{slots:06d}\n")
        fresh.replace(self.path)


def _waiting(df: DataFrame, chunk: int, pause_ns: str, tasks: int, noise: float, seed: int) -> DataFrame:
    check_number("tasks", tasks, least=1)
    check_number("noise", noise, most=1.0)
    scatter = f"(pmod(xxhash64(value, {seed}, 'noise'), 1000001) / 500000D - 1)"
    wait = (
        "java_method('java.util.concurrent.locks.LockSupport', 'parkNanos', "
        f"cast({pause_ns} * (1 + {float(noise)!r}D * {scatter}) as bigint))"
    )
    # Always true, which the optimiser cannot know: it neither drops nor moves what calls Java.
    return df.where(f"case when {waits(tasks, chunk, seed)} then {wait} else '' end is not null")


@dataclass(frozen=True)
class Pace:
    """A capacity curve, and at which number of tasks the operator stands on it."""

    curve: Curve
    tasks: int
    noise: float = 0.0

    @property
    def rate_per_task_per_s(self) -> float:
        """Records/s of one of the tasks."""
        return self.curve.capacity_per_s(self.tasks) / self.tasks


def pacing(paces: Mapping[str, Pace], *, seed: int = 0) -> Around:
    """Return what `Pipeline.build` puts around its steps so that the named ones follow their curves."""

    def around(name: str, apply: Transform) -> Transform:
        if name not in paces:
            return apply
        pace = paces[name]
        # A step's own seed: with a common one, the same records would wait in every step.
        own = crc32(name.encode()) + seed

        def slowed(df: DataFrame) -> DataFrame:
            return apply(paced(df, pace.rate_per_task_per_s, tasks=pace.tasks, noise=pace.noise, seed=own))

        return slowed

    return around
