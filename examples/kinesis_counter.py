"""A counter for Kinesis, whose sequence numbers order records and do not count them.

    counter = KinesisCounter(spark, "clicks", incoming(boto3.client("cloudwatch"), "my-stream"))
    query = spark.readStream.format("aws-kinesis")...queryName("clicks").start()
    rheostat.autoscale(query, max_executors=8, options=rheostat.Options(counters={"clicks": counter}))

What was taken is the rows of finished batches; what arrived is CloudWatch's `IncomingRecords`, by the minute. So a
change of the load is seen one to two minutes late, and the backlog is exact to some seconds of load. Start the query at
the stream's end (LATEST): what waited before is in neither sum.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

ARRIVED = "arrived"
"""Key of the offset that stands for the stream's end: the records that have arrived since the query's start."""
RETAINED = 1000
"""End offsets of batches to remember."""
MINUTE_S = 60.0
SETTLED_S = 600.0
"""Age of a minute whose sum CloudWatch does not change any more."""
LATE_S = 180.0
"""Seconds after which a minute that CloudWatch does not have is one without records."""
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
    """Return a function that returns the records that have arrived since now, by CloudWatch.

    CloudWatch has whole minutes only. What came before now in the first of them is left out by its share, and the time
    since the last of them counts with the rate of that minute: a sum that stood still for a minute and then jumped
    would look like a load that stops and comes in spikes.
    """
    start_s, asked_s, settled = clock(), -math.inf, 0.0
    minutes: dict[float, float] = {}
    """Start of a minute that CloudWatch may still change -> its records."""

    def since_start(minute_s: float) -> float:
        return minutes[minute_s] * min(1.0, (minute_s + MINUTE_S - start_s) / MINUTE_S)

    def arrived() -> float:
        nonlocal asked_s, settled
        now_s = clock()
        if now_s - asked_s >= ask_s:
            answer = cloudwatch.get_metric_statistics(
                Namespace="AWS/Kinesis",
                MetricName="IncomingRecords",
                Dimensions=[{"Name": "StreamName", "Value": stream}],
                StartTime=datetime.fromtimestamp(min(minutes, default=start_s), UTC),
                EndTime=datetime.fromtimestamp(now_s, UTC),
                Period=60,
                Statistics=["Sum"],
            )
            minutes.update({point["Timestamp"].timestamp(): point["Sum"] for point in answer["Datapoints"]})
            asked_s = now_s
            # One answer has at most a day of minutes: those that are settled are not asked for again.
            for minute_s in sorted(minutes)[:-1]:
                if minute_s < now_s - SETTLED_S:
                    settled += since_start(minute_s)
                    del minutes[minute_s]
        if not minutes:
            raise LookupError(f"CloudWatch has no minute of {stream} since the start yet")
        newest_s = max(minutes)
        unknown_s = now_s - newest_s - MINUTE_S
        rate_per_s = minutes[newest_s] / MINUTE_S if unknown_s <= LATE_S else 0.0
        return settled + sum(map(since_start, minutes)) + rate_per_s * unknown_s

    return arrived


def _key(offset: Any) -> str:
    return json.dumps(offset, sort_keys=True)
