"""Every finished stage is handed out once, and what Spark has forgotten is noticed. No Spark needed."""

from typing import Any

import pytest

from rheostat.engine.batches.stage import Stage, StageBook, parse_stage, widest

Row = dict[str, Any]


def row(number: int, batch: int | None = 0, status: str = "COMPLETE", run: str = "run", attempt: int = 0) -> Row:
    """One stage as the status store writes it; without a batch it is of some other job."""
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


def test_a_stage_is_handed_out_once_and_in_order() -> None:
    book = StageBook()
    assert numbers(book.enter([row(2), row(1, None), row(0)], {})) == [0, 2]
    assert numbers(book.enter([row(4, 1), row(3, 1), row(2), row(1, None)], {})) == [3, 4]
    assert book.enter([], {}) == []
    assert not book.broken


def test_a_long_stage_holds_nobody_up_and_is_not_forgotten() -> None:
    book = StageBook()
    assert numbers(book.enter([row(1, 0, run="quick"), row(0, 0, "ACTIVE")], {})) == [1]
    assert list(book.open) == [0]
    assert book.enter([], {0: row(0, 0, "ACTIVE")}) == []
    assert not book.broken  # nothing new since, and nothing missed
    assert numbers(book.enter([row(2, 1, run="quick")], {0: row(0, 0, "ACTIVE")})) == [2]
    assert numbers(book.enter([row(3, 2, run="quick")], {0: row(0)})) == [0, 3]
    assert not book.open
    assert not book.broken


def test_a_stage_that_was_tried_again_counts_with_its_last_attempt() -> None:
    book = StageBook()
    assert book.enter([row(0, 0, "FAILED")], {}) == []
    assert numbers(book.enter([row(0, 0, "COMPLETE", attempt=1), row(0, 0, "FAILED")], {})) == [0]
    assert book.enter([row(0, 0, "COMPLETE", attempt=1), row(0, 0, "FAILED")], {}) == []


def test_skipped_stages_are_no_gap() -> None:
    book = StageBook()
    assert numbers(book.enter([row(1), row(0, 0, "SKIPPED")], {})) == [1]
    assert not book.broken


def test_forgotten_stages_break_the_batches_around_them() -> None:
    """Spark kept three stages: those in between are gone, and so may be the end of batch 0 and the start of batch 3."""
    book = StageBook()
    book.enter([row(1, 0), row(0, 0)], {})
    book.enter([row(9, 4), row(8, 3), row(7, 3)], {})
    assert set(book.broken) == {("run", 0), ("run", 3)}
    book.enter([row(10, 5)], {})
    assert set(book.broken) == {("run", 0), ("run", 3)}


def test_a_query_that_shows_up_later_is_broken_too() -> None:
    book = StageBook()
    book.enter([row(1, 0, run="other"), row(0, 0)], {})
    book.enter([row(9, 2)], {})  # nothing of the other query here
    book.enter([row(11, 8, run="other"), row(10, 7, run="other")], {})
    assert set(book.broken) == {("run", 0), ("other", 0), ("run", 2), ("other", 7)}


def test_a_running_stage_that_is_forgotten_breaks_its_batch() -> None:
    book = StageBook()
    book.enter([row(1, None, "PENDING"), row(0, 5, "ACTIVE")], {})
    assert book.enter([], {0: None}) == []
    assert set(book.broken) == {("run", 5)}
    # One that waits for another is not described yet; it is of the latest batch, as far as anyone knows.
    book.broken.clear()
    book.enter([], {1: None})
    assert set(book.broken) == {("run", 5)}
    assert not book.open


def test_the_first_look_at_an_old_application_breaks_the_oldest_batch() -> None:
    book = StageBook()
    assert numbers(book.enter([row(503, 91), row(502, 90), row(501, 90)], {})) == [501, 502, 503]
    assert set(book.broken) == {("run", 90)}


def test_health_is_read_from_a_stage() -> None:
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
    """A join reads both its sides at once and then joins; the next batch has nothing to do with it."""
    join = [timed(0, 0.0, 2.0, 4), timed(0, 0.5, 2.0, 3), timed(0, 2.5, 1.0, 6), timed(1, 1.0, 1.0, 5)]
    assert widest(join) == {"run": 7}
    assert widest([timed(0, 0.0, 2.0, 4), timed(0, 2.0, 1.0, 6)]) == {"run": 6}
    assert widest([*join, timed(0, 0.0, 9.0, 8, run="other")]) == {"run": 7, "other": 8}
    assert widest([]) == {}
