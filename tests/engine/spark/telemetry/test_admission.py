"""A real file source shows whether a batch reached its limit, which its progress does not."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rheostat.engine.batches.progress import Batch, parse_progress
from rheostat.engine.spark.telemetry.admission import Admission
from rheostat.engine.spark.telemetry.feed import Feed

pytestmark = pytest.mark.cluster

DEADLINE_S = 60.0


def put(folder: Path, name: str) -> None:
    (folder / f".{name}").write_text("a\nb\n")
    (folder / f".{name}").rename(folder / name)  # atomic, as Spark requires


def test_a_batch_at_the_file_limit_did_not_take_everything(spark: SparkSession, tmp_path: Path) -> None:
    limited: dict[str, str] = {"maxFilesPerTrigger": "2"}
    free: dict[str, str] = {}
    feed = Feed()
    spark.streams.addListener(feed)
    for k in range(12):
        put(tmp_path, f"first-{k}")
    queries = {
        name: spark.readStream.format("text").options(**options).load(str(tmp_path)).writeStream.format("noop").start()
        for name, options in (("limited", limited), ("free", free))
    }
    names = {str(query.runId): name for name, query in queries.items()}
    admissions = {name: Admission(query) for name, query in queries.items()}
    batches: dict[str, list[Batch]] = {"limited": [], "free": []}

    def until(enough: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + DEADLINE_S
        while not enough() and time.monotonic() < deadline_s:
            for text in feed.drain():
                batch = parse_progress(text)
                if batch is not None and batch.run_id in names:
                    name = names[batch.run_id]
                    batches[name].append(admissions[name].complete(batch))
            time.sleep(0.02)
        assert enough()

    def files_taken(name: str) -> int:
        return sum(batch.rows for batch in batches[name]) // 2

    try:
        until(lambda: files_taken("limited") == files_taken("free") == 12)
        put(tmp_path, "alone")
        until(lambda: files_taken("limited") == files_taken("free") == 13)
    finally:
        for query in queries.values():
            query.stop()
        spark.streams.removeListener(feed)
    took_all = [batch.sources[0].took_all for batch in batches["limited"]]
    assert False in took_all[:-1]
    assert True not in took_all[:-1]
    assert took_all[-1] is True
    assert all(batch.sources[0].took_all is True for batch in batches["free"])
