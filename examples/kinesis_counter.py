"""A counter for Kinesis, whose sequence numbers order records and do not count them.

    counter = KinesisCounter(spark, "clicks", incoming(boto3.client("cloudwatch"), "my-stream"))
    query = spark.readStream.format("aws-kinesis")...queryName("clicks").start()
    rheostat.autoscale(query, max_executors=8, options=rheostat.Options(counters={"clicks": counter}))

What was taken is the rows of finished batches; what arrived is CloudWatch's `IncomingRecords`, by the minute. So the
backlog is one to two minutes late. Start the query at the stream's end (LATEST): what waited before is in neither sum.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

ARRIVED = "arrived"
"""Key of the offset that stands for the stream's end: the records that have arrived since the query's start."""
RETAINED = 1000
"""End offsets of batches to remember."""
SETTLED = timedelta(minutes=10)
"""Age of a minute whose sum CloudWatch does not change any more."""
ASK_S = 30.0
"""Seconds between two requests: CloudWatch has one number per minute, and each request costs."""


class KinesisCounter(StreamingQueryListener):
    """Counts one query's records. Create it before the query starts."""

    def __init__(self, spark: SparkSession, query: str, arrived: Callable[[], float]) -> None:
        super().__init__()
        self._query, self._arrived = query, arrived
        self._taken = 0
        self._before: dict[str, int] = {}
        """End offset of a batch -> rows up to it."""
        spark.streams.addListener(self)

    def records(self, offset: Any) -> float | None:
        """Return the records before an offset; None for one that ends no finished batch."""
        value = json.loads(offset) if isinstance(offset, str) else offset
        if isinstance(value, Mapping) and ARRIVED in value:
            return float(value[ARRIVED])
        return self._before.get(_key(value))

    def ahead(self, offset: Any, seconds: float) -> float | None:
        """Return None: arrivals are not known in advance."""
        return None

    def latest(self) -> dict[str, float]:
        """Return the stream's end."""
        return {ARRIVED: self._arrived()}

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Add the rows of a finished batch."""
        progress = event.progress
        if progress.name != self._query:
            return
        self._taken += progress.numInputRows
        self._before[_key(json.loads(progress.sources[0].endOffset))] = self._taken
        while len(self._before) > RETAINED:
            del self._before[next(iter(self._before))]

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Ignore starts."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Ignore idle triggers."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Ignore ends."""


def incoming(
    cloudwatch: Any, stream: str, clock: Callable[[], float] = time.time, ask_s: float = ASK_S
) -> Callable[[], float]:
    """Return a function that returns the records that have arrived since now, by CloudWatch."""
    since = datetime.fromtimestamp(clock(), UTC)
    settled, shown, asked_s = 0.0, 0.0, -ask_s

    def arrived() -> float:
        nonlocal since, settled, shown, asked_s
        if clock() - asked_s < ask_s:
            return shown
        now = datetime.fromtimestamp(clock(), UTC)
        answer = cloudwatch.get_metric_statistics(
            Namespace="AWS/Kinesis",
            MetricName="IncomingRecords",
            Dimensions=[{"Name": "StreamName", "Value": stream}],
            StartTime=since,
            EndTime=now,
            Period=60,
            Statistics=["Sum"],
        )
        minutes = sorted((point["Timestamp"], point["Sum"]) for point in answer["Datapoints"])
        old = [minute for minute in minutes if minute[0] + timedelta(minutes=1) <= now - SETTLED]
        shown = settled + sum(count for _, count in minutes)
        if old:
            # One answer has at most a day of minutes: those that are settled are asked for once.
            settled += sum(count for _, count in old)
            since = old[-1][0] + timedelta(minutes=1)
        asked_s = clock()
        return shown

    return arrived


def _key(offset: Any) -> str:
    return json.dumps(offset, sort_keys=True)
