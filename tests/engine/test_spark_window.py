"""Batches and stages become one window of the job: arrival by offsets, backlog, lag, overload. No Spark needed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rheostat.engine.spark.hindrance import hindrances
from rheostat.engine.spark.offsets import (
    KafkaCounter,
    OffsetCounter,
    RateCounter,
    RowCounter,
    UnknownCounter,
    counter_for,
)
from rheostat.engine.spark.probe import Probe
from rheostat.engine.spark.progress import Batch, SourceProgress, parse_progress
from rheostat.engine.spark.stages import Stage, parse_stage
from rheostat.engine.spark.window import QueryWindow, query_window

REPORT: dict[str, Any] = {
    "id": "c4c664f4",
    "runId": "3e9441e9",
    "name": "demo",
    "timestamp": "2026-11-15T22:45:00.046Z",
    "batchId": 5,
    "numInputRows": 2000,
    "durationMs": {"addBatch": 1052, "triggerExecution": 1246},
    "stateOperators": [{"numRowsTotal": 10, "memoryUsedBytes": 5408}],
    "sources": [
        {
            "description": "RateStreamV2[rowsPerSecond=2000, rampUpTimeSeconds=0, numPartitions=4",
            "startOffset": 10,
            "endOffset": 11,
            "latestOffset": 11,
            "numInputRows": 2000,
        }
    ],
    "observedMetrics": {"parse": {"n": 7}},
}


def test_a_progress_report_is_read() -> None:
    batch = parse_progress(json.dumps(REPORT))
    assert batch is not None
    assert (batch.query, batch.run_id, batch.number, batch.rows) == ("demo", "3e9441e9", 5, 2000)
    assert batch.start_s == pytest.approx(1794782700.046)
    assert batch.seconds == 1.246
    assert batch.state_bytes == 5408
    assert batch.observed["parse"]["n"] == 7
    assert counter_for(batch.sources[0].description).records(11) == 22_000


def test_an_idle_report_is_no_batch() -> None:
    assert parse_progress(json.dumps({**REPORT, "durationMs": {"latestOffset": 1, "triggerExecution": 1}})) is None


@pytest.mark.parametrize(
    ("counter", "offset", "records"),
    [
        (KafkaCounter(), '{"clicks":{"0":10,"1":5},"views":{"0":3}}', 18.0),
        (KafkaCounter(), {"clicks": {"0": 10}}, 10.0),
        (KafkaCounter(), None, None),
        (RateCounter(50.0), "7", 350.0),
        (RateCounter(50.0), 7, 350.0),
        (RateCounter(50.0), None, None),
        (RowCounter(), '{"offset": 40, "timestamp": 9}', 40.0),
        (RowCounter(), 12, 12.0),
        (RowCounter(), "not a number", None),
        (UnknownCounter(), '{"logOffset": 3}', None),
    ],
)
def test_offsets_are_counted(counter: OffsetCounter, offset: Any, records: float | None) -> None:
    assert counter.records(offset) == records


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("KafkaV2[Subscribe[clicks]]", KafkaCounter),
        ("RateStreamV2[rowsPerSecond=10, rampUpTimeSeconds=0, numPartitions=2", RateCounter),
        ("RatePerMicroBatchStream[rowsPerBatch=10, numPartitions=2", RowCounter),
        ("FileStreamSource[file:/tmp/in]", UnknownCounter),
    ],
)
def test_sources_are_known_by_their_description(description: str, kind: type) -> None:
    assert isinstance(counter_for(description), kind)


def batch(number: int, start_s: float, seconds: float, start: int, end: int, latest: int | None = None) -> Batch:
    source = SourceProgress("rows", start, end, end if latest is None else latest, end - start, {})
    return Batch("q", "run", number, start_s, seconds, seconds, end - start, (source,), {}, 0, 0)


def stage(number: int, busy_s: float, tasks: int = 4, wall_s: float = 1.9) -> Stage:
    return Stage(number, "run", number, tasks, wall_s, busy_s, busy_s / 2, 0.0, 0, 0)


def rows(_query: str, _index: int, _description: str) -> OffsetCounter:
    return RowCounter()


def seen(
    batches: list[Batch], stages: list[Stage], now_s: float, since_s: float = 0.0, active: bool = False
) -> QueryWindow:
    found = query_window(batches, stages, rows, now_s, since_s, active)
    assert isinstance(found, QueryWindow)
    return found


STEADY = [batch(k, 10.0 * k, 2.0, 1000 * k, 1000 * (k + 1)) for k in range(4)]


def test_a_steady_query() -> None:
    window = seen(STEADY, [stage(k, 3.0) for k in range(4)], now_s=35.0, since_s=5.0)
    assert (window.start_s, window.end_s, window.batches) == (10.0, 32.0, 3)
    assert window.records == 3000
    assert window.rate_per_s == 100.0
    assert window.busy_s == 9.0
    assert window.most_tasks == 4
    # Everything up to the last trigger is done; since then 5 s of records have come.
    assert window.backlog == 500.0
    assert window.lag_s == 5.0
    assert not window.overloaded
    assert window.latency.p50_s == 2.0
    assert window.latency.event_p99_s == pytest.approx(2.0 + 9.0)


def test_the_rate_is_what_arrived_not_what_was_taken() -> None:
    """A capped source takes 1000 of 3000 rows each time: the rest waits."""
    capped = [batch(k, 10.0 * k, 9.8, 1000 * k, 1000 * (k + 1), 3000 * (k + 1)) for k in range(4)]
    window = seen(capped, [], now_s=40.0, since_s=5.0)
    assert window.rate_per_s == 300.0
    assert window.backlog == pytest.approx(12_000 - 4000 + 10 * 300)
    assert window.lag_s == pytest.approx(10 + 8000 / 300)
    assert window.overloaded


def test_batches_that_grow_back_to_back_are_overload() -> None:
    starts, ends, rows_until = [0.0, 10.0, 30.0], [10.0, 30.0, 70.0], [0, 1000, 2000, 4000]
    growing = [batch(k, starts[k], ends[k] - starts[k], rows_until[k], rows_until[k + 1]) for k in range(3)]
    assert seen(growing, [], now_s=70.0, since_s=5.0).overloaded


def test_a_batch_that_is_overdue_is_overload_before_it_ends() -> None:
    window = seen(STEADY, [], now_s=60.0, since_s=5.0, active=True)
    assert window.overdue_s == pytest.approx(60 - 32 - 2)
    assert window.overloaded
    assert seen(STEADY, [], now_s=60.0, since_s=5.0, active=False).overdue_s == 0.0


def test_a_source_that_takes_all_there_is_tells_its_rate_without_offsets() -> None:
    def unknown(_query: str, _index: int, _description: str) -> OffsetCounter:
        return UnknownCounter()

    window = query_window(STEADY, [], unknown, 35.0, 5.0, False)
    assert isinstance(window, QueryWindow)
    assert window.rate_per_s == 100.0
    capped = [batch(k, 10.0 * k, 2.0, 0, 10, 20) for k in range(3)]
    held = query_window(capped, [], unknown, 35.0, 5.0, False)
    assert isinstance(held, QueryWindow)
    assert held.rate_per_s is None
    assert held.backlog is None


def test_a_source_that_goes_by_the_clock_is_known_between_reports() -> None:
    """A batch has been running for half a minute: nothing was reported, but the rate source has gone on."""

    def clocked(_query: str, _index: int, _description: str) -> OffsetCounter:
        return RateCounter(100.0)

    by_seconds = [batch(k, 10.0 * k, 2.0, 10 * k, 10 * (k + 1)) for k in range(4)]
    window = query_window(by_seconds, [], clocked, 70.0, 5.0, True, window_s=20.0)
    assert isinstance(window, QueryWindow)
    assert window.rate_per_s == 100.0
    assert window.backlog == pytest.approx(40 * 100.0)
    assert KafkaCounter().ahead({"clicks": {"0": 1}}, 5.0) is None


def test_no_batch_is_said_not_guessed() -> None:
    assert query_window([], [], rows, 10.0, 0.0, True) == "no batch has finished in this window"


def test_a_stage_is_read() -> None:
    row = {
        "status": "COMPLETE",
        "stageId": 19,
        "numTasks": 4,
        "firstTaskLaunchedTime": "2026-11-15T22:45:47.886GMT",
        "completionTime": "2026-11-15T22:45:48.386GMT",
        "executorRunTime": 577,
        "executorCpuTime": 84_913_331,
        "shuffleFetchWaitTime": 77,
        "jvmGcTime": 12,
        "inputRecords": 3,
        "shuffleReadRecords": 20,
        "diskBytesSpilled": 0,
        "description": "demo\nid = 222da393\nrunId = 1626733a\nbatch = 9",
    }
    found = parse_stage(row)
    assert found is not None
    assert (found.run_id, found.batch, found.tasks, found.records_in) == ("1626733a", 9, 4, 23)
    assert found.busy_s == pytest.approx(0.5)
    assert found.wall_s == pytest.approx(0.5)
    assert found.cpu_s == pytest.approx(0.0849, rel=1e-3)
    assert parse_stage({**row, "status": "ACTIVE"}) is None
    assert parse_stage({**row, "description": "count at Nowhere.scala:1"}) is None


def test_probes_add_up_over_batches() -> None:
    counted = {"rheostat_records": 640, "rheostat_sampled": 10, "rheostat_ns": 2_000_000}
    probed = [
        replace(STEADY[k], observed={"parse": counted, "joined": {"rheostat_records": 5}, "mine": {"n": 1}})
        for k in range(2)
    ]
    window = seen(probed, [], 35.0)
    assert set(window.probes) == {"parse", "joined"}
    assert window.probes["parse"].records == 1280
    assert window.probes["parse"].useful_s == pytest.approx(2 * 0.128)
    assert window.probes["joined"] == Probe(10, None)


SLOW = replace(STEADY[0], seconds=10.0, work_s=9.5)


@pytest.mark.parametrize(
    ("batches", "stages", "says"),
    [
        ([SLOW], [stage(0, 36.0, wall_s=9.4)], None),
        ([replace(SLOW, work_s=2.0)], [stage(0, 7.0, wall_s=1.8)], "driver-bound"),
        ([SLOW], [stage(0, 8.0, wall_s=2.1)], "the sink or foreachBatch"),
        ([SLOW], [stage(0, 12.0, wall_s=9.3)], "skew"),
        ([SLOW], [stage(0, 9.3, tasks=1, wall_s=9.3)], None),
        ([batch(k, 10.0 * k, 0.5, k, k + 1, 99) for k in range(3)], [stage(0, 0.1)], "maxOffsetsPerTrigger"),
        (
            [batch(k, 10.0 * k, 9.0, k, k + 1, 99) for k in range(3)],
            [stage(k, 35.0, wall_s=8.9) for k in range(3)],
            None,
        ),
        ([replace(SLOW, seconds=0.5, work_s=0.1)], [], None),
        ([], [], None),
    ],
)
def test_what_is_not_a_matter_of_size_is_named(batches: list[Batch], stages: list[Stage], says: str | None) -> None:
    found = hindrances(batches, stages, slots=4)
    if says is None:
        assert found == ()
    else:
        assert len(found) == 1
        assert says in found[0]
