"""WordCount in real-time mode, between two Kafka topics.

rheostat kafka run --topic lines:2 --topic counts:2
rheostat run examples.words:words --mode realtime --master 'local[12]' --policy conttune
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import rheostat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rheostat.engine.spark.pipeline import Builder


def lines(rows: DataFrame) -> DataFrame:
    """Read the text."""
    return rows.selectExpr("cast(value as string) as line", "timestamp")


def split(rows: DataFrame) -> DataFrame:
    """Cut lines into words; with all columns, so that it is timed."""
    return rows.selectExpr("*", "explode(split(line, ' ')) as word")


def count(rows: DataFrame) -> DataFrame:
    """Count every word since the start."""
    return rows.groupBy("word").count()


def record(rows: DataFrame) -> DataFrame:
    """Make a Kafka record of a count."""
    return rows.selectExpr("word as key", "cast(count as string) as value")


@rheostat.pipeline
def words(p: Builder, servers: str = "localhost:9092", checkpoint: str = "checkpoints/words") -> None:
    """Count words."""
    p.kafka("lines", servers=servers, topic="lines", parse=lines)
    p.stage("split", split)
    p.keyed("count", count)
    p.to_kafka("results", servers=servers, topic="counts", columns=record, checkpoint=checkpoint)
