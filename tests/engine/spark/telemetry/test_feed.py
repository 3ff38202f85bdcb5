"""Progress events reach the queue whole, and cost the driver a few calls each."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rheostat.engine.spark.telemetry.feed import Feed, _Events

pytestmark = pytest.mark.cluster

DEADLINE_S = 60.0
MOST_CALLS = 6
"""Calls into the JVM per event: the progress, its JSON, names on the way. PySpark's own listener needs about 900."""

FREE = "m\nd\n"
"""Begin of a Py4J command that frees an object. Such commands come whenever Python collects garbage, of any test."""


def test_an_event_costs_few_calls_and_is_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = type(spark.sparkContext._gateway._gateway_client)  # type: ignore[union-attr]
    send, calls, inside = client.send_command, [], threading.local()

    def counted(self: Any, command: str, *rest: Any, **named: Any) -> Any:
        if getattr(inside, "event", False) and not command.startswith(FREE):
            calls.append(command)
        return send(self, command, *rest, **named)

    handle = _Events.onQueryProgress

    def marked(self: _Events, event: Any) -> None:
        inside.event = True
        try:
            handle(self, event)
        finally:
            inside.event = False

    feed = Feed()
    spark.streams.addListener(feed)
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    counts = stream.groupBy((stream.value % 3).alias("key")).count()
    writer = counts.writeStream.outputMode("update").format("noop")
    monkeypatch.setattr(client, "send_command", counted)
    monkeypatch.setattr(_Events, "onQueryProgress", marked)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        events: list[str] = []
        deadline_s = time.monotonic() + DEADLINE_S
        while len(events) < 5 and time.monotonic() < deadline_s:
            events += feed.drain()
            time.sleep(0.05)
        spent, handled = len(calls), len(events) + len(feed.drain()) + 1
        shown = {progress["batchId"]: json.loads(progress.json) for progress in query.recentProgress}
    finally:
        query.stop()
        spark.streams.removeListener(feed)
    assert len(events) >= 5
    assert 2 * len(events) <= spent <= MOST_CALLS * handled
    for event in map(json.loads, events):
        assert event == shown[event["batchId"]]
    assert event["stateOperators"][0]["numRowsTotal"] == 3
