"""The recipe for Kinesis: sums of CloudWatch, rows of batches."""

from __future__ import annotations

import importlib.util
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from project import ROOT

START = datetime(2026, 11, 18, 9, 30, 20, tzinfo=UTC)


def recipe() -> Any:
    spec = importlib.util.spec_from_file_location("kinesis_counter", ROOT / "examples" / "kinesis_counter.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CloudWatch:
    """A hundred records in every minute that has ended, as far as they are asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[datetime, datetime]] = []

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        assert (asked["Namespace"], asked["MetricName"], asked["Period"]) == ("AWS/Kinesis", "IncomingRecords", 60)
        first, end = asked["StartTime"], asked["EndTime"]
        self.asked.append((first, end))
        minute, points = first.replace(second=0), []
        while minute + timedelta(minutes=1) <= end:
            points.append({"Timestamp": minute, "Sum": 100.0})
            minute += timedelta(minutes=1)
        return {"Datapoints": points[::-1]}


def test_arrivals_are_summed_over_days_and_asked_for_in_parts() -> None:
    now_s, cloudwatch = START.timestamp(), CloudWatch()
    arrived = recipe().incoming(cloudwatch, "clicks", lambda: now_s)
    assert arrived() == 0
    for minutes in range(1, 3000):
        now_s = START.timestamp() + 60 * minutes
        assert arrived() == 100 * minutes
    assert max(end - first for first, end in cloudwatch.asked) < timedelta(minutes=15)


def test_between_two_requests_the_last_answer_stands() -> None:
    now_s, cloudwatch = START.timestamp(), CloudWatch()
    arrived = recipe().incoming(cloudwatch, "clicks", lambda: now_s, ask_s=30.0)
    for second in range(120):
        now_s = START.timestamp() + second
        arrived()
    assert len(cloudwatch.asked) == 4


def test_rows_are_counted_by_the_end_of_their_batch() -> None:
    spark: Any = SimpleNamespace(streams=SimpleNamespace(addListener=lambda listener: None))
    counter = recipe().KinesisCounter(spark, "clicks", lambda: 700.0)
    for name, rows, end in (("clicks", 40, "b"), ("orders", 9, "c"), ("clicks", 60, "d")):
        source = SimpleNamespace(endOffset=json.dumps({"shard-0": end}))
        counter.onQueryProgress(
            SimpleNamespace(progress=SimpleNamespace(name=name, numInputRows=rows, sources=[source]))
        )
    ends = [counter.records({"shard-0": end}) for end in "abcd"]
    assert ends == [None, 40, None, 100]
    assert counter.records('{"shard-0": "d"}') == 100
    assert counter.records(counter.latest()) == 700
