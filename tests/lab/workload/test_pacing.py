"""A paced stage does what its curve says."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

import pytest
from pyspark.sql import DataFrame, SparkSession

from rheostat.engine.simulated.curves import Curve, Linear, Usl
from rheostat.errors import InvalidValue
from rheostat.lab.workload.catalog import PIPELINES
from rheostat.lab.workload.pacing import Pace, SlotsFile, live_paced, paced, pacing, waits

pytestmark = pytest.mark.cluster

NOW = "cast(java_method('java.lang.System', 'nanoTime') as bigint)"


def stamped(df: DataFrame) -> DataFrame:
    return df.selectExpr("spark_partition_id() as part", "value", f"{NOW} as passed_ns")


def capacity_per_s(stamps: DataFrame) -> float:
    """Add up what the tasks did, each over its own time, so that starting a job does not count."""
    spans = stamps.groupBy("part").agg({"value": "count", "passed_ns": "max"}).collect()
    first = {row["part"]: row[1] for row in stamps.groupBy("part").agg({"passed_ns": "min"}).collect()}
    return float(sum(row["count(value)"] / (row["max(passed_ns)"] - first[row["part"]]) * 1e9 for row in spans))


def never_faster(measured_per_s: float, paced_per_s: float) -> bool:
    """Whether the pace holds; a busy machine is slower than any pace, so how close it comes is not for a test."""
    return 0.2 * paced_per_s < measured_per_s < 1.05 * paced_per_s


def typical(measured: Callable[[], float]) -> float:
    """Take the median of three: one run may meet a busy machine, and picking the best would hide a slow pace."""
    return median(measured() for _ in range(3))


def numbers(spark: SparkSession, rows: int, tasks: int) -> DataFrame:
    return spark.range(0, rows, 1, tasks).withColumnRenamed("id", "value")


@pytest.mark.parametrize("tasks", [1, 4])
@pytest.mark.parametrize("curve", [Linear(1000.0), Usl(700.0, 0.1, 0.02)], ids=["linear", "usl"])
def test_a_stage_follows_its_curve(spark: SparkSession, curve: Curve, tasks: int) -> None:
    pace = Pace(curve, tasks, noise=0.1)
    rows = numbers(spark, round(curve.capacity_per_s(tasks) * 1.5), tasks)

    def measured() -> float:
        stamps = stamped(paced(rows, pace.rate_per_task_per_s, tasks=tasks, noise=pace.noise, seed=3)).cache()
        rate = capacity_per_s(stamps)
        stamps.unpersist()
        return rate

    assert never_faster(typical(measured), curve.capacity_per_s(tasks))


def test_a_stream_of_named_steps_follows_its_curves(spark: SparkSession, tmp_path: Path) -> None:
    # In one stage times add up: 1/2000 s for every event, 1/1000 s for every bid of 46 in 50.
    paces = {"bids": Pace(Linear(2000.0), 4), "mapper": Pace(Linear(1000.0), 4)}
    events = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4000).option("numPartitions", 4).load()
    bids = PIPELINES["q1"].build(events, pacing(paces))
    runs = count()

    def measured() -> float:
        writer = stamped(bids).writeStream.format("memory").queryName("paced").trigger(processingTime="1 hour")
        query = writer.option("checkpointLocation", str(tmp_path / str(next(runs)))).start()
        try:
            while query.lastProgress is None:
                query.awaitTermination(1)
                assert query.exception() is None
            assert spark.table("paced").count() == 4000 * 46 // 50
            return capacity_per_s(spark.table("paced"))
        finally:
            query.stop()
            spark.catalog.dropTempView("paced")

    goal_per_s = 4 / (50 / 46 / 2000 + 1 / 1000)
    assert never_faster(typical(measured), goal_per_s)


@pytest.mark.parametrize("tasks", [1, 5, 8])
@pytest.mark.parametrize("chunk", [1, 20, 50])
def test_a_filter_before_it_takes_only_its_share_of_the_waits(spark: SparkSession, tasks: int, chunk: int) -> None:
    # 5 tasks and chunks of 20 make blocks of 100: a fixed place in them would fall on the first of every 50 events.
    assert numbers(spark, 100_000, 4).where(waits(tasks, chunk)).count() == 100_000 // chunk
    kept = numbers(spark, 400_000, 4).where("pmod(value, 50) > 3").where(waits(tasks, chunk)).count()
    assert kept == pytest.approx(400_000 * 46 / 50 / chunk, rel=0.02)


def test_every_record_passes_also_when_a_wait_scatters_down_to_nothing(spark: SparkSession) -> None:
    assert paced(numbers(spark, 500, 2), 5000.0, tasks=2, noise=1.0, seed=1).count() == 500


@pytest.mark.parametrize(
    ("change", "said"),
    [({"tasks": 0}, "tasks"), ({"noise": 2.0}, "noise"), ({"pause_s": 0.001}, "pause_s"), ({"rate": 0.0}, "rate")],
)
def test_refuses_an_impossible_pace(spark: SparkSession, change: dict[str, float], said: str) -> None:
    given = {"rate": 100.0, "tasks": 2, **change}
    rate = given.pop("rate")
    with pytest.raises(InvalidValue, match=said):
        paced(numbers(spark, 1, 1), rate, **given)  # type: ignore[arg-type]


class TenTimes:
    """Tasks of four slots are ten times as fast as those of two: nobody mistakes one for the other."""

    def capacity_per_s(self, tasks: int) -> float:
        return tasks * (200.0 if tasks <= 2 else 2000.0)


def test_a_running_stream_follows_its_curve_over_the_slots_it_has(spark: SparkSession, tmp_path: Path) -> None:
    slots = SlotsFile(tmp_path / "slots")
    slots.write(2)
    rows: list[int] = []
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 200).option("numPartitions", 1).load()
    kept = live_paced(numbers, TenTimes(), slots, most_slots=4, tasks=1)
    assert kept.columns == numbers.columns

    def look(frame: DataFrame, number: int) -> None:
        rows.append(frame.count())
        if number == 1:
            slots.write(4)

    query = kept.writeStream.foreachBatch(look).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        while len(query.recentProgress) < 5:
            assert not query.awaitTermination(1)
        batch_ms = [progress["durationMs"]["addBatch"] for progress in query.recentProgress]
    finally:
        query.stop()
    assert set(rows) == {200}
    # 200 records at 200/s each: a wait is never shorter than its pace, however busy the machine is.
    assert min(batch_ms[:2]) >= 950
    assert min(batch_ms[2:]) < 950
