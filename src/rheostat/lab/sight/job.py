"""A job as users have it: JSON from Kafka or files, a pandas UDF, a windowed count, `foreachBatch`; and one line of
`rheostat.autoscale` with its defaults. Only the journal is named, so that it can be read from outside.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rheostat.kafka.jars import connector_jars
from rheostat.lab.experiment.processes import enclose
from rheostat.lab.sight.place import Place, note
from rheostat.lab.sight.scenario import MOST_EXECUTORS, RECORD_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TOPIC = "views"
PARTITIONS = 2 * MOST_EXECUTORS
VALUE = '{"number": %(number)d, "user": "u%(number)d", "at": %(at_ms)d}'
"""A record."""
SCHEMA = "number long, user string, at long"
ARROW_RECORDS = 100
"""Records per Arrow batch: workers keep account once per batch, every 60 ms."""
POLL_S = 0.5
"""Seconds between two looks at the query."""


def drive(folder: str, bootstrap: str) -> None:
    """Run the job until SIGTERM; with an empty `bootstrap` it reads files instead of a topic."""
    import rheostat

    place = Place(Path(folder))
    enclose(place.folder, str(place.log))
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    conf = {
        "spark.jars": ",".join(map(str, connector_jars())),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_RECORDS),
    }
    spark = rheostat.session("rheostat-sight", max_executors=MOST_EXECUTORS, conf=conf)
    query = _start(spark, place, _topic(spark, bootstrap) if bootstrap else _files(spark, place))
    scaler = rheostat.autoscale(query, max_executors=MOST_EXECUTORS, journal=str(place.journal))
    place.attached.touch()
    while not ending and query.isActive:
        time.sleep(POLL_S)
    scaler.stop()
    query.stop()
    spark.stop()


def _topic(spark: SparkSession, bootstrap: str) -> DataFrame:
    from pyspark.sql.functions import col, from_json

    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    records = source.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
    return records.select(from_json(col("value").cast("string"), SCHEMA).alias("view")).select("view.*")


def _files(spark: SparkSession, place: Place) -> DataFrame:
    return spark.readStream.schema(SCHEMA).json(str(place.drops))


def _start(spark: SparkSession, place: Place, views: DataFrame) -> StreamingQuery:
    from pyspark.sql.functions import timestamp_millis, window

    from rheostat.lab.sight.udf import section_udf

    timed = views.withColumn("section", section_udf(str(place.work), RECORD_S)("number"))
    timed = timed.withColumn("at", timestamp_millis("at")).withWatermark("at", "30 seconds")
    return (
        timed.groupBy(window("at", "1 minute"), "section")
        .count()
        .writeStream.queryName("views")
        .outputMode("update")
        .foreachBatch(_save_to(place))
        .option("checkpointLocation", str(place.folder / "checkpoint"))
        .trigger(processingTime="2 seconds")
        .start()
    )


def _save_to(place: Place) -> Callable[[DataFrame, int], None]:
    def save(counts: DataFrame, batch: int) -> None:
        rows = counts.selectExpr("window.start as minute", "section", "count")
        rows.write.mode("overwrite").json(str(place.folder / "counts" / f"batch={batch}"))
        note(place.finished, batch)

    return save
