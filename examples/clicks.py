"""A pipeline as you would write it: clicks, counted per page in windows of 10 s.

    rheostat run examples.clicks:start --max-executors 4 --journal clicks.db

`start` is called with the size that it has to build for, and again when the query needs more tasks than it has.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.functions import window
from pyspark.sql.streaming.query import StreamingQuery

from rheostat import Allocation
from rheostat.lab.workload.pacing import paced

CLICKS_PER_S = 400
LOOKUPS_PER_S = 200
"""What one slot does: every click is looked up somewhere, which takes 5 ms."""
FOLDER = "out/clicks"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def start(allocation: Allocation) -> StreamingQuery:
    """Build and start the query for so many slots."""
    spark = SparkSession.active()
    # The one state store whose state can be spread over more partitions later.
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    tasks = 2 * allocation.slots
    source = spark.readStream.format("rate").option("rowsPerSecond", CLICKS_PER_S).option("numPartitions", tasks)
    clicks = paced(source.load(), LOOKUPS_PER_S, tasks=tasks).selectExpr("timestamp", "pmod(hash(value), 20) as page")
    counts = clicks.withWatermark("timestamp", "5 seconds").groupBy(window("timestamp", "10 seconds"), "page").count()
    return (
        counts.writeStream.queryName("clicks")
        .format("parquet")
        .option("path", f"{FOLDER}/counts")
        .option("checkpointLocation", f"{FOLDER}/checkpoint")
        .trigger(processingTime="2 seconds")
        .start()
    )
