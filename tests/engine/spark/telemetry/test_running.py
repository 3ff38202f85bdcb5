"""A real query shows its batch while the batch runs. Tasks are held by a property of the JVM, which the test clears."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engine.batches.present import RunningBatch
from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.spark.telemetry.running import RunningBatches
from rheostat.engine.spark.telemetry.stages import Stages

pytestmark = pytest.mark.cluster

DEADLINE_S = 60.0


def held(name: str, condition: str = "true") -> Column:
    """Null, after 20 ms for each row that fits the condition while the hold of this name is on."""
    on = f"{condition} and java_method('java.lang.System', 'getProperty', '{name}') = 'on'"
    return expr(f"case when {on} then java_method('java.lang.Thread', 'sleep', 20L) end").alias(name)


@contextmanager
def holds(spark: SparkSession, *names: str) -> Iterator[Callable[[str], None]]:
    """Switch holds on; yield the function that releases one."""
    assert spark.sparkContext._jvm is not None
    system = spark.sparkContext._jvm.java.lang.System
    for name in names:
        system.setProperty(name, "on")
    try:
        yield system.clearProperty
    finally:
        for name in names:
            system.clearProperty(name)


class Sight:
    """Reads one query as a step does."""

    def __init__(self, spark: SparkSession) -> None:
        self.stages = Stages(spark.sparkContext)
        self.batches = RunningBatches(spark, self.stages)

    def read(self, query: StreamingQuery) -> RunningBatch | None:
        self.stages.read_finished()
        return self.batches.read(query, time.time())[0]

    def until(self, query: StreamingQuery, enough: Callable[[RunningBatch], bool]) -> RunningBatch:
        deadline_s = time.monotonic() + DEADLINE_S
        seen = None
        while time.monotonic() < deadline_s:
            assert query.exception() is None
            seen = self.read(query)
            if seen is not None and enough(seen):
                return seen
            time.sleep(0.02)
        raise AssertionError(f"not in time: {seen}")

    def until_none(self, query: StreamingQuery) -> None:
        deadline_s = time.monotonic() + DEADLINE_S
        while self.read(query) is not None:
            assert time.monotonic() < deadline_s
            time.sleep(0.02)


def ended(query: StreamingQuery, number: int) -> Batch:
    """Wait for the progress event of a batch."""
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        for event in query.recentProgress:
            batch = parse_progress(event.json)
            if batch is not None and batch.number == number:
                return batch
        time.sleep(0.02)
    raise AssertionError(f"batch {number} has not ended")


def start(frame: DataFrame, folder: Path, sink: Callable[[DataFrame, int], None] | None = None) -> StreamingQuery:
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    return (writer.format("noop") if sink is None else writer.foreachBatch(sink)).start()


def numbers(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch")
    return source.option("rowsPerBatch", rows).option("numPartitions", partitions).load()


def write(frame: DataFrame, number: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def test_a_running_batch_shows_its_tasks_its_rows_and_its_offsets(spark: SparkSession, tmp_path: Path) -> None:
    """Six tasks of 4,000 rows, two of them held; then a second stage of four tasks, all held."""
    first = numbers(spark, 24_000, 6).select("value", held("map", "value >= 6000 and spark_partition_id() in (1, 2)"))
    frame = first.repartition(4).select("value", "map", held("reduce"))
    sight = Sight(spark)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with holds(spark, "map", "reduce") as release:
        query = writer.trigger(processingTime="1 hour").start()
        try:
            seen = sight.until(query, lambda batch: any(stage.finished == 4 for stage in batch.stages))
            (stage,) = seen.stages
            assert (stage.tasks, stage.active, stage.records_in) == (6, 2, 16_000)
            assert stage.busy_s > 0
            assert stage.start_s is not None
            assert 0 < stage.active_s <= 2 * (seen.at_s - stage.start_s)
            later = sight.until(query, lambda batch: (batch.rows_done or 0) > 16_000)
            assert later.rows_done is not None
            assert later.rows_done <= 24_000
            assert later.stages[0].records_in == 16_000
            assert later.stages[0].active_s - stage.active_s == pytest.approx(2 * (later.at_s - seen.at_s), abs=1e-3)
            release("map")
            seen = sight.until(
                query,
                lambda batch: batch.rows_done == 24_000 and len(batch.stages) == 2 and batch.stages[1].active == 4,
            )
            assert (seen.stages[0].finished, seen.stages[0].active, seen.stages[0].records_in) == (6, 0, 24_000)
            assert (seen.stages[1].tasks, seen.stages[1].finished, seen.stages[1].records_in) == (4, 0, 0)
            assert not seen.stages_missing
            release("reduce")
            batch = ended(query, 0)
            assert sight.batches.read(query, time.time())[1] == (batch.sources[0].end_offset,)
            sight.until_none(query)  # the next trigger is an hour away
        finally:
            query.stop()
    assert (seen.run_id, seen.number, seen.start_s) == (batch.run_id, 0, batch.start_s)
    assert (seen.begun, seen.planned) == ((None,), (batch.sources[0].end_offset,))
    assert seen.rows_done == batch.rows
    assert sight.read(query) is None


def test_offsets_come_in_the_order_of_progress_events_and_static_tables_do_not_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two folders, a static table and `foreachBatch`; the second folder is empty in the first batch."""
    folders = [tmp_path / name for name in ("left", "right")]
    for folder in folders:
        folder.mkdir()
    (tmp_path / "static").write_text("1\n2\n3\n")
    static = spark.read.schema("key long").csv(str(tmp_path / "static"))
    left, right = (spark.readStream.schema("key long").csv(str(folder)) for folder in folders)
    joined = left.union(right).join(static, "key", "left").repartition(2).select("key", held("join"))
    (folders[0] / "a").write_text("\n".join(map(str, range(2000))))
    sight = Sight(spark)
    query = None
    try:
        with holds(spark, "join"):
            query = start(joined, tmp_path, write)
            first = sight.until(query, lambda batch: batch.rows_done == 2000)
        batch = ended(query, 0)
        assert first.begun == (None, None)
        assert first.planned == tuple(source.end_offset for source in batch.sources)
        assert first.planned[1] is None
        with holds(spark, "join"):
            (folders[1] / ".b").write_text("\n".join(map(str, range(1000))))
            (folders[1] / ".b").rename(folders[1] / "b")
            second = sight.until(query, lambda batch: batch.number == 1 and batch.rows_done == 1000)
        batch = ended(query, 1)
    finally:
        if query is not None:
            query.stop()
    assert second.begun == tuple(source.start_offset for source in batch.sources)
    assert second.planned == tuple(source.end_offset for source in batch.sources)
    assert second.start_s == batch.start_s


def test_a_spark_with_other_internals_gives_nothing(spark: SparkSession) -> None:
    assert spark.sparkContext._jvm is not None
    foreign: Any = spark.sparkContext._jvm.java.lang.Object()
    query: Any = type("Query", (SimpleNamespace,), {"__hash__": object.__hash__})(runId="run", _jsq=foreign)
    assert Sight(spark).batches.read(query, 0.0) == (None, ())
