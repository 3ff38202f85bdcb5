"""Page views from Kafka, counted per minute and section of the site, written to a folder of JSON files.

    rheostat kafka run --topic views:4 &                                   # a broker to try it with
    python examples/kafka_json.py --bootstrap localhost:9092 --topic views --jars "$(rheostat kafka fetch)"

A record is JSON such as {"user": "ada", "page": "/docs/spark", "at": "2026-11-17T09:30:00Z"}.
The lines under a `# rheostat:` comment attach the scaler. The rest is a plain Structured Streaming job.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pandas as pd
import pyspark
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, from_json, pandas_udf, window
from pyspark.sql.types import StringType

import rheostat

SCHEMA = "user string, page string, at timestamp"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


@pandas_udf(StringType())
def section(pages: pd.Series) -> pd.Series:
    """Return the first part of each path: /docs/spark -> docs."""
    return pages.str.strip("/").str.split("/").str[0]


def count_views(records: DataFrame) -> DataFrame:
    """Count views per minute and section; a view may be up to 30 s late."""
    views = records.select(from_json(col("value").cast("string"), SCHEMA).alias("view")).select("view.*")
    views = views.withColumn("section", section("page")).withWatermark("at", "30 seconds")
    return views.groupBy(window("at", "1 minute"), "section").count()


def save_to(folder: str) -> Callable[[DataFrame, int], None]:
    """Return a function that writes one batch; a repeated batch overwrites its own files."""

    def save(counts: DataFrame, batch: int) -> None:
        rows = counts.selectExpr("window.start as minute", "section", "count")
        rows.write.mode("overwrite").json(f"{folder}/counts/batch={batch}")

    return save


def main() -> None:
    """Run the job until it is stopped."""
    parser = argparse.ArgumentParser(description="Count page views from Kafka.")
    parser.add_argument("--bootstrap", default="localhost:9092", help="Kafka's bootstrap servers")
    parser.add_argument("--topic", default="views")
    parser.add_argument("--folder", default="out/views", help="results, checkpoint and journal")
    parser.add_argument(
        "--master", default="local-cluster", help="Spark's master; by default a cluster on this machine"
    )
    parser.add_argument("--max-executors", type=int, default=4)
    parser.add_argument("--jars", help=f"jars of Spark's Kafka connector (default: fetch {CONNECTOR})")
    parser.add_argument("--seconds", type=float, help="stop after this time (default: run until Ctrl-C)")
    args = parser.parse_args()
    connector = {"spark.jars": args.jars} if args.jars else {"spark.jars.packages": CONNECTOR}

    # rheostat: a session whose executors can be resized (or your own, with the lines of `rheostat settings`)
    spark = rheostat.session("views", args.master, max_executors=args.max_executors, conf=connector)

    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", args.bootstrap)
    records = source.option("subscribe", args.topic).option("startingOffsets", "earliest").load()
    query = (
        count_views(records)
        .writeStream.queryName("views")
        .outputMode("append")
        .foreachBatch(save_to(args.folder))
        .option("checkpointLocation", f"{args.folder}/checkpoint")
        .trigger(processingTime="2 seconds")
        .start()
    )

    # rheostat: from here on the number of executors follows the load
    scaler = rheostat.autoscale(
        query,
        max_executors=args.max_executors,
        slo=rheostat.SLO(max_latency_s=60),
        journal=f"{args.folder}/scaler.db",
    )

    query.awaitTermination(args.seconds)
    print(scaler)
    scaler.stop()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
