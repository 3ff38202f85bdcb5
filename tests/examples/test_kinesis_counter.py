"""The recipe for Kinesis: sums of CloudWatch, rows of batches."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
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
    """A steady load per minute, published when the minute has ended, by the whole minutes that are asked for."""

    def __init__(self, per_minute: Callable[[datetime], float] = lambda minute: 600.0) -> None:
        self.asked: list[tuple[datetime, datetime]] = []
        self._per_minute = per_minute

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        assert (asked["Namespace"], asked["MetricName"], asked["Period"]) == ("AWS/Kinesis", "IncomingRecords", 60)
        first, end = asked["StartTime"], asked["EndTime"]
        self.asked.append((first, end))
        minute, points = first.replace(second=0), []
        while minute + timedelta(minutes=1) <= end:
            points.append({"Timestamp": minute, "Sum": self._per_minute(minute)})
            minute += timedelta(minutes=1)
        return {"Datapoints": points[::-1]}


def counted(cloudwatch: CloudWatch, seconds: Iterable[int], **how: Any) -> dict[int, float]:
    """Return what has arrived at these seconds after the start; a second before the first minute is left out."""
    now_s, counts = START.timestamp(), {}
    arrived = recipe().incoming(cloudwatch, "clicks", lambda: now_s, **how)
    for second in seconds:
        now_s = START.timestamp() + second
        with contextlib.suppress(LookupError):
            counts[second] = arrived()
    return counts


def test_arrivals_are_summed_over_days_and_asked_for_in_parts() -> None:
    cloudwatch = CloudWatch()
    counts = counted(cloudwatch, range(0, 3000 * 60, 60))
    assert min(counts) == 60
    assert all(records == pytest.approx(10 * second) for second, records in counts.items())
    assert max(end - first for first, end in cloudwatch.asked) < timedelta(minutes=15)


def test_a_steady_load_has_no_steps() -> None:
    cloudwatch = CloudWatch()
    counts = counted(cloudwatch, range(300), ask_s=30.0)
    assert min(counts) == 60  # before, nothing is known; the first minute began before the start
    assert all(records == pytest.approx(10 * second) for second, records in counts.items())
    assert len(cloudwatch.asked) == 10


def test_a_load_that_has_changed_is_corrected_with_the_next_minute() -> None:
    changed = START.replace(second=0) + timedelta(minutes=3)
    counts = counted(CloudWatch(lambda minute: 600.0 if minute < changed else 1800.0), range(600), ask_s=1.0)
    assert counts[599] == pytest.approx(10 * 160 + 30 * (599 - 160))


def test_minutes_that_stay_away_have_no_records() -> None:
    cloudwatch = CloudWatch(lambda minute: 600.0)
    ended = START.replace(second=0) + timedelta(minutes=2)
    full = cloudwatch.get_metric_statistics
    cloudwatch.get_metric_statistics = lambda **asked: full(**asked | {"EndTime": min(asked["EndTime"], ended)})  # type: ignore[method-assign]
    counts = counted(cloudwatch, range(600))
    assert counts[100 + 180] == pytest.approx(10 * 280)
    assert counts[599] == pytest.approx(10 * 100)


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
