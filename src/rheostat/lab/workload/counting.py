"""A real-time pipeline that counts numbers by key, and the exact counts that it owes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rheostat.engine.spark.pipeline import Builder, Staged
from rheostat.kafka import client as kafka_client
from rheostat.lab.workload.realtime import numbers, record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def counting(servers: str, source: str, sink: str, checkpoint: str, keys: int, writer: str = "") -> Staged:
    """Return a pipeline that counts numbers by key. The name of a `writer` ends each of its results."""

    def by_key(rows: DataFrame) -> DataFrame:
        from pyspark.sql.functions import expr

        return rows.withColumn("key", expr(f"pmod(value, {keys})"))

    def count(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as sql

        return rows.groupBy("key").agg(sql.count("*").alias("count"), sql.max("timestamp").alias("timestamp"))

    def written(rows: DataFrame) -> DataFrame:
        rows = record(rows)
        return rows.selectExpr("key", f"concat(value, ' {writer}') as value") if writer else rows

    p = Builder("counting")
    p.kafka("numbers", servers=servers, topic=source, parse=numbers, options={"startingOffsets": "earliest"})
    p.stage("key", by_key)
    p.keyed("count", count)
    p.to_kafka("counts", servers=servers, topic=sink, columns=written, checkpoint=checkpoint, event_time="timestamp")
    return p.built


def due(keys: int, sent: Mapping[str, int]) -> dict[str, int]:
    """Return every key's count after the numbers from 0 up to each of these counts were sent."""
    totals = np.zeros(keys, dtype=np.int64)
    for count in sent.values():
        whole, rest = divmod(count, keys)
        totals += whole
        totals[:rest] += 1
    return {str(key): int(total) for key, total in enumerate(totals) if total}


def fill(servers: str, topic: str, keys: int) -> None:
    """Write every number once."""
    producer = kafka_client.producer(servers, {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(keys):
        while True:
            try:
                producer.produce(topic, str(number).encode())
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
