"""A job as users have it, with nothing of ours in it: JSON from Kafka, a pandas UDF, a windowed count, `foreachBatch`.

A producer plays a known schedule, so the right count of every window is known; and the offsets of every batch say how
many records its counts must have in all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import KafkaLoad, Sent, rows, start_load
from rheostat.lab.clusters.driver import NAME, write_whole
from rheostat.lab.experiment.trial import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TOPIC, PARTITIONS = "views", 6
VALUE = '{"number": %(number)d, "user": "u%(number)d", "at": %(at_ms)d}'
"""A record."""
SCHEMA = "number long, user string, at long"
RATE_PER_S, RECORD_S = 150, 2e-3
"""Records/s, and the seconds of a slot that each takes: one executor is enough, and kills hit a batch."""
SECTIONS, WINDOW_S = 10, 10
SCHEDULE = Schedule(Constant(), float(RATE_PER_S), 3600)
CONF = {"spark.sql.streaming.minBatchesToRetain": "10000"}
"""The check reads the offsets of every batch."""


@contextmanager
def play_load(folder: Path, progress: Progress) -> Iterator[tuple[str, KafkaLoad]]:
    """Start a broker and the load; give its address and the load."""
    with Broker(folder / "broker", notify=progress) as broker:
        broker.create(TOPIC, PARTITIONS)
        with start_load(broker.bootstrap, TOPIC, SCHEDULE, value=VALUE) as load:
            yield broker.bootstrap, load


def start_stock(spark: SparkSession, folder: Path, bootstrap: str) -> StreamingQuery:
    """Start the query; every batch writes its counts into a file."""
    from pyspark.sql.functions import col, from_json, timestamp_millis, window

    from rheostat.lab.clusters.stock_udf import section_udf

    output = folder / "output"
    output.mkdir(exist_ok=True)

    def write(batch: DataFrame, number: int) -> None:
        counted = batch.selectExpr("unix_millis(window.start) as start", "section", "count").collect()
        counts = {f"{row['start']} {row['section']}": row["count"] for row in counted}
        write_whole(output / f"{number}.json", json.dumps(counts))

    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    records = source.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
    views = records.select(from_json(col("value").cast("string"), SCHEMA).alias("view")).select("view.*")
    sectioned = views.withColumn("section", section_udf(SECTIONS, RECORD_S)("number"))
    timed = sectioned.withColumn("at", timestamp_millis("at")).withWatermark("at", "30 seconds")
    counted = timed.groupBy(window("at", f"{WINDOW_S} seconds"), "section").count()
    writer: Any = counted.writeStream.queryName(NAME).outputMode("update").foreachBatch(write)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()  # type: ignore[no-any-return]


def records_taken(folder: Path, batch: int) -> int:
    """Return the records up to the end of a batch, by its offsets in the checkpoint."""
    file = folder / "checkpoint" / "offsets" / str(batch)
    if batch < 0 or not file.exists():
        return 0
    [offsets] = (json.loads(line)[TOPIC] for line in file.read_text().splitlines()[2:])
    return int(sum(offsets.values()))


def true_counts(sent: Sent) -> Counter[str]:
    """Return the right count of every window and section."""
    start_us, counts, second = round(sent.start_s * 1_000_000), Counter[str](), 0
    while SCHEDULE.due(second) < sent.count:
        due = min(sent.count, SCHEDULE.due(second + 1)) - SCHEDULE.due(second)
        for number, due_us in rows(SCHEDULE, second, 0, due):
            at_ms = (start_us + due_us) // 1000
            counts[f"{at_ms - at_ms % (WINDOW_S * 1000)} {number % SECTIONS}"] += 1
        second += 1
    return counts


def stock_errors(folder: Path, last: int, sent: Sent) -> tuple[int, int]:
    """Return rows that the counts lack, and rows that they have too often: in all after every batch, by key at the end.

    The batches must have taken everything that was sent.
    """
    shown: dict[str, int] = {}
    wrong = []
    for number in range(last + 1):
        shown |= json.loads((folder / "output" / f"{number}.json").read_text())
        wrong.append(records_taken(folder, number) - sum(shown.values()))
    right = true_counts(sent)
    wrong += [right[key] - shown.get(key, 0) for key in right.keys() | shown.keys()]
    return sum(max(0, one) for one in wrong), sum(max(0, -one) for one in wrong)
