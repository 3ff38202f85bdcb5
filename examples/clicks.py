"""A query that Rheostat starts and restarts: clicks, counted per page in windows of 10 s. It needs no Kafka.

    rheostat run examples.clicks:start --max-executors 4 --journal clicks.db

Rheostat calls `start` with the size to build the query for, and again when the query needs more tasks than it has.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.functions import window
from pyspark.sql.streaming.query import StreamingQuery

from rheostat import Allocation

CLICKS_PER_S = 400
LOOKUP = "java_method('java.util.concurrent.locks.LockSupport', 'parkNanos', 5000000L) is not null"
"""Condition that is always true and takes 5 ms, in place of a lookup elsewhere: a slot does 200 clicks per second."""
FOLDER = "out/clicks"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def start(allocation: Allocation) -> StreamingQuery:
    """Build the query for this number of slots, and start it."""
    spark = SparkSession.active()
    # Only this state store can move its state to more partitions later.
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    source = spark.readStream.format("rate").option("rowsPerSecond", CLICKS_PER_S)
    clicks = source.option("numPartitions", 2 * allocation.slots).load()
    pages = clicks.where(LOOKUP).selectExpr("timestamp", "pmod(hash(value), 20) as page")
    counts = pages.withWatermark("timestamp", "5 seconds").groupBy(window("timestamp", "10 seconds"), "page").count()
    return (
        counts.writeStream.queryName("clicks")
        .format("parquet")
        .option("path", f"{FOLDER}/counts")
        .option("checkpointLocation", f"{FOLDER}/checkpoint")
        .trigger(processingTime="2 seconds")
        .start()
    )
