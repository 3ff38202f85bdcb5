"""`rheostat.serve_metrics` on a real query of a Spark that cannot be scaled: all it shows is what was seen."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families

import rheostat
from rheostat.api.metrics import Exporter
from rheostat.errors import InvalidValue

pytestmark = pytest.mark.cluster

RATE = 200


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    rows = spark.readStream.format("rate").option("rowsPerSecond", RATE).load()
    parse = rheostat.operator(
        "parse", lambda frame: frame.selectExpr("*", "sha2(string(value), 256) as hash"), sample=1
    )
    writer = rows.transform(parse).writeStream.format("noop").queryName("clicks").trigger(processingTime="1 second")
    running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    yield running
    running.stop()


def scraped(exporter: Exporter) -> dict[tuple[str, str], float]:
    """Return name and second label -> value."""
    with urlopen(exporter.url, timeout=30) as answer:
        text = answer.read().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            others = [value for key, value in sample.labels.items() if key != "job"]
            found[sample.name, "".join(others)] = sample.value
    return found


def test_a_running_query_is_seen_and_its_end_too(query: Any) -> None:
    with rheostat.serve_metrics(query, port=0, interval_s=0.0) as exporter:
        deadline = time.monotonic() + 60.0
        found: dict[tuple[str, str], float] = {}
        while ("rheostat_operator_true_rate", "parse") not in found and time.monotonic() < deadline:
            time.sleep(0.5)
            found = scraped(exporter)
        assert found["rheostat_up", ""] == 1.0
        assert found["rheostat_failed_queries", ""] == 0.0
        assert found["rheostat_source_records_per_second", "job"] == pytest.approx(RATE, rel=0.2)
        assert found["rheostat_source_backlog_records", "job"] >= 0.0
        assert found["rheostat_batches_total", "clicks"] >= 2.0
        assert found["rheostat_operator_true_rate", "job"] > 0.0
        assert found["rheostat_operator_true_rate", "parse"] > found["rheostat_operator_true_rate", "job"]
        assert (found["rheostat_executors", ""], found["rheostat_slots", ""]) == (1.0, 4.0)
        query.stop()
        assert scraped(exporter)["rheostat_up", ""] == 0.0
    exporter.stop()
    with pytest.raises(OSError, match="refused"):
        urlopen(exporter.url, timeout=5)


def test_a_query_that_fails_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    rows = (
        spark.readStream.format("rate").option("rowsPerSecond", 10).load().selectExpr("raise_error('poison') as boom")
    )
    writer = rows.writeStream.format("noop").trigger(processingTime="3 seconds")
    running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with rheostat.serve_metrics(running, port=0, interval_s=0.0) as exporter:
        found: dict[tuple[str, str], float] = {}
        deadline = time.monotonic() + 60.0
        while not found.get(("rheostat_failed_queries", "")) and time.monotonic() < deadline:
            time.sleep(0.5)
            found = scraped(exporter)
    assert (found["rheostat_up", ""], found["rheostat_failed_queries", ""]) == (0.0, 1.0)


def test_what_cannot_be_served_is_refused(query: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            InvalidValue, match=rf"port {port} of 127.0.0.1 cannot be used .*in use.*0 for any free one"
        ):
            rheostat.serve_metrics(query, port=port)
    with pytest.raises(InvalidValue, match="port is 70000"):
        rheostat.serve_metrics(query, port=70000)
    with pytest.raises(InvalidValue, match=r"metrics takes a StreamingQuery, not a builtins\.int"):
        rheostat.serve_metrics(3, port=0)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="'click', which is not given"):
        rheostat.serve_metrics(query, port=0, counters={"click": None})  # type: ignore[dict-item]
