"""The window of a micro-batch query: input rate from offsets, backlog, lag, overload. No Spark needed."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rheostat.engine.batches.observation import job_reading, named_readings
from rheostat.engine.batches.offsets import (
    KafkaCounter,
    OffsetCounter,
    RateCounter,
    RowCounter,
    UnknownCounter,
    counter_for,
)
from rheostat.engine.batches.probe import Probe
from rheostat.engine.batches.progress import Batch, SourceProgress, parse_progress
from rheostat.engine.batches.stage import Stage, parse_stage
from rheostat.engine.batches.window import Counters, QueryView, QueryWindow, query_window, unsettled_window

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


def test_a_progress_event_is_parsed() -> None:
    batch = parse_progress(json.dumps(REPORT))
    assert batch is not None
    assert (batch.query, batch.run_id, batch.number, batch.rows) == ("demo", "3e9441e9", 5, 2000)
    assert batch.start_s == pytest.approx(1794782700.046)
    assert batch.seconds == 1.246
    assert batch.state_bytes == 5408
    assert batch.observed["parse"]["n"] == 7
    assert counter_for(batch.sources[0].description).records(11) == 22_000


def test_an_idle_event_is_not_a_batch() -> None:
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
def test_counters_count_the_records_before_an_offset(
    counter: OffsetCounter, offset: Any, records: float | None
) -> None:
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
def test_a_counter_is_selected_by_the_description_of_the_source(description: str, kind: type) -> None:
    assert isinstance(counter_for(description), kind)


def batch(number: int, start_s: float, seconds: float, start: int, end: int, latest: int | None = None) -> Batch:
    source = SourceProgress("rows", start, end, end if latest is None else latest, end - start, {})
    return Batch("q", "run", number, start_s, seconds, seconds, end - start, (source,), {}, 0, 0)


def stage(number: int, busy_s: float, tasks: int = 4, wall_s: float = 1.9) -> Stage:
    return Stage(number, "run", number, tasks, wall_s, busy_s, busy_s / 2, 0.0, 0, 0)


def rows(_query: str, _index: int, _description: str) -> OffsetCounter:
    return RowCounter()


def read_window(
    batches: list[Batch], stages: list[Stage], now_s: float, since_s: float = 0.0, active: bool = False
) -> QueryWindow:
    window = query_window(batches, stages, rows, now_s, since_s, active)
    assert isinstance(window, QueryWindow)
    return window


STEADY = [batch(k, 10.0 * k, 2.0, 1000 * k, 1000 * (k + 1)) for k in range(4)]


def test_a_steady_query() -> None:
    window = read_window(STEADY, [stage(k, 3.0) for k in range(4)], now_s=35.0, since_s=5.0)
    assert (window.start_s, window.end_s, window.batches) == (10.0, 32.0, 3)
    assert window.records == 3000
    assert window.rate_per_s == 100.0
    assert window.busy_s == 9.0
    assert window.most_tasks == 4
    # All input up to the last trigger is done; 5 s of records have arrived since.
    assert window.backlog == 500.0
    assert window.lag_s == 5.0
    assert not window.overloaded
    assert window.latency is not None
    assert window.latency.p50_s == 2.0
    assert window.latency.event_p99_s == pytest.approx(2.0 + 9.0)


def test_the_input_rate_counts_arrivals_not_rows_taken() -> None:
    """A source at its limit takes 1000 of 3000 rows per trigger; the rest waits."""
    capped = [batch(k, 10.0 * k, 9.8, 1000 * k, 1000 * (k + 1), 3000 * (k + 1)) for k in range(4)]
    window = read_window(capped, [], now_s=40.0, since_s=5.0)
    assert window.rate_per_s == 300.0
    assert window.backlog == pytest.approx(12_000 - 4000 + 10 * 300)
    assert window.lag_s == pytest.approx(10 + 8000 / 300)
    assert window.overloaded


def test_growing_batches_back_to_back_are_overload() -> None:
    starts, ends, rows_until = [0.0, 10.0, 30.0], [10.0, 30.0, 70.0], [0, 1000, 2000, 4000]
    growing = [batch(k, starts[k], ends[k] - starts[k], rows_until[k], rows_until[k + 1]) for k in range(3)]
    assert read_window(growing, [], now_s=70.0, since_s=5.0).overloaded


def test_an_overdue_batch_is_overload_before_it_ends() -> None:
    window = read_window(STEADY, [], now_s=60.0, since_s=5.0, active=True)
    # The batch began with its trigger at 40 s: the query was idle for the eight seconds after the last batch.
    assert window.overdue_s == pytest.approx(60 - 40 - 2)
    assert window.overloaded
    assert read_window(STEADY, [], now_s=60.0, since_s=5.0, active=False).overdue_s == 0.0


def test_a_source_without_a_limit_has_a_rate_without_offsets() -> None:
    def unknown(_query: str, _index: int, _description: str) -> OffsetCounter:
        return UnknownCounter()

    window = query_window(STEADY, [], unknown, 35.0, 5.0, False)
    assert isinstance(window, QueryWindow)
    assert window.rate_per_s == 100.0
    capped = [batch(k, 10.0 * k, 2.0, 0, 10, 20) for k in range(3)]
    limited = query_window(capped, [], unknown, 35.0, 5.0, False)
    assert isinstance(limited, QueryWindow)
    assert limited.rate_per_s is None
    assert limited.backlog is None


def test_arrivals_of_a_fixed_rate_source_are_known_between_reports() -> None:
    """A batch has been running for half a minute: Spark reports nothing, but the rate source goes on."""

    def clocked(_query: str, _index: int, _description: str) -> OffsetCounter:
        return RateCounter(100.0)

    by_seconds = [batch(k, 10.0 * k, 2.0, 10 * k, 10 * (k + 1)) for k in range(4)]
    window = query_window(by_seconds, [], clocked, 70.0, 5.0, True, window_s=20.0)
    assert isinstance(window, QueryWindow)
    assert window.rate_per_s == 100.0
    assert window.backlog == pytest.approx(40 * 100.0)
    assert KafkaCounter().ahead({"clicks": {"0": 1}}, 5.0) is None


def test_a_jump_of_a_load_that_the_clock_knows_is_not_averaged_with_the_load_before() -> None:
    """100 records/s until second 66, and 1,000 since then."""

    class Jump:
        def records(self, offset: Any) -> float | None:
            return float(offset)

        def ahead(self, offset: Any, seconds: float) -> float | None:
            at_s = float(offset) + seconds
            return 100 * at_s + 900 * max(0.0, at_s - 66)

    by_seconds = [batch(k, 10.0 * k, 2.0, 10 * k, 10 * (k + 1)) for k in range(4)]
    for window_s in (15.0, 600.0):
        window = query_window(by_seconds, [], lambda *_: Jump(), 70.0, 5.0, True, window_s=window_s)
        assert isinstance(window, QueryWindow)
        assert window.rate_per_s == pytest.approx(1000.0)


def test_an_idle_query_has_no_backlog_and_a_falling_rate() -> None:
    window = query_window(STEADY, [], rows, 60.0, 5.0, False, last_idle_s=60.0)
    assert isinstance(window, QueryWindow)
    assert (window.backlog, window.lag_s) == (0.0, 0.0)
    assert window.rate_per_s == pytest.approx(3000 / 60)


def test_after_idle_time_only_the_time_since_then_counts() -> None:
    """No input from 32 s to 600 s; then a batch, and another one that has been running for four seconds."""
    back = [*STEADY, batch(4, 602.0, 1.0, 4000, 4200)]
    window = query_window(back, [], rows, 607.0, 577.0, True, last_idle_s=600.0)
    assert isinstance(window, QueryWindow)
    assert window.rate_per_s == pytest.approx(200 / 2)
    assert window.backlog == pytest.approx(100 * 5)
    assert window.lag_s == 5.0
    # The first batch after the idle time runs: its delay does not count from the batch before.
    early = query_window(STEADY, [], rows, 601.5, 5.0, True, last_idle_s=600.0)
    assert isinstance(early, QueryWindow)
    assert (early.overdue_s, early.lag_s, early.overloaded) == (0.0, 1.5, False)


def test_a_thinned_source_processed_no_records() -> None:
    """A thinned source reads rows only to drop them: they are not records."""
    empty = [replace(batch(k, 10.0 * k, 2.0, 500, 500), rows=4000) for k in range(3)]
    window = read_window(empty, [], now_s=35.0, since_s=5.0)
    assert (window.records, window.rate_per_s) == (0.0, 0.0)


def test_without_a_batch_the_window_gives_the_reason() -> None:
    assert query_window([], [], rows, 10.0, 0.0, True) == "no batch has finished in this window"


def test_a_stage_is_parsed() -> None:
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
    result = parse_stage(row)
    assert result is not None
    assert (result.run_id, result.batch, result.tasks, result.records_in) == ("1626733a", 9, 4, 23)
    assert result.busy_s == pytest.approx(0.5)
    assert result.wall_s == pytest.approx(0.5)
    assert result.cpu_s == pytest.approx(0.0849, rel=1e-3)
    assert parse_stage({**row, "status": "ACTIVE"}) is None
    assert parse_stage({**row, "description": "count at Nowhere.scala:1"}) is None


def test_probes_add_up_over_batches() -> None:
    counted = {"rheostat_records": 640, "rheostat_sampled": 10, "rheostat_ns": 2_000_000}
    probed = [
        replace(STEADY[k], observed={"parse": counted, "joined": {"rheostat_records": 5}, "mine": {"n": 1}})
        for k in range(2)
    ]
    window = read_window(probed, [], 35.0)
    assert set(window.probes) == {"parse", "joined"}
    assert window.probes["parse"].records == 1280
    assert window.probes["parse"].useful_s == pytest.approx(2 * 0.128)
    assert window.probes["joined"] == Probe(10, None)


def test_every_stage_of_a_query_has_a_true_rate_without_a_probe() -> None:
    def batch_of(number: int, *stages: tuple[int, float]) -> list[Stage]:
        return [
            replace(stage(number, busy_s), number=10 * number + place, records_in=rows)
            for place, (rows, busy_s) in enumerate(stages)
        ]

    batches = [batch(number, 100.0 + 10 * number, 5.0, 1000 * number, 1000 * (number + 1)) for number in range(4)]
    work = [
        *batch_of(0, (1000, 4.0), (50, 1.0)),
        *batch_of(1, (1000, 6.0), (50, 1.0)),
        *batch_of(2, (1000, 5.0), (50, 1.0)),
        *batch_of(3, (1000, 5.0), (50, 1.0), (9, 9.0)),  # of another shape
    ]
    part = query_window(batches, work, rows, 150.0, 100.0, False)
    assert isinstance(part, QueryWindow)
    named = {reading.name: reading for reading in named_readings([part], 2, 30.0)}
    assert list(named) == ["stage 1", "stage 2"]
    assert named["stage 1"].true_rate_per_s == pytest.approx(200.0)
    assert named["stage 1"].useful_share == pytest.approx(15.0 / 60.0)
    assert named["stage 2"].records_in_per_s == pytest.approx(5.0)
    both = named_readings([part, part], 2, 30.0)
    assert [reading.name for reading in both] == ["q stage 1", "q stage 2"] * 2
    # The only stage of a query is the query itself.
    alone = query_window(batches, batch_of(0, (1000, 4.0)), rows, 150.0, 100.0, False)
    assert isinstance(alone, QueryWindow)
    assert named_readings([alone], 2, 30.0) == []


def sized(slots: int) -> Callable[[float, float], int | None]:
    return lambda _start_s, _end_s: slots


def varied(number: int, start_s: float) -> Batch:
    """Half a second, and two milliseconds of a slot per record, on four slots."""
    records = 400 * (1 + number % 5)
    rows_until = sum(400 * (1 + k % 5) for k in range(number))
    return batch(number, start_s, 0.5 + 2e-3 * records / 4, rows_until, rows_until + records)


VARIED = [varied(k, 10.0 * k) for k in range(12)]


def test_without_stages_the_true_rate_comes_from_batch_times() -> None:
    window = query_window(VARIED, [], rows, 125.0, 85.0, False, 4, slots_during=sized(4))
    assert isinstance(window, QueryWindow)
    assert not window.has_stages
    assert window.batch_time is not None
    assert window.batch_time.fixed_s == pytest.approx(0.5)
    assert window.batch_time.batches == 12
    reading = job_reading("job", [window], 4, window.end_s - window.start_s)
    assert reading.true_rate_per_s == pytest.approx(500.0)
    assert reading.useful_share == pytest.approx(window.records / 500 / 4 / (window.end_s - window.start_s))
    assert (reading.cpu_share, reading.spilled_bytes, reading.gc_share) == (None, None, None)


def test_without_stages_and_line_the_true_rate_is_unknown() -> None:
    for during in (None, lambda _start_s, _end_s: None):
        window = query_window(VARIED, [], rows, 125.0, 85.0, False, 4, slots_during=during)
        assert isinstance(window, QueryWindow)
        reading = job_reading("job", [window], 4, window.end_s - window.start_s)
        assert (reading.true_rate_per_s, reading.useful_share, reading.cpu_share) == (None, None, None)
        assert reading.records_in_per_s == pytest.approx(window.records / (window.end_s - window.start_s))


def test_batches_without_stages_count_as_busy_as_the_others() -> None:
    """Spark evicted the stages of two of three batches: the true rate is that of the third, not three times as much."""
    window = read_window(STEADY, [stage(2, 3.0)], now_s=35.0, since_s=5.0)
    assert window.has_stages
    assert (window.records, window.busy_s, window.cpu_s) == (3000, 9.0, 4.5)


def after_a_change(
    batches: list[Batch],
    now_s: float,
    counters: Counters = rows,
    *,
    active: bool = True,
    last_idle_s: float = -math.inf,
    slots_during: Callable[[float, float], int | None] = lambda *_: 2,
) -> QueryWindow | None:
    """Read the window of these batches, which began before the size changed."""
    stages = [stage(one.number, 3.0) for one in batches]
    view = QueryView(batches, stages, counters, now_s, 20.0, now_s, last_idle_s, active, 4, slots_during)
    return unsettled_window(view)


def test_a_window_after_a_change_has_rate_and_backlog() -> None:
    """The last batch of the old size has ended, the first of the new size runs."""
    result = after_a_change(STEADY, 35.0, slots_during=lambda *_: None)
    assert result is not None
    assert not result.settled
    assert (result.rate_per_s, result.backlog, result.lag_s) == (100.0, 500.0, 5.0)
    assert result.latency is not None
    assert result.latency.p50_s == 2.0
    assert (result.records, result.busy_s, result.bottlenecks, result.overloaded) == (0.0, 0.0, (), False)
    assert result.former_slots is None
    assert after_a_change([], 35.0) is None


def test_a_window_after_a_change_says_what_a_slot_did_at_the_former_size() -> None:
    result = after_a_change(STEADY, 35.0)
    assert result is not None
    assert (result.records, result.busy_s, result.former_slots, result.settled) == (2000, 6.0, 2, False)
    grown_before_the_last = after_a_change(STEADY, 35.0, slots_during=lambda start_s, _: 2 if start_s >= 30 else 1)
    assert grown_before_the_last is not None
    assert (grown_before_the_last.records, grown_before_the_last.busy_s) == (1000, 3.0)
    # The size changed during the last batch: the two before it tell, and the present is still that of the last report.
    during = after_a_change(STEADY, 35.0, slots_during=lambda start_s, _: None if start_s >= 30 else 2)
    assert during is not None
    assert (during.records, during.busy_s, during.former_slots) == (1000, 3.0, 2)
    assert (during.start_s, during.end_s, during.rate_per_s, during.backlog, during.lag_s) == (
        20,
        22,
        100.0,
        500.0,
        5.0,
    )


def test_old_reports_give_no_present_rate() -> None:
    late = after_a_change(STEADY, 90.0)
    assert late is not None
    assert (late.rate_per_s, late.backlog, late.latency, late.former_slots) == (None, None, None, None)
    assert (late.lag_s, late.overdue_s) == (60.0, 48.0)
    by_seconds = [batch(k, 10.0 * k, 2.0, 10 * k, 10 * (k + 1)) for k in range(4)]
    clocked = after_a_change(by_seconds, 90.0, lambda *_: RateCounter(100.0))
    assert clocked is not None
    assert (clocked.rate_per_s, clocked.backlog) == (100.0, 6000.0)


def test_an_idle_query_after_a_change_has_no_backlog() -> None:
    result = after_a_change(STEADY, 60.0, active=False, last_idle_s=60.0)
    assert result is not None
    assert (result.backlog, result.lag_s) == (0.0, 0.0)
