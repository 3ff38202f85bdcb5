"""The open-loop source follows its schedule to the row, also across restarts."""

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from rheostat.engine.testbed.loads import Constant, Load, Sine, Spikes, Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.source import START_S, batch, stream
from rheostat.errors import InvalidValue

pytestmark = pytest.mark.cluster

DEADLINE_S = 60


@pytest.mark.parametrize(
    ("load", "unit_per_s", "step_s"),
    [
        (Steps((1.0, 5.0, 10.0, 3.0), 10.0), 2000.0, 5),
        (Sine(5.0, 4.0, 40.0), 1000.0, 1),
        (Spikes(1.0, 9.0, 20.0, 5.0), 333.3, 5),
        (Constant(1.0), 0.7, 1),
    ],
)
def test_every_second_has_the_records_of_the_load(
    spark: SparkSession, load: Load, unit_per_s: float, step_s: int
) -> None:
    rows = batch(spark, Schedule(load, unit_per_s, 40, step_s), first_s=0, last_s=40)
    counted = rows.groupBy((rows.timestamp.cast("long") - START_S).alias("second")).count().collect()
    records = np.zeros(40)
    for row in counted:
        records[row["second"]] = row["count"]
    expected = (load.level(np.arange(40.0)) * unit_per_s).reshape(-1, step_s).mean(axis=1).repeat(step_s)
    assert records == pytest.approx(expected, rel=0.02, abs=1.0)
    assert records.sum() == pytest.approx(expected.sum(), abs=0.5)


def test_values_have_no_gaps_and_event_time_rises_over_several_repetitions(spark: SparkSession) -> None:
    load = Steps((2.0, 0.0, 1.0), 5.0)
    schedule = Schedule(load, 10.0, 15)
    rows = batch(spark, schedule, first_s=0, last_s=40).orderBy("value").collect()
    assert [row["value"] for row in rows] == list(range(schedule.due(40)))
    times = [row["timestamp"] for row in rows]
    assert all(sooner < later for sooner, later in pairwise(times))
    for second in (0, 1, 7, 15, 22, 31, 40):
        part = batch(spark, schedule, first_s=0, last_s=second)
        assert part.count() == schedule.due(second)


def test_partitions_get_even_shares(spark: SparkSession, tmp_path: Path) -> None:
    batches: dict[int, list[tuple[int, int]]] = {}

    def collect(df: DataFrame, number: int) -> None:
        rows = df.selectExpr("spark_partition_id() as part", "value").groupBy("part").count().collect()
        batches[number] = [(row["part"], row["count"]) for row in rows]

    # Half of the peak: thinning by every second value would leave two of the four partitions empty.
    halved = stream(spark, Schedule(Steps((1.0, 2.0), 60.0), 400.0, 120), partitions=4)
    play(halved, collect, tmp_path, until=lambda: any(batches.values()))
    counts = next(dict(rows) for rows in batches.values() if rows)
    assert sorted(counts) == [0, 1, 2, 3]
    assert max(counts.values()) - min(counts.values()) <= 1


def test_a_stream_has_the_rows_of_its_batch_twin_also_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    load = Steps((1.0, 3.0, 0.0, 2.0), 1.0)
    batches: dict[int, list[tuple[object, ...]]] = {}

    def collect(df: DataFrame, number: int) -> None:
        batches[number] = [tuple(row) for row in df.collect()]  # a repeated batch replaces the first one

    def received() -> list[tuple[object, ...]]:
        return sorted((row for rows in batches.values() for row in rows), key=lambda row: str(row[0]).zfill(9))

    schedule = Schedule(load, 200.0, 4, 1)
    played = stream(spark, schedule)
    play(played, collect, tmp_path, until=lambda: len(received()) >= 500)
    play(played, collect, tmp_path, until=lambda: len(received()) >= 1500)
    rows = received()
    twin = batch(spark, schedule, first_s=0, last_s=100).where(f"value < {len(rows)}")
    assert rows == [tuple(row) for row in twin.orderBy("value").collect()]


def play(rows: DataFrame, collect: Callable[[DataFrame, int], None], folder: Path, until: Callable[[], bool]) -> None:
    writer = rows.writeStream.foreachBatch(collect).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.start()
    end_s = time.monotonic() + DEADLINE_S
    try:
        while not until():
            assert query.exception() is None
            assert time.monotonic() < end_s, "the stream had too few rows before the deadline"
            query.awaitTermination(1)
    finally:
        query.stop()


def test_noise_scatters_every_second_and_repeats_with_its_seed() -> None:
    load = Constant(1.0, noise=0.2)
    first, again, other = (Schedule(load, 1000.0, 300, 1, seed) for seed in (1, 1, 2))
    assert first.counts == again.counts != other.counts
    assert min(first.counts) >= 799
    assert max(first.counts) <= 1201
    assert first.total == pytest.approx(300_000, rel=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": 12}, "multiple of step_s=5"),
        ({"seconds": 100_000}, "larger step_s"),
        ({"unit_per_s": 1e-6}, "has no record"),
        ({"unit_per_s": float("nan")}, "unit_per_s"),
        ({"step_s": 0}, "step_s"),
    ],
)
def test_an_invalid_schedule_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Schedule(**{"load": Constant(), "unit_per_s": 10.0, "seconds": 60, **change})  # type: ignore[arg-type]
