"""The stage book returns every finished stage once, and detects evicted stages. No Spark needed."""

from datetime import datetime
from typing import Any

import pytest

from rheostat.engine.batches.present import RunningStage, RunningTask
from rheostat.engine.batches.stage import (
    LOOKS_BACK,
    MOST_RUNNING,
    RUNS,
    Stage,
    StageBook,
    max_concurrent_tasks,
    parse_running,
    parse_stage,
    side_stages,
)

Row = dict[str, Any]


def row(number: int, batch: int | None = 0, status: str = "COMPLETE", run: str = "run", attempt: int = 0) -> Row:
    """A row of the status store; without a batch it belongs to a job outside of the query."""
    return {
        "status": status,
        "stageId": number,
        "attemptId": attempt,
        "numTasks": 4,
        "executorRunTime": 100,
        "executorCpuTime": 0,
        "inputRecords": 0,
        "shuffleReadRecords": 0,
        "description": "count" if batch is None else f"demo\nid = 1\nrunId = {run}\nbatch = {batch}",
    }


def numbers(stages: list[Stage]) -> list[int]:
    return [stage.number for stage in stages]


def test_a_stage_is_returned_once_and_in_order() -> None:
    book = StageBook()
    assert numbers(book.enter([row(2), row(1, None), row(0)], {})) == [0, 2]
    assert numbers(book.enter([row(4, 1), row(3, 1), row(2), row(1, None)], {})) == [3, 4]
    assert book.enter([], {}) == []
    assert not book.broken


def test_a_long_stage_delays_no_other_and_is_returned_at_its_end() -> None:
    book = StageBook()
    assert numbers(book.enter([row(1, 0, run="quick"), row(0, 0, "ACTIVE")], {})) == [1]
    assert list(book.open) == [0]
    assert book.enter([], {0: row(0, 0, "ACTIVE")}) == []
    assert not book.broken  # no new stage, and no gap
    assert numbers(book.enter([row(2, 1, run="quick")], {0: row(0, 0, "ACTIVE")})) == [2]
    assert numbers(book.enter([row(3, 2, run="quick")], {0: row(0)})) == [0, 3]
    assert not book.open
    assert not book.broken


def test_a_retried_stage_counts_with_its_last_attempt() -> None:
    book = StageBook()
    assert book.enter([row(0, 0, "FAILED")], {}) == []
    assert numbers(book.enter([row(0, 0, "COMPLETE", attempt=1), row(0, 0, "FAILED")], {})) == [0]
    assert book.enter([row(0, 0, "COMPLETE", attempt=1), row(0, 0, "FAILED")], {}) == []


def test_skipped_stages_are_not_a_gap() -> None:
    book = StageBook()
    assert numbers(book.enter([row(1), row(0, 0, "SKIPPED")], {})) == [1]
    assert not book.broken


def test_evicted_stages_break_the_batches_around_them() -> None:
    """Spark retains three stages: the end of batch 0 and the start of batch 3 may be missing."""
    book = StageBook()
    book.enter([row(1, 0), row(0, 0)], {})
    book.enter([row(9, 4), row(8, 3), row(7, 3)], {})
    assert set(book.broken) == {("run", 0), ("run", 3)}
    book.enter([row(10, 5)], {})
    assert set(book.broken) == {("run", 0), ("run", 3)}


def test_a_query_that_shows_up_later_is_broken_too() -> None:
    book = StageBook()
    book.enter([row(1, 0, run="other"), row(0, 0)], {})
    book.enter([row(9, 2)], {})  # no stage of the other query
    book.enter([row(11, 8, run="other"), row(10, 7, run="other")], {})
    assert set(book.broken) == {("run", 0), ("other", 0), ("run", 2), ("other", 7)}


def test_an_evicted_running_stage_breaks_its_batch() -> None:
    book = StageBook()
    book.enter([row(1, None, "PENDING"), row(0, 5, "ACTIVE")], {})
    assert book.enter([], {0: None}) == []
    assert set(book.broken) == {("run", 5)}
    # A pending stage has no description yet: it counts for the latest batch.
    book.broken.clear()
    book.enter([], {1: None})
    assert set(book.broken) == {("run", 5)}
    assert not book.open


def test_the_first_read_of_an_old_application_breaks_the_oldest_batch() -> None:
    book = StageBook()
    assert numbers(book.enter([row(503, 91), row(502, 90), row(501, 90)], {})) == [501, 502, 503]
    assert set(book.broken) == {("run", 90)}


def test_garbage_collection_failures_and_queueing_are_parsed() -> None:
    full = row(3) | {
        "submissionTime": "2026-11-15T22:45:47.000GMT",
        "firstTaskLaunchedTime": "2026-11-15T22:45:47.500GMT",
        "completionTime": "2026-11-15T22:45:49.500GMT",
        "executorRunTime": 4000,
        "shuffleFetchWaitTime": 1000,
        "jvmGcTime": 1200,
        "numFailedTasks": 2,
    }
    stage = parse_stage(full)
    assert stage is not None
    assert (stage.run_s, stage.busy_s, stage.gc_s, stage.failed_tasks) == (4.0, 3.0, 1.2, 2)
    assert (stage.queued_s, stage.wall_s) == pytest.approx((0.5, 2.0))
    untimed = parse_stage(row(4))
    assert untimed is not None
    assert (untimed.wall_s, untimed.queued_s, untimed.start_s) == (0.0, 0.0, None)


def timed(batch: int, start_s: float, wall_s: float, tasks: int, run: str = "run") -> Stage:
    return Stage(0, run, batch, tasks, wall_s, 1.0, 1.0, 0.0, 0, 0, start_s=start_s)


def test_stages_that_overlap_use_slots_together() -> None:
    """A join reads both its sides at once and then joins; the next batch does not add to it."""
    join = [timed(0, 0.0, 2.0, 4), timed(0, 0.5, 2.0, 3), timed(0, 2.5, 1.0, 6), timed(1, 1.0, 1.0, 5)]
    assert max_concurrent_tasks(join) == {"run": 7}
    assert max_concurrent_tasks([timed(0, 0.0, 2.0, 4), timed(0, 2.0, 1.0, 6)]) == {"run": 6}
    assert max_concurrent_tasks([*join, timed(0, 0.0, 9.0, 8, run="other")]) == {"run": 7, "other": 8}
    assert max_concurrent_tasks([]) == {}


def running(number: int, status: str = "ACTIVE", attempt: int = 0, finished: int = 1, batch: int = 0) -> Row:
    counts = {"numActiveTasks": 2, "numCompleteTasks": finished, "numCompletedIndices": finished}
    return row(number, batch, status, attempt=attempt) | counts


def test_the_newest_batch_shows_its_stages_finished_or_not() -> None:
    book = StageBook()
    book.enter([row(2, None, "PENDING"), running(1), row(0)], {})
    assert [one["stageId"] for one in book.rows("run", 0)] == [0, 1]
    book.enter([], {1: running(1, finished=3), 2: row(2, None, "PENDING")})
    assert book.rows("run", 0)[1]["numCompleteTasks"] == 3
    book.enter([running(3, batch=1)], {1: running(1, "COMPLETE"), 2: row(2, None, "SKIPPED")})
    assert [one["stageId"] for one in book.rows("run", 1)] == [3]
    assert book.rows("run", 0) == book.rows("other", 0) == []


def test_a_finished_stage_that_runs_again_shows_its_new_attempt_and_is_returned_once() -> None:
    """A reduce stage lost the shuffle files of stage 0: it fails, and stage 0 runs again for the lost partitions."""
    book = StageBook()
    assert numbers(book.enter([running(1), row(0)], {})) == [0]
    assert book.enter([running(1, "FAILED"), running(0, attempt=1), row(0)], {}) == []
    assert (book.looks_back, book.rerun) == (LOOKS_BACK, {0})
    assert [one["status"] for one in book.rows("run", 0)] == ["ACTIVE", "FAILED"]
    assert book.enter([running(1, "FAILED")], {0: running(0, attempt=1, finished=3)}) == []
    assert book.rows("run", 0)[0]["numCompleteTasks"] == 3
    assert book.enter([running(1, "FAILED")], {0: running(0, "COMPLETE", attempt=1)}) == []
    assert not book.rerun
    assert numbers(book.enter([row(1, attempt=1), running(1, "FAILED")], {})) == [1]
    assert not book.broken


def test_older_stages_are_looked_at_for_a_few_calls_after_a_failure() -> None:
    """The stage of a query that has ended stays failed."""
    book = StageBook()
    looks = []
    for _ in range(5):
        book.enter([running(0, "FAILED")], {})
        looks.append(book.looks_back)
    assert looks == [3, 2, 1, 0, 0]
    book.enter([running(0, "FAILED", attempt=1)], {})
    assert book.looks_back == LOOKS_BACK


def test_a_stage_that_runs_again_is_forgotten_when_evicted_or_when_its_batch_is_over() -> None:
    for end in ([], [row(2, 1)]):
        book = StageBook()
        book.enter([running(1), row(0)], {})
        book.enter([running(1, "FAILED"), running(0, attempt=1), row(0)], {})
        book.enter([*end, running(1, "FAILED")], {0: None} if not end else {0: running(0, attempt=1)})
        assert not book.rerun


def test_rows_are_retained_for_a_bounded_number_of_runs() -> None:
    book = StageBook()
    for number in range(RUNS + 1):
        book.enter([row(number, run=str(number))], {})
    assert book.rows("0", 0) == []
    assert len(book.rows("1", 0)) == 1


def test_a_running_stage_is_parsed_from_a_recorded_row() -> None:
    """Stage 2 of a batch of six tasks, as Spark 4.3 showed it while two of them ran."""
    recorded = {
        "status": "ACTIVE",
        "stageId": 2,
        "attemptId": 0,
        "numTasks": 6,
        "numActiveTasks": 2,
        "numCompleteTasks": 4,
        "numCompletedIndices": 4,
        "submissionTime": "2026-11-17T11:21:29.546GMT",
        "firstTaskLaunchedTime": "2026-11-17T11:21:29.553GMT",
        "executorRunTime": 20531,
        "executorCpuTime": 324202091,
        "jvmGcTime": 2224,
        "inputRecords": 26666,
        "shuffleReadRecords": 0,
        "shuffleFetchWaitTime": 31,
        "description": "held\nid = 9\nrunId = 8\nbatch = 0",
    }
    start_s = datetime.fromisoformat("2026-11-17T11:21:29.553+00:00").timestamp()
    tasks = [
        {"taskId": number, "launchTime": f"2026-11-17T11:21:{second}.553GMT"} for number, second in enumerate((29, 39))
    ]
    stage = parse_running(recorded, tasks, start_s + 20)
    assert stage.active_s == pytest.approx(30.0)
    running = tuple(RunningTask(number, 20.0 - 10 * number, 0.0) for number in range(2))
    assert stage == RunningStage(2, 6, 4, 2, 20.5, 26666, stage.active_s, start_s, reads_input=True, running=running)


def test_what_running_tasks_have_read_is_not_counted_for_finished_ones() -> None:
    """After a heartbeat the row holds the records and the waits of running tasks, too."""

    def task(read: int, shuffled: int, waited_ms: int) -> Row:
        shuffle = {"recordsRead": shuffled, "fetchWaitTime": waited_ms}
        metrics = {"executorRunTime": 0, "inputMetrics": {"recordsRead": read}, "shuffleReadMetrics": shuffle}
        return {"launchTime": "1970-01-01T00:00:10.000GMT", "taskMetrics": metrics}

    sums = {"executorRunTime": 9000, "shuffleFetchWaitTime": 2500, "inputRecords": 700, "shuffleReadRecords": 80}
    stage = parse_running(running(0) | sums, [task(200, 10, 1000), task(100, 20, 500)], 15.0)
    assert (stage.records_in, stage.busy_s, stage.active_s) == (450, 8.0, 10.0)
    alone = parse_running(running(0) | sums, [task(200, 10, 1000)], 15.0)  # the other one has just ended
    assert (alone.records_in, alone.active, alone.active_s, alone.ended) == (570, 1, 5.0, 1)


def test_a_partition_counts_once_and_its_speculative_copies_are_active() -> None:
    """Both copies of one task have succeeded, and two tasks run in two copies each."""
    copies = running(0) | {"numActiveTasks": 4, "numCompleteTasks": 2, "numCompletedIndices": 1}
    stage = parse_running(copies, [{"launchTime": "1970-01-01T00:00:10.000GMT"}] * 4)
    assert (stage.finished, stage.active, stage.ended) == (1, 4, 0)


def test_the_age_of_running_tasks_fits_their_number() -> None:
    """Many tasks stand for all; a task launched after the reading has no age."""
    tasks = [{"launchTime": f"1970-01-01T00:00:{second}.000GMT"} for second in (10, 20)]
    assert parse_running(running(0), tasks, 20.0).active_s == 10.0
    assert parse_running(running(0), tasks[:1], 5.0).active_s == 0.0
    many = parse_running(running(0) | {"numActiveTasks": 3 * MOST_RUNNING}, tasks * (MOST_RUNNING // 2), 20.0)
    assert (many.active, many.active_s, many.ended) == (3 * MOST_RUNNING, 15.0 * MOST_RUNNING, 0)


def test_tasks_that_run_no_longer_have_ended_since_the_row_was_written() -> None:
    stage = parse_running(running(0), [], 20.0)
    assert (stage.active, stage.active_s, stage.ended) == (0, 0.0, 2)


def test_the_table_of_a_broadcast_join_is_read_before_the_stream() -> None:
    """Of several stages that read input, only light ones come before the stream's. A heavy shuffle reads no input."""

    def batch(*stages: tuple[float, bool]) -> list[Stage]:
        return [
            Stage(place, "run", 1, 12, 1.0, busy_s, 0.0, 0.0, 1000, 0, reads_input=reads_input)
            for place, (busy_s, reads_input) in enumerate(stages)
        ]

    enriched = batch((0.01, True), (20.0, True), (1.5, False))
    assert side_stages([enriched, enriched, batch((0.3, True), (0.4, True), (1.5, False))]) == 1
    assert side_stages([batch((0.2, True), (20.0, False))]) == 0
    assert side_stages([batch((9.0, True), (8.0, True), (3.0, False))]) == 0  # two streams
    assert side_stages([batch((0.1, True), (0.2, True), (9.0, True), (3.0, False))]) == 2
    assert side_stages([]) == side_stages([[]]) == 0
