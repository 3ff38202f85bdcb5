"""Words counted in Spark's real-time mode, from one Kafka topic to another, with tasks tuned per stage.

    rheostat kafka run --topic lines:2 --topic counts:2 &                  # a broker to try it with
    python examples/realtime.py --bootstrap localhost:9092 --jars "$(rheostat kafka fetch)"

or, without `main`: rheostat run examples.realtime:words --mode realtime --option servers=localhost:9092
The lines under a `# rheostat:` comment are Rheostat's. The functions of the stages are plain PySpark.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

import rheostat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rheostat.engine.spark.pipeline import Builder

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


def read_text(rows: DataFrame) -> DataFrame:
    """Read each Kafka record as a line of text."""
    return rows.selectExpr("cast(value as string) as line", "timestamp")


def split_lines(rows: DataFrame) -> DataFrame:
    """Split lines into words."""
    return rows.selectExpr("*", "explode(split(line, ' ')) as word")


def count_words(rows: DataFrame) -> DataFrame:
    """Count each word since the first start."""
    return rows.groupBy("word").count()


def write_count(rows: DataFrame) -> DataFrame:
    """Make a Kafka record of each count."""
    return rows.selectExpr("word as key", "cast(count as string) as value")


# rheostat: a pipeline names its stages, so that each can have its own number of tasks
@rheostat.pipeline
def words(
    p: Builder,
    servers: str = "localhost:9092",
    source: str = "lines",
    sink: str = "counts",
    checkpoint: str = "out/words/checkpoint",
) -> None:
    """Count words."""
    p.kafka("lines", servers=servers, topic=source, parse=read_text, options={"startingOffsets": "earliest"})
    p.stage("split", split_lines)
    p.keyed("count", count_words)
    p.to_kafka("counts", servers=servers, topic=sink, columns=write_count, checkpoint=checkpoint)


def main() -> None:
    """Run the pipeline until it is stopped."""
    parser = argparse.ArgumentParser(description="Count words in real-time mode.")
    parser.add_argument("--bootstrap", default="localhost:9092", help="Kafka's bootstrap servers")
    parser.add_argument("--source", default="lines", help="topic with lines of text")
    parser.add_argument("--sink", default="counts", help="topic for the counts")
    parser.add_argument("--folder", default="out/words", help="checkpoint and journal")
    parser.add_argument(
        "--master", default="local-cluster", help="Spark's master; by default a cluster on this machine"
    )
    parser.add_argument("--min-executors", type=int, default=2, help="with 2 cores each: every stage needs a free slot")
    parser.add_argument("--max-executors", type=int, default=4)
    parser.add_argument("--jars", help=f"jars of Spark's Kafka connector (default: fetch {CONNECTOR})")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    args = parser.parse_args()
    connector = {"spark.jars": args.jars} if args.jars else {"spark.jars.packages": CONNECTOR}
    Path(args.folder).mkdir(parents=True, exist_ok=True)
    executors = {"min_executors": args.min_executors, "max_executors": args.max_executors}

    # rheostat: a session whose executors can be resized
    rheostat.session("words", args.master, cores=2, conf=connector, **executors)

    # rheostat: starts the query, and restarts it where a stage needs another number of tasks
    scaler = rheostat.start(
        words.define(
            servers=args.bootstrap, source=args.source, sink=args.sink, checkpoint=f"{args.folder}/checkpoint"
        ),
        mode="realtime",
        policy="conttune",
        journal=f"{args.folder}/scaler.db",
        **executors,
    )

    end_s = time.monotonic() + args.seconds
    while scaler.holds and time.monotonic() < end_s:
        time.sleep(1)
    print(scaler)
    scaler.stop()
    for query in scaler.queries:
        query.stop()


if __name__ == "__main__":
    main()
