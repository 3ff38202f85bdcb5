"""How far a running batch has come, by its tasks."""

from dataclasses import replace

import pytest

from rheostat.engine.batches.present import RunningBatch, RunningStage, RunningTask
from rheostat.engine.batches.work import LAUNCH_S, STALE_S, UsualBatch, WorkReader, read_work

SCAN = RunningStage(7, tasks=8, finished=2, active=2, busy_s=20.0, records_in=2000, active_s=6.0, start_s=101.0)
BATCH = RunningBatch("run", 3, 113.0, 100.0, (None,), ({"t": {"0": 8000}},), (SCAN,))


def part(age_s: float, task_s: float) -> float:
    """Return the share of its records that a task has done: it needs a moment before its first one."""
    return (age_s - LAUNCH_S) / (task_s - LAUNCH_S)


def test_finished_tasks_tell_the_work_of_a_stage() -> None:
    work = read_work(BATCH, 8000.0, ())
    assert work is not None
    assert (work.busy_s, work.left_busy_s) == (26.0, 54.0)
    assert work.done == pytest.approx(1000 * (2 + 2 * part(3, 10)))
    assert (work.start_s, work.records, work.tasks, work.settled) == (100.0, 8000 * 26 / 80, 8, True)
    assert work.records / work.busy_s == pytest.approx(100.0)  # of a slot, per busy second


def test_stages_that_come_later_are_those_of_the_batches_before() -> None:
    work = read_work(BATCH, 8000.0, [UsualBatch((10.0, 5.0)), UsualBatch((20.0, 10.0)), UsualBatch((1.0, 9.0))])
    assert work is not None
    assert work.left_busy_s == pytest.approx(80 * 1.5 - 26)
    done = replace(SCAN, finished=8, active=0, busy_s=80.0, active_s=0.0)
    both = replace(BATCH, stages=(done, RunningStage(8, 4, 0, 2, 0.0, 0, active_s=10.0)))
    work = read_work(both, 8000.0, [UsualBatch((10.0, 5.0))])  # the second stage has just begun
    assert work is not None
    assert work.left_busy_s == pytest.approx(30.0)
    assert work.done == 8000.0  # no record waits to be read
    table = replace(SCAN, number=9, finished=1, busy_s=10.0, active_s=0.0, reads_input=True)
    work = read_work(replace(both, stages=(done, table)), 8000.0, ())  # a second source, whose tasks have begun
    assert work is not None
    assert work.done == pytest.approx(8000 * 90 / 160)


def test_before_the_first_task_ends_the_rows_that_were_read_tell() -> None:
    reading = replace(BATCH, stages=(replace(SCAN, finished=0, busy_s=0.0, active_s=30.0),), rows_done=2000.0)
    work = read_work(reading, 8000.0, ())
    assert work is not None
    assert (work.busy_s, work.left_busy_s, work.done) == (30.0, 90.0, 2000.0)
    assert read_work(replace(reading, rows_done=None), 8000.0, ()) is None
    assert read_work(replace(reading, rows_done=0.0), 8000.0, ()) is None


USUAL = [UsualBatch((20.0, 5.0), 20_000.0), UsualBatch((5.0, 1.0)), UsualBatch((80.0,), 8000.0, 8)]
"""Batches before; the last one is of the same size: eight tasks of 10 s."""
YOUNG = replace(BATCH, at_s=104.0, stages=(replace(SCAN, finished=0, busy_s=0.0, active_s=6.0, records_in=0),))


def test_before_the_first_report_the_time_per_record_of_a_batch_before_tells() -> None:
    work = read_work(YOUNG, 8000.0, USUAL[2:])
    assert work is not None
    assert work.done == pytest.approx(2000 * part(3, 10))
    assert not work.settled  # nothing of this batch has been measured
    late = replace(YOUNG, stages=(replace(YOUNG.stages[0], active_s=60.0),))
    work = read_work(late, 8000.0, [UsualBatch((240.0,), 8000.0, 8)])
    assert work is not None
    assert work.done == pytest.approx(8000 * 2 / 8)  # no task has ended: the records of the two that run
    assert read_work(YOUNG, 8000.0, USUAL[1:2]) is None  # a source that reports no records


def test_small_and_large_batches_show_what_a_task_takes_before_its_first_record() -> None:
    """Tasks take 1 s and 8 ms per record. Two of eight have run for 2 s each; then, for 1 s."""
    usual = [UsualBatch((8 * (1 + 0.008 * size),), 8 * size, 8) for size in (100.0, 1000.0, 2000.0)]
    work = read_work(replace(YOUNG, stages=(replace(YOUNG.stages[0], active_s=4.0),)), 8000.0, usual)
    assert work is not None
    assert work.done == pytest.approx(2 * 1 / 0.008)
    work = read_work(replace(YOUNG, stages=(replace(YOUNG.stages[0], active_s=2.0),)), 8000.0, usual)
    assert work is not None
    assert work.done == 0.0


def test_the_store_is_a_moment_behind() -> None:
    """Both running tasks should have ended, and others begun: that is counted for as long as the store may be late."""
    overdue = replace(BATCH, stages=(replace(SCAN, active_s=30.0),))
    work = read_work(overdue, 8000.0, USUAL[2:])
    assert work is not None
    assert work.done == pytest.approx(1000 * (2 + 2 + 2 * part(STALE_S, 10)))
    last = replace(BATCH, stages=(replace(SCAN, finished=6, active_s=30.0),))
    work = read_work(last, 8000.0, USUAL[2:])
    assert work is not None
    assert work.done == 8000.0


def test_tasks_that_have_ended_since_the_store_was_written_are_done() -> None:
    ended = replace(BATCH, stages=(replace(SCAN, finished=4, active=0, active_s=0.0, ended=4),))
    work = read_work(ended, 8000.0, ())
    assert work is not None
    assert work.done == 8000.0


def test_rows_that_come_late_do_not_hide_the_usual_pace() -> None:
    """Python has given 200 of about 600 rows back; and then, of 600, 400."""
    work = read_work(replace(YOUNG, rows_done=200.0), 8000.0, USUAL[2:])
    assert work is not None
    assert work.done == pytest.approx(200.0)  # far slower than usual
    work = read_work(replace(YOUNG, rows_done=400.0), 8000.0, USUAL[2:])
    assert work is not None
    assert work.done == pytest.approx(2000 * part(3, 10))


def test_a_task_that_has_read_nothing_for_long_has_done_nothing() -> None:
    """The last task of eight has waited for 4 s, on an executor that starts its Python, where others took 0.2 s."""
    stage = replace(SCAN, finished=7, active=1, busy_s=1.4, active_s=4.0, records_in=7100)
    waiting = replace(BATCH, stages=(stage,), rows_done=7100.0, rows_read=7100.0, rows_age_s=1.0)
    work = read_work(waiting, 8000.0, ())
    assert work is not None
    assert work.done == 7100.0
    work = read_work(replace(waiting, rows_done=7500.0, rows_read=7500.0), 8000.0, ())
    assert work is not None
    assert work.done == 8000.0


def test_rows_bound_what_tasks_seem_to_have_done() -> None:
    """The running tasks wait on an executor that has just come: they have read nothing."""
    work = read_work(replace(BATCH, rows_done=2000.0, rows_read=2100.0, rows_age_s=1.2), 8000.0, ())
    assert work is not None
    assert work.done == pytest.approx(2100.0 * (1 + 1.2 / 12))
    work = read_work(replace(BATCH, rows_done=3500.0, rows_read=4000.0), 8000.0, ())
    assert work is not None
    assert work.done == 3500.0  # more than the tasks in the store show


def test_after_a_change_only_tasks_that_ended_since_then_tell() -> None:
    later = replace(BATCH, at_s=123.0, stages=(replace(SCAN, finished=2, active=4, active_s=16.0),))
    work = read_work(later, 8000.0, (), BATCH)
    assert work is not None
    assert not work.settled
    assert (work.start_s, work.busy_s) == (113.0, 10.0)
    later = replace(BATCH, at_s=123.0, stages=(replace(SCAN, finished=4, active=4, busy_s=36.0, active_s=8.0),))
    work = read_work(later, 8000.0, (), BATCH)
    assert work is not None
    assert work.settled
    assert work.busy_s == 18.0
    assert work.done == pytest.approx(1000 * (4 + 4 * part(2, 9)))
    assert work.records == pytest.approx(8000 * 18 / 72)


def test_rows_that_running_tasks_report_after_a_change_settle_it_too() -> None:
    before = replace(BATCH, rows_done=2500.0)
    later = replace(before, at_s=123.0, stages=(replace(SCAN, active=4, active_s=16.0),), rows_done=2600.0)
    work = read_work(later, 8000.0, (), before, 113.0)
    assert work is not None
    assert work.settled


def test_a_change_between_two_readings_gets_its_share_of_what_was_done() -> None:
    reader = WorkReader()
    reader.read(BATCH, 8000.0, (), 0.0)
    later = replace(BATCH, at_s=118.0, stages=(replace(SCAN, finished=4, active=4, busy_s=36.0, active_s=8.0),))
    work = reader.read(later, 8000.0, (), 115.0)  # read 5 s before and 3 s after executors came
    assert work is not None
    assert (work.settled, work.start_s, work.at_s) == (True, 115.0, 118.0)
    assert work.busy_s == pytest.approx(18.0 * 3 / 5)
    assert work.records / work.busy_s == pytest.approx(8000 / 72)
    assert reader.settled == work
    # Right after a change the new executors have done nothing yet.
    work = WorkReader().read(later, 8000.0, (), 117.5)
    assert work is not None
    assert not work.settled


def test_a_finished_stage_settles_nothing_before_there_was_a_batch() -> None:
    """It may be the table of a broadcast join, and the stream's stage may follow."""
    table = RunningStage(4, 1, 1, 0, 0.01, 1000, reads_input=True)
    alone = replace(BATCH, stages=(table, RunningStage(5, 12, 0, 0, 0.0, 0)))
    work = read_work(alone, 8000.0, ())
    assert work is not None
    assert not work.settled
    work = read_work(replace(alone, stages=(replace(SCAN, finished=8, active=0),)), 8000.0, USUAL[2:])
    assert work is not None
    assert work.settled


def test_a_batch_that_shows_nothing_has_no_work() -> None:
    assert read_work(replace(BATCH, stages=()), 8000.0, ()) is None
    assert read_work(replace(BATCH, start_s=None), 8000.0, ()) is None
    assert read_work(BATCH, 0.0, ()) is None


def test_a_batch_with_long_last_tasks_never_has_less_than_no_work_left() -> None:
    long = replace(BATCH, stages=(replace(SCAN, finished=7, active=1, busy_s=7.0, active_s=60.0),))
    work = read_work(long, 8000.0, ())
    assert work is not None
    assert (work.left_busy_s, work.done) == (0.0, 8000.0)


def test_a_batch_of_an_hour_is_read_as_any_other() -> None:
    stage = RunningStage(7, tasks=4000, finished=3000, active=4, busy_s=14_000.0, records_in=3_000_000, active_s=8.0)
    hour = RunningBatch("run", 3, 3700.0, 100.0, (None,), ({"t": {"0": 4_000_000}},), (stage,))
    work = read_work(hour, 4_000_000.0, ())
    assert work is not None
    assert work.done == pytest.approx(1000 * (3000 + 4 * part(2, 14 / 3)))
    assert work.left_busy_s == pytest.approx(14_000 / 3 - 8)


COLD = replace(
    BATCH,
    rows_age_s=1.0,
    stages=(
        replace(
            SCAN,
            finished=4,
            active=4,
            busy_s=40.0,
            records_in=4000,
            active_s=24.0,
            running=(*(RunningTask(n, 4.0, 900.0) for n in (4, 5)), *(RunningTask(n, 8.0, 0.0) for n in (6, 7))),
        ),
    ),
)
"""Tasks of 10 s: four have ended, two work, and two run on executors that start their Python."""


def test_a_task_that_has_read_nothing_has_done_nothing_beside_others_that_work() -> None:
    work = read_work(COLD, 8000.0, ())
    assert work is not None
    assert work.done == pytest.approx(1000 * (4 + 2 * part(4, 10)))
    assert work.busy_s == 40.0 + 24.0  # their slots are taken
    young = replace(COLD.stages[0], running=tuple(RunningTask(n, 1.2, 0.0) for n in (4, 5, 6, 7)))
    work = read_work(replace(COLD, stages=(young,)), 8000.0, ())  # their first heartbeat is to come
    assert work is not None
    assert work.done == pytest.approx(1000 * (4 + 4 * part(1.2, 10)))


def test_a_task_that_was_silent_works_from_its_first_record_on() -> None:
    reader = WorkReader()
    reader.read(COLD, 8000.0, (), -1.0)
    [stage] = COLD.stages
    warm = tuple(replace(task, age_s=task.age_s + 5, records=950.0) for task in stage.running)
    later = replace(COLD, at_s=118.0, stages=(replace(stage, running=warm, active_s=44.0),))
    work = reader.read(later, 8000.0, (), -1.0)
    assert work is not None
    # It was silent at 113 s by a report of 112 s: half of the six seconds since then.
    assert work.done == pytest.approx(1000 * (4 + 2 * part(9, 10) + 2 * part(3, 10)))
    work = reader.read(replace(later, at_s=119.0, stages=(replace(stage, running=warm),)), 8000.0, (), -1.0)
    assert work is not None
    assert work.done == pytest.approx(1000 * (4 + 2 * part(9, 10) + 2 * part(4, 10)))
