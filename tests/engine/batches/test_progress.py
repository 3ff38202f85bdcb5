"""The records that a batch leaves at its sources: by offsets, by metrics, by a file source's limit. No Spark needed."""

from typing import Any

import pytest

from rheostat.engine.batches.offsets import KafkaCounter, OffsetCounter, UnknownCounter
from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.batches.window import QueryWindow, query_window
from rheostat.engine.spark.telemetry.admission import FileLimit, FileReading

KAFKA_END = {"clicks": {"0": 100, "1": 50}, "views": {"0": 10}}


@pytest.mark.parametrize(
    ("end", "latest", "metrics", "all_taken", "took_all"),
    [
        (5, 5, {}, None, True),
        (5, 9, {}, None, False),
        (5, 9, {}, True, False),
        (KAFKA_END, None, {"avgOffsetsBehindLatest": "4.0"}, None, False),
        (KAFKA_END, None, {"avgOffsetsBehindLatest": "0.0"}, None, True),
        ({"logOffset": 3}, None, {"numFilesOutstanding": "12"}, None, False),
        ({"logOffset": 3}, None, {"numFilesOutstanding": "0"}, None, True),
        ({"logOffset": 3}, None, {"numFilesOutstanding": "?"}, None, None),
        ({"logOffset": 3}, None, {}, None, None),
        ({"logOffset": 3}, None, {}, True, True),
        ({"logOffset": 3}, None, {}, False, False),
    ],
)
def test_a_batch_took_everything_available(
    end: Any, latest: Any, metrics: dict[str, str], all_taken: bool | None, took_all: bool | None
) -> None:
    assert SourceProgress("s", 0, end, latest, 1, metrics, all_taken).took_all is took_all


def test_kafkas_average_counts_for_every_partition() -> None:
    behind = SourceProgress("KafkaV2", None, '{"clicks":{"0":100,"1":50}}', None, 1, {"avgOffsetsBehindLatest": "7.5"})
    assert behind.offsets_left == 15.0
    assert SourceProgress("KafkaV2", None, KAFKA_END, None, 1, {"avgOffsetsBehindLatest": "NaN"}).offsets_left is None


def window(batches: list[Batch], counter: OffsetCounter, now_s: float) -> QueryWindow:
    result = query_window(batches, [], lambda *_: counter, now_s, 5.0, False)
    assert isinstance(result, QueryWindow)
    return result


def test_kafkas_metrics_give_rate_and_backlog_without_a_latest_offset() -> None:
    """Each batch takes 100 records from two partitions while 300 arrive: each partition falls 100 further behind."""

    def batch(number: int) -> Batch:
        metrics = {"avgOffsetsBehindLatest": f"{100.0 * (number + 1)}"}
        ends = [{"clicks": {"0": 50 * n, "1": 50 * n}} for n in (number, number + 1)]
        source = SourceProgress("KafkaV2[Subscribe[clicks]]", ends[0], ends[1], None, 100, metrics)
        return Batch("q", "run", number, 10.0 * number, 2.0, 2.0, 100, (source,), {}, 0, 0)

    result = window([batch(k) for k in range(4)], KafkaCounter(), 40.0)
    assert result.rate_per_s == 30.0
    assert result.backlog == pytest.approx(800 + 10 * 30.0)
    assert result.lag_s == pytest.approx(10 + 800 / 30)


@pytest.mark.parametrize(("all_taken", "rate"), [(True, 10.0), (False, None), (None, None)])
def test_a_file_source_has_a_rate_if_batches_take_all_files(all_taken: bool | None, rate: float | None) -> None:
    files = [Batch("q", "run", k, 10.0 * k, 2.0, 2.0, 100, (file_source(k, all_taken),), {}, 0, 0) for k in range(4)]
    result = window(files, UnknownCounter(), 35.0)
    assert result.rate_per_s == rate
    assert result.backlog == (None if rate is None else 50.0)


def file_source(number: int, all_taken: bool | None) -> SourceProgress:
    start, end = {"logOffset": number - 1}, {"logOffset": number}
    return SourceProgress("FileStreamSource[file:/in]", start, end, None, 100, {}, all_taken)


def test_a_file_source_is_at_its_limit_after_as_many_files_as_it_may_read() -> None:
    limit = FileLimit(2)
    for reading in (FileReading(3, 40), FileReading(3, 40), FileReading(5, 44), FileReading(8, 49), FileReading(9, 51)):
        limit.enter(reading)
    assert limit.took_all({"logOffset": 3}) is None  # before the first reading
    assert limit.took_all('{"logOffset": 4}') is False
    assert limit.took_all({"logOffset": 5}) is False
    assert limit.took_all({"logOffset": 8}) is True  # five files in three batches
    assert limit.took_all({"logOffset": 9}) is False
    assert limit.took_all({"logOffset": 10}) is None
    assert limit.took_all(None) is None
