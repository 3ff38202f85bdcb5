"""Orders from a folder of JSON files, totalled per customer and minute, to a folder of Parquet files.

    python examples/files.py --source incoming --folder out/orders

A line of a file is JSON such as {"customer": "ada", "amount": 12.5, "at": "2026-11-17T09:30:00Z"}.
The lines under a `# rheostat:` comment attach the scaler. The rest is a plain Structured Streaming job.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame
from pyspark.sql.functions import window

import rheostat

SCHEMA = "customer string, amount double, at timestamp"


def total_orders(orders: DataFrame) -> DataFrame:
    """Add up the orders of each customer per minute; an order may be up to 30 s late."""
    windows = orders.withWatermark("at", "30 seconds").groupBy(window("at", "1 minute"), "customer")
    totals = windows.agg({"amount": "sum", "*": "count"})
    return totals.selectExpr("window.start as minute", "customer", "`sum(amount)` as amount", "`count(1)` as orders")


def main() -> None:
    """Run the job until it is stopped."""
    parser = argparse.ArgumentParser(description="Total orders from a folder of JSON files.")
    parser.add_argument("--source", default="incoming", help="folder into which finished JSON files are moved")
    parser.add_argument("--folder", default="out/orders", help="results, checkpoint and journal")
    parser.add_argument(
        "--master", default="local-cluster", help="Spark's master; by default a cluster on this machine"
    )
    parser.add_argument("--max-executors", type=int, default=4)
    parser.add_argument("--seconds", type=float, help="stop after this time (default: run until Ctrl-C)")
    args = parser.parse_args()

    # rheostat: a session whose executors can be resized (or your own, with the lines of `rheostat settings`)
    spark = rheostat.session("orders", args.master, max_executors=args.max_executors)

    query = (
        total_orders(spark.readStream.schema(SCHEMA).json(args.source))
        .writeStream.queryName("orders")
        .format("parquet")
        .option("path", f"{args.folder}/totals")
        .option("checkpointLocation", f"{args.folder}/checkpoint")
        .trigger(processingTime="2 seconds")
        .start()
    )

    # rheostat: from here on the number of executors follows the load
    scaler = rheostat.autoscale(query, max_executors=args.max_executors, journal=f"{args.folder}/scaler.db")

    query.awaitTermination(args.seconds)
    print(scaler)
    scaler.stop()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
