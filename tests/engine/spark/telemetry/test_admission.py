"""A real file source tells whether its limit was reached, which its progress does not."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.spark.telemetry.admission import Admission
from rheostat.engine.spark.telemetry.feed import Feed

pytestmark = pytest.mark.cluster

PATIENCE_S = 60.0


def put(folder: Path, name: str) -> None:
    (folder / f".{name}").write_text("a\nb\n")
    (folder / f".{name}").rename(folder / name)  # whole at once, as Spark asks for


def test_a_limit_that_is_reached_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    capped: dict[str, str] = {"maxFilesPerTrigger": "2"}
    free: dict[str, str] = {}
    feed = Feed()
    spark.streams.addListener(feed)
    for k in range(12):
        put(tmp_path, f"first-{k}")
    queries = {
        name: spark.readStream.format("text").options(**options).load(str(tmp_path)).writeStream.format("noop").start()
        for name, options in (("capped", capped), ("free", free))
    }
    names = {str(query.runId): name for name, query in queries.items()}
    admissions = {name: Admission(query) for name, query in queries.items()}
    seen: dict[str, list[Batch]] = {"capped": [], "free": []}

    def until(enough: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not enough() and time.monotonic() < deadline_s:
            for text in feed.drain():
                batch = parse_progress(text)
                if batch is not None and batch.run_id in names:
                    name = names[batch.run_id]
                    seen[name].append(admissions[name].complete(batch))
            time.sleep(0.02)
        assert enough()

    def taken(name: str) -> int:
        return sum(batch.rows for batch in seen[name]) // 2

    try:
        until(lambda: taken("capped") == taken("free") == 12)
        put(tmp_path, "alone")
        until(lambda: taken("capped") == taken("free") == 13)
    finally:
        for query in queries.values():
            query.stop()
        spark.streams.removeListener(feed)
    told = [batch.sources[0].took_all for batch in seen["capped"]]
    assert False in told[:-1]
    assert True not in told[:-1]
    assert told[-1] is True
    assert all(batch.sources[0].took_all is True for batch in seen["free"])
