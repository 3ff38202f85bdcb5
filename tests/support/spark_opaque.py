"""A source as Kinesis is one: offsets of digits that order records and count nothing.

    python spark_opaque.py FOLDER

prints the backlogs that a scaler showed, and the batches: each with its moment.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from project import ROOT
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

import rheostat

RATE_PER_S, TRIGGER_S, RUN_S = 200, 6, 40.0
START_S = time.time()


def arrived(start_s: float) -> int:
    """Return the records since the start."""
    return int((time.time() - start_s) * RATE_PER_S)


def sequence(number: int) -> str:
    """Return a record's sequence number: larger ones are later."""
    return f"4959{number * number + 7 * number:030d}"


class Shard(SimpleDataSourceStreamReader):
    """One shard."""

    def __init__(self, start_s: float) -> None:
        self.start_s, self.numbers = start_s, {sequence(0): 0}

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return {"shard-0": sequence(0)}

    def read(self, start: dict[str, str]) -> tuple[Iterator[tuple[int]], dict[str, str]]:
        first, end = self.numbers[start["shard-0"]], arrived(self.start_s)
        self.numbers[sequence(end)] = end
        return iter([(number,) for number in range(first, end)]), {"shard-0": sequence(end)}

    def readBetweenOffsets(self, start: dict[str, str], end: dict[str, str]) -> Iterator[tuple[int]]:  # noqa: N802
        return iter([(number,) for number in range(self.numbers[start["shard-0"]], self.numbers[end["shard-0"]])])


class Stream(DataSource):
    """The source."""

    @classmethod
    def name(cls) -> str:
        return "opaque"

    def schema(self) -> str:
        return "number long"

    def simpleStreamReader(self, schema: Any) -> Shard:  # noqa: N802
        return Shard(float(self.options["start"]))


def end_s(progress: Any) -> float:
    """Return the end of a batch."""
    started_s = datetime.fromisoformat(progress["timestamp"]).timestamp()
    return float(started_s + progress["durationMs"]["triggerExecution"] / 1000)


def main(folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "examples"))
    from kinesis_counter import KinesisCounter  # type: ignore[import-not-found]

    builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(Stream)
    counter = KinesisCounter(spark, "clicks", lambda: float(arrived(START_S)))
    rows = spark.readStream.format("opaque").option("start", str(START_S)).load()
    writer = (
        rows.writeStream.format("noop").queryName("clicks").option("checkpointLocation", str(folder / "checkpoint"))
    )
    query = writer.trigger(processingTime=f"{TRIGGER_S} seconds").start()
    options = rheostat.Options(interval_s=1.0, counters={"clicks": counter})
    with rheostat.autoscale(query, dry_run=True, options=options) as scaler:
        time.sleep(RUN_S)
        windows = [(one.observation.at_s, one.observation.backlog) for one in scaler.steps]
        batches = [(end_s(one), one["numInputRows"]) for one in query.recentProgress]
    print(json.dumps({"start_s": START_S, "windows": windows, "batches": batches}))
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
