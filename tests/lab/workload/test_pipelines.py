"""Every pipeline, run as a stream over several batches, gives to the row what a batch computation says."""

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.source import batch
from rheostat.errors import InvalidValue
from rheostat.lab.workload.catalog import PIPELINES, pipeline_named
from rheostat.lab.workload.nexmark_events import bids, persons_and_auctions
from rheostat.lab.workload.pipeline import Pipeline, Step, Transform

pytestmark = pytest.mark.cluster

SCHEDULE = Schedule(Steps((1.0, 3.0, 0.5), 15.0), 300.0, 45)
"""20,250 records at three rates; the slow end lets sessions close."""
CUTS_S = (0, 22, 45)
"""Where batches begin and end: in the middle of windows."""
FLUSH_S = 400
"""One more second, much later: it moves the watermark past every window and session of the records before."""


@pytest.fixture(scope="module")
def records(spark: SparkSession) -> DataFrame:
    return batch(spark, SCHEDULE, first_s=0, last_s=SCHEDULE.seconds, partitions=2).cache()


@pytest.fixture(scope="module")
def late(spark: SparkSession) -> DataFrame:
    return batch(spark, SCHEDULE, first_s=FLUSH_S, last_s=FLUSH_S + 1, partitions=1)


@pytest.fixture(scope="module")
def files(spark: SparkSession, late: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in order of time, one per batch, the last one the flush."""
    folder = tmp_path_factory.mktemp("records") / "files"
    parts = [batch(spark, SCHEDULE, first_s=a, last_s=b, partitions=1) for a, b in pairwise(CUTS_S)]
    for part in (*parts, late):
        part.write.mode("append").parquet(str(folder))
    return folder


def streamed(spark: SparkSession, pipeline: Pipeline, folder: Path, checkpoint: Path) -> list[tuple[object, ...]]:
    stream = spark.readStream.schema("value bigint, timestamp timestamp").option("maxFilesPerTrigger", 1)
    query = (
        pipeline.build(stream.parquet(str(folder)))
        .writeStream.format("memory")
        .queryName(f"out_{pipeline.name}")
        .outputMode(pipeline.output_mode)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
        assert sum(progress["numInputRows"] > 0 for progress in query.recentProgress) >= 3
        result = spark.table(f"out_{pipeline.name}")
        if pipeline.output_mode == "update":  # the last word on each key is the one with the highest count
            result = result.groupBy("word").agg({"count": "max"}).toDF("word", "count")
        return [tuple(row) for row in result.collect()]
    finally:
        query.stop()
        spark.catalog.dropTempView(f"out_{pipeline.name}")


@pytest.mark.parametrize("name", PIPELINES)
def test_a_stream_gives_what_the_batch_says(
    spark: SparkSession, name: str, records: DataFrame, late: DataFrame, files: Path, tmp_path: Path
) -> None:
    pipeline = PIPELINES[name]
    # The flush closes the windows before it; its own window stays open, and only that.
    withheld = pipeline.stateful and pipeline.output_mode == "append"
    out = streamed(spark, pipeline, files, tmp_path / "checkpoint")
    expected = [tuple(row) for row in pipeline.expected(records if withheld else records.union(late)).collect()]
    assert len(expected) >= 5
    assert Counter(out) == Counter(expected)


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_46_are_bids(records: DataFrame) -> None:
    assert records.count() == 20_250
    assert bids(records).count() == 20_250 * 46 // 50
    kinds = {row["kind"]: row["count"] for row in persons_and_auctions(records).groupBy("kind").count().collect()}
    assert kinds == {"person": 20_250 // 50, "auction": 20_250 * 3 // 50}


def test_what_events_refer_to_has_happened_before(spark: SparkSession, records: DataFrame) -> None:
    both = persons_and_auctions(records)
    strangers = spark.sql(
        "select b.value from {bids} b left join {both} a on a.kind = 'auction' and a.id = b.auction "
        "where a.id is null or a.value > b.value union all "
        "select s.value from {both} s left join {both} p on p.kind = 'person' and p.id = s.seller "
        "where s.kind = 'auction' and (p.id is null or p.value > s.value)",
        bids=bids(records),
        both=both,
    )
    assert strangers.count() == 0
    assert both.groupBy("kind", "id").count().where("count > 1").count() == 0


def test_around_is_put_around_narrow_steps_only(records: DataFrame) -> None:
    seen = []

    def around(name: str, apply: Transform) -> Transform:
        seen.append(name)
        return apply

    PIPELINES["ysb"].build(records, around)
    assert seen == ["events", "deserialize", "filter", "project", "join"]


@pytest.mark.parametrize("name", PIPELINES)
def test_narrow_steps_pass_value_on(name: str, records: DataFrame) -> None:
    taken = []

    def around(_name: str, apply: Transform) -> Transform:
        def checked(df: DataFrame) -> DataFrame:
            taken.append(df.columns)
            out = apply(df)
            taken.append(out.columns)
            return out

        return checked

    PIPELINES[name].build(records, around)
    assert taken
    assert all("value" in columns for columns in taken)


def test_refuses_what_is_not_a_pipeline() -> None:
    with pytest.raises(InvalidValue, match="did you mean 'wordcount'"):
        pipeline_named("wordcont")
    assert pipeline_named("q1") is PIPELINES["q1"]
    step = Step("a", bids)
    with pytest.raises(InvalidValue, match="different names"):
        Pipeline("twice", 1, (step, step), bids)
    with pytest.raises(InvalidValue, match="different names"):
        Pipeline("empty", 1, (), bids)


def test_naming_the_pipelines_does_not_import_pyspark() -> None:
    code = "import sys, rheostat.lab.workload.catalog, rheostat.lab.workload.pacing; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
