"""An open-loop source for any load shape: Spark's `rate` source at the peak rate, thinned.

The load does not wait for the job: a slow job gets larger batches. `rate` numbers its rows without gaps and releases
whole seconds, so `value div peak` is the second of a row, whatever the clock says. A row passes if it is among the
first `n` of its second, where `n` comes from the schedule. All of this depends on `value` alone. So a restart continues
from the checkpoint, rates are exact, every partition gets an even share, and a batch job over the same seconds returns
the same rows. A checkpoint is valid for one schedule only.

`numInputRows` of the query's progress counts rows before the thinning: use `observe` to count them after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rheostat.engine.testbed.schedule import Schedule
from rheostat.job.frozen import check_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START_S = 1_577_836_800
"""Default event time of the first record, 2020-01-01 in seconds since the epoch; fixed, so that results repeat."""


class ScheduleCounter:
    """Counts the records before an offset of a scheduled source, whose offsets are whole seconds."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def records(self, offset: Any) -> float | None:
        """Return the number of records due before this second; None for an invalid offset."""
        return self.ahead(offset, 0.0)

    def ahead(self, offset: Any, seconds: float) -> float | None:
        """Return the number of records due `seconds` after this second."""
        if not str(offset).isdigit():
            return None
        return float(self._schedule.due(max(0, int(int(offset) + seconds))))


def stream(spark: SparkSession, schedule: Schedule, *, partitions: int = 4, start_s: float | None = None) -> DataFrame:
    """Return a stream of (value, timestamp) that follows a schedule and repeats it.

    `value` counts the records from 0 without gaps; `timestamp` is the event time, `start_s` for the first record. To
    compare it with the wall clock, pass the time of the first start, and the same value at every restart.
    """
    check_number("partitions", partitions, least=1)
    rows = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", schedule.peak_per_s)
        .option("numPartitions", partitions)
        .load()
    )
    return _thin(rows.select("value"), schedule, start_s)


def batch(
    spark: SparkSession,
    schedule: Schedule,
    *,
    first_s: int,
    last_s: int,
    partitions: int = 4,
    start_s: float | None = None,
) -> DataFrame:
    """Return the same rows as a batch, from second `first_s` up to `last_s`."""
    check_number("first_s", first_s)
    check_number("last_s", last_s, least=first_s)
    peak = schedule.peak_per_s
    rows = spark.range(first_s * peak, last_s * peak, 1, partitions)
    return _thin(rows.withColumnRenamed("id", "value"), schedule, start_s)


def _thin(rows: DataFrame, schedule: Schedule, start_s: float | None) -> DataFrame:
    start_us = round((START_S if start_s is None else start_s) * 1_000_000)
    peak, span, step_s = schedule.peak_per_s, schedule.seconds, schedule.step_s
    return (
        rows.selectExpr(
            f"value div {peak} as second",
            f"pmod(value, {peak}) as nth",
            f"pmod(value div {peak}, {span}) div {step_s} as step",
            f"pmod(pmod(value div {peak}, {span}), {step_s}) as part",
        )
        .selectExpr("*", f"{_lookup(schedule.counts)} as held", f"{_lookup(schedule.before)} as before")
        .selectExpr("*", f"part * held div {step_s} as sooner", f"(part + 1) * held div {step_s} as later")
        .where("nth < later - sooner")
        .selectExpr(
            f"(second div {span}) * {schedule.total}L + before + sooner + nth as value",
            # At least 1: the optimiser may evaluate this before the filter, for a second without records.
            f"timestamp_micros({start_us}L + second * 1000000 + nth * 1000000 div greatest(later - sooner, 1)) "
            "as timestamp",
        )
    )


def _lookup(entries: Iterable[int]) -> str:
    # One string constant: thousands of literals in an array() cost every batch 0.2 s of planning.
    joined = ",".join(str(entry) for entry in entries)
    return f"element_at(cast(split('{joined}', ',') as array<bigint>), cast(step as int) + 1)"
